/* Theory of operation
 *
 * Every address is local to the sandbox (netns.h), so whatever the command connects to arrives here, and getsockname(2)
 * tells what it was:
 *
 *   address            target
 *   synthetic          the name that the stub gave it to
 *   of the loopback    `localhost` of the host; or the port that the policy hands in there (network.forward)
 *   any other          that address
 *
 * The client believes to be connected before anything is judged. Allowed: the origin is dialled at once, since it may
 * be the one that speaks first. Refused, or not to be reached: the client can only be told in the protocol that it
 * speaks, so its first bytes are waited for, for LIMITS_FIRST_MS from its connection on:
 *
 *   first bytes         denied                       failed
 *   a request's line    the 403 of the HTTP front    its 502, 503 or 504
 *   TLS                 alert access_denied          reset
 *   a part of a line    wait for the rest            wait for the rest
 *   other, none         reset                        reset
 *
 * Many protocols begin with a word of letters as HTTP does (SSH, SMTP, Redis): only a whole request line is HTTP.
 */
#include "proxy/direct.h"

#include "base/clock.h"
#include "proxy/ask.h"
#include "proxy/http_fixed.h"
#include "proxy/identity.h"
#include "proxy/reach.h"
#include "proxy/stub.h"
#include "proxy/tell.h"
#include "proxy/tunnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LEAST_FIRST_MS 50 /* for bytes that lie ready to be read */

struct direct {
  struct conn *conn;
  const char *via;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  uint64_t begun_ns;
  bool has_addr; /* of the loopback, which host stands for */
  struct addr addr;
  bool blind; /* a port of the host's loopback stands here by itself */
  bool handed_in; /* by network.forward */
  struct ask_waiter *waiter;
  struct reach *reach;
  bool starting; /* reach_start() is on the stack */
  bool has_reached;
  struct reach_result reached;
  struct buf first; /* what a client that is refused has sent; its bytes are of the budget */
  bool told;
};

static void record(struct direct *direct)
{
  if (!direct->told)
    tell(direct->conn->proxy, &(struct tell){ .event = "connect",
                                              .via = direct->via,
                                              .verdict = direct->verdict,
                                              .host = &direct->host,
                                              .port = direct->port,
                                              .route = &direct->reached.route,
                                              .cause = direct->reached.cause,
                                              .begun_ns = direct->begun_ns });
  direct->told = true;
}

static void direct_free(void *data)
{
  struct direct *direct = data;

  record(direct);
  ask_cancel(&direct->waiter);
  reach_cancel(&direct->reach);
  budget_give(&direct->conn->proxy->budget, direct->first.len);
  buf_free(&direct->first);
  free(direct);
}

/* The end of one that is refused. */

static void answer_http(struct direct *direct)
{
  struct http_fixed fixed = {
    .host = direct->host, .port = direct->port, .via = direct->via, .refused = true, .refusal = direct->verdict
  };
  struct conn *conn = direct->conn;
  struct span bytes = { .ptr = conn->proxy->scratch, .len = direct->first.len };

  fixed.route = direct->reached.route;
  memcpy(fixed.cause, direct->reached.cause, sizeof fixed.cause);
  memcpy(conn->proxy->scratch, direct->first.data, bytes.len);
  direct->told = true; /* by the HTTP machine */
  conn_serve(conn, NULL, NULL);
  direct_free(direct);
  http_fixed_start(conn, &fixed, NULL, bytes);
}

static void answer_tls(struct direct *direct)
{
  struct conn *conn = direct->conn;

  conn_serve(conn, NULL, NULL);
  direct_free(direct);
  if (sock_send(&conn->client, tell_alert(), false) == 0)
    conn_linger(conn);
  else
    conn_reset(conn);
}

/* False when there is no room. */
static bool keep_first(struct direct *direct, struct span bytes)
{
  if (!budget_take(&direct->conn->proxy->budget, bytes.len))
    return false;
  buf_append(&direct->first, bytes);
  if (!buf_error(&direct->first))
    return true;
  budget_give(&direct->conn->proxy->budget, bytes.len);
  return false;
}

