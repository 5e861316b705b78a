/* Theory of operation
 *
 * While an exchange runs, two things move side by side: the request's body to the origin and responses to the client.
 * Each moves one read at a time, and only while the other side's queue is empty (back-pressure).
 *
 * A final response may come before the request's body is out. The origin then stands in the middle of a message, and so
 * does the client: the response is passed on with "Connection: close", and when it is complete the origin's connection
 * is dropped and the client's ends (F58). When the origin stops reading (EPIPE) the rest of the body is not read any
 * more, and its response is still waited for.
 *
 *   1xx       passed on, and waited on (F57); not to a client of HTTP/1.0, which does not know them
 *   101       only where an upgrade to WebSocket was asked for and the request is out: both connections become a
 *             tunnel, in which the client has to begin with a frame. A server that goes on to read requests gets none
 *   end of file, no response yet   the request is sent again on a new connection where that is safe, else 502
 *   end of file inside a response  the client is reset, unless the end of file is the response's end
 */
#include "proxy/http_rewrite.h"
#include "proxy/http_secret_body.h"
#include "proxy/http_state.h"
#include "proxy/notify.h"

#include <errno.h>

#define RESPONSE_BYTES_MAX (LIMITS_HTTP_HEAD_BYTES + 4096)

void http_drop(struct http *http, struct buf *in, size_t count)
{
  buf_consume(in, count);
  budget_give(&http->proxy->budget, count);
  if (in->len == 0)
    buf_free(in);
}

bool http_hold(struct http *http, struct buf *in, struct span bytes)
{
  if (!budget_take(&http->proxy->budget, bytes.len))
    return false;
  buf_append(in, bytes);
  if (!buf_error(in))
    return true;
  budget_give(&http->proxy->budget, bytes.len);
  in->error = 0;
  return false;
}

int http_fill(struct http *http, struct sock *sock, struct buf *in)
{
  struct proxy *proxy = http->proxy;
  ssize_t n;

  if (http->reads_left == 0 || in->len >= LIMITS_HTTP_HEAD_BYTES)
    return 0;
  n = sock_recv(sock, proxy->scratch, LIMITS_HTTP_HEAD_BYTES - in->len);
  if (n == -EAGAIN)
    return 0;
  http->reads_left--;
  if (n <= 0)
    return n ? (int)n : -ENODATA;
  return http_hold(http, in, (struct span){ .ptr = proxy->scratch, .len = (size_t)n }) ? 1 : -ENOBUFS;
}

bool http_listen(struct http *http)
{
  int r = http_fill(http, &http->conn->client, &http->in);

  if (r == -ENOBUFS)
    http_fail_memory(http);
  else if (r < 0 && r != -ENODATA)
    http->state = HTTP_END;
  return r != 0 && r != -ENODATA;
}

static void note_activity(struct http *http)
{
  http->active_ms = loop_now_ms(http->proxy->loop);
}

const struct upstream *http_exchange_parent(const struct http *http)
{
  const struct upstream *upstream =
      http->is_fixed || http->upgrade ? NULL : upstream_find(&http->proxy->upstreams, &http->host, http->port, true);

  return upstream && upstream->kind == UPSTREAM_HTTP ? upstream : NULL;
}

bool http_exchange_serves(const struct http *http)
{
  if (http->is_fixed)
    return http->origin.fd >= 0;
  return http->origin.fd >= 0 && !http->connect && http->origin_parent == http->parent &&
         http->origin_port == http->port && strcmp(http->origin_host.name, http->host.name) == 0;
}

void http_exchange_begin(struct http *http)
{
  bool more = !http->request_body.done && (http->in.len > 0 || http->kept.len > 0);
  int r;

  http->state = HTTP_EXCHANGE;
  http->dialled = http->origin_route.has_addr || http->origin_route.upstream;
  http->origin_scan = (struct http_scan){ 0 };
  note_activity(http);
  loop_timer_set(http->conn->timer, LIMITS_IDLE_MS);
  r = http->wanted || http->resized ? http_secret_send(http, more)
                                    : sock_send(&http->origin, buf_span(&http->request), more);
  if (r == -ECANCELED)
    return;
  if (r == -ENOBUFS)
    http_fail_memory(http);
  else if (r < 0)
    http->body_refused = true; /* the origin has closed: reading from it will tell */
  if (!http->can_retry && !http->wanted)
    buf_free(&http->request);
}

/* The origin closed or failed before a response began. */
static void origin_lost(struct http *http, const char *cause)
{
  if (!http->can_retry) {
    http_fail(http, REASON_UPSTREAM_CLOSED, cause);
    return;
  }
  http->body_refused = false;
  http_reach(http);
}

