/* From a request that is allowed to an origin that can be sent it: resolving and dialling (reach.h), and TLS where the
 * client speaks TLS with us. The first connection of a tunnel comes ready (http_fixed.h); this one takes its place when
 * the origin has closed it between two requests. */
#include "proxy/http_state.h"
#include "proxy/terminator.h"

static void on_reached(void *data, const struct reach_result *result)
{
  struct http *http = data;

  http->reached = *result;
  http->has_reached = true;
  http_advance(http);
}

static void on_ready(void *data)
{
  http_advance(data);
}

void http_reach(struct http *http)
{
  /* A new connection that closes unasked is the origin's answer: only a kept one may be stale. */
  http->can_retry = false;
  sock_close(&http->origin, false);
  http_drop(http, &http->origin_in, http->origin_in.len);
  http->has_reached = false;
  http->state = HTTP_REACH;
  loop_timer_stop(http->conn->timer);
  if (http->parent)
    reach_parent(http->proxy, http->parent, &http->verdict, on_reached, http, &http->reach);
  else
    reach_start(http->proxy, &http->host, http->port, !http->connect && !http->is_fixed, &http->verdict, on_reached,
                http, &http->reach);
}

void http_go_on(struct http *http)
{
  /* It may have closed while a value, an answer or a body was waited for; nothing of this request has gone to it. */
  if (sock_stirs_now(&http->origin))
    sock_close(&http->origin, false);
  if (http_exchange_serves(http))
    http_exchange_begin(http);
  else
    http_reach(http);
}

/* The origin can be sent the request, if that passes the rules on where it goes. */
static void go_on(struct http *http)
{
  if (http->verdict.request_rule)
    http_judge_request(http, http->origin_route.has_addr ? &http->origin_route.addr : NULL);
  if (http->verdict.allow)
    http_exchange_begin(http);
  else
    http_refuse(http, &http->verdict, 0, NULL);
}

static void secure(struct http *http)
{
  const struct proxy *proxy = http->proxy;

  if (proxy->terminator->secure(proxy->terminator_data, &http->origin, &http->fixed.name) < 0) {
    http_fail(http, REASON_LIMIT, NULL);
    return;
  }
  http->state = HTTP_SECURE;
  loop_timer_set(http->conn->timer, LIMITS_CONNECT_MS);
}

bool http_secure_step(struct http *http)
{
  struct err err = ERR_INIT;
  int r = http->proxy->terminator->shake(&http->origin, &err);

  if (r == 0)
    return http_listen(http);
  if (r < 0)
    http_fail(http, REASON_UPSTREAM_TLS, err.message);
  else
    go_on(http);
  return true;
}

bool http_reach_step(struct http *http)
{
  const struct reach_result *result = &http->reached;
  int r;

  if (!http->has_reached)
    return http_listen(http);
  http->has_reached = false;
  http->dialled = result->route.has_addr || result->route.upstream;
  http->origin_route = result->route;
  http->origin_parent = http->parent;
  if (result->fd < 0) {
    http_refuse(http, &result->verdict, 0, result->cause);
    return true;
  }
  if (http->connect) {
    http->state = HTTP_CONNECTED;
    return true;
  }
  r = sock_open(&http->origin, http->proxy->loop, &http->proxy->budget, result->fd, on_ready, http);
  if (r < 0) {
    http_fail(http, REASON_LIMIT, strerror(-r));
    return true;
  }
  http->verdict = result->verdict;
  http->origin_host = http->host;
  http->origin_port = http->port;
  if (http->fixed.tls)
    secure(http);
  else
    go_on(http);
  return true;
}
