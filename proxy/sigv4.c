/* Theory of operation
 *
 * A signature is over the canonical request, a text that client and server make each by itself from what is sent:
 *
 *   METHOD \n path \n query \n name:value\n of each signed header \n signed names \n hash of the body
 *
 * Its hash goes with the time and the scope into the string to sign, and that is signed with a key made from the secret
 * key and the scope.
 *
 * The path: storage (S3) takes it as it is in the request line, since "//" and ".." may be parts of an object's name.
 * All other services resolve those and encode the result once more, so that "%20" becomes "%2520". The query is sorted
 * by name and then by value, each in the one encoding that leaves nothing but unreserved bytes (RFC 3986, 2.3) as they
 * are. Of a header white space does not count at the ends, and counts as one space inside; fields of one name are
 * joined.
 */
#include "proxy/sigv4.h"

#include "base/clock.h"
#include "base/mem.h"
#include "policy/inject_find.h"
#include "proxy/inject_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DATE_BYTES 8 /* 20150830 */
#define TIME_BYTES 16 /* 20150830T123600Z */
#define SCHEME "AWS4-HMAC-SHA256"

/* Services whose paths are taken as they are. */
static const char *const storage[] = { "s3", "s3express", "s3-outposts", "s3-object-lambda" };

struct parameter {
  struct span name;
  struct span value;
};

static bool is_hex(struct span text)
{
  for (size_t i = 0; i < text.len; i++)
    if (!span_is_digit(text.ptr[i]) && (text.ptr[i] < 'a' || text.ptr[i] > 'f'))
      return false;
  return text.len == SIGV4_HEX_BYTES;
}

static bool are_digits(struct span text)
{
  for (size_t i = 0; i < text.len; i++)
    if (!span_is_digit(text.ptr[i]))
      return false;
  return true;
}

/* ID/DATE/REGION/SERVICE/aws4_request. */
static bool read_scope(struct span text, struct sigv4_auth *auth)
{
  struct span part[5];
  struct span rest = text;

  for (size_t i = 0; i < MEM_COUNT(part); i++)
    if (!span_split(&rest, '/', &part[i]) || part[i].len == 0)
      return false;
  auth->id = part[0];
  auth->scope = span_sub(text, part[0].len + 1, text.len);
  auth->date = part[1];
  auth->region = part[2];
  auth->service = part[3];
  return !rest.ptr && part[1].len == DATE_BYTES && are_digits(part[1]) && span_equal(part[4], SPAN("aws4_request"));
}

