#include "proxy/parent_reply.h"

#include "base/base64.h"
#include "proxy/http_head.h"

#include <errno.h>
#include <string.h>

#define SOCKS_VERSION 5
#define SOCKS_NO_LOGIN 0
#define SOCKS_LOGIN 2
#define SOCKS_NO_METHOD 0xff
#define LOGIN_VERSION 1

void parent_append_authorization(const struct upstream *upstream, struct buf *out)
{
  buf_autowipe struct buf login = BUF_INIT(2 * UPSTREAM_WORD_BYTES + 1);

  if (!upstream->has_login)
    return;
  buf_reserve(&login, 2 * UPSTREAM_WORD_BYTES + 1);
  buf_append_str(&login, upstream->user);
  buf_append_byte(&login, ':');
  buf_append_str(&login, upstream->password);
  buf_append_str(out, "Proxy-Authorization: Basic ");
  base64_append(buf_span(&login), out);
  buf_append_str(out, "\r\n");
}

void parent_append_connect(const struct upstream *upstream, const struct host *host, uint16_t port, struct buf *out)
{
  buf_append_str(out, "CONNECT ");
  host_print_target(host, port, out);
  buf_append_str(out, " HTTP/1.1\r\nHost: ");
  host_print_target(host, port, out);
  buf_append_str(out, "\r\n");
  parent_append_authorization(upstream, out);
  buf_append_str(out, "\r\n");
}

void parent_append_methods(const struct upstream *upstream, struct buf *out)
{
  buf_append_byte(out, SOCKS_VERSION);
  buf_append_byte(out, upstream->has_login ? 2 : 1);
  buf_append_byte(out, SOCKS_NO_LOGIN);
  if (upstream->has_login)
    buf_append_byte(out, SOCKS_LOGIN);
}

static void append_word(const char *word, struct buf *out)
{
  buf_append_byte(out, (char)strlen(word));
  buf_append_str(out, word);
}

void parent_append_login(const struct upstream *upstream, struct buf *out)
{
  buf_append_byte(out, LOGIN_VERSION);
  append_word(upstream->user, out);
  append_word(upstream->password, out);
}

void parent_append_request(const struct host *host, uint16_t port, struct buf *out)
{
  bool v4 = host->kind == HOST_ADDR && host->addr.family == ADDR_V4;

  buf_append(out, SPAN("\x05\x01\x00")); /* version, CONNECT, reserved */
  buf_append_byte(out, host->kind == HOST_NAME ? 3 : v4 ? 1 : 4);
  if (host->kind == HOST_NAME)
    append_word(host->name, out);
  else
    buf_append(out, (struct span){ .ptr = (const char *)host->addr.bytes, .len = v4 ? 4 : 16 });
  buf_append_byte(out, (char)(port >> 8));
  buf_append_byte(out, (char)(port & 0xff));
}

/* Who cannot reach the target says so in words that differ between parents; what is not clear is a refusal. */
static enum reason reason_of_status(unsigned status)
{
  if (status >= 200 && status < 300)
    return REASON_ALLOWED;
  if (status == 407)
    return REASON_PARENT_AUTH;
  return status == 504 ? REASON_CONNECT_TIMEOUT : REASON_PARENT_REFUSED;
}

static bool is_response_start(struct span bytes)
{
  return span_starts_with(SPAN("HTTP/1."), span_sub(bytes, 0, sizeof "HTTP/1." - 1));
}

int parent_parse_connect(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  size_t before = 0; /* interim answers (RFC 9110, 15.2) */

  for (;;) {
    struct span rest = span_sub(bytes, before, LIMITS_PARENT_BYTES - before);
    struct http_scan scan = { 0 };
    struct http_head head;
    size_t len = 0;
    int r = http_head_scan(&scan, rest, &len);

    if (r < 0 || !is_response_start(rest) || (r == 0 && bytes.len >= LIMITS_PARENT_BYTES))
      return -EBADMSG;
    if (r == 0)
      return 0;
    if (http_head_parse_response(span_sub(rest, 0, len), NULL, &head) < 0 || head.status == 101)
      return -EBADMSG;
    before += len;
    if (head.status < 200)
      continue;
    *ret_answer = (struct parent_answer){ .reason = reason_of_status(head.status), .code = head.status };
    *ret_len = before;
    return 1;
  }
}

static unsigned byte_at(struct span bytes, size_t index)
{
  return (unsigned char)bytes.ptr[index];
}

int parent_parse_method(struct span bytes, bool has_login, struct parent_answer *ret_answer, size_t *ret_len)
{
  unsigned method;

  if (bytes.len && byte_at(bytes, 0) != SOCKS_VERSION)
    return -EBADMSG;
  if (bytes.len < 2)
    return 0;
  method = byte_at(bytes, 1);
  if (method != SOCKS_NO_LOGIN && method != SOCKS_NO_METHOD && !(method == SOCKS_LOGIN && has_login))
    return -EBADMSG;
  *ret_answer = (struct parent_answer){ .reason = method == SOCKS_NO_METHOD ? REASON_PARENT_AUTH : REASON_ALLOWED,
                                        .code = method };
  *ret_len = 2;
  return 1;
}

int parent_parse_login(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  if (bytes.len && byte_at(bytes, 0) != LOGIN_VERSION)
    return -EBADMSG;
  if (bytes.len < 2)
    return 0;
  *ret_answer = (struct parent_answer){ .reason = byte_at(bytes, 1) ? REASON_PARENT_AUTH : REASON_ALLOWED,
                                        .code = byte_at(bytes, 1) };
  *ret_len = 2;
  return 1;
}

static enum reason reason_of_reply(unsigned reply)
{
  switch (reply) {
  case 0:
    return REASON_ALLOWED;
  case 3: /* network unreachable */
  case 4: /* host unreachable */
    return REASON_CONNECT_FAILED;
  case 5:
    return REASON_CONNECT_REFUSED;
  case 6: /* TTL expired */
    return REASON_CONNECT_TIMEOUT;
  default:
    return REASON_PARENT_REFUSED;
  }
}

int parent_parse_reply(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  size_t len;

  if (bytes.len > 0 && byte_at(bytes, 0) != SOCKS_VERSION)
    return -EBADMSG;
  if (bytes.len < 2)
    return 0;
  *ret_answer = (struct parent_answer){ .reason = reason_of_reply(byte_at(bytes, 1)), .code = byte_at(bytes, 1) };
  *ret_len = 2;
  if (ret_answer->reason != REASON_ALLOWED)
    return 1; /* what follows is of no use, and may not come */
  if (bytes.len > 2 && byte_at(bytes, 2) != 0)
    return -EBADMSG;
  if (bytes.len < 5)
    return bytes.len == 4 && byte_at(bytes, 3) != 1 && byte_at(bytes, 3) != 3 && byte_at(bytes, 3) != 4 ? -EBADMSG : 0;
  switch (byte_at(bytes, 3)) {
  case 1:
    len = 4 + 4 + 2;
    break;
  case 3:
    len = 4 + 1 + byte_at(bytes, 4) + 2;
    break;
  case 4:
    len = 4 + 16 + 2;
    break;
  default:
    return -EBADMSG;
  }
  *ret_len = len;
  return bytes.len >= len;
}
