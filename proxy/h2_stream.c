/* Theory of operation: one request of HTTP/2.
 *
 *   HEAD ── header list complete ──> judged ──> EXCHANGE ── both streams have ended ──> freed
 *                                      │  │
 *                      the user: ASK <─┘  └─> SECRET: values of credentials
 *
 *   refused, or failed before a response   OVER: answered here, and the origin's stream reset
 *   failed inside a response               OVER: both streams reset
 *   reset by one side                      OVER: the other is reset with the same code
 *
 * A response may be complete before the request is. The origin then says so by a reset with NO_ERROR (RFC 9113, 8.1),
 * and the client is told the same as soon as the response has been written: a reset before would overtake it.
 *
 * A client that takes its requests back costs itself nothing, and others the work (CVE-2023-44487); and one can make a
 * server reset them, by frames that are not well formed (CVE-2025-8671). Both are counted alike: so many at once and so
 * many in a time, then the connection ends.
 */
#include "proxy/h2_state.h"

#include "base/clock.h"
#include "policy/decide.h"
#include "proxy/denial.h"
#include "proxy/http_rewrite.h"
#include "proxy/http_shared.h"
#include "proxy/inject_body.h"
#include "proxy/notify.h"
#include "proxy/stub.h"
#include "proxy/terminator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct verdict bad_request = { .reason = REASON_BAD_REQUEST };
static const struct verdict refused_signature = { .reason = REASON_CREDENTIAL_SIGNATURE };
static const struct verdict large_head = { .reason = REASON_LIMIT_HEAD };

struct h2_stream *h2_stream_new(struct h2 *h2, int32_t client_id)
{
  struct h2_stream *stream = mem_calloc(1, sizeof *stream);

  if (!stream)
    return NULL;
  if (!budget_take(&h2->proxy->budget, sizeof *stream)) {
    free(stream);
    return NULL;
  }
  stream->h2 = h2;
  stream->client_id = client_id;
  stream->client_open = true;
  stream->verdict = bad_request;
  stream->request = stream->answer = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 4096);
  stream->label = (struct buf)BUF_INIT(2 * LIMITS_REQUEST_PATH_BYTES + 1);
  stream->watched = (struct buf)BUF_INIT(INJECT_BODY_REQUEST_MAX);
  h2_body_clear(stream, &stream->up);
  h2_body_clear(stream, &stream->down);
  stream->begun_ns = clock_mono_ns();
  stream->active_ms = h2_now_ms(h2);
  stream->next = h2->streams;
  if (stream->next)
    stream->next->prev = stream;
  h2->streams = stream;
  h2->stream_count++;
  return stream;
}

void h2_stream_free(struct h2_stream *stream)
{
  struct h2 *h2 = stream->h2;

  if (stream->state != H2_HEAD)
    h2_stream_record(stream, &stream->verdict);
  /* A reset that could not be queued leaves nghttp2 its stream. */
  if (h2->origin.session && stream->origin_id)
    (void)nghttp2_session_set_stream_user_data(h2->origin.session, stream->origin_id, NULL);
  if (h2->client.session)
    (void)nghttp2_session_set_stream_user_data(h2->client.session, stream->client_id, NULL);
  ask_cancel(&stream->waiter);
  values_cancel(&stream->values_waiter);
  h2_body_clear(stream, &stream->up);
  h2_body_clear(stream, &stream->down);
  h2_stream_drop(stream, &stream->request);
  h2_stream_drop(stream, &stream->answer);
  h2_stream_drop(stream, &stream->watched);
  buf_free(&stream->label);
  if (stream->prev)
    stream->prev->next = stream->next;
  else
    h2->streams = stream->next;
  if (stream->next)
    stream->next->prev = stream->prev;
  h2->stream_count--;
  h2->active_ms = h2_now_ms(h2);
  budget_give(&h2->proxy->budget, sizeof *stream);
  free(stream);
}

bool h2_stream_hold(struct h2_stream *stream, struct buf *text)
{
  if (!buf_error(text) && budget_take(&stream->h2->proxy->budget, text->len))
    return true;
  buf_free(text);
  return false;
}

void h2_stream_drop(struct h2_stream *stream, struct buf *text)
{
  budget_give(&stream->h2->proxy->budget, text->len);
  buf_free(text);
}

static struct request request_of(const struct h2_stream *stream)
{
  struct span label = buf_span(&stream->label);

  return (struct request){ .method = span_sub(label, 0, stream->method_len),
                           .path = span_sub(label, stream->method_len, label.len) };
}