int sigv4_compare(struct span a, struct span b)
{
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

  return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Lower case and ascending, so that each is there once. */
static bool are_names(struct span text)
{
  struct span before = SPAN("");
  struct span name;

  while (span_split(&text, ';', &name)) {
    for (size_t i = 0; i < name.len; i++)
      if (!http_head_is_token((unsigned char)name.ptr[i]) || span_lower(name.ptr[i]) != name.ptr[i])
        return false;
    if (sigv4_compare(before, name) >= 0)
      return false;
    before = name;
  }
  return before.len > 0;
}

bool sigv4_read(struct span value, struct sigv4_auth *ret_auth)
{
  struct sigv4_auth auth = { 0 };
  struct span rest = span_sub(value, sizeof SCHEME - 1, value.len);
  struct span part;
  struct span credential = SPAN("");
  struct span *const parts[] = { &credential, &auth.signed_names, &auth.signature };
  static const char *const names[] = { "Credential=", "SignedHeaders=", "Signature=" };

  if (!span_equal(span_sub(value, 0, sizeof SCHEME), SPAN(SCHEME " ")))
    return false;
  while (span_split(&rest, ',', &part)) {
    bool known = false;

    part = span_trim(part);
    for (size_t i = 0; i < MEM_COUNT(names); i++) {
      if (parts[i]->len == 0 && span_starts_with(part, span_of(names[i]))) {
        *parts[i] = span_sub(part, strlen(names[i]), part.len);
        known = true;
      }
    }
    if (!known)
      return false;
  }
  if (!read_scope(credential, &auth) || !are_names(auth.signed_names) || !is_hex(auth.signature))
    return false;
  *ret_auth = auth;
  return true;
}

bool sigv4_signs(const struct sigv4_auth *auth, struct span name)
{
  struct span rest = auth->signed_names;
  struct span part;

  while (span_split(&rest, ';', &part))
    if (span_equal(part, name))
      return true;
  return false;
}

static bool has_field(const struct http_head *head, struct span name)
{
  for (size_t i = 0; i < head->field_count; i++)
    if (span_equal_nocase(head->fields[i].name, name))
      return true;
  return false;
}

/* 20150830T123600Z, of the day. */
static bool is_time(struct span text, struct span date)
{
  return text.len == TIME_BYTES && span_starts_with(text, date) && text.ptr[8] == 'T' && text.ptr[15] == 'Z' &&
         are_digits(span_sub(text, 9, 6));
}

bool sigv4_is_whole(const struct sigv4_auth *auth, const struct http_head *head)
{
  size_t count;
  const struct http_field *time = http_head_find(head, "x-amz-date", &count);
  struct span rest = auth->signed_names;
  struct span name;
  size_t names = 0;

  if (count != 1 || !is_time(time->value, auth->date) || !sigv4_signs(auth, SPAN("host")))
    return false;
  while (span_split(&rest, ';', &name))
    if (++names > LIMITS_HTTP_FIELDS || !has_field(head, name))
      return false;
  return true;
}

bool sigv4_time(const struct http_head *head, uint64_t *ret_real_ms)
{
  const struct http_field *time = http_head_find(head, "x-amz-date", NULL);
  const char *at = time && time->value.len == TIME_BYTES ? time->value.ptr : NULL;
  char text[CLOCK_TEXT_MAX];

  if (!at)
    return false;
  snprintf(text, sizeof text, "%.4s-%.2s-%.5s:%.2s:%.3s", at, at + 4, at + 6, at + 11, at + 13);
  return clock_parse(span_of(text), ret_real_ms) == 0;
}

enum sigv4_body sigv4_body_of(const struct http_head *head)
{
  size_t count;
  const struct http_field *field = http_head_find(head, "x-amz-content-sha256", &count);

  if (count == 0)
    return SIGV4_BODY_ABSENT;
  if (count > 1)
    return SIGV4_BODY_BAD;
  if (is_hex(field->value) || span_equal(field->value, SPAN("UNSIGNED-PAYLOAD")) ||
      span_equal(field->value, SPAN("STREAMING-UNSIGNED-PAYLOAD-TRAILER")))
    return SIGV4_BODY_GIVEN;
  return span_starts_with(field->value, SPAN("STREAMING-")) ? SIGV4_BODY_CHUNKS : SIGV4_BODY_BAD;
}

void sigv4_print_hex(const unsigned char hash[SIGV4_HASH_BYTES], char ret_hex[SIGV4_HEX_BYTES])
{
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < SIGV4_HASH_BYTES; i++) {
    ret_hex[2 * i] = digits[hash[i] >> 4];
    ret_hex[2 * i + 1] = digits[hash[i] & 15];
  }
}

/* The canonical request. */

static void append_encoded(char byte, bool slash, struct buf *out)
{
  if (span_is_alpha(byte) || span_is_digit(byte) || (byte && strchr("-._~", byte)) || (slash && byte == '/'))
    buf_append_byte(out, byte);
  else
    buf_printf(out, "%%%02X", (unsigned char)byte);
}

static bool is_storage(struct span service)
{
  for (size_t i = 0; i < MEM_COUNT(storage); i++)
    if (span_equal_str(service, storage[i]))
      return true;
  return false;
}

