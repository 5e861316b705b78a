/* Theory of operation
 *
 * One client connection carries requests one after the other; each is judged by itself, also on a connection that is
 * kept alive (F54), and answered before the next one is looked at, however many have been sent ahead.
 *
 * CONNECT, once connected, hands both ends to a tunnel (tunnel.h), which judges what is sent first. Where that is
 * cleartext HTTP it comes back here, with the target standing (http_fixed.h).
 *
 *   HEAD ── CONNECT or request, allowed ──> REACH ── connected ──> EXCHANGE ── response complete ──> HEAD
 *     │                                       │                       │
 *     │ refused, body unread                  │ failed                ├─ 101 ──> TUNNEL ──> END
 *     └───────────────> LINGER <──────────────┴───────────────────────┘ last response
 *                          └──> END
 *
 * Between HEAD and what comes of it stands ASK, where the user can be asked (http_judge.c), and SECRET, where values of
 * credentials are needed (http_secret.c), and KEEP, where the body is signed or swapped in (http_keep.c); and between
 * REACH and EXCHANGE, SECURE, where the client's connection is terminated TLS (http_reach.c).
 *
 * http_advance() runs the steps of the present state until none makes progress, then sets what to wait for. Callbacks
 * (a socket, the dial, the timer) only call it; so no step is ever entered twice, and a client that sends a thousand
 * requests ahead costs no stack.
 *
 * A last answer must reach a client that is still sending (F58): see conn_linger().
 *
 * The origin's connection is kept for the next request of the same client connection to the same host and port, and for
 * nothing else: no pool, so nothing can pass from one client to another.
 */
#include "proxy/http.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/http_rewrite.h"
#include "proxy/http_secret_body.h"
#include "proxy/http_shared.h"
#include "proxy/http_state.h"
#include "proxy/notify.h"
#include "proxy/stub.h"
#include "proxy/tunnel.h"
#include "proxy/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define READS_PER_TURN 16
#define REQUEST_BYTES_MAX (LIMITS_HTTP_HEAD_BYTES + 4096)
#define ANSWER_BYTES_MAX (32 * 1024)

static const struct verdict bad_request = { .allow = false, .reason = REASON_BAD_REQUEST };
static const struct verdict no_memory = { .allow = false, .reason = REASON_LIMIT };
static const struct verdict large_head = { .allow = false, .reason = REASON_LIMIT_HEAD };
static const struct verdict late_head = { .allow = false, .reason = REASON_LIMIT_TIME };
static const struct verdict over_limit = { .allow = false, .reason = REASON_LIMIT_CONNECTIONS };

static void on_ready(void *data);
static void http_free(void *data);

/* The exchange. */

static void exchange_open(struct http *http)
{
  http->open = true;
  http->has_host = http->is_fixed;
  http->host = http->fixed.host;
  http->port = http->fixed.port;
  http->verdict = bad_request;
  http->event = "request";
  http->hides = NULL;
  http->connect = http->to_head = http->old_client = http->upgrade = http->can_retry = false;
  http->close_client = true;
  http->concerned = 0;
  http->wants_body = http->expects = false;
  http->scrubbed = 0;
  http->swaps = http->in_body = http->scrubs = 0;
  http->resized = false;
  http->fix = NULL;
  http->keep_origin = http->response_begun = http->body_refused = http->has_reached = http->dialled = false;
  http->request_body = (struct http_body){ .done = true };
  http->up = http->down = 0;
  http->begun_ns = clock_mono_ns();
  http->active_ms = loop_now_ms(http->proxy->loop);
}

/* The exchange is over: nothing that it waits for may come to another. */
static void stop_waiting(struct http *http)
{
  ask_cancel(&http->waiter);
  values_cancel(&http->values_waiter);
  reach_cancel(&http->reach);
  if (http->has_reached)
    fd_close(&http->reached.fd);
  http->has_reached = http->has_answer = false;
}

