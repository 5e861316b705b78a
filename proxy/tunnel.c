/* Theory of operation
 *
 * A tunnel was allowed for one host; what the client sends first must name that host and no other (identity.h). Until
 * that is known nothing of the client goes to the origin; what the origin sends goes to the client at once, since in
 * many protocols the server speaks first.
 *
 *   the client's first bytes            then
 *   none                                wait; the origin may speak meanwhile
 *   a ClientHello, not whole            wait, for LIMITS_HEAD_MS in all
 *   no text, and no end of a line       send it on, and go on looking
 *   a line, not whole                   wait for LIMITS_FIRST_MS; then send on what there is, and go on looking
 *   a ClientHello for another host      TLS alert access_denied; the origin is reset
 *   a ClientHello for the target        where its requests have to be seen, the terminator (terminator.h) takes over
 *                                       both ends; else a blind relay
 *   cleartext HTTP/1                    the HTTP machine takes over both ends and judges each request (http_fixed.h)
 *   the same, after a part has gone on  reset both: it cannot be judged any more
 *   anything else                       a blind relay, unless the origin answers as a server of TLS or HTTP does: it
 *                                       has then taken what was nothing to us for a hello or a request, and both are
 *                                       reset before the client has a byte of it
 *
 * Requests have to be seen where a credential is bound to the target, or rules on methods or paths have a say
 * (verdict.request_rule); also where the ClientHello at an address names a host of which one of these is true. What is
 * neither TLS nor HTTP is reset there, and so is a line that does not end. Never does TLS pass as it is, whatever it is
 * that keeps it from being terminated (F81).
 */
#include "proxy/tunnel.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/http_fixed.h"
#include "proxy/identity.h"
#include "proxy/relay.h"
#include "proxy/tell.h"
#include "proxy/terminator.h"

#include <stdlib.h>

struct tunnel {
  struct conn *conn;
  struct proxy *proxy;
  const char *via;
  const char *method;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  struct route route;
  uint64_t begun_ns;
  bool has_addr; /* of the loopback: what the client has connected to for `localhost` */
  struct addr addr;
  uint32_t bound; /* credentials that are bound to the target */
  struct identity identity;
  bool waiting; /* a part of the first bytes is there */
  bool tls;
  bool named; /* a ClientHello has named the target */
  bool told;
  struct sock origin;
  struct relay relay;
};

static const struct verdict mismatch = { .allow = false, .reason = REASON_IDENTITY_MISMATCH };

static void record(struct tunnel *tunnel, const struct verdict *verdict)
{
  if (!tunnel->told)
    tell(tunnel->proxy, &(struct tell){ .event = "connect",
                                        .via = tunnel->via,
                                        .method = tunnel->method,
                                        .verdict = *verdict,
                                        .host = &tunnel->host,
                                        .port = tunnel->port,
                                        .route = &tunnel->route,
                                        .up = tunnel->relay.up,
                                        .down = tunnel->relay.down,
                                        .begun_ns = tunnel->begun_ns });
  tunnel->told = true;
}

static void tunnel_free(void *data)
{
  struct tunnel *tunnel = data;

  record(tunnel, &tunnel->verdict);
  sock_close(&tunnel->origin, false);
  relay_clear(&tunnel->relay);
  free(tunnel);
}

static void on_done(void *data)
{
  conn_end(((struct tunnel *)data)->conn);
}

static void refuse(struct tunnel *tunnel, const struct verdict *verdict)
{
  struct conn *conn = tunnel->conn;
  bool alert = tunnel->tls;

  record(tunnel, verdict);
  sock_close(&tunnel->origin, true);
  conn_serve(conn, NULL, NULL);
  tunnel_free(tunnel);
  if (alert && sock_send(&conn->client, tell_alert(), false) == 0)
    conn_linger(conn);
  else
    conn_reset(conn);
}