/* Drops the last segment of what stands in out from start on. */
static void drop_segment(struct buf *out, size_t start)
{
  size_t slash = span_find_last(span_sub(buf_span(out), start, out->len), '/');

  if (out->len > start)
    out->len = start + (slash < out->len - start ? slash : 0);
}

/* Without empty segments, "." and "..", each segment encoded once more. */
static void append_resolved(struct span path, struct buf *out)
{
  size_t start = out->len;
  bool open = path.len > 0 && path.ptr[path.len - 1] == '/';
  struct span rest = path;
  struct span segment;

  while (span_split(&rest, '/', &segment)) {
    bool up = span_equal(segment, SPAN(".."));

    if (up)
      drop_segment(out, start);
    if (up || segment.len == 0 || span_equal(segment, SPAN(".")))
      continue;
    buf_append_byte(out, '/');
    for (size_t i = 0; i < segment.len; i++)
      append_encoded(segment.ptr[i], false, out);
  }
  if (open || out->len == start)
    buf_append_byte(out, '/');
}

static void append_path(struct span service, struct span path, struct buf *out)
{
  if (!is_storage(service))
    append_resolved(path, out);
  else if (path.len > 0)
    buf_append(out, path);
  else
    buf_append_byte(out, '/');
}

static struct span append_decoded(struct span text, struct buf *out)
{
  size_t start = out->len;

  for (size_t at = 0; at < text.len;) {
    char byte;

    at += inject_unescape(text, at, &byte);
    append_encoded(byte, false, out);
  }
  return span_sub(buf_span(out), start, out->len);
}

static int compare_parameters(const void *a, const void *b)
{
  const struct parameter *left = a;
  const struct parameter *right = b;
  int order = sigv4_compare(left->name, right->name);

  return order ? order : sigv4_compare(left->value, right->value);
}

static int append_query(struct span target, struct buf *out)
{
  struct span rest = inject_query_of(target);
  buf_autowipe struct buf text = BUF_INIT(3 * LIMITS_HTTP_HEAD_BYTES);
  mem_autofree struct parameter *parameters = NULL;
  struct inject_parameter parameter;
  size_t count = 0;

  if (rest.len == 0)
    return 0;
  parameters = mem_calloc(SIGV4_PARAMETERS_MAX, sizeof *parameters);
  if (!parameters)
    return -ENOMEM;
  buf_reserve(&text, 3 * rest.len);
  while (inject_next_parameter(&rest, &parameter)) {
    if (parameter.all.len == 0)
      continue;
    if (count == SIGV4_PARAMETERS_MAX)
      return -E2BIG;
    parameters[count].name = append_decoded(parameter.name, &text);
    parameters[count++].value = append_decoded(parameter.value, &text);
  }
  qsort(parameters, count, sizeof *parameters, compare_parameters);
  for (size_t i = 0; i < count; i++) {
    if (i > 0)
      buf_append_byte(out, '&');
    buf_append(out, parameters[i].name);
    buf_append_byte(out, '=');
    buf_append(out, parameters[i].value);
  }
  return buf_error(&text);
}

/* With one space for each run of white space. */
static void append_value(struct span value, struct buf *out)
{
  bool space = false;

  for (size_t i = 0; i < value.len; i++) {
    char byte = value.ptr[i] == '\t' ? ' ' : value.ptr[i];

    if (byte != ' ' || !space)
      buf_append_byte(out, byte);
    space = byte == ' ';
  }
}

static void append_fields(const struct http_head *head, struct span names, struct buf *out)
{
  struct span name;

  while (span_split(&names, ';', &name)) {
    bool first = true;

    buf_append(out, name);
    for (size_t i = 0; i < head->field_count; i++) {
      if (!span_equal_nocase(head->fields[i].name, name))
        continue;
      buf_append_byte(out, first ? ':' : ',');
      append_value(head->fields[i].value, out);
      first = false;
    }
    buf_append_str(out, first ? ":\n" : "\n");
  }
}