/* The client has gone, or broken its framing: there is nobody to answer. */
static void client_lost(struct http *http)
{
  http->state = HTTP_END;
}

/* Sends on what of bytes belongs to the request's body. Returns how many bytes do, or -errno when it has dealt with an
 * error. */
static ssize_t send_body(struct http *http, struct span bytes)
{
  struct http_body framing = http->request_body;
  size_t len = 0;
  int r = http_body_take(&http->request_body, bytes, &len);

  if (r < 0) {
    struct verdict verdict = { .allow = false, .reason = REASON_BAD_REQUEST };

    http_refuse(http, &verdict, 0, "the framing of the body is broken");
    return r;
  }
  r = http_secret_body_watch(http, &framing, span_sub(bytes, 0, len));
  if (r == 0)
    r = sock_send(&http->origin, span_sub(bytes, 0, len), false);
  if (r == -ENOBUFS) {
    http_fail_memory(http);
    return r;
  }
  if (r < 0)
    http->body_refused = true;
  http->up += len;
  note_activity(http);
  return (ssize_t)len;
}

/* A read went past the end of the body: the rest begins the next request. */
static void keep_rest(struct http *http, struct span rest)
{
  if (rest.len && !http_hold(http, &http->in, rest))
    http_fail_memory(http);
}

/* The same of the body that is kept. */
static void send_kept(struct http *http)
{
  ssize_t n = send_body(http, span_sub(buf_span(&http->kept), http->kept_sent, LIMITS_RELAY_BYTES));

  if (n > 0)
    http->kept_sent += (size_t)n;
  if (http->request_body.done || n <= 0)
    http_keep_drop(http);
}

static bool move_request(struct http *http)
{
  struct proxy *proxy = http->proxy;
  struct span bytes = buf_span(&http->in);
  bool held = bytes.len > 0;
  ssize_t n;

  if (http->request_body.done)
    return http_listen(http);
  if (http->body_refused || sock_pending(&http->origin))
    return false;
  if (http->kept.len) {
    send_kept(http);
    return true;
  }
  if (!held) {
    if (http->reads_left == 0)
      return false;
    n = sock_recv(&http->conn->client, proxy->scratch, sizeof proxy->scratch);
    if (n == -EAGAIN)
      return false;
    http->reads_left--;
    if (n <= 0) {
      client_lost(http);
      return true;
    }
    bytes = (struct span){ .ptr = proxy->scratch, .len = (size_t)n };
  }
  n = send_body(http, bytes);
  if (n >= 0 && held)
    http_drop(http, &http->in, (size_t)n);
  else if (n >= 0)
    keep_rest(http, span_sub(bytes, (size_t)n, bytes.len));
  return true;
}

/* Passes a response head on. more: bytes of its body follow at once. */
static int send_head(struct http *http, const struct http_head *head, bool upgrade, bool more)
{
  buf_autofree struct buf out = BUF_INIT(RESPONSE_BYTES_MAX);

  http_rewrite_response(head, http->close_client, upgrade, &out);
  if (buf_error(&out))
    return buf_error(&out);
  return sock_send(&http->conn->client, buf_span(&out), more);
}

static void take_interim(struct http *http, const struct http_head *head, size_t len)
{
  bool upgrade = head->status == 101;

  if (upgrade && (!http->upgrade || !http->request_body.done || !http_rewrite_is_websocket(head))) {
    http_fail(http, REASON_BAD_RESPONSE, "it switches protocols unasked");
    return;
  }
  if (!http->old_client && send_head(http, head, upgrade, false) < 0) {
    client_lost(http);
    return;
  }
  http_drop(http, &http->origin_in, len);
  http->origin_scan = (struct http_scan){ 0 };
  http->can_retry = false;
  if (upgrade) {
    http->event = "upgrade";
    http_tunnel(http);
  }
}

static void take_final(struct http *http, const struct http_head *head, size_t len)
{
  bool endless = http->response_body.kind == HTTP_BODY_CLOSE;
  const char *hides = http_secret_body_hides(http, head);

  if (head->status == 401 && http_secret_renew(http)) {
    http->scrubbed = 0; /* it comes once more, or another in its place */
    return;
  }
  if (hides) {
    http_fail(http, REASON_BAD_RESPONSE, hides);
    return;
  }
  /* While nothing has gone to the client, a broken body can still be told. */
  if (!http_body_fits(&http->response_body, span_sub(buf_span(&http->origin_in), len, http->origin_in.len))) {
    http_fail(http, REASON_BAD_RESPONSE, "the framing of its body is broken");
    return;
  }
  if (endless || !http->request_body.done)
    http->close_client = true;
  http->keep_origin = !endless && head->minor > 0 && !http_head_lists(head, "connection", SPAN("close"));
  http->response_begun = true;
  http->can_retry = false;
  if (send_head(http, head, false, !http->response_body.done && http->origin_in.len > len) < 0)
    client_lost(http);
  else
    http_drop(http, &http->origin_in, len);
}