static void become_http(struct tunnel *tunnel, struct span bytes)
{
  struct http_fixed fixed = { .host = tunnel->host, .port = tunnel->port, .via = tunnel->via, .route = tunnel->route };

  if (tunnel->verdict.asked == DECIDE_ASKED_ONCE)
    fixed.once = tunnel->verdict;
  record(tunnel, &tunnel->verdict);
  conn_serve(tunnel->conn, NULL, NULL);
  http_fixed_start(tunnel->conn, &fixed, &tunnel->origin, bytes);
  tunnel_free(tunnel);
}

static void terminate(struct tunnel *tunnel, const struct host *name, struct span hello)
{
  const struct terminator *terminator = tunnel->proxy->terminator;
  struct terminator_start start = { .fixed = { .host = tunnel->host,
                                               .port = tunnel->port,
                                               .tls = true,
                                               .name = *name,
                                               .via = tunnel->via,
                                               .route = tunnel->route },
                                    .method = tunnel->method,
                                    .verdict = tunnel->verdict,
                                    .begun_ns = tunnel->begun_ns };

  if (tunnel->verdict.asked == DECIDE_ASKED_ONCE)
    start.fixed.once = tunnel->verdict;
  tunnel->told = true; /* by who terminates it */
  conn_serve(tunnel->conn, NULL, NULL);
  terminator->start(tunnel->conn, &start, &tunnel->origin, hello);
  tunnel_free(tunnel);
}

/* What the client means by a hello without a name: the target, or the address of the loopback that it has. */
static struct host named_by(const struct tunnel *tunnel, struct span hello)
{
  struct host name = tunnel->host;

  if (!identity_name(hello, &name) && tunnel->has_addr)
    host_of_addr(&tunnel->addr, &name);
  return name;
}

/* A whole ClientHello that names the target, or comes to an address that was allowed as such with a name that is
 * allowed: by that name its requests may have to be seen too. */
static enum relay_look take_hello(struct tunnel *tunnel, struct span hello)
{
  const struct policy *policy = tunnel->proxy->policy;
  struct host name = named_by(tunnel, hello);
  uint32_t bound = decide_bound(policy, &name, tunnel->port);
  const struct policy_rule *rule = tunnel->verdict.request_rule;
  struct verdict unable = { .reason = REASON_NOT_TERMINATED };

  if (!rule)
    rule = decide_target(policy, &name, tunnel->port).request_rule;
  if (!bound && !tunnel->bound && !rule) {
    tunnel->named = true;
    loop_timer_set(tunnel->conn->timer, LIMITS_IDLE_MS);
    return RELAY_PASS;
  }
  /* A credential of the address is not one of the name's. */
  if ((bound || !tunnel->bound) && tunnel->proxy->terminator && !tunnel->relay.passed && !tunnel->relay.down &&
      !tunnel->origin.eof) {
    terminate(tunnel, &name, hello);
  } else {
    unable.rule = rule;
    refuse(tunnel, &unable);
  }
  return RELAY_GONE;
}

/* What becomes of what is no HTTP. TLS is judged when its hello is whole. */
static struct verdict judge_opaque(const struct tunnel *tunnel)
{
  if (tunnel->tls)
    return tunnel->verdict;
  if (tunnel->bound)
    return (struct verdict){ .reason = REASON_NOT_TERMINATED };
  return decide_opaque(&tunnel->verdict);
}

static void wait_for_more(struct tunnel *tunnel)
{
  if (tunnel->waiting)
    return;
  tunnel->waiting = true;
  loop_timer_set(tunnel->conn->timer, tunnel->tls || !judge_opaque(tunnel).allow ? LIMITS_HEAD_MS : LIMITS_FIRST_MS);
}

static enum relay_look look(void *data, struct span bytes, bool end)
{
  struct tunnel *tunnel = data;
  struct err err = ERR_INIT;
  struct verdict opaque;

