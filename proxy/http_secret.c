/* Theory of operation: credentials in the requests of the HTTP machine (inject.h has what becomes of them).
 *
 *   a request is parsed    http_secret_look()     which credentials it is about, or that it misuses one
 *   it has been allowed    http_secret_allow()    misused: 403; else their values are fetched (HTTP_SECRET)
 *   it is sent             http_secret_send()     the head with the values in it, which exists for this moment alone
 *   its response comes     http_secret_scrub()    values in its head become placeholders again,
 *                          http_secret_trailer()  and in its trailer
 *   and is a 401           http_secret_renew()    once per request, where no byte of a body has been sent: newer values
 *                                                 are asked for, and where there are any it is sent again
 *
 * The request that is kept, for a second try too, is the one with the placeholders. Only in TLS that is terminated is
 * any credential bound to the target: a value never goes out in the clear.
 */
#include "base/clock.h"
#include "policy/decide.h"
#include "proxy/http_rewrite.h"
#include "proxy/http_shared.h"
#include "proxy/http_state.h"
#include "proxy/inject_sign.h"
#include "proxy/terminator.h"
#include "proxy/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void http_shared_look(const struct values *values, inject_set bound, const struct http_head *head,
                      struct inject_look *ret_look, inject_set *ret_misused)
{
  const struct inject_secret *list;
  size_t count;

  *ret_look = (struct inject_look){ 0 };
  *ret_misused = 0;
  if (!values)
    return;
  list = values_list(values, &count);
  if (inject_look(list, count, bound, head, ret_look) == INJECT_MISUSE)
    *ret_misused = (inject_set)1 << ret_look->index;
}

/* One bit for each credential. */
static inject_set all_of(size_t count)
{
  return count < LIMITS_CREDENTIALS ? ((inject_set)1 << count) - 1 : ~(inject_set)0;
}

bool http_shared_watches(const struct values *values, inject_set found)
{
  size_t count;

  if (!values)
    return false;
  (void)values_list(values, &count);
  return found != all_of(count);
}

inject_set http_shared_watch(const struct values *values, inject_set found, struct span text, bool end,
                             size_t *ret_done)
{
  const struct inject_secret *list;
  size_t count;

  *ret_done = text.len;
  if (!http_shared_watches(values, found))
    return found;
  list = values_list(values, &count);
  return found | inject_body_find(list, count, all_of(count) & ~found, text, end, ret_done);
}

void http_secret_look(struct http *http, const struct http_head *head)
{
  const struct proxy *proxy = http->proxy;
  const struct inject_secret *list;
  struct inject_look look;
  size_t count;

  http->renewed = false;
  http->bound = http->fixed.tls ? decide_bound(proxy->policy, &http->host, http->port) : 0;
  http_shared_look(proxy->values, http->bound, head, &look, &http->misused);
  http->wanted = look.wanted;
  http->wants_body = look.body;
  http->fault = look.fault;
  if (!proxy->values)
    return;
  list = values_list(proxy->values, &count);
  http->swaps = http->request_body.done ? 0 : inject_body_swaps(list, count, http->bound, head);
  http->writing = inject_body_writing(head);
  http->scrubs = inject_body_scrubs(list, count, http->bound);
}

void http_shared_explain(const struct values *values, const struct http_misuse *misuse, struct buf *out_cause,
                         struct buf *out_fix)
{
  buf_autofree struct buf name = BUF_INIT(256);

  values_print(values, misuse->whose, &name);
  if (misuse->fault) {
    buf_printf(out_cause, "that of %s, %s", name.data, misuse->fault->cause);
    buf_append_str(out_fix, misuse->fault->fix);
  } else if (misuse->whose & misuse->bound) {
    buf_printf(out_cause, "that of %s, in a part of the request that is not its place", name.data);
    buf_printf(out_fix, "write the \"place\" of %s into the policy", name.data);
  } else if (misuse->tls) {
    buf_printf(out_cause, "that of %s, which is not bound to this host", name.data);
    buf_printf(out_fix, "bind %s to this host in the policy, if its value may go there", name.data);
  } else {
    buf_printf(out_cause, "that of %s, in a request without TLS", name.data);
    buf_append_str(out_fix, "use https://");
  }
}

static void refuse_misuse(struct http *http)
{
  const struct http_misuse what = {
    .whose = http->misused, .bound = http->bound, .tls = http->fixed.tls, .fault = http->fault
  };
  struct verdict misuse = { .reason = http->fault ? REASON_CREDENTIAL_SIGNATURE : REASON_CREDENTIAL_MISUSE };
  buf_autofree struct buf cause = BUF_INIT(512);
  buf_autofree struct buf fix = BUF_INIT(512);

  http_shared_explain(http->proxy->values, &what, &cause, &fix);
  http->fix = fix.data;
  http_refuse(http, &misuse, 0, cause.data);
  http->fix = NULL;
}

static void on_values(void *data, const char *error)
{
  struct http *http = data;

  if (error)
    http_fail(http, REASON_CREDENTIAL_UNAVAILABLE, error);
  else
    http_keep(http);
  http_advance(http);
}

static void await_values(struct http *http)
{
  http->state = HTTP_SECRET;
  loop_timer_stop(http->conn->timer); /* sbx answers after a bounded time */
}

