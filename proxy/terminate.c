/* Theory of operation
 *
 * A connection to a host that a credential is bound to is two of TLS: ours to the origin, and the client's to us. The
 * client's ClientHello has been judged (identity.h) and is kept; the origin is connected and has been judged as well.
 *
 *   ORIGIN   handshake with the origin, whose certificate must be for the target    verified ──> CLIENT
 *                                                                                   not      ──> CLIENT, to be told so
 *   CLIENT   handshake with the client, which gets our certificate for the target   done     ──> an HTTP machine
 *                                                                                   not      ──> the end
 *
 * The origin comes first: what it does not speak the client must not be answered, and nothing of a request may go to
 * one that is not verified. Where it is not, the client is told in HTTP, since an alert would not say why; nothing is
 * sent to the origin any more.
 *
 * ALPN (RFC 7301) is mirrored: the origin is offered what the client has offered of HTTP/1.1 and HTTP/2, in its order,
 * and the client is answered what the origin has chosen. So both ends speak the same, and nothing is ever translated.
 *
 * Never is a connection passed on as it is where this fails (F81).
 */
#include "base/log.h"
#include "proxy/ca.h"
#include "proxy/digest.h"
#include "proxy/h2.h"
#include "proxy/inject_body.h"
#include "proxy/tell.h"
#include "proxy/terminator.h"
#include "proxy/tls.h"
#include "proxy/tls_hello.h"
#include "proxy/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct terminator_data {
  struct ca *ca;
  struct tls *tls;
  struct buf roots; /* the certificates that the host trusts, in PEM, until they have been taken in */
};

struct terminate {
  struct conn *conn;
  struct proxy *proxy;
  struct terminator_start start;
  struct sock origin;
  bool has_origin_done; /* CLIENT */
  struct buf hello; /* of the client; charged to the budget */
  tls_protocols offered; /* by the client; 0: none */
  tls_protocols chosen;
  bool told;
};

static void data_close(struct terminator_data *data)
{
  if (!data)
    return;
  buf_free(&data->roots);
  tls_free(data->tls);
  ca_free(data->ca);
  free(data);
}

static int data_open(const struct policy *policy, struct err *err, struct terminator_data **ret_data)
{
  struct terminator_data *data = mem_calloc(1, sizeof *data);
  int r = data ? ca_new(policy, err, &data->ca) : err_set(err, ENOMEM, "terminate: out of memory");

  if (r == 0)
    r = tls_new(err, &data->tls);
  if (r == 0) {
    data->roots = (struct buf)BUF_INIT(LIMITS_ROOTS_BYTES);
    r = tls_read_host(err, &data->roots);
  }
  if (r < 0)
    data_close(data);
  else
    *ret_data = data;
  return r;
}

static void data_warm(struct terminator_data *data)
{
  struct err err = ERR_INIT;

  if (tls_trust(data->tls, buf_span(&data->roots), &err) < 0)
    log_line(LOG_ERROR, "of the authorities that the host trusts %s; origins of those after it cannot be verified",
             err.message);
  buf_free(&data->roots);
}

static struct span data_certificate(const struct terminator_data *data)
{
  return ca_pem(data->ca);
}

static int data_secure(struct terminator_data *data, struct sock *origin, const struct host *name)
{
  return tls_client(data->tls, origin, name, TLS_HTTP_1_1);
}

static void record(struct terminate *terminate, const char *cause)
{
  const struct http_fixed *fixed = &terminate->start.fixed;

  if (!terminate->told)
    tell(terminate->proxy, &(struct tell){ .event = "connect",
                                           .via = fixed->via,
                                           .method = terminate->start.method,
                                           .verdict = terminate->start.verdict,
                                           .host = &fixed->host,
                                           .port = fixed->port,
                                           .route = &fixed->route,
                                           .cause = cause,
                                           .begun_ns = terminate->start.begun_ns });
  terminate->told = true;
}

static void drop_hello(struct terminate *terminate)
{
  budget_give(&terminate->proxy->budget, terminate->hello.len);
  buf_free(&terminate->hello);
}

static void terminate_free(void *data)
{
  struct terminate *terminate = data;

  record(terminate, NULL);
  sock_close(&terminate->origin, true);
  drop_hello(terminate);
  free(terminate);
}

/* The client cannot be told in HTTP. linger: it has been sent an alert. */
static void fail(struct terminate *terminate, enum reason reason, const char *cause, bool linger)
{
  struct conn *conn = terminate->conn;

  terminate->start.verdict.reason = reason;
  record(terminate, cause);
  conn_serve(conn, NULL, NULL);
  terminate_free(terminate);
  if (linger)
    conn_linger(conn);
  else
    conn_reset(conn);
}

/* Both ends, or the client's alone, to the HTTP machine of the protocol. */
static void become_http(struct terminate *terminate)
{
  const struct http_fixed *fixed = &terminate->start.fixed;

  /* Where there is no origin the machine has the line. */
  if (fixed->refused)
    terminate->told = true;
  record(terminate, NULL);
  conn_serve(terminate->conn, NULL, NULL);
  if (terminate->chosen == TLS_HTTP_2)
    h2_start(terminate->conn, fixed, fixed->refused ? NULL : &terminate->origin);
  else
    http_fixed_start(terminate->conn, fixed, fixed->refused ? NULL : &terminate->origin, SPAN(""));
  terminate_free(terminate);
}

/* CLIENT. Each returns false when terminate is gone. */