void h2_stream_record(struct h2_stream *stream, const struct verdict *verdict)
{
  const struct h2 *h2 = stream->h2;
  buf_autofree struct buf credential = BUF_INIT(4096);
  buf_autofree struct buf in_body = BUF_INIT(4096);
  struct request request = request_of(stream);
  const struct route *route = h2->fixed.refused || stream->origin_id ? &h2->fixed.route : NULL;
  struct audit_record record = {
    .event = "request",
    .via = h2->fixed.via,
    .verdict = !verdict->allow                     ? AUDIT_DENY
               : verdict->reason == REASON_ALLOWED ? AUDIT_ALLOW
                                                   : AUDIT_ERROR,
    .reason = verdict->reason,
    .host = span_of(stream->has_host ? stream->host.name : h2->fixed.host.name),
    .port = stream->has_host ? stream->port : h2->fixed.port,
    .ip = route && route->has_addr ? &route->addr : NULL,
    .upstream = route ? route->upstream : NULL,
    .method = request.method,
    .path = request.path,
    .rule = verdict->rule,
    .asked = verdict->asked,
    .scrubbed = stream->scrubbed,
    .up = stream->up.moved,
    .down = stream->response_begun ? stream->down.moved : 0,
    .ms = (clock_mono_ns() - stream->begun_ns) / 1000000,
  };

  if (stream->told)
    return;
  stream->told = stream->h2->told = true;
  if (stream->concerned)
    values_print(h2->proxy->values, stream->concerned, &credential);
  record.credential = buf_span(&credential);
  if (stream->in_body)
    values_print(h2->proxy->values, stream->in_body, &in_body);
  record.in_body = buf_span(&in_body);
  audit_write(h2->proxy->audit, &record);
  notify_count(h2->proxy->notify, stream->in_body != 0, stream->scrubbed);
}

/* Ends. */

static void reset(struct h2_leg *leg, int32_t id, bool open, uint32_t code)
{
  if (open && leg->session && !leg->lost)
    (void)nghttp2_submit_rst_stream(leg->session, NGHTTP2_FLAG_NONE, id, code);
}

/* Nothing more happens to it but that its streams end. */
static void finish(struct h2_stream *stream)
{
  stream->state = H2_OVER;
  stream->active_ms = h2_now_ms(stream->h2);
  ask_cancel(&stream->waiter);
  values_cancel(&stream->values_waiter);
  h2_stream_drop(stream, &stream->request);
  h2_stream_drop(stream, &stream->answer);
  h2_body_drop(stream, &stream->up);
}

void h2_stream_cut(struct h2_stream *stream, uint32_t code)
{
  reset(&stream->h2->client, stream->client_id, stream->client_open, code);
  reset(&stream->h2->origin, stream->origin_id, stream->origin_open, code);
  finish(stream);
  h2_body_drop(stream, &stream->down);
}

void h2_stream_settle(struct h2_stream *stream)
{
  if (stream->response_ended && stream->client_open && !stream->origin_open && !stream->up.ended)
    reset(&stream->h2->client, stream->client_id, true, NGHTTP2_NO_ERROR);
}

/* Sends an answer of ours. */
static void answer(struct h2_stream *stream, const struct denial *denial)
{
  buf_autofree struct buf body = BUF_INIT(DENIAL_BODY_BYTES);
  nghttp2_data_provider provider = h2_body_provider();
  struct http_head head = { .status = denial_status(&denial->verdict), .field_count = 2 };
  struct h2_list list;
  char length[24];
  char seconds[24];
  bool has_body;

  denial_body(denial, &body);
  snprintf(length, sizeof length, "%zu", body.len);
  snprintf(seconds, sizeof seconds, "%u", denial_retry_after(denial));
  head.fields[0] = (struct http_field){ SPAN("content-type"), SPAN("application/json") };
  head.fields[1] = (struct http_field){ SPAN("content-length"), span_of(length) };
  if (denial_retry_after(denial))
    head.fields[head.field_count++] = (struct http_field){ SPAN("retry-after"), span_of(seconds) };
  h2_body_clear(stream, &stream->down);
  stream->down.ended = true;
  buf_append(&stream->down.data, buf_span(&body));
  has_body = !stream->to_head && h2_stream_hold(stream, &stream->down.data);
  if (!has_body && !stream->to_head)
    head.field_count = 0; /* no memory for more than the status */
  if (stream->to_head)
    buf_free(&stream->down.data);
  h2_list_response(&head, 0, &list);
  if (nghttp2_submit_response(stream->h2->client.session, stream->client_id, list.fields, list.count,
                              has_body ? &provider : NULL))
    reset(&stream->h2->client, stream->client_id, true, NGHTTP2_INTERNAL_ERROR);
  h2_list_clear(&list);
}