/* Whether the answer is the parent's own and is kept from the command. A 407 would mean there that our proxy wants a
 * password. squid's error pages hold the request that it got, and before 7.2 the login with it (CVE-2025-62168). To
 * search answers for the login would be no better: a hostile origin could try passwords on the search. */
static bool is_of_parent(const struct http *http, const struct http_head *head)
{
  return http->origin_parent &&
         (head->status == 407 || (http->origin_parent->has_login && http_head_find(head, "x-squid-error", NULL)));
}

static void fail_parent(struct http *http, unsigned status)
{
  buf_autofree struct buf cause = BUF_INIT(REACH_CAUSE_BYTES);

  upstream_print(http->origin_parent, &cause);
  buf_printf(&cause, ": it answered %u", status);
  http_fail(http, status == 407 ? REASON_PARENT_AUTH : REASON_PARENT_REFUSED, cause.data);
}

static void take_response(struct http *http, size_t len)
{
  buf_autofree struct buf scrubbed = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct http_head head;
  struct err err = ERR_INIT;
  int r = http_head_parse_response(span_sub(buf_span(&http->origin_in), 0, len), &err, &head);

  if (r == 0)
    r = http_rewrite_check_response(&head, &err);
  if (r == 0)
    r = http_body_of_response(&head, http->to_head, &err, &http->response_body);
  if (r == 0 && http->old_client && http->response_body.kind == HTTP_BODY_CHUNKED)
    r = err_set(&err, EBADMSG, "it is chunked, which a client of HTTP/1.0 cannot read");
  if (r == 0)
    http_secret_scrub(http, &head, &scrubbed);
  if (r < 0)
    http_fail(http, REASON_BAD_RESPONSE, err.message);
  else if (is_of_parent(http, &head))
    fail_parent(http, head.status);
  else if (head.status < 200)
    take_interim(http, &head, len);
  else
    take_final(http, &head, len);
}

/* Whether bytes may be the beginning of a response: an origin that speaks something else would never end its head. */
static bool is_response_start(struct span bytes)
{
  return span_starts_with(SPAN("HTTP/1."), span_sub(bytes, 0, sizeof "HTTP/1." - 1));
}

static bool read_response_head(struct http *http)
{
  struct span bytes = buf_span(&http->origin_in);
  size_t len = 0;
  int r = bytes.len ? http_head_scan(&http->origin_scan, bytes, &len) : 0;

  if (r < 0 || !is_response_start(bytes)) {
    http_fail(http, REASON_BAD_RESPONSE, "it does not begin with a well-formed HTTP/1 head");
    return true;
  }
  if (r > 0) {
    take_response(http, len);
    return true;
  }
  if (bytes.len >= LIMITS_HTTP_HEAD_BYTES) {
    http_fail(http, REASON_BAD_RESPONSE, "its head is too large");
    return true;
  }
  r = http_fill(http, &http->origin, &http->origin_in);
  if (r == -ENOBUFS)
    http_fail_memory(http);
  else if (r < 0)
    origin_lost(http, r == -ENODATA || r == -ECONNABORTED ? NULL : strerror(-r));
  else if (r > 0)
    note_activity(http);
  return r != 0;
}

/* As http_secret_body_scrub(), of a body that is not searched. */
static int pass_response_body(struct http *http, struct span bytes, size_t *ret_len)
{
  size_t len = 0;
  size_t plain;
  int r = http_body_take(&http->response_body, bytes, &len);

  if (r < 0)
    return r;
  plain = len - http->response_body.trailer;
  r = sock_send(&http->conn->client, span_sub(bytes, 0, plain), false);
  if (r == 0 && plain < len)
    r = http_secret_trailer(http, span_sub(bytes, plain, len - plain));
  *ret_len = len;
  return r;
}

/* Sends on what of bytes belongs to the response's body. */
static void send_response_body(struct http *http, struct span bytes)
{
  size_t len = 0;
  int r = http->scrubs ? http_secret_body_scrub(http, bytes, &len) : pass_response_body(http, bytes, &len);

  if (r == -EBADMSG) {
    http_fail(http, REASON_BAD_RESPONSE, NULL);
    return;
  }
  if (r < 0) {
    client_lost(http);
    return;
  }
  if (len < bytes.len)
    http->keep_origin = false; /* it sends more than its response: out of step */
  http->down += len;
  note_activity(http);
}