void http_record(struct http *http, const struct verdict *verdict)
{
  buf_autofree struct buf credential = BUF_INIT(4096);
  buf_autofree struct buf in_body = BUF_INIT(4096);
  struct span label = buf_span(&http->label);
  const struct route *route = http->fixed.refused ? &http->fixed.route : http->dialled ? &http->origin_route : NULL;
  struct audit_record record = {
    .event = http->event,
    .via = http->is_fixed ? http->fixed.via : "http",
    .reason = verdict->reason,
    .port = http->has_host ? http->port : 0,
    .ip = route && route->has_addr ? &route->addr : NULL,
    .upstream = route ? route->upstream : NULL,
    .method = span_sub(label, 0, http->method_len),
    .path = span_sub(label, http->method_len, label.len),
    .rule = verdict->rule,
    .asked = verdict->asked,
    .scrubbed = http->scrubbed,
    .up = http->up,
    .down = http->down,
    .ms = (clock_mono_ns() - http->begun_ns) / 1000000,
  };

  stop_waiting(http);
  if (!http->open)
    return;
  if (http->concerned)
    values_print(http->proxy->values, http->concerned, &credential);
  if (http->in_body)
    values_print(http->proxy->values, http->in_body, &in_body);
  record.credential = buf_span(&credential);
  record.in_body = buf_span(&in_body);
  record.host = span_of(http->has_host ? http->host.name : NULL);
  record.verdict = !verdict->allow ? AUDIT_DENY : verdict->reason == REASON_ALLOWED ? AUDIT_ALLOW : AUDIT_ERROR;
  audit_write(http->proxy->audit, &record);
  notify_count(http->proxy->notify, http->in_body != 0, http->scrubbed);
  http->told = true;
  http->open = false;
  buf_free(&http->label);
  http->method_len = 0;
  buf_free(&http->request);
  http_keep_drop(http);
  http_secret_body_drop(http);
}

static void await_head(struct http *http)
{
  http->in_scan = (struct http_scan){ 0 };
  http->state = HTTP_HEAD;
  loop_timer_set(http->conn->timer, http->in.len ? LIMITS_HEAD_MS : LIMITS_IDLE_MS);
}

/* Of a failure that has to do with credentials the user should hear. */
bool http_shared_is_repeated(const struct verdict *verdict)
{
  return !verdict->allow || reason_is_limit(verdict->reason) || verdict->reason == REASON_UPSTREAM_TLS ||
         verdict->reason == REASON_CREDENTIAL_UNAVAILABLE;
}

/* host_text: how the client spelled a target that does not parse. */
static void answer(struct http *http, const struct verdict *verdict, struct span host_text, unsigned status,
                   const char *cause)
{
  buf_autofree struct buf out = BUF_INIT(ANSWER_BYTES_MAX);
  struct request request = http_request_of(http);
  struct denial denial = {
    .verdict = *verdict,
    .host = http->has_host ? &http->host : NULL,
    .host_text = host_text,
    .port = http->has_host ? http->port : 0,
    .status = status,
    .cause = cause,
    .fix = http->fix,
    .request = http->label.len ? &request : NULL,
    .close = http->close_client || http->connect || !http->request_body.done,
    .head_only = http->to_head,
  };
  int r;

  denial_render(&denial, &out);
  /* Of an answer to CONNECT programs show the status at most. */
  if (http->connect || http_shared_is_repeated(verdict))
    notify_denied(http->proxy->notify, &denial);
  http_record(http, verdict);
  r = buf_error(&out) ? buf_error(&out) : sock_send(&http->conn->client, buf_span(&out), false);
  if (r < 0)
    http->state = HTTP_END;
  else if (denial.close)
    http->state = HTTP_LINGER;
  else
    await_head(http);
}

/* Nothing of the exchange has gone to the origin. */
static bool is_unsent(const struct http *http)
{
  return http->state == HTTP_HEAD || http->state == HTTP_ASK || http->state == HTTP_KEEP ||
         (http->state == HTTP_SECRET && !http->renewed);
}

void http_refuse(struct http *http, const struct verdict *verdict, unsigned status, const char *cause)
{
  if (!is_unsent(http)) {
    sock_close(&http->origin, true);
    http_drop(http, &http->origin_in, http->origin_in.len);
  }
  if (!http->response_begun) {
    answer(http, verdict, SPAN(""), status, cause);
    return;
  }
  /* Half a response is out: only a reset tells the client that the rest will not come. */
  http_record(http, verdict);
  sock_close(&http->conn->client, true);
  http->state = HTTP_END;
}

void http_fail(struct http *http, enum reason reason, const char *cause)
{
  struct verdict verdict = http->verdict;

  verdict.reason = reason;
  http_refuse(http, &verdict, 0, cause);
}