  tunnel->tls = identity_is_tls(bytes);
  opaque = judge_opaque(tunnel);
  switch (identity_look(&tunnel->identity, tunnel->proxy->policy, &tunnel->host, tunnel->port, bytes, end, &err)) {
  case IDENTITY_MORE:
    if (bytes.len)
      wait_for_more(tunnel);
    return RELAY_MORE;
  case IDENTITY_STREAM:
    if (!opaque.allow) {
      refuse(tunnel, &opaque);
      return RELAY_GONE;
    }
    loop_timer_set(tunnel->conn->timer, LIMITS_IDLE_MS);
    return RELAY_TRICKLE;
  case IDENTITY_PASS:
    if (bytes.len && !opaque.allow) {
      refuse(tunnel, &opaque);
      return RELAY_GONE;
    }
    if (tunnel->tls)
      return take_hello(tunnel, bytes);
    loop_timer_set(tunnel->conn->timer, LIMITS_IDLE_MS);
    return RELAY_PASS;
  case IDENTITY_HTTP:
    if (tunnel->relay.passed == 0 && tunnel->relay.down == 0 && !tunnel->origin.eof) {
      become_http(tunnel, bytes);
      return RELAY_GONE;
    }
    refuse(tunnel, &mismatch);
    return RELAY_GONE;
  case IDENTITY_REFUSE:
  default:
    refuse(tunnel, &mismatch);
    return RELAY_GONE;
  }
}

static enum relay_look hear(void *data, struct span bytes)
{
  struct tunnel *tunnel = data;

  if (tunnel->named)
    return RELAY_PASS;
  if (!identity_is_answer(bytes)) {
    tunnel->identity.spoken = true;
    return RELAY_PASS;
  }
  /* Unasked: of an HTTP server that has waited for too long, say. */
  if (tunnel->relay.up == 0)
    return RELAY_MORE;
  refuse(tunnel, &mismatch);
  return RELAY_GONE;
}

static void expired(void *data)
{
  struct tunnel *tunnel = data;
  uint64_t left = relay_time_left(&tunnel->relay);
  bool judging = tunnel->relay.look && tunnel->waiting && !tunnel->relay.passed;
  struct verdict opaque = judge_opaque(tunnel);

  if (judging && (tunnel->tls || !opaque.allow)) {
    refuse(tunnel, opaque.allow ? &mismatch : &opaque);
  } else if (judging) {
    loop_timer_set(tunnel->conn->timer, LIMITS_IDLE_MS);
    relay_trickle(&tunnel->relay);
  } else if (left) {
    loop_timer_set(tunnel->conn->timer, left);
  } else {
    conn_end(tunnel->conn);
  }
}

static const struct conn_server server = { .expired = expired, .free = tunnel_free };

void tunnel_start(struct conn *conn, const struct tunnel_start *start)
{
  struct tunnel *tunnel = mem_calloc(1, sizeof *tunnel);
  int fd = start->fd;

  if (!tunnel) {
    fd_close(&fd);
    conn_reset(conn);
    return;
  }
  tunnel->conn = conn;
  tunnel->proxy = conn->proxy;
  tunnel->via = start->via;
  tunnel->method = start->method;
  tunnel->host = start->host;
  tunnel->port = start->port;
  tunnel->bound = start->blind ? 0 : decide_bound(conn->proxy->policy, &start->host, start->port);
  tunnel->verdict = start->verdict;
  tunnel->route = start->route;
  tunnel->begun_ns = start->begun_ns;
  tunnel->has_addr = start->has_addr;
  tunnel->addr = start->addr;
  tunnel->relay.proxy = conn->proxy;
  conn_serve(conn, &server, tunnel);
  if (sock_open(&tunnel->origin, conn->proxy->loop, &conn->proxy->budget, fd, on_done, tunnel) < 0) {
    conn_reset(conn);
    return;
  }
  loop_timer_set(conn->timer, LIMITS_IDLE_MS);
  if (start->blind)
    relay_start(&tunnel->relay, conn->proxy, &conn->client, &tunnel->origin, on_done, tunnel);
  else
    relay_start_held(&tunnel->relay, conn->proxy, &conn->client, &tunnel->origin, start->first, look, hear, on_done,
                     tunnel);
}