/* The response has ended with TLS that was not: some servers never announce their end, and attackers cut. The client
 * gets the same end, and judges it as it would without us. */
static void cut(struct http *http)
{
  struct verdict verdict = http->verdict;

  verdict.reason = REASON_UPSTREAM_CLOSED;
  (void)http_secret_body_end(http);
  http_record(http, &verdict);
  sock_close(&http->origin, false);
  sock_finish_mute(&http->conn->client);
  http->state = HTTP_LINGER;
}

/* The connection's end is that of the response. */
static void end_response(struct http *http)
{
  if (http_secret_body_end(http) < 0)
    client_lost(http);
  else
    http_done(http);
}

static bool read_response_body(struct http *http)
{
  struct proxy *proxy = http->proxy;
  size_t held = http->origin_in.len;
  ssize_t n;

  if (http->response_body.done) {
    http_done(http);
    return true;
  }
  if (held) {
    send_response_body(http, buf_span(&http->origin_in));
    http_drop(http, &http->origin_in, http->origin_in.len);
    return true;
  }
  if (http->reads_left == 0)
    return false;
  n = sock_recv(&http->origin, proxy->scratch, sizeof proxy->scratch);
  if (n == -EAGAIN)
    return false;
  http->reads_left--;
  if (n > 0)
    send_response_body(http, (struct span){ .ptr = proxy->scratch, .len = (size_t)n });
  else if (n == 0 && http->response_body.kind == HTTP_BODY_CLOSE)
    end_response(http);
  else if (n == -ECONNABORTED && http->response_body.kind == HTTP_BODY_CLOSE)
    cut(http);
  else
    http_fail(http, REASON_UPSTREAM_CLOSED, NULL);
  return true;
}

bool http_exchange_step(struct http *http)
{
  bool moved;

  if (http->conn->client.error) {
    client_lost(http);
    return true;
  }
  moved = move_request(http);
  if (http->state != HTTP_EXCHANGE)
    return true;
  if (sock_pending(&http->conn->client))
    return moved;
  if (http->response_begun)
    return read_response_body(http) || moved;
  return read_response_head(http) || moved;
}

static void on_tunnel_done(void *data)
{
  struct http *http = data;

  http->state = HTTP_END;
  /* Inside http_advance() the connection ends there. */
  if (!http->advancing)
    conn_end(http->conn);
}

/* A client's first frame (RFC 6455, 5.2): an opcode that can come first, masked, and of the reserved bits at most the
 * one of compression (RFC 7692). The mask bit alone is in no text. */
static bool is_frame(struct span bytes)
{
  unsigned opcode = (unsigned)bytes.ptr[0] & 0x0f;

  return !(bytes.ptr[0] & 0x30) && (bytes.ptr[1] & 0x80) &&
         (opcode == 1 || opcode == 2 || (opcode >= 8 && opcode <= 10));
}

static enum relay_look look_for_frame(void *data, struct span bytes, bool end)
{
  static const struct verdict no_frame = { .reason = REASON_BAD_REQUEST };
  struct http *http = data;

  if (bytes.len < 2)
    return end ? RELAY_PASS : RELAY_MORE;
  if (is_frame(bytes))
    return RELAY_PASS;
  http->down += http->relay.down;
  notify_denied(http->proxy->notify, &(struct denial){ .verdict = no_frame, .host = &http->host, .port = http->port });
  http_record(http, &no_frame);
  relay_clear(&http->relay);
  sock_close(&http->conn->client, true);
  sock_close(&http->origin, true);
  on_tunnel_done(http);
  return RELAY_GONE;
}

void http_tunnel(struct http *http)
{
  int r = 0;

  http->state = HTTP_TUNNEL;
  http->down = http->origin_in.len;
  if (http->origin_in.len)
    r = sock_send(&http->conn->client, buf_span(&http->origin_in), false);
  http_drop(http, &http->origin_in, http->origin_in.len);
  buf_free(&http->request);
  if (r < 0) {
    http->state = HTTP_END;
    return;
  }
  loop_timer_set(http->conn->timer, LIMITS_IDLE_MS);
  relay_start_held(&http->relay, http->proxy, &http->conn->client, &http->origin, buf_span(&http->in), look_for_frame,
                   NULL, on_tunnel_done, http);
  http_drop(http, &http->in, http->in.len);
}
