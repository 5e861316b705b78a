/* Theory of operation
 *
 *   GREETING ── usable ──> REQUEST ── allowed ──> REACH ── connected ──> reply 0, a tunnel (tunnel.h)
 *      │ 0xff, or HTTP told so  │ refused            │ failed
 *      └────────────────────────┴──> reply, linger <─┘
 *
 * Where the user can be asked about a request that is refused, ASK stands between REQUEST and what comes of it.
 *
 * Clients send greeting and request, and even the first bytes of the tunnel, without waiting: what stands behind the
 * request is the tunnel's, and no more than INPUT_BYTES is read before there is one.
 *
 * The reply does not say which address the origin was dialled from: that is the host's, and none of the command's
 * business.
 */
#include "proxy/socks.h"

#include "base/clock.h"
#include "proxy/ask.h"
#include "proxy/http.h"
#include "proxy/reach.h"
#include "proxy/sniff.h"
#include "proxy/socks5.h"
#include "proxy/stub.h"
#include "proxy/tell.h"
#include "proxy/tunnel.h"

#include <errno.h>
#include <stdlib.h>

#define INPUT_BYTES 4096

enum socks_state {
  SOCKS_GREETING, /* read client */
  SOCKS_REQUEST, /* the same */
  SOCKS_ASK, /* the user is asked: the client is not read */
  SOCKS_REACH, /* resolving and dialling: the client is not read */
};

struct socks {
  struct conn *conn;
  enum socks_state state;
  char input[INPUT_BYTES]; /* from the client */
  size_t len;
  size_t used; /* of it */
  struct socks5_request request;
  bool has_request;
  struct verdict verdict;
  uint64_t begun_ns;
  struct ask_waiter *waiter;
  struct reach *reach;
  bool starting; /* reach_start() is on the stack */
  bool has_reached;
  struct reach_result reached;
  bool told;
};

static void record(struct socks *socks)
{
  if (!socks->told)
    tell(socks->conn->proxy, &(struct tell){ .event = "connect",
                                             .via = "socks5",
                                             .verdict = socks->verdict,
                                             .host = socks->has_request ? &socks->request.host : NULL,
                                             .port = socks->request.port,
                                             .route = &socks->reached.route,
                                             .cause = socks->reached.cause,
                                             .begun_ns = socks->begun_ns });
  socks->told = true;
}

static void socks_free(void *data)
{
  struct socks *socks = data;

  /* A client that went before it asked for anything is not worth a line. */
  if (socks->has_request || reason_is_limit(socks->verdict.reason) || socks->verdict.reason == REASON_BAD_REQUEST ||
      socks->verdict.reason == REASON_BAD_TARGET)
    record(socks);
  ask_cancel(&socks->waiter);
  reach_cancel(&socks->reach);
  free(socks);
}

/* Frees socks; the connection ends when the client has had the last answer, which may be empty. */
static void finish(struct socks *socks, struct span last)
{
  struct conn *conn = socks->conn;

  conn_serve(conn, NULL, NULL);
  socks_free(socks);
  if (sock_send(&conn->client, last, false) == 0)
    conn_linger(conn);
  else
    conn_end(conn);
}

static void reply_last(struct socks *socks, enum socks5_reply reply)
{
  char out[SOCKS5_REPLY_MAX_BYTES];

  finish(socks, (struct span){ .ptr = out, .len = socks5_encode_reply(reply, NULL, 0, out) });
}

static void become_tunnel(struct socks *socks)
{
  struct conn *conn = socks->conn;
  char out[SOCKS5_REPLY_MAX_BYTES];
  size_t len = socks5_encode_reply(SOCKS5_SUCCEEDED, NULL, 0, out);
  struct tunnel_start start = { .via = "socks5",
                                .host = socks->request.host,
                                .port = socks->request.port,
                                .verdict = socks->reached.verdict,
                                .route = socks->reached.route,
                                .fd = socks->reached.fd,
                                .first = { .ptr = socks->input + socks->used, .len = socks->len - socks->used },
                                .begun_ns = socks->begun_ns };

  /* A client that is gone is noticed by the tunnel. */
  (void)sock_send(&conn->client, (struct span){ .ptr = out, .len = len }, false);
  socks->told = true; /* by the tunnel */
  conn_serve(conn, NULL, NULL);
  tunnel_start(conn, &start);
  socks_free(socks);
}

/* Once it is known whether the target can be reached. */
static void go_on(struct socks *socks)
{
  socks->verdict = socks->reached.verdict;
  if (socks->reached.fd >= 0)
    become_tunnel(socks);
  else
    reply_last(socks, socks5_reply_of_reason(socks->verdict.reason));
}

static void on_reached(void *data, const struct reach_result *result)
{
  struct socks *socks = data;

  socks->reached = *result;
  socks->has_reached = true;
  if (!socks->starting)
    go_on(socks);
}

