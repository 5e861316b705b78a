/* Theory of operation
 *
 * A connection of HTTP/2 has two legs (h2_leg.c): to the client we are a server, to the origin a client. Each request
 * is a stream on both (h2_stream.c), and is judged, gets its values and is told of as a request of HTTP/1 (http.c) is,
 * by the same functions. Nothing is translated into HTTP/1: streams, bodies with flow control (h2_body.c), trailers,
 * 1xx, resets and GOAWAY pass as what they are.
 *
 *   client leg ── HEADERS ──> stream: judged, values fetched ──> HEADERS ── origin leg
 *              <── HEADERS ── scrubbed                        <── HEADERS
 *              <── DATA ───── a pipe each, one window at most ──> DATA
 *
 * h2_advance() reads each leg while the other's socket takes what it is sent, writes both, and repeats while something
 * moves. Callbacks (a socket, the timer, values, the user's answer) only call it.
 *
 * There is one connection to the origin for one of the client. It is not dialled anew: where the origin closes, or says
 * that it will (GOAWAY), the client is told the same, its streams go on as far as they can, and it connects again.
 *
 *   open ── GOAWAY of either side, origin lost ──> closing ── last stream ends ──> dying ── written ──> conn_linger()
 *     └──── the client breaks the protocol, goes too far, or is idle for too long ───┘
 *
 * Where the origin could not be verified there is no leg to it, and each request is answered with that.
 */
#include "proxy/h2.h"

#include "proxy/h2_state.h"
#include "proxy/notify.h"

#include <errno.h>
#include <stdlib.h>

#define READS_PER_TURN 16

uint64_t h2_now_ms(const struct h2 *h2)
{
  return loop_now_ms(h2->proxy->loop);
}

void h2_die(struct h2 *h2, uint32_t code)
{
  if (h2->dying)
    return;
  h2->dying = h2->closing = true;
  (void)nghttp2_session_terminate_session(h2->client.session, code);
  /* Not before: some servers take GOAWAY for the end of what they were asked for, too. */
  if (h2->origin.session && !h2->origin.lost)
    (void)nghttp2_session_terminate_session(h2->origin.session, NGHTTP2_NO_ERROR);
  loop_timer_set(h2->conn->timer, LIMITS_HEAD_MS);
}

void h2_close_gracefully(struct h2 *h2, uint32_t code)
{
  if (h2->closing)
    return;
  h2->closing = true;
  (void)nghttp2_submit_goaway(h2->client.session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(h2->client.session), code, NULL, 0);
}

void h2_origin_lost(struct h2 *h2, const char *cause)
{
  struct h2_stream *next;

  h2->origin.lost = true;
  h2_close_gracefully(h2, NGHTTP2_NO_ERROR);
  for (struct h2_stream *stream = h2->streams; stream; stream = next) {
    next = stream->next;
    if (!stream->origin_open)
      continue;
    if (!stream->down.ended)
      h2_stream_fail(stream, REASON_UPSTREAM_CLOSED, cause);
    h2_stream_closed(stream, true, NGHTTP2_NO_ERROR, true);
  }
  sock_close(&h2->origin_sock, true);
}

static bool has_origin(const struct h2 *h2)
{
  return h2->origin.session && h2->origin_sock.fd >= 0;
}

static bool step(struct h2 *h2)
{
  bool moved = false;

  if (!sock_pending(&h2->origin_sock))
    moved = h2_leg_read(&h2->client);
  if (has_origin(h2) && !sock_pending(&h2->conn->client))
    moved = h2_leg_read(&h2->origin) || moved;
  if (has_origin(h2))
    moved = h2_leg_write(&h2->origin) || moved;
  moved = h2_leg_write(&h2->client) || moved;
  if (has_origin(h2) && (h2->origin.lost || h2->origin.cause || h2_leg_is_over(&h2->origin))) {
    h2_origin_lost(h2, h2->origin.cause);
    moved = true;
  }
  if (h2->closing && !h2->streams && !h2->dying) {
    h2_die(h2, NGHTTP2_NO_ERROR);
    moved = true;
  }
  return moved && !h2->client.lost;
}

static void h2_free(void *data);

/* Frees h2; the client gets what has been queued for it. */
static void linger(struct h2 *h2)
{
  struct conn *conn = h2->conn;

  conn_serve(conn, NULL, NULL);
  h2_free(h2);
  conn_linger(conn);
}

/* Milliseconds left of a wait that began at since; 0: it is over. */
static uint64_t left_of(const struct h2 *h2, uint64_t since, uint64_t most)
{
  uint64_t waited = h2_now_ms(h2) - since;

  return waited < most ? most - waited : 0;
}

/* The nearest of all deadlines. */
static uint64_t deadline(const struct h2 *h2)
{
  uint64_t nearest = h2->streams ? LIMITS_IDLE_MS : left_of(h2, h2->active_ms, LIMITS_IDLE_MS);

  if (!h2->client.ready)
    return left_of(h2, h2->begun_ms, LIMITS_HEAD_MS);
  if (h2->client.block_stream)
    return left_of(h2, h2->client.block_ms, LIMITS_HEAD_MS);
  for (const struct h2_stream *stream = h2->streams; stream; stream = stream->next) {
    uint64_t left = left_of(h2, stream->active_ms, LIMITS_IDLE_MS);

    if (stream->state >= H2_EXCHANGE && left < nearest)
      nearest = left;
  }
  return nearest;
}