static void on_first(void *data)
{
  struct direct *direct = data;
  struct conn *conn = direct->conn;
  char *scratch = conn->proxy->scratch;
  struct identity identity = { .scan = { 0 } };
  struct err err = ERR_INIT;
  ssize_t n = sock_recv(&conn->client, scratch, LIMITS_HTTP_HEAD_BYTES - direct->first.len);
  struct span bytes;
  enum identity_answer answer;

  if (n == -EAGAIN)
    return;
  if (n < 0 || direct->blind || !keep_first(direct, (struct span){ .ptr = scratch, .len = (size_t)n })) {
    conn_reset(conn);
    return;
  }
  bytes = buf_span(&direct->first);
  if (identity_is_tls(bytes)) {
    if (direct->verdict.allow)
      conn_reset(conn);
    else
      answer_tls(direct);
    return;
  }
  answer = identity_look(&identity, conn->proxy->policy, &direct->host, direct->port, bytes, n == 0, &err);
  if (answer == IDENTITY_HTTP)
    answer_http(direct);
  else if (answer != IDENTITY_MORE)
    conn_reset(conn);
}

/* What has come while the name was resolved and dialled is there at once. */
static void refuse(struct direct *direct)
{
  struct conn *conn = direct->conn;
  uint64_t waited_ms = (clock_mono_ns() - direct->begun_ns) / 1000000;

  sock_own(&conn->client, on_first, direct);
  loop_timer_set(conn->timer,
                 waited_ms + LEAST_FIRST_MS < LIMITS_FIRST_MS ? LIMITS_FIRST_MS - waited_ms : LEAST_FIRST_MS);
  sock_watch(&conn->client, true);
}

/* Once it is known whether the target can be reached. */
static void go_on(struct direct *direct)
{
  struct conn *conn = direct->conn;
  struct tunnel_start start = { .via = direct->via,
                                .host = direct->host,
                                .port = direct->port,
                                .verdict = direct->reached.verdict,
                                .route = direct->reached.route,
                                .fd = direct->reached.fd,
                                .begun_ns = direct->begun_ns,
                                .has_addr = direct->has_addr,
                                .addr = direct->addr,
                                .blind = direct->blind && !direct->reached.verdict.request_rule };

  if (start.fd < 0) {
    direct->verdict = direct->reached.verdict;
    refuse(direct);
    return;
  }
  direct->told = true; /* by the tunnel */
  conn_serve(conn, NULL, NULL);
  direct_free(direct);
  tunnel_start(conn, &start);
}

static void on_reached(void *data, const struct reach_result *result)
{
  struct direct *direct = data;

  direct->reached = *result;
  direct->has_reached = true;
  if (!direct->starting)
    go_on(direct);
}

/* What was asked for. */

/* The address and port that the client connected to. An IPv4 client of an IPv6 socket is an IPv4 client. */
static int own_address(const struct sock *sock, struct addr *ret_addr, uint16_t *ret_port)
{
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } own = { .any = { .sa_family = AF_UNSPEC } };
  socklen_t len = sizeof own;
  struct addr addr = { .family = ADDR_V6 };

  if (getsockname(sock->fd, &own.any, &len) || (own.any.sa_family != AF_INET && own.any.sa_family != AF_INET6))
    return -EPROTO;
  *ret_port = ntohs(own.any.sa_family == AF_INET ? own.v4.sin_port : own.v6.sin6_port);
  if (own.any.sa_family == AF_INET) {
    addr.family = ADDR_V4;
    memcpy(addr.bytes, &own.v4.sin_addr, 4);
  } else if (IN6_IS_ADDR_V4MAPPED(&own.v6.sin6_addr)) {
    addr.family = ADDR_V4;
    memcpy(addr.bytes, own.v6.sin6_addr.s6_addr + 12, 4);
  } else {
    memcpy(addr.bytes, &own.v6.sin6_addr, 16);
  }
  *ret_addr = addr;
  return 0;
}

/* Whether the policy hands host_port in at port, whichever listener took the connection. */
static bool is_forwarded(const struct policy *policy, uint16_t port, uint16_t *host_port)
{
  for (size_t i = 0; i < policy->forward.count; i++) {
    const struct policy_port_map *map = &policy->forward.items[i];

    if (map->port == port && (*host_port == 0 || *host_port == map->host_port)) {
      *host_port = map->host_port;
      return true;
    }
  }
  return false;
}