static void reach(struct socks *socks)
{
  struct conn *conn = socks->conn;

  socks->state = SOCKS_REACH;
  sock_watch(&conn->client, false);
  loop_timer_stop(conn->timer); /* the dial has its own deadline */
  socks->starting = true;
  reach_start(conn->proxy, &socks->request.host, socks->request.port, false, &socks->verdict, on_reached, socks,
              &socks->reach);
  socks->starting = false;
  if (socks->has_reached)
    go_on(socks);
}

/* What comes of a request that parses. */
static void obey(struct socks *socks)
{
  if (socks->verdict.allow)
    reach(socks);
  else
    reply_last(socks, socks5_reply_of_reason(socks->verdict.reason));
}

static void on_asked(void *data, const struct verdict *verdict)
{
  struct socks *socks = data;

  socks->verdict = *verdict;
  obey(socks);
}

/* True when the user is asked. */
static bool ask(struct socks *socks)
{
  struct conn *conn = socks->conn;

  if (!ask_start(conn->proxy->ask, &socks->request.host, socks->request.port, &socks->verdict, on_asked, socks,
                 &socks->waiter))
    return false;
  socks->state = SOCKS_ASK;
  sock_watch(&conn->client, false);
  loop_timer_stop(conn->timer); /* the question has its own deadline */
  return true;
}

static struct span input(const struct socks *socks)
{
  return (struct span){ .ptr = socks->input + socks->used, .len = socks->len - socks->used };
}

/* The steps return true when there may be another one at once, and false when more has to come or socks is gone. */

static bool take_greeting(struct socks *socks)
{
  struct conn *conn = socks->conn;
  struct err err = ERR_INIT;
  char out[SOCKS5_METHOD_BYTES];
  bool usable = false;
  size_t len = 0;
  int r = socks5_parse_greeting(input(socks), &err, &usable, &len);

  if (r == 0)
    return false;
  if (r < 0 && sniff_first(input(socks)) == SNIFF_HTTP) {
    conn_serve(conn, NULL, NULL);
    http_start(conn, input(socks), "this port speaks SOCKS 5");
    free(socks);
    return false;
  }
  if (r < 0) {
    socks->verdict = (struct verdict){ .reason = REASON_BAD_REQUEST };
    finish(socks, SPAN(""));
    return false;
  }
  socks5_encode_method(usable, out);
  if (!usable) {
    socks->verdict = (struct verdict){ .reason = REASON_BAD_REQUEST };
    finish(socks, (struct span){ .ptr = out, .len = sizeof out });
    return false;
  }
  socks->used += len;
  socks->state = SOCKS_REQUEST;
  /* A client that is gone is noticed when it is read. */
  (void)sock_send(&conn->client, (struct span){ .ptr = out, .len = sizeof out }, false);
  return true;
}

static bool take_request(struct socks *socks)
{
  struct proxy *proxy = socks->conn->proxy;
  struct err err = ERR_INIT;
  size_t len = 0;
  int r = socks5_parse_request(input(socks), &err, &socks->request, &len);

  if (r == 0)
    return false;
  if (r < 0) {
    socks->verdict = (struct verdict){ .reason = r == -EINVAL ? REASON_BAD_TARGET : REASON_BAD_REQUEST };
    if (r == -EPROTONOSUPPORT)
      finish(socks, SPAN(""));
    else
      reply_last(socks, socks5_reply_of_error(r));
    return false;
  }
  socks->used += len;
  socks->has_request = true;
  stub_restore_name(proxy->stub, &socks->request.host);
  socks->verdict = stub_judge_target(proxy->stub, &socks->request.host, socks->request.port);
  if (socks->conn->over)
    socks->verdict = (struct verdict){ .reason = REASON_LIMIT_CONNECTIONS };
  if (socks->verdict.allow || !ask(socks))
    obey(socks);
  return false;
}

static void on_ready(void *data)
{
  struct socks *socks = data;
  ssize_t n;

  if (socks->state == SOCKS_ASK || socks->state == SOCKS_REACH)
    return;
  n = sock_recv(&socks->conn->client, socks->input + socks->len, sizeof socks->input - socks->len);
  if (n == -EAGAIN)
    return;
  if (n <= 0) {
    conn_end(socks->conn);
    return;
  }
  socks->len += (size_t)n;
  /* Again: where bytes and a reset came together the loop has ended its watch, and the reset would never be seen. */
  sock_watch(&socks->conn->client, true);
  if (socks->state == SOCKS_GREETING && !take_greeting(socks))
    return;
  (void)take_request(socks);
}

static void expired(void *data)
{
  struct socks *socks = data;

  conn_end(socks->conn);
}

static const struct conn_server server = { .expired = expired, .free = socks_free };

void socks_start(struct conn *conn)
{
  struct socks *socks = mem_calloc(1, sizeof *socks);

  if (!socks) {
    conn_end(conn);
    return;
  }
  socks->conn = conn;
  socks->begun_ns = clock_mono_ns();
  socks->verdict = (struct verdict){ .allow = true, .reason = REASON_ALLOWED };
  if (conn->over)
    socks->verdict = (struct verdict){ .reason = REASON_LIMIT_CONNECTIONS };
  conn_serve(conn, &server, socks);
  sock_own(&conn->client, on_ready, socks);
  sock_watch(&conn->client, true);
}
