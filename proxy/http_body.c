#include "proxy/http_body.h"

#include "base/mem.h"
#include "base/num.h"

#include <errno.h>

/* Where a chunked body stands. Each value names what the next byte has to be; from STEP_TRAILER on, of the trailer. */
enum step {
  STEP_SIZE_FIRST, /* first digit of a chunk's size */
  STEP_SIZE, /* a digit, ';' or CR */
  STEP_EXTENSION, /* a byte of the extensions, or CR */
  STEP_SIZE_LF,
  STEP_DATA,
  STEP_DATA_CR,
  STEP_DATA_LF,
  STEP_TRAILER, /* first byte of a trailer field, or the CR that ends the body */
  STEP_TRAILER_NAME,
  STEP_TRAILER_VALUE,
  STEP_TRAILER_LF,
  STEP_END_LF,
};

/* Trailer fields that a recipient could merge into the head and then route, frame or authenticate by. RFC 9110, 6.5.1
 * bars them. */
static const char *const barred[] = {
  "authorization",     "connection",   "content-encoding", "content-length",
  "content-range",     "content-type", "cookie",           "host",
  "set-cookie",        "te",           "trailer",          "upgrade",
  "transfer-encoding",
};

static int framing(const struct http_head *head, struct err *err, struct http_body *body)
{
  size_t encodings;
  size_t lengths;
  const struct http_field *encoding = http_head_find(head, "transfer-encoding", &encodings);
  const struct http_field *length = http_head_find(head, "content-length", &lengths);

  *body = (struct http_body){ .kind = HTTP_BODY_NONE, .done = true };
  if (encoding && length)
    return err_set(err, EBADMSG, "both Content-Length and Transfer-Encoding are given");
  if (encodings > 1 || lengths > 1)
    return err_set(err, EBADMSG, "Content-Length or Transfer-Encoding is given twice");
  if (encoding) {
    if (head->minor == 0)
      return err_set(err, EBADMSG, "Transfer-Encoding is given in HTTP/1.0");
    if (!span_equal_nocase(encoding->value, SPAN("chunked")))
      return err_set(err, EBADMSG, "the transfer coding is not \"chunked\" alone");
    *body = (struct http_body){ .kind = HTTP_BODY_CHUNKED, .step = STEP_SIZE_FIRST };
  } else if (length) {
    if (num_parse_u64(length->value, 0, INT64_MAX, &body->left) < 0)
      return err_set(err, EBADMSG, "Content-Length is not a number");
    body->kind = HTTP_BODY_LENGTH;
    body->done = body->left == 0;
  }
  return 0;
}

int http_body_of_request(const struct http_head *head, struct err *err, struct http_body *ret_body)
{
  return framing(head, err, ret_body);
}

int http_body_of_response(const struct http_head *head, bool to_head, struct err *err, struct http_body *ret_body)
{
  int r = framing(head, err, ret_body);

  if (r < 0)
    return r;
  if (to_head || head->status < 200 || head->status == 204 || head->status == 304)
    *ret_body = (struct http_body){ .kind = HTTP_BODY_NONE, .done = true };
  else if (ret_body->kind == HTTP_BODY_NONE)
    *ret_body = (struct http_body){ .kind = HTTP_BODY_CLOSE };
  return 0;
}

/* A digit of the chunk's size. */
static int take_digit(struct http_body *body, char byte)
{
  uint64_t digit;

  if (num_parse_hex((struct span){ .ptr = &byte, .len = 1 }, &digit) < 0)
    return -EBADMSG;
  /* 15 digits keep the sum far from wrapping (F56); leading zeros count as digits. */
  if (++body->digits > 15)
    return -EBADMSG;
  body->left = body->left << 4 | digit;
  body->step = STEP_SIZE;
  return 0;
}

static int take_size(struct http_body *body, char byte)
{
  if (byte == '\r')
    body->step = STEP_SIZE_LF;
  else if (byte == ';')
    body->step = STEP_EXTENSION;
  else
    return take_digit(body, byte);
  return 0;
}

static int take_extension(struct http_body *body, char byte)
{
  if (++body->used > HTTP_BODY_EXTENSION_MAX)
    return -EBADMSG;
  if (byte == '\r')
    body->step = STEP_SIZE_LF;
  else if (!http_head_is_value((unsigned char)byte))
    return -EBADMSG;
  return 0;
}

