/* Theory of operation: a request's body that is kept until it is whole, since its hash is signed, or it may be changed,
 * and the signature and the length stand in the head, which goes first.
 *
 *   HTTP_KEEP   the client's bytes go to kept: framing and all, and the content among them into the hash; or the
 *               content alone, where placeholders are swapped in it
 *               whole ──> the request goes on; its body comes from kept then instead of from the client
 *
 * A client that waits for "100 Continue" gets it from us: the origin has not been asked yet. What is kept is charged to
 * the budget of all connections. Too large a body is refused as soon as that is known.
 */
#include "proxy/http_secret_body.h"
#include "proxy/http_state.h"
#include "proxy/terminator.h"

#include <errno.h>

static const struct sigv4_crypto *crypto_of(const struct http *http)
{
  return http->proxy->terminator->crypto();
}

void http_keep_drop(struct http *http)
{
  unsigned char hash[SIGV4_HASH_BYTES];

  if (http->digest)
    (void)crypto_of(http)->end(&http->digest, hash);
  budget_give(&http->proxy->budget, http->kept.len);
  buf_wipe(&http->kept);
  http->kept_sent = 0;
  http->has_hash = false;
}

static void refuse_large(struct http *http)
{
  static const struct verdict large = { .reason = REASON_LIMIT_BODY };

  http->close_client = true; /* not all of it has been read, or what was read is not kept */
  http_refuse(http, &large, 0, "it is larger than 16 MiB");
}

void http_keep(struct http *http)
{
  const struct http_body *body = &http->request_body;

  if ((!http->wants_body && !http->swaps) || body->done) {
    http_go_on(http);
    return;
  }
  http->state = HTTP_KEEP;
  http->kept_framing = *body;
  http->active_ms = loop_now_ms(http->proxy->loop);
  loop_timer_set(http->conn->timer, LIMITS_IDLE_MS);
  if (!http->swaps)
    http->digest = crypto_of(http)->begin();
  if (body->kind == HTTP_BODY_LENGTH && body->left > LIMITS_KEPT_BODY_BYTES)
    refuse_large(http);
  else if (!http->digest && !http->swaps)
    http_fail_memory(http);
  else if (http->expects && !http->in.len &&
           sock_send(&http->conn->client, SPAN("HTTP/1.1 100 Continue\r\n\r\n"), false) < 0)
    http->state = HTTP_END;
}

/* 0, or -errno when it has dealt with an error. */
static int keep(struct http *http, struct span bytes)
{
  if (http->kept.len + bytes.len > LIMITS_KEPT_BODY_BYTES) {
    refuse_large(http);
    return -EFBIG;
  }
  if (http_hold(http, &http->kept, bytes))
    return 0;
  http_fail_memory(http);
  return -ENOBUFS;
}

/* Takes what of bytes belongs to the body. Returns how many bytes do, or -errno when it has dealt with an error. */
static ssize_t take(struct http *http, struct span bytes)
{
  static const struct verdict broken = { .reason = REASON_BAD_REQUEST };
  struct http_body *body = &http->request_body;
  size_t at = 0;

  while (at < bytes.len && !body->done) {
    struct span rest = span_sub(bytes, at, bytes.len);
    size_t content = http_body_content(body, rest);
    size_t len;

    if (http_body_take(body, span_sub(rest, 0, content ? content : 1), &len) < 0) {
      http_refuse(http, &broken, 0, "the framing of the body is broken");
      return -EBADMSG;
    }
    if (content && http->digest && !crypto_of(http)->add(http->digest, span_sub(rest, 0, content))) {
      http_fail_memory(http);
      return -ENOMEM;
    }
    if (content && http->swaps && keep(http, span_sub(rest, 0, content)) < 0)
      return -ENOBUFS;
    at += len;
  }
  if (!http->swaps && keep(http, span_sub(bytes, 0, at)) < 0)
    return -ENOBUFS;
  http->active_ms = loop_now_ms(http->proxy->loop);
  return (ssize_t)at;
}

/* The body is whole: it is sent from its beginning. */
static void finish(struct http *http)
{
  unsigned char hash[SIGV4_HASH_BYTES];

  if (http->swaps) {
    http_secret_body_kept(http);
    return;
  }
  if (!crypto_of(http)->end(&http->digest, hash)) {
    http_fail_memory(http);
    return;
  }
  sigv4_print_hex(hash, http->hash);
  http->has_hash = true;
  http->request_body = http->kept_framing;
  http_go_on(http);
}

static bool take_from_client(struct http *http)
{
  struct proxy *proxy = http->proxy;
  struct span bytes;
  ssize_t n;

  if (http->reads_left == 0)
    return false;
  n = sock_recv(&http->conn->client, proxy->scratch, sizeof proxy->scratch);
  if (n == -EAGAIN)
    return false;
  http->reads_left--;
  if (n <= 0) {
    http->state = HTTP_END;
    return true;
  }
  bytes = (struct span){ .ptr = proxy->scratch, .len = (size_t)n };
  n = take(http, bytes);
  /* A read went past the end of the body: the rest begins the next request. */
  if (n >= 0 && (size_t)n < bytes.len && !http_hold(http, &http->in, span_sub(bytes, (size_t)n, bytes.len)))
    http_fail_memory(http);
  return true;
}

bool http_keep_step(struct http *http)
{
  if (http->request_body.done) {
    finish(http);
    return true;
  }
  if (http->in.len) {
    ssize_t n = take(http, buf_span(&http->in));

    if (n >= 0)
      http_drop(http, &http->in, (size_t)n);
    return true;
  }
  return take_from_client(http);
}