static void watch(struct h2 *h2)
{
  sock_watch(&h2->conn->client, !sock_pending(&h2->origin_sock));
  if (has_origin(h2))
    sock_watch(&h2->origin_sock, !sock_pending(&h2->conn->client));
  /* Else it stays, and what has become of it since then is looked at when it fires. */
  if (h2->client.block_stream && !h2->dying)
    loop_timer_set(h2->conn->timer, deadline(h2) + 1);
}

void h2_advance(struct h2 *h2)
{
  if (h2->advancing)
    return;
  h2->advancing = true;
  h2->reads_left = READS_PER_TURN;
  while (step(h2))
    ;
  h2->advancing = false;
  if (h2->client.lost && h2->conn->client.eof)
    conn_end(h2->conn);
  else if (h2->client.lost)
    conn_reset(h2->conn);
  else if (h2_leg_is_over(&h2->client))
    linger(h2);
  else
    watch(h2);
}

static void on_ready(void *data)
{
  h2_advance(data);
}

/* Streams that nothing has moved on for too long. */
static void end_silent(struct h2 *h2)
{
  struct h2_stream *next;

  for (struct h2_stream *stream = h2->streams; stream; stream = next) {
    next = stream->next;
    if (stream->state < H2_EXCHANGE || left_of(h2, stream->active_ms, LIMITS_IDLE_MS))
      continue;
    if (stream->state == H2_EXCHANGE)
      h2_stream_fail(stream, REASON_LIMIT_TIME, NULL);
    else
      h2_stream_cut(stream, NGHTTP2_CANCEL); /* the client does not take the answer */
    stream->active_ms = h2_now_ms(h2);
  }
}

static void expired(void *data)
{
  struct h2 *h2 = data;

  if (h2->dying || (!h2->client.ready && !deadline(h2))) {
    conn_reset(h2->conn);
    return;
  }
  end_silent(h2);
  if (deadline(h2) == 0)
    h2_die(h2, h2->client.block_stream ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_NO_ERROR);
  else
    loop_timer_set(h2->conn->timer, deadline(h2) + 1);
  h2_advance(h2);
}

/* A connection that was refused, and ended before it asked for anything. */
static void tell_unasked(struct h2 *h2)
{
  const struct http_fixed *fixed = &h2->fixed;
  struct audit_record record = { .event = "connect",
                                 .via = fixed->via,
                                 .verdict = fixed->refusal.allow ? AUDIT_ERROR : AUDIT_DENY,
                                 .reason = fixed->refusal.reason,
                                 .host = span_of(fixed->host.name),
                                 .port = fixed->port,
                                 .ip = fixed->route.has_addr ? &fixed->route.addr : NULL,
                                 .upstream = fixed->route.upstream,
                                 .rule = fixed->refusal.rule };

  audit_write(h2->proxy->audit, &record);
  notify_denied(h2->proxy->notify,
                &(struct denial){ .verdict = fixed->refusal, .host = &fixed->host, .port = fixed->port });
}

static void h2_free(void *data)
{
  struct h2 *h2 = data;

  h2->advancing = true; /* nothing is sent any more */
  while (h2->streams)
    h2_stream_free(h2->streams);
  if (h2->fixed.refused && !h2->told)
    tell_unasked(h2);
  if (h2->client.session)
    h2_leg_close(&h2->client);
  if (h2->origin.session)
    h2_leg_close(&h2->origin);
  sock_close(&h2->origin_sock, false);
  free(h2);
}

static const struct conn_server server = { .expired = expired, .free = h2_free };

void h2_start(struct conn *conn, const struct http_fixed *fixed, struct sock *origin)
{
  struct h2 *h2 = mem_calloc(1, sizeof *h2);

  if (!h2) {
    conn_reset(conn);
    return;
  }
  h2->conn = conn;
  h2->proxy = conn->proxy;
  h2->fixed = *fixed;
  h2->once = fixed->once;
  h2->begun_ms = h2->active_ms = h2->resets_ms = h2_now_ms(h2);
  sock_init(&h2->origin_sock);
  h2_mem_init(&h2->mem, &conn->proxy->budget, LIMITS_H2_SESSION_BYTES);
  conn_serve(conn, &server, h2);
  sock_own(&conn->client, on_ready, h2);
  if (origin)
    sock_move(origin, on_ready, h2, &h2->origin_sock);
  if (h2_leg_open(&h2->client, h2, &conn->client, false) < 0 ||
      (origin && h2_leg_open(&h2->origin, h2, &h2->origin_sock, true) < 0)) {
    conn_reset(conn);
    return;
  }
  loop_timer_set(conn->timer, LIMITS_HEAD_MS + 1);
  h2_advance(h2);
}