static bool greet_client(struct terminate *terminate)
{
  struct terminator_data *data = terminate->proxy->terminator_data;
  struct sock *client = &terminate->conn->client;
  const struct ca_leaf *leaf;
  struct err err = ERR_INIT;
  int r = ca_leaf(data->ca, &terminate->start.fixed.name, &err, &leaf);

  if (r == 0)
    r = tls_server(data->tls, client, leaf, buf_span(&terminate->hello), terminate->chosen);
  drop_hello(terminate);
  if (r < 0) {
    fail(terminate, REASON_LIMIT, NULL, false);
    return false;
  }
  terminate->has_origin_done = true;
  loop_timer_set(terminate->conn->timer, LIMITS_HEAD_MS);
  return true;
}

static void step_client(struct terminate *terminate)
{
  struct err err = ERR_INIT;
  int r = tls_shake(&terminate->conn->client, &err);

  if (r < 0)
    fail(terminate, REASON_CLIENT_TLS, err.message, true);
  else if (r > 0)
    become_http(terminate);
}

/* ORIGIN. */

static bool refuse_origin(struct terminate *terminate, const char *cause)
{
  struct http_fixed *fixed = &terminate->start.fixed;

  terminate->chosen = terminate->offered & TLS_HTTP_2_FIRST ? TLS_HTTP_2 : terminate->offered & TLS_HTTP_1_1;
  fixed->refused = true;
  fixed->refusal = terminate->start.verdict;
  fixed->refusal.reason = REASON_UPSTREAM_TLS;
  snprintf(fixed->cause, sizeof fixed->cause, "%s", cause);
  sock_close(&terminate->origin, true);
  return greet_client(terminate);
}

/* False when there is nothing more to do now, or terminate is gone. */
static bool step_origin(struct terminate *terminate)
{
  struct err err = ERR_INIT;
  int r = tls_shake(&terminate->origin, &err);

  if (r == 0)
    return false;
  if (r < 0)
    return refuse_origin(terminate, err.message);
  if (terminate->offered)
    terminate->chosen = tls_chosen(&terminate->origin);
  return greet_client(terminate);
}

static void advance(void *data)
{
  struct terminate *terminate = data;

  if (terminate->has_origin_done || step_origin(terminate))
    step_client(terminate);
}

static void expired(void *data)
{
  struct terminate *terminate = data;

  if (terminate->has_origin_done)
    fail(terminate, REASON_CLIENT_TLS, "it has not ended the handshake in time", false);
  else if (refuse_origin(terminate, "it has not ended the handshake in time"))
    step_client(terminate);
}

static const struct conn_server server = { .expired = expired, .free = terminate_free };

static bool keep_hello(struct terminate *terminate, struct span hello)
{
  if (!budget_take(&terminate->proxy->budget, hello.len))
    return false;
  buf_append(&terminate->hello, hello);
  if (!buf_error(&terminate->hello))
    return true;
  budget_give(&terminate->proxy->budget, hello.len);
  return false;
}

/* What of HTTP the client offers. */
static tls_protocols offer_of(struct span bytes)
{
  char scratch[LIMITS_TLS_HELLO_BYTES];
  struct tls_hello_scan scan = { 0 };
  struct tls_hello hello;
  struct span name;
  tls_protocols offered = 0;
  size_t len;

  if (tls_hello_scan(&scan, bytes, NULL, &len) != 1 ||
      tls_hello_parse(span_sub(bytes, 0, len), scratch, NULL, &hello) < 0 || !hello.has_alpn)
    return 0;
  while (tls_hello_next_protocol(&hello.alpn, &name)) {
    if (span_equal(name, SPAN("http/1.1")))
      offered |= TLS_HTTP_1_1;
    else if (span_equal(name, SPAN("h2")))
      offered |= TLS_HTTP_2 | (offered ? 0 : TLS_HTTP_2_FIRST);
  }
  return offered;
}

/* Whether a credential that is bound there is about bodies, which are looked at in HTTP/1.1 alone: HTTP/2 is not
 * offered to such an origin then. */
static bool is_looked_into(const struct proxy *proxy, const struct http_fixed *fixed)
{
  const struct inject_secret *list;
  inject_set bound;
  size_t count;

  if (!proxy->values)
    return false;
  list = values_list(proxy->values, &count);
  bound =
      decide_bound(proxy->policy, &fixed->host, fixed->port) | decide_bound(proxy->policy, &fixed->name, fixed->port);
  return inject_body_is_looked_into(list, count, bound);
}

static void start(struct conn *conn, const struct terminator_start *start, struct sock *origin, struct span hello)
{
  struct terminate *terminate = mem_calloc(1, sizeof *terminate);

  if (!terminate) {
    sock_close(origin, true);
    conn_reset(conn);
    return;
  }
  terminate->conn = conn;
  terminate->proxy = conn->proxy;
  terminate->start = *start;
  terminate->hello = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  terminate->offered = offer_of(hello);
  if (terminate->offered && is_looked_into(conn->proxy, &start->fixed))
    terminate->offered = TLS_HTTP_1_1;
  sock_move(origin, advance, terminate, &terminate->origin);
  sock_own(&conn->client, advance, terminate);
  conn_serve(conn, &server, terminate);
  if (!keep_hello(terminate, hello) ||
      tls_client(conn->proxy->terminator_data->tls, &terminate->origin, &start->fixed.name,
                 terminate->offered ? terminate->offered : TLS_HTTP_1_1) < 0) {
    fail(terminate, REASON_LIMIT, NULL, false);
    return;
  }
  sock_watch(&conn->client, false);
  loop_timer_set(conn->timer, LIMITS_CONNECT_MS);
  advance(terminate);
}

const struct terminator *terminator_get(void)
{
  static const struct terminator terminator = {
    .open = data_open,
    .close = data_close,
    .warm = data_warm,
    .certificate = data_certificate,
    .start = start,
    .secure = data_secure,
    .shake = tls_shake,
    .crypto = digest_crypto,
  };

  return &terminator;
}