void http_fail_memory(struct http *http)
{
  http->close_client = true;
  http_fail(http, REASON_LIMIT, "the proxy's memory is used up");
}

void http_done(struct http *http)
{
  http_record(http, &http->verdict);
  if (!http->keep_origin || !http->request_body.done || http->body_refused || http->origin_in.len || http->origin.eof) {
    http_drop(http, &http->origin_in, http->origin_in.len);
    sock_close(&http->origin, !http->request_body.done);
  }
  if (http->close_client)
    http->state = HTTP_LINGER;
  else
    await_head(http);
}

/* HEAD. */

/* Judges a parsed request, whose head are the first len bytes of in, and sends it on its way. */
static void begin_request(struct http *http, const struct http_head *head, size_t len)
{
  struct err err = ERR_INIT;
  struct http_target target;
  enum reason reason;

  http->connect = span_equal(head->method, SPAN("CONNECT"));
  http->to_head = span_equal(head->method, SPAN("HEAD"));
  http->old_client = head->minor == 0;
  http->method_len = head->method.len < HTTP_LABEL_BYTES ? head->method.len : HTTP_LABEL_BYTES;
  buf_append(&http->label, span_sub(head->method, 0, http->method_len));
  if (http_request_check(http, head, &err, &target, &reason) < 0) {
    answer(http, &(struct verdict){ .reason = reason }, http_target_authority(head->target), 0, err.message);
    return;
  }
  http_request_note(http, head, &target);
  /* Everything that is needed of the head has been copied. */
  http_drop(http, &http->in, len);
  if (buf_error(&http->request) || buf_error(&http->label)) {
    http->close_client = true;
    answer(http, &large_head, SPAN(""), 0, NULL);
    return;
  }
  /* What is here of the body is looked at first, so that a broken one is not even begun at the origin. */
  if (!http_body_fits(&http->request_body, buf_span(&http->in))) {
    http->close_client = true;
    answer(http, &bad_request, SPAN(""), 0, "the framing of the body is broken");
    return;
  }
  http_judge(http);
}

void http_obey(struct http *http, const char *cause)
{
  struct verdict found = http->verdict;

  http_judge_request(http, http_exchange_serves(http) && http->origin_route.has_addr ? &http->origin_route.addr : NULL);
  if (!http->verdict.allow)
    answer(http, &http->verdict, SPAN(""), 0, found.allow ? NULL : cause);
  else if (http->fixed.refused)
    answer(http, &found, SPAN(""), 0, cause); /* not to be reached */
  else
    http_secret_allow(http);
}

static void take_request(struct http *http, size_t len)
{
  struct http_head head;
  struct err err = ERR_INIT;
  int r;

  exchange_open(http);
  r = http_head_parse_request(span_sub(buf_span(&http->in), 0, len), &err, &head);
  if (r < 0) {
    answer(http, r == -E2BIG ? &large_head : &bad_request, SPAN(""), 0, err.message);
    return;
  }
  begin_request(http, &head, len);
}

/* A head that cannot become a request. */
static void refuse_head(struct http *http, const struct verdict *verdict, unsigned status, const char *cause)
{
  exchange_open(http);
  answer(http, verdict, SPAN(""), status, cause);
}

static bool step_head(struct http *http)
{
  struct sock *client = &http->conn->client;
  bool empty = http->in.len == 0;
  size_t len = 0;
  int r;

  /* A kept origin has nothing to say between requests but that it closes; bytes would answer a request to come. */
  if (sock_stirs(&http->origin))
    sock_close(&http->origin, false);
  if (sock_pending(client))
    return false;
  r = empty ? 0 : http_head_scan(&http->in_scan, buf_span(&http->in), &len);
  if (r > 0)
    take_request(http, len);
  else if (r < 0)
    refuse_head(http, &bad_request, 0, "a line of the head does not end in CRLF, or has a CR or NUL in it");
  else if (http->in.len >= LIMITS_HTTP_HEAD_BYTES)
    refuse_head(http, &large_head, 0, NULL);
  else
    r = http_fill(http, client, &http->in);
  if (r == -ENOBUFS)
    refuse_head(http, &no_memory, 0, "the proxy's memory is used up");
  else if (r < 0 && http->state == HTTP_HEAD && (client->eof || client->error))
    http->state = HTTP_END;
  else if (r > 0 && empty && http->state == HTTP_HEAD)
    loop_timer_set(http->conn->timer, LIMITS_HEAD_MS);
  return r != 0 || http->state != HTTP_HEAD;
}