/* No more bytes than the canonical request can have, so that nothing moves (buf_reserve). */
static size_t most(const struct http_head *head, const struct sigv4_auth *auth)
{
  size_t len = head->method.len + 3 * head->target.len + 2 * auth->signed_names.len + 2 * SIGV4_PARAMETERS_MAX + 256;

  for (size_t i = 0; i < head->field_count; i++)
    len += head->fields[i].name.len + head->fields[i].value.len + 2;
  return len;
}

static int hash_request(const struct sigv4_crypto *crypto, const struct http_head *head, const struct sigv4_auth *auth,
                        struct span body, char ret_hex[SIGV4_HEX_BYTES])
{
  buf_autowipe struct buf text = BUF_INIT(8 * LIMITS_HTTP_HEAD_BYTES);
  const struct http_field *given = http_head_find(head, "x-amz-content-sha256", NULL);
  unsigned char hash[SIGV4_HASH_BYTES];
  int r;

  buf_reserve(&text, most(head, auth));
  buf_append(&text, head->method);
  buf_append_byte(&text, '\n');
  append_path(auth->service, inject_path_of(head->target), &text);
  buf_append_byte(&text, '\n');
  r = append_query(head->target, &text);
  if (r < 0)
    return r;
  buf_append_byte(&text, '\n');
  append_fields(head, auth->signed_names, &text);
  buf_append_byte(&text, '\n');
  buf_append(&text, auth->signed_names);
  buf_append_byte(&text, '\n');
  buf_append(&text, given ? given->value : body);
  if (buf_error(&text))
    return buf_error(&text);
  if (!crypto->hash(buf_span(&text), hash))
    return -ENOMEM;
  sigv4_print_hex(hash, ret_hex);
  return 0;
}

/* The key of the day, region and service. */
static bool make_key(const struct sigv4_crypto *crypto, const struct sigv4_auth *auth, struct span secret,
                     unsigned char key[SIGV4_HASH_BYTES])
{
  const struct span steps[] = { auth->date, auth->region, auth->service, SPAN("aws4_request") };
  const struct span whole = { (const char *)key, SIGV4_HASH_BYTES };
  buf_autowipe struct buf first = BUF_INIT(2 * LIMITS_SECRET_BYTES);
  unsigned char next[SIGV4_HASH_BYTES];
  bool good;

  buf_reserve(&first, sizeof "AWS4" + secret.len);
  buf_append_str(&first, "AWS4");
  buf_append(&first, secret);
  good = !buf_error(&first);
  for (size_t i = 0; good && i < MEM_COUNT(steps); i++) {
    good = crypto->mac(i == 0 ? buf_span(&first) : whole, steps[i], next);
    memcpy(key, next, sizeof next);
  }
  mem_wipe(next, sizeof next);
  return good;
}

int sigv4_sign(const struct sigv4_crypto *crypto, const struct http_head *head, const struct sigv4_auth *auth,
               struct span body, struct span secret, char ret_signature[SIGV4_HEX_BYTES])
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 256);
  const struct http_field *time = http_head_find(head, "x-amz-date", NULL);
  unsigned char key[SIGV4_HASH_BYTES] = { 0 };
  unsigned char mac[SIGV4_HASH_BYTES];
  char hex[SIGV4_HEX_BYTES];
  int r = hash_request(crypto, head, auth, body, hex);

  if (r < 0)
    return r;
  buf_append_str(&text, SCHEME "\n");
  buf_append(&text, time->value);
  buf_append_byte(&text, '\n');
  buf_append(&text, auth->scope);
  buf_append_byte(&text, '\n');
  buf_append(&text, (struct span){ hex, sizeof hex });
  if (buf_error(&text) || !make_key(crypto, auth, secret, key) ||
      !crypto->mac((struct span){ (const char *)key, sizeof key }, buf_span(&text), mac))
    r = -ENOMEM;
  else
    sigv4_print_hex(mac, ret_signature);
  mem_wipe(key, sizeof key);
  return r;
}