void http_secret_allow(struct http *http)
{
  int r = 1;

  http->concerned = http->misused | http->wanted;
  if (http->misused) {
    refuse_misuse(http);
    return;
  }
  if (http->wanted)
    r = values_want(http->proxy->values, http->wanted, on_values, http, &http->values_waiter);
  if (r > 0)
    http_keep(http);
  else if (r == 0)
    await_values(http);
  else
    http_fail(http, REASON_LIMIT, NULL);
}

/* The request with the values in place of the placeholders. */
static int fill_in(const struct http *http, struct err *err, struct buf *out)
{
  struct buf fields = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  const struct inject_secret *list;
  struct http_target target = { .tls = true, .host = http->host, .port = http->port };
  struct http_head head;
  const struct inject_signer signer = {
    .crypto = http->proxy->terminator->crypto(),
    .body = { .ptr = http->hash, .len = http->has_hash ? sizeof http->hash : 0 },
    .now_ms = clock_real_ms(),
  };
  char length[24];
  size_t count;
  int r = http_head_parse_request(buf_span(&http->request), err, &head);

  list = values_list(http->proxy->values, &count);
  if (r == 0 && (http->has_hash || http->resized))
    http_head_drop(&head, "expect"); /* it has been answered */
  if (r == 0 && http->resized) {
    snprintf(length, sizeof length, "%" PRIu64, http->request_body.left);
    http_head_drop(&head, "transfer-encoding");
    r = inject_set_field(&head, SPAN("Content-Length"), span_of(length));
  }
  if (r == 0)
    r = inject_fields(list, count, http->wanted, &signer, &head, err, &fields);
  if (r == 0) {
    target.path = head.target;
    buf_reserve(out, http->request.len + fields.len);
    http_rewrite_request(&head, &target, NULL, out);
    r = buf_error(out);
  }
  buf_wipe(&fields);
  return r;
}

static void refuse_signature(struct http *http, const char *cause)
{
  static const struct verdict refused = { .reason = REASON_CREDENTIAL_SIGNATURE };

  http->fix = HTTP_SIGN_FIX;
  http_refuse(http, &refused, 0, cause);
  http->fix = NULL;
}

int http_secret_send(struct http *http, bool more)
{
  struct buf out = BUF_INIT(http->request.max);
  struct err err = ERR_INIT;
  int r = fill_in(http, &err, &out);

  if (r == 0) {
    http->values_version = values_version(http->proxy->values, http->wanted);
    r = sock_send(&http->origin, buf_span(&out), more);
  } else if (r == -EINVAL || r == -EBADMSG) {
    http_fail(http, REASON_CREDENTIAL_UNAVAILABLE, err.message);
    r = -ECANCELED;
  } else if (r == -EKEYREJECTED) {
    refuse_signature(http, err.message);
    r = -ECANCELED;
  } else {
    http_fail(http, r == -ENOMEM ? REASON_LIMIT : REASON_LIMIT_HEAD, NULL);
    r = -ECANCELED;
  }
  buf_wipe(&out);
  return r;
}

void http_secret_scrub(struct http *http, struct http_head *head, struct buf *out)
{
  const struct inject_secret *list;
  size_t count;

  if (!http->proxy->values)
    return;
  list = values_known(http->proxy->values, &count);
  http->scrubbed += inject_scrub(list, count, head, out);
}

int http_secret_trailer(struct http *http, struct span bytes)
{
  buf_autofree struct buf scrubbed = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  const struct inject_secret *list;
  struct span text = bytes;
  size_t count;
  int r;

  if (http->proxy->values && (http->trailer.len || !http->response_body.done || bytes.len > strlen("\r\n"))) {
    if (!http_hold(http, &http->trailer, bytes))
      return -ENOBUFS;
    if (!http->response_body.done)
      return 0;
    text = buf_span(&http->trailer);
    list = values_known(http->proxy->values, &count);
    http->scrubbed += inject_scrub_text(list, count, &text, &scrubbed);
  }
  /* What has no room is not passed on, but for the line that ends it. */
  r = sock_send(&http->conn->client, text.len ? text : SPAN("\r\n"), false);
  http_drop(http, &http->trailer, http->trailer.len);
  return r;
}

static void on_renewed(void *data, const char *error)
{
  struct http *http = data;

  (void)error; /* the origin's 401 is the answer then */
  if (values_version(http->proxy->values, http->wanted) != http->values_version && !error) {
    http_reach(http);
  } else {
    http->state = HTTP_EXCHANGE;
    http->origin_scan = (struct http_scan){ 0 };
    loop_timer_set(http->conn->timer, LIMITS_IDLE_MS);
  }
  http_advance(http);
}

bool http_secret_renew(struct http *http)
{
  if (!http->wanted || http->renewed || http->up)
    return false;
  http->renewed = true;
  if (values_version(http->proxy->values, http->wanted) != http->values_version) {
    http_reach(http); /* another request has had it renewed meanwhile */
    return true;
  }
  if (values_renew(http->proxy->values, http->wanted, on_renewed, http, &http->values_waiter) < 0)
    return false;
  await_values(http);
  return true;
}