/* A rule may name the address that the client has connected to in place of `localhost`: that address alone is meant. */
static void judge_loopback_address(struct direct *direct, const struct addr *addr)
{
  struct host literal;
  struct verdict verdict;

  host_of_addr(addr, &literal);
  verdict = decide_target(direct->conn->proxy->policy, &literal, direct->port);
  if (!verdict.allow)
    return;
  direct->via = "forward";
  direct->host = literal;
  direct->verdict = verdict;
}

/* A connection to the loopback. host_port: the listener's, or 0. */
static void set_loopback(struct direct *direct, const struct addr *addr, uint16_t port, uint16_t host_port)
{
  const struct policy *policy = direct->conn->proxy->policy;

  direct->has_addr = decide_is_localhost(addr);
  direct->addr = *addr;
  direct->handed_in = is_forwarded(policy, port, &host_port);
  direct->via = host_port ? "forward" : "transparent";
  direct->host = (struct host){ .kind = HOST_NAME, .name = "localhost" };
  direct->port = host_port ? host_port : port;
  direct->verdict = decide_target(policy, &direct->host, direct->port);
  if (direct->handed_in && direct->verdict.reason != REASON_DENY_RULE)
    direct->verdict = (struct verdict){ .allow = true, .reason = REASON_ALLOWED };
  else if (!direct->verdict.allow && direct->verdict.reason != REASON_DENY_RULE &&
           addr_class_outer(addr) == ADDR_LOOPBACK)
    judge_loopback_address(direct, addr);
  /* Unless a rule on methods or paths has to see the requests, which one on the address may still add. */
  direct->blind = strcmp(direct->via, "forward") == 0 && !direct->verdict.request_rule;
}

static void set_target(struct direct *direct, const struct addr *addr, uint16_t port)
{
  struct conn *conn = direct->conn;

  if (conn->front == CONTROL_FRONT_FORWARD || addr_class_outer(addr) == ADDR_LOOPBACK) {
    set_loopback(direct, addr, port, conn->front == CONTROL_FRONT_FORWARD ? conn->port : 0);
    return;
  }
  direct->via = "transparent";
  direct->port = port;
  host_of_addr(addr, &direct->host);
  stub_restore_name(conn->proxy->stub, &direct->host);
  direct->verdict = stub_judge_target(conn->proxy->stub, &direct->host, port);
}

static void expired(void *data)
{
  struct direct *direct = data;

  conn_reset(direct->conn);
}

static const struct conn_server server = { .expired = expired, .free = direct_free };

static void reach(struct direct *direct)
{
  struct conn *conn = direct->conn;

  loop_timer_stop(conn->timer); /* the dial has its own deadline */
  direct->starting = true;
  if (direct->handed_in)
    reach_forward(conn->proxy, direct->port, &direct->verdict, on_reached, direct, &direct->reach);
  else
    reach_start(conn->proxy, &direct->host, direct->port, false, &direct->verdict, on_reached, direct, &direct->reach);
  direct->starting = false;
  if (direct->has_reached)
    go_on(direct);
}

static void on_asked(void *data, const struct verdict *verdict)
{
  struct direct *direct = data;

  direct->verdict = *verdict;
  if (verdict->allow)
    reach(direct);
  else
    refuse(direct);
}

/* True when the user is asked. */
static bool ask(struct direct *direct)
{
  struct conn *conn = direct->conn;

  if (!ask_start(conn->proxy->ask, &direct->host, direct->port, &direct->verdict, on_asked, direct, &direct->waiter))
    return false;
  loop_timer_stop(conn->timer); /* the question has its own deadline */
  return true;
}

void direct_start(struct conn *conn)
{
  struct direct *direct = mem_calloc(1, sizeof *direct);
  struct addr addr;
  uint16_t port;

  if (!direct || own_address(&conn->client, &addr, &port) < 0) {
    free(direct);
    conn_reset(conn);
    return;
  }
  direct->conn = conn;
  direct->first = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  direct->begun_ns = clock_mono_ns();
  conn_serve(conn, &server, direct);
  set_target(direct, &addr, port);
  if (conn->over)
    direct->verdict = (struct verdict){ .reason = REASON_LIMIT_CONNECTIONS };
  if (direct->verdict.allow)
    reach(direct);
  else if (!ask(direct))
    refuse(direct);
}
