/* What a request of the HTTP machine (http.c) asks for, and whether it is well formed. */
#include "proxy/http_rewrite.h"
#include "proxy/http_secret_body.h"
#include "proxy/http_state.h"
#include "proxy/stub.h"

#include <errno.h>

struct request http_request_of(const struct http *http)
{
  struct span label = buf_span(&http->label);

  return (struct request){ .method = span_sub(label, 0, http->method_len),
                           .path = span_sub(label, http->method_len, label.len) };
}

/* Methods that may be sent again when a kept connection closes under the first try (RFC 9110, 9.2.2). */
static bool is_repeatable(struct span method)
{
  return span_equal(method, SPAN("GET")) || span_equal(method, SPAN("HEAD")) || span_equal(method, SPAN("OPTIONS"));
}

void http_request_note(struct http *http, const struct http_head *head, const struct http_target *target)
{
  bool whole_server = target->path.len == 0 && span_equal(head->method, SPAN("OPTIONS"));
  struct span path = whole_server ? SPAN("*") : http_target_path(target);
  struct http_head sent;

  http->host = target->host;
  http->port = target->port;
  http->has_host = true;
  http->upgrade = !http->connect && http_rewrite_wants_upgrade(head);
  http->hides = http_rewrite_hides(head);
  http->can_retry = http->request_body.done && !http->upgrade && is_repeatable(head->method);
  http->close_client = http->old_client || http_head_lists(head, "connection", SPAN("close")) ||
                       http_head_lists(head, "proxy-connection", SPAN("close"));
  http->expects = head->minor > 0 && http_head_lists(head, "expect", SPAN("100-continue"));
  http->parent = NULL;
  http_secret_look(http, head);
  if (http->connect) {
    http->event = "connect";
    return;
  }
  /* A path that is cut here is one byte too long to be judged. */
  buf_append(&http->label, span_sub(path, 0, HTTP_LABEL_BYTES + 1));
  http->parent = http_rewrite_is_reflected(head) ? NULL : http_exchange_parent(http);
  sent = *head;
  http_secret_body_ask(http, &sent);
  http_rewrite_request(&sent, target, http->parent, &http->request);
}

int http_request_check(struct http *http, const struct http_head *head, struct err *err, struct http_target *ret_target,
                       enum reason *ret_reason)
{
  int r = http_rewrite_check_request(head, err);

  *ret_reason = REASON_BAD_REQUEST;
  if (r == 0)
    r = http_body_of_request(head, err, &http->request_body);
  if (r == 0 && http->connect && !http->request_body.done)
    r = err_set(err, EBADMSG, "CONNECT has a body");
  if (r < 0)
    return r;
  if (http->is_fixed)
    r = http_fixed_check(&http->fixed, http->proxy->policy, head, err, ret_target);
  else if (http->connect)
    r = http_target_parse_authority(head->target, err, ret_target);
  else
    r = http_target_parse_absolute(head->target, false, err, ret_target);
  if (r == 0)
    stub_restore_name(http->proxy->stub, &ret_target->host);
  if (r == -EINVAL || r == -EACCES)
    *ret_reason = r == -EINVAL ? REASON_BAD_TARGET : REASON_IDENTITY_MISMATCH;
  return r;
}