/* CONNECTED. */

/* Hands both ends to a tunnel. Frees http, and may end the connection. */
static void become_tunnel(struct http *http)
{
  struct conn *conn = http->conn;
  struct tunnel_start start = { .via = "http",
                                .method = "CONNECT",
                                .host = http->host,
                                .port = http->port,
                                .verdict = http->reached.verdict,
                                .route = http->origin_route,
                                .fd = http->reached.fd,
                                .first = buf_span(&http->in),
                                .begun_ns = http->begun_ns };
  int r = sock_send(&conn->client, SPAN("HTTP/1.1 200 Connection established\r\n\r\n"), false);

  if (r < 0) {
    fd_close(&start.fd);
    conn_end(conn);
    return;
  }
  http->open = false; /* the tunnel writes the line */
  conn_serve(conn, NULL, NULL);
  tunnel_start(conn, &start);
  http_free(http);
}

/* All states. */

static bool step(struct http *http)
{
  switch (http->state) {
  case HTTP_HEAD:
    return step_head(http);
  case HTTP_ASK:
    return http_ask_step(http);
  case HTTP_SECRET:
    return http_listen(http);
  case HTTP_KEEP:
    return http_keep_step(http);
  case HTTP_REACH:
    return http_reach_step(http);
  case HTTP_SECURE:
    return http_secure_step(http);
  case HTTP_EXCHANGE:
    return http_exchange_step(http);
  case HTTP_LINGER:
  case HTTP_TUNNEL:
  case HTTP_CONNECTED:
  case HTTP_END:
  default:
    return false;
  }
}

/* Frees http; the connection ends once the client has had its last answer. */
static void linger(struct http *http)
{
  struct conn *conn = http->conn;

  conn_serve(conn, NULL, NULL);
  http_free(http);
  conn_linger(conn);
}

static bool wants_client(const struct http *http)
{
  switch (http->state) {
  case HTTP_HEAD:
    return !sock_pending(&http->conn->client);
  case HTTP_ASK:
  case HTTP_SECRET:
  case HTTP_REACH:
  case HTTP_SECURE:
    return http->in.len < LIMITS_HTTP_HEAD_BYTES;
  case HTTP_KEEP:
    return true;
  case HTTP_EXCHANGE:
    if (http->request_body.done)
      return http->in.len < LIMITS_HTTP_HEAD_BYTES;
    return !http->body_refused && !sock_pending(&http->origin) && !http->in.len;
  case HTTP_TUNNEL:
  case HTTP_CONNECTED:
  case HTTP_LINGER:
  case HTTP_END:
  default:
    return false;
  }
}

static void watch(struct http *http)
{
  bool exchange = http->state == HTTP_EXCHANGE;

  sock_watch(&http->conn->client, wants_client(http));
  sock_watch(&http->origin, http->state == HTTP_HEAD || (exchange && !sock_pending(&http->conn->client)));
}

void http_advance(struct http *http)
{
  if (http->advancing)
    return;
  http->advancing = true;
  http->reads_left = READS_PER_TURN;
  while (step(http))
    ;
  http->advancing = false;
  if (http->state == HTTP_END)
    conn_end(http->conn);
  else if (http->state == HTTP_LINGER)
    linger(http);
  else if (http->state == HTTP_CONNECTED)
    become_tunnel(http);
  else if (http->state != HTTP_TUNNEL)
    watch(http);
}

static void on_ready(void *data)
{
  http_advance(data);
}

static void expired(void *data)
{
  struct http *http = data;
  uint64_t silent = loop_now_ms(http->proxy->loop) - http->active_ms;

  if (http->state == HTTP_HEAD && http->in.len && http->fixed.refused)
    refuse_head(http, &http->fixed.refusal, 0, http->fixed.cause);
  else if (http->state == HTTP_HEAD && http->in.len)
    refuse_head(http, &late_head, 408, "the request head did not come in time");
  else if (http->state == HTTP_SECURE)
    http_fail(http, REASON_UPSTREAM_TLS, "it has not ended the handshake in time");
  else if ((http->state == HTTP_EXCHANGE || http->state == HTTP_KEEP) && silent < LIMITS_IDLE_MS)
    loop_timer_set(http->conn->timer, LIMITS_IDLE_MS - silent);
  else if (http->state == HTTP_EXCHANGE || http->state == HTTP_KEEP)
    http_fail(http, REASON_LIMIT_TIME, NULL);
  else if (http->state == HTTP_TUNNEL && relay_time_left(&http->relay))
    loop_timer_set(http->conn->timer, relay_time_left(&http->relay));
  else
    http->state = HTTP_END;
  http_advance(http);
}