void h2_stream_refuse(struct h2_stream *stream, const struct verdict *verdict, const char *cause, const char *fix)
{
  struct request request = request_of(stream);
  const struct http_fixed *fixed = &stream->h2->fixed;
  struct denial denial = {
    .verdict = *verdict,
    .host = stream->has_host ? &stream->host : &fixed->host,
    .port = stream->has_host ? stream->port : fixed->port,
    .cause = cause,
    .fix = fix,
    .request = stream->label.len ? &request : NULL,
    .head_only = stream->to_head,
  };

  if (stream->state == H2_OVER)
    return;
  if (stream->response_begun) {
    h2_stream_record(stream, verdict);
    h2_stream_cut(stream, NGHTTP2_INTERNAL_ERROR);
    return;
  }
  if (http_shared_is_repeated(verdict))
    notify_denied(stream->h2->proxy->notify, &denial);
  h2_stream_record(stream, verdict);
  reset(&stream->h2->origin, stream->origin_id, stream->origin_open, NGHTTP2_CANCEL);
  finish(stream);
  if (stream->client_open)
    answer(stream, &denial);
}

void h2_stream_fail(struct h2_stream *stream, enum reason reason, const char *cause)
{
  struct verdict verdict = stream->verdict;

  verdict.reason = reason;
  h2_stream_refuse(stream, &verdict, cause, NULL);
}