static int take_trailer_name(struct http_body *body, char byte)
{
  if (byte == ':') {
    for (size_t i = 0; i < MEM_COUNT(barred); i++)
      if (span_equal_str((struct span){ .ptr = body->name, .len = body->name_len }, barred[i]))
        return -EBADMSG;
    body->step = STEP_TRAILER_VALUE;
    return 0;
  }
  if (!http_head_is_token((unsigned char)byte))
    return -EBADMSG;
  /* A name that fills the array is longer than every barred one. */
  if (body->name_len < sizeof body->name)
    body->name[body->name_len++] = span_lower(byte);
  body->step = STEP_TRAILER_NAME;
  return 0;
}

static int take_trailer(struct http_body *body, char byte)
{
  if (++body->used > HTTP_BODY_TRAILER_MAX)
    return -EBADMSG;
  switch (body->step) {
  case STEP_TRAILER:
    if (byte == '\r') {
      body->step = STEP_END_LF;
      return 0;
    }
    body->name_len = 0;
    return byte == ':' ? -EBADMSG : take_trailer_name(body, byte);
  case STEP_TRAILER_NAME:
    return take_trailer_name(body, byte);
  case STEP_TRAILER_VALUE:
    if (byte == '\r')
      body->step = STEP_TRAILER_LF;
    else if (!http_head_is_value((unsigned char)byte))
      return -EBADMSG;
    return 0;
  default:
    return -EBADMSG;
  }
}

/* A byte that has to be LF, or CR after a chunk's data. */
static int take_line_end(struct http_body *body, char byte)
{
  if (byte != (body->step == STEP_DATA_CR ? '\r' : '\n'))
    return -EBADMSG;
  switch (body->step) {
  case STEP_SIZE_LF:
    body->step = body->left ? STEP_DATA : STEP_TRAILER;
    body->used = 0;
    break;
  case STEP_DATA_CR:
    body->step = STEP_DATA_LF;
    break;
  case STEP_DATA_LF:
    body->step = STEP_SIZE_FIRST;
    body->digits = 0;
    break;
  case STEP_TRAILER_LF:
    body->step = STEP_TRAILER;
    break;
  default:
    body->done = true;
    break;
  }
  return 0;
}

static int take_byte(struct http_body *body, char byte)
{
  switch (body->step) {
  case STEP_SIZE_FIRST:
    return take_digit(body, byte);
  case STEP_SIZE:
    return take_size(body, byte);
  case STEP_EXTENSION:
    return take_extension(body, byte);
  case STEP_TRAILER:
  case STEP_TRAILER_NAME:
  case STEP_TRAILER_VALUE:
    return take_trailer(body, byte);
  case STEP_DATA:
    return -EBADMSG;
  case STEP_SIZE_LF:
  case STEP_DATA_CR:
  case STEP_DATA_LF:
  case STEP_TRAILER_LF:
  case STEP_END_LF:
    return take_line_end(body, byte);
  default:
    return -EBADMSG;
  }
}

/* Skips what bytes hold of the counted data; returns how many. */
static size_t take_counted(struct http_body *body, size_t available)
{
  size_t n = available < body->left ? available : (size_t)body->left;

  body->left -= n;
  return n;
}

static int take_chunked(struct http_body *body, struct span bytes, size_t *ret_len)
{
  size_t at = 0;

  body->trailer = 0;
  while (at < bytes.len && !body->done) {
    int r;

    if (body->step == STEP_DATA) {
      at += take_counted(body, bytes.len - at);
      if (!body->left)
        body->step = STEP_DATA_CR;
      continue;
    }
    body->trailer += body->step >= STEP_TRAILER;
    r = take_byte(body, bytes.ptr[at]);
    if (r < 0)
      return r;
    at++;
  }
  *ret_len = at;
  return 0;
}

int http_body_take(struct http_body *body, struct span bytes, size_t *ret_len)
{
  switch (body->kind) {
  case HTTP_BODY_NONE:
    *ret_len = 0;
    return 0;
  case HTTP_BODY_LENGTH:
    *ret_len = take_counted(body, bytes.len);
    body->done = body->left == 0;
    return 0;
  case HTTP_BODY_CHUNKED:
    return take_chunked(body, bytes, ret_len);
  case HTTP_BODY_CLOSE:
    *ret_len = bytes.len;
    return 0;
  default:
    return -EBADMSG;
  }
}

size_t http_body_content(const struct http_body *body, struct span bytes)
{
  if (body->kind == HTTP_BODY_CLOSE)
    return bytes.len;
  if (body->kind != HTTP_BODY_LENGTH && (body->kind != HTTP_BODY_CHUNKED || body->step != STEP_DATA))
    return 0;
  return bytes.len < body->left ? bytes.len : (size_t)body->left;
}

bool http_body_fits(const struct http_body *body, struct span bytes)
{
  struct http_body copy = *body;
  size_t len;

  return http_body_take(&copy, bytes, &len) == 0;
}
