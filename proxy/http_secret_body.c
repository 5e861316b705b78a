/* Theory of operation: credentials and bodies.
 *
 *   of a request    kept whole before it is sent where it is the place of a credential that is bound to the target
 *                   (http_keep.c), and sent with the values in place of the placeholders and a new Content-Length; any
 *                   placeholder that is sent all the same is worthless, and noted for the audit
 *   of a response   from a target that a credential with "scrub": "body" is bound to, values are masked while it
 *                   streams; only what may begin a value waits for what comes behind it
 *
 * What is searched is the content, without its framing. A value may begin in one chunk and end in the next, so a
 * chunked response is cut into chunks of our own. What hides the content from the search is not asked for (a content
 * coding), or would show a value in parts (a range), and a response with either is refused all the same; nor is a
 * WebSocket opened there.
 */
#include "proxy/http_secret_body.h"

#include "proxy/http_shared.h"
#include "proxy/http_state.h"
#include "proxy/inject_sign.h"
#include "proxy/values.h"

#include <errno.h>

void http_secret_body_drop(struct http *http)
{
  http_drop(http, &http->watched, http->watched.len);
  http_drop(http, &http->scrub_held, http->scrub_held.len);
  http->scrub_masked = 0;
  http->scrub_ended = false;
}

/* Requests. */

int http_secret_body_watch(struct http *http, struct http_body *framing, struct span bytes)
{
  size_t at = 0;
  size_t len;

  /* What was kept to be swapped has been looked at, and holds values now. */
  if (http->resized || !http_shared_watches(http->proxy->values, http->in_body))
    return 0;
  for (; at < bytes.len; at += len) {
    struct span rest = span_sub(bytes, at, bytes.len);
    size_t content = http_body_content(framing, rest);

    if (content && !http_hold(http, &http->watched, span_sub(rest, 0, content)))
      return -ENOBUFS;
    (void)http_body_take(framing, span_sub(rest, 0, content ? content : 1), &len); /* it has been looked at */
  }
  http->in_body = http_shared_watch(http->proxy->values, http->in_body, buf_span(&http->watched), framing->done, &len);
  http_drop(http, &http->watched, len);
  return 0;
}

static void fail_swap(struct http *http, int code, const char *cause)
{
  static const struct verdict large = { .reason = REASON_LIMIT_BODY };

  http_keep_drop(http);
  http->request_body.done = true; /* the client has sent all of it */
  if (code == -ENOBUFS)
    http_refuse(http, &large, 0, cause);
  else if (code == -EINVAL)
    http_fail(http, REASON_CREDENTIAL_UNAVAILABLE, cause);
  else
    http_fail(http, REASON_LIMIT, cause);
}

/* The values are there. */
static void swap(struct http *http)
{
  struct buf out = BUF_INIT(LIMITS_KEPT_BODY_BYTES);
  const struct inject_secret *list;
  struct err err = ERR_INIT;
  size_t count;
  int r;

  list = values_list(http->proxy->values, &count);
  r = inject_body_swap(list, count, http->wanted & http->swaps, buf_span(&http->kept), http->writing, &err, &out);
  if (r == 0 && !budget_take(&http->proxy->budget, out.len))
    r = err_set(&err, ENOMEM, "the proxy's memory is used up");
  if (r < 0) {
    buf_wipe(&out);
    fail_swap(http, r, err.message);
    return;
  }
  http_drop(http, &http->kept, http->kept.len);
  http->kept = out;
  http->request_body.left = out.len;
  http_go_on(http);
}

static void on_values(void *data, const char *error)
{
  struct http *http = data;

  if (error)
    fail_swap(http, -EINVAL, error);
  else
    swap(http);
  http_advance(http);
}