/* Counts a request that came to nothing by the client's doing. */
static void count_reset(struct h2 *h2)
{
  uint64_t passed = (h2_now_ms(h2) - h2->resets_ms) / LIMITS_H2_RESET_EVERY_MS;

  h2->resets -= passed < h2->resets ? (unsigned)passed : h2->resets;
  h2->resets_ms += passed * LIMITS_H2_RESET_EVERY_MS;
  if (++h2->resets > LIMITS_H2_RESETS)
    h2_die(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void client_closed(struct h2_stream *stream, uint32_t code)
{
  stream->client_open = false;
  if (stream->state != H2_OVER && code != NGHTTP2_NO_ERROR)
    count_reset(stream->h2);
  h2_stream_record(stream, &stream->verdict);
  reset(&stream->h2->origin, stream->origin_id, stream->origin_open, code);
  finish(stream);
  h2_body_drop(stream, &stream->down);
}

static void origin_closed(struct h2_stream *stream, uint32_t code, bool by_us)
{
  struct verdict closed = stream->verdict;

  stream->origin_open = false;
  if (!stream->answer.len) /* else it may be sent again */
    h2_body_drop(stream, &stream->up);
  if (stream->state == H2_OVER || stream->down.ended) {
    h2_stream_settle(stream);
  } else if (by_us && code != NGHTTP2_REFUSED_STREAM && code != NGHTTP2_NO_ERROR) {
    h2_stream_fail(stream, REASON_BAD_RESPONSE, "it is not well-formed HTTP/2");
  } else {
    closed.reason = REASON_UPSTREAM_CLOSED;
    h2_stream_record(stream, &closed);
    h2_stream_cut(stream, code);
  }
}

void h2_stream_closed(struct h2_stream *stream, bool is_origin, uint32_t code, bool by_us)
{
  if (is_origin)
    origin_closed(stream, code, by_us);
  else
    client_closed(stream, code);
  if (!stream->client_open && !stream->origin_open)
    h2_stream_free(stream);
}

/* The request goes on its way. */

/* Writes the list of the request with the values in it, and hands it to nghttp2. */
static int submit(struct h2_stream *stream, struct http_head *head, struct err *err)
{
  struct h2 *h2 = stream->h2;
  struct buf fields = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  buf_autofree struct buf authority = BUF_INIT(512);
  struct http_target target = { .tls = true, .host = stream->host, .port = stream->port };
  nghttp2_data_provider provider = h2_body_provider();
  bool has_body = !stream->up.ended || h2_body_held(&stream->up) || stream->up.trailer.len;
  const struct inject_signer signer = { .crypto = h2->proxy->terminator ? h2->proxy->terminator->crypto() : NULL,
                                        .now_ms = clock_real_ms() };
  const struct inject_secret *list;
  struct h2_list out;
  size_t count;
  int r = 0;

  if (stream->wanted) {
    list = values_list(h2->proxy->values, &count);
    r = inject_fields(list, count, stream->wanted, &signer, head, err, &fields);
    stream->values_version = values_version(h2->proxy->values, stream->wanted);
    h2->origin.secret = true;
  }
  if (r == 0) {
    http_rewrite_authority(head, &target, &authority);
    h2_list_request(head, buf_span(&authority), buf_span(&fields), stream->never, &out);
    r = buf_error(&out.names);
    if (r == 0) {
      stream->origin_id =
          nghttp2_submit_request(h2->origin.session, NULL, out.fields, out.count, has_body ? &provider : NULL, stream);
      r = stream->origin_id < 0 ? -ENOMEM : 0;
      stream->origin_open = r == 0;
    }
    h2_list_clear(&out);
  }
  buf_wipe(&fields);
  return r;
}

void h2_stream_send(struct h2_stream *stream)
{
  struct h2 *h2 = stream->h2;
  struct err err = ERR_INIT;
  struct verdict closed = stream->verdict;
  struct http_head head;
  int r;

  /* The client may ask again on another connection (RFC 9113, 8.7). */
  if (!h2->origin.session || h2->origin.lost || !nghttp2_session_check_request_allowed(h2->origin.session)) {
    closed.reason = REASON_UPSTREAM_CLOSED;
    h2_stream_record(stream, &closed);
    h2_stream_cut(stream, NGHTTP2_REFUSED_STREAM);
    return;
  }
  r = http_head_parse_request(buf_span(&stream->request), &err, &head);
  if (r == 0)
    r = submit(stream, &head, &err);
  if (r == -EINVAL || r == -EBADMSG)
    h2_stream_fail(stream, REASON_CREDENTIAL_UNAVAILABLE, err.message);
  else if (r == -EKEYREJECTED)
    h2_stream_refuse(stream, &refused_signature, err.message, HTTP_SIGN_FIX);
  else if (r < 0)
    h2_stream_fail(stream, r == -ENOMEM ? REASON_LIMIT : REASON_LIMIT_HEAD, NULL);
  if (r < 0)
    return;
  stream->state = H2_EXCHANGE;
  stream->active_ms = h2_now_ms(h2);
  if (!stream->wanted)
    h2_stream_drop(stream, &stream->request);
}

static void on_values(void *data, const char *error)
{
  struct h2_stream *stream = data;
  struct h2 *h2 = stream->h2;

  if (error)
    h2_stream_fail(stream, REASON_CREDENTIAL_UNAVAILABLE, error);
  else
    h2_stream_send(stream);
  h2_advance(h2);
}

static void refuse_misuse(struct h2_stream *stream)
{
  const struct http_misuse what = {
    .whose = stream->misused, .bound = stream->bound, .tls = true, .fault = stream->fault
  };
  struct verdict misuse = { .reason = stream->fault ? REASON_CREDENTIAL_SIGNATURE : REASON_CREDENTIAL_MISUSE };
  buf_autofree struct buf cause = BUF_INIT(512);
  buf_autofree struct buf fix = BUF_INIT(512);

  http_shared_explain(stream->h2->proxy->values, &what, &cause, &fix);
  h2_stream_refuse(stream, &misuse, cause.data, fix.data);
}

/* As http_secret_allow(). */
static void allow(struct h2_stream *stream)
{
  int r = 1;

  stream->concerned = stream->misused | stream->wanted;
  if (stream->misused) {
    refuse_misuse(stream);
    return;
  }
  stream->state = H2_SECRET;
  if (stream->wanted)
    r = values_want(stream->h2->proxy->values, stream->wanted, on_values, stream, &stream->values_waiter);
  if (r > 0)
    h2_stream_send(stream);
  else if (r < 0)
    h2_stream_fail(stream, REASON_LIMIT, NULL);
}

/* As http_obey(). */
static void obey(struct h2_stream *stream)
{
  const struct http_fixed *fixed = &stream->h2->fixed;
  struct verdict found = stream->verdict;
  const char *cause = fixed->refused ? fixed->cause : NULL;
  struct http_asked asked = {
    .fixed = fixed, .host = &stream->host, .port = stream->port, .request = request_of(stream), .hides = stream->hides
  };

  if (stream->verdict.allow)
    stream->verdict = http_shared_judge(stream->h2->proxy->policy, &asked, &stream->verdict,
                                        fixed->route.has_addr ? &fixed->route.addr : NULL);
  if (!stream->verdict.allow)
    h2_stream_refuse(stream, &stream->verdict, found.allow ? NULL : cause, NULL);
  else if (fixed->refused)
    h2_stream_refuse(stream, &found, cause, NULL); /* not to be reached */
  else
    allow(stream);
}

static void on_asked(void *data, const struct verdict *verdict)
{
  struct h2_stream *stream = data;
  struct h2 *h2 = stream->h2;

  stream->verdict = *verdict;
  if (verdict->allow && verdict->asked == DECIDE_ASKED_ONCE)
    h2->once = *verdict;
  obey(stream);
  h2_advance(h2);
}

/* As http_judge(). */
static void judge(struct h2_stream *stream)
{
  struct h2 *h2 = stream->h2;
  struct proxy *proxy = h2->proxy;
  bool is_once = h2->once.allow && strcmp(h2->fixed.host.name, stream->host.name) == 0;

  if (h2->fixed.refused) {
    stream->verdict = h2->fixed.refusal;
    obey(stream);
    return;
  }
  stream->verdict = decide_target(proxy->policy, &stream->host, stream->port);
  if (is_once && decide_may_ask(&stream->verdict, &stream->host))
    stream->verdict = h2->once;
  if (stream->verdict.allow ||
      !ask_start(proxy->ask, &stream->host, stream->port, &stream->verdict, on_asked, stream, &stream->waiter))
    obey(stream);
  else
    stream->state = H2_ASK;
}

static void refuse_head(struct h2_stream *stream, int r, const char *cause)
{
  struct verdict verdict = r == -E2BIG ? large_head : bad_request;

  if (r == -EINVAL)
    verdict.reason = REASON_BAD_TARGET;
  else if (r == -EACCES)
    verdict.reason = REASON_IDENTITY_MISMATCH;
  else if (r == -ENOMEM)
    verdict.reason = REASON_LIMIT;
  h2_stream_refuse(stream, &verdict, cause, NULL);
}

/* Takes over what is needed of the head. */
static void note(struct h2_stream *stream, const struct http_head *head, const struct http_target *target)
{
  struct span path = target->path.len ? http_target_path(target) : SPAN("*");
  static const struct inject_fault unhashed = { "in a request over HTTP/2 that does not give its body's hash",
                                                "send x-amz-content-sha256, or use HTTP/1.1" };
  const struct proxy *proxy = stream->h2->proxy;
  struct inject_look look;

  stream->host = target->host;
  stream->port = target->port;
  stream->has_host = true;
  stream->hides = http_rewrite_hides(head);
  buf_append(&stream->label, span_sub(path, 0, LIMITS_REQUEST_PATH_BYTES + 1));
  stream->bound = decide_bound(proxy->policy, &stream->host, stream->port);
  http_shared_look(proxy->values, stream->bound, head, &look, &stream->misused);
  stream->wanted = look.wanted;
  stream->fault = look.fault;
  if (look.body && !stream->up.ended) {
    /* Only HTTP/1 keeps bodies (http_keep.c). */
    stream->misused = look.wanted;
    stream->fault = &unhashed;
  }
}

static void begin(struct h2_stream *stream, const struct http_head *head)
{
  struct h2 *h2 = stream->h2;
  struct err err = ERR_INIT;
  struct http_target target;
  int r;

  stream->to_head = span_equal(head->method, SPAN("HEAD"));
  stream->method_len = head->method.len < LIMITS_REQUEST_PATH_BYTES ? head->method.len : LIMITS_REQUEST_PATH_BYTES;
  buf_append(&stream->label, span_sub(head->method, 0, stream->method_len));
  r = http_rewrite_check_request(head, &err);
  if (r == 0)
    r = http_fixed_check(&h2->fixed, h2->proxy->policy, head, &err, &target);
  if (r < 0) {
    refuse_head(stream, r, err.message);
    return;
  }
  stub_restore_name(h2->proxy->stub, &target.host);
  note(stream, head, &target);
  judge(stream);
}

static void take_trailer(struct h2_stream *stream, const struct h2_block *block)
{
  if (stream->up.dropped)
    return;
  if (h2_block_write_response(block, NULL, &stream->up.trailer) < 0 || !h2_stream_hold(stream, &stream->up.trailer)) {
    buf_free(&stream->up.trailer);
    h2_stream_refuse(stream, &large_head, "its trailer is too large", NULL);
    return;
  }
  stream->up.never = block->never;
}

void h2_stream_request(struct h2_stream *stream, const struct h2_block *block, bool ends)
{
  struct err err = ERR_INIT;
  struct http_head head = { 0 };
  int r;

  if (stream->state != H2_HEAD) {
    take_trailer(stream, block);
    h2_body_end(stream, false);
    return;
  }
  stream->up.ended = ends;
  stream->never = block->never;
  stream->state = H2_ASK;
  r = h2_block_write_request(block, &err, &stream->request);
  if (r == 0 && !h2_stream_hold(stream, &stream->request))
    r = -ENOMEM;
  if (r == 0)
    r = http_head_parse_request(buf_span(&stream->request), &err, &head);
  else
    buf_free(&stream->request);
  if (r < 0)
    refuse_head(stream, r, err.message);
  else
    begin(stream, &head);
}