/* A connection that was refused, and ended before it asked for anything. */
static void tell_unasked(struct http *http)
{
  exchange_open(http);
  http->event = "connect";
  http_record(http, &http->fixed.refusal);
  notify_denied(
      http->proxy->notify,
      &(struct denial){ .verdict = http->fixed.refusal, .host = &http->fixed.host, .port = http->fixed.port });
}

static void http_free(void *data)
{
  struct http *http = data;

  http->up += http->relay.up;
  http->down += http->relay.down;
  http_record(http, &http->verdict);
  if (http->fixed.refused && !http->told)
    tell_unasked(http);
  sock_close(&http->origin, false);
  relay_clear(&http->relay);
  http_drop(http, &http->in, http->in.len);
  http_drop(http, &http->origin_in, http->origin_in.len);
  http_drop(http, &http->trailer, http->trailer.len);
  http_keep_drop(http);
  http_secret_body_drop(http);
  buf_free(&http->request);
  buf_free(&http->label);
  free(http);
}

static const struct conn_server server = { .expired = expired, .free = http_free };

static struct http *http_new(struct conn *conn)
{
  struct http *http = mem_calloc(1, sizeof *http);

  if (!http) {
    conn_end(conn);
    return NULL;
  }
  http->conn = conn;
  http->proxy = conn->proxy;
  http->in = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  http->origin_in = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  http->trailer = (struct buf)BUF_INIT(2 * HTTP_BODY_TRAILER_MAX); /* the ends of its lines do not count */
  http->kept = (struct buf)BUF_INIT(LIMITS_KEPT_BODY_BYTES);
  http->watched = (struct buf)BUF_INIT(INJECT_BODY_REQUEST_MAX + LIMITS_RELAY_BYTES);
  http->scrub_held = (struct buf)BUF_INIT(INJECT_BODY_RESPONSE_MAX + LIMITS_RELAY_BYTES);
  http->request = (struct buf)BUF_INIT(REQUEST_BYTES_MAX);
  http->label = (struct buf)BUF_INIT(2 * HTTP_LABEL_BYTES + 1);
  sock_init(&http->origin);
  http->relay.proxy = conn->proxy;
  conn_serve(conn, &server, http);
  sock_own(&conn->client, on_ready, http);
  return http;
}

static void refuse_over(struct http *http)
{
  size_t max = http->proxy->conn_max;
  char cause[96];

  snprintf(cause, sizeof cause, "%zu connections are open%s", max,
           max < LIMITS_CONNECTIONS ? ", and the limit on open files (ulimit -Hn) allows no more" : "");
  refuse_head(http, &over_limit, 0, cause);
}

static void begin(struct http *http, struct span first, const char *refusal)
{
  if (http->conn->over)
    refuse_over(http);
  else if (refusal)
    refuse_head(http, &bad_request, 0, refusal);
  else if (!http_hold(http, &http->in, first))
    refuse_head(http, &no_memory, 0, "the proxy's memory is used up");
  http_advance(http);
}

void http_start(struct conn *conn, struct span first, const char *refusal)
{
  struct http *http = http_new(conn);

  if (http)
    begin(http, first, refusal);
}

void http_fixed_start(struct conn *conn, const struct http_fixed *fixed, struct sock *origin, struct span bytes)
{
  struct http *http = http_new(conn);

  if (!http)
    return;
  http->is_fixed = true;
  http->fixed = *fixed;
  http->once = fixed->once;
  http->once_host = fixed->host;
  http->once_port = fixed->port;
  if (origin) {
    sock_move(origin, on_ready, http, &http->origin);
    http->origin_host = fixed->host;
    http->origin_port = fixed->port;
    http->origin_route = fixed->route;
  }
  /* Who has carried out a handshake may take its time. */
  loop_timer_set(conn->timer, fixed->refused && !fixed->tls ? LIMITS_FIRST_MS : LIMITS_HEAD_MS);
  begin(http, bytes, NULL);
}