void http_secret_body_kept(struct http *http)
{
  size_t done;
  inject_set found;
  int r;

  found = http_shared_watch(http->proxy->values, 0, buf_span(&http->kept), true, &done);
  http->in_body = found & ~http->swaps;
  found &= http->swaps;
  http->resized = true;
  http->request_body =
      (struct http_body){ .kind = HTTP_BODY_LENGTH, .left = http->kept.len, .done = http->kept.len == 0 };
  if (!found) {
    http_go_on(http);
    return;
  }
  http->wanted |= found;
  http->concerned |= found;
  r = values_want(http->proxy->values, http->wanted, on_values, http, &http->values_waiter);
  if (r > 0) {
    swap(http);
  } else if (r == 0) {
    http->state = HTTP_SECRET;
    loop_timer_stop(http->conn->timer); /* sbx answers after a bounded time */
  } else {
    fail_swap(http, -ENOMEM, NULL);
  }
}

/* Responses. */

void http_secret_body_ask(struct http *http, struct http_head *head)
{
  if (!http->scrubs)
    return;
  /* No room for one more field: the response is looked at all the same. */
  (void)inject_set_field(head, SPAN("Accept-Encoding"), SPAN("identity"));
  http_head_drop(head, "range");
  http_head_drop(head, "if-range");
  http_head_drop(head, "upgrade");
  http->upgrade = false;
}

const char *http_secret_body_hides(const struct http *http, const struct http_head *head)
{
  if (!http->scrubs || http->response_body.done)
    return NULL;
  if (inject_body_is_coded(head))
    return "its body has a Content-Encoding, though none was asked for, and cannot be searched for the values of a "
           "credential with \"scrub\": \"body\"";
  if (head->status == 206)
    return "it is a part of a body, though the whole was asked for, and may hold a part of the value of a credential "
           "with \"scrub\": \"body\"";
  return NULL;
}

/* Sends content on, in a chunk where there are any. */
static int send_content(struct http *http, struct span content)
{
  buf_autofree struct buf chunk = BUF_INIT(INJECT_BODY_RESPONSE_MAX + LIMITS_RELAY_BYTES + 64);

  if (!content.len)
    return 0;
  if (http->response_body.kind != HTTP_BODY_CHUNKED)
    return sock_send(&http->conn->client, content, false);
  buf_reserve(&chunk, content.len + 64);
  buf_printf(&chunk, "%zx\r\n", content.len);
  buf_append(&chunk, content);
  buf_append_str(&chunk, "\r\n");
  return buf_error(&chunk) ? -ENOBUFS : sock_send(&http->conn->client, buf_span(&chunk), false);
}

/* Sends what is known to be no part of a value that goes on. */
static int send_searched(struct http *http, bool end)
{
  buf_autofree struct buf out = BUF_INIT(http->scrub_held.max);
  const struct inject_secret *list;
  struct span text;
  ssize_t found;
  size_t count;
  int r;

  list = values_known(http->proxy->values, &count);
  found = inject_body_scrub(list, count, buf_span(&http->scrub_held), end, &http->scrub_masked, &out, &text);
  if (found < 0)
    return -ENOBUFS;
  http->scrubbed += (size_t)found;
  r = send_content(http, text);
  http_drop(http, &http->scrub_held, text.len);
  return r;
}

/* The last chunk has come; what follows is the trailer. */
static int end_chunks(struct http *http)
{
  int r = send_searched(http, true);

  http->scrub_ended = true;
  return r < 0 ? r : sock_send(&http->conn->client, SPAN("0\r\n"), true);
}

int http_secret_body_scrub(struct http *http, struct span bytes, size_t *ret_len)
{
  struct http_body *body = &http->response_body;
  size_t at = 0;
  size_t len;

  for (; at < bytes.len && !body->done; at += len) {
    struct span rest = span_sub(bytes, at, bytes.len);
    size_t content = http_body_content(body, rest);
    int r = http_body_take(body, span_sub(rest, 0, content ? content : 1), &len);

    if (r == 0 && content)
      r = http_hold(http, &http->scrub_held, span_sub(rest, 0, content)) ? 0 : -ENOBUFS;
    if (r == 0 && !content && body->trailer && !http->scrub_ended)
      r = end_chunks(http);
    if (r == 0 && !content && body->trailer)
      r = http_secret_trailer(http, span_sub(rest, 0, len));
    if (r < 0)
      return r;
  }
  *ret_len = at;
  return http->scrub_ended ? 0 : send_searched(http, body->done);
}

int http_secret_body_end(struct http *http)
{
  return http->scrubs ? send_searched(http, true) : 0;
}
