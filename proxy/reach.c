/* Theory of operation
 *
 *   directly       resolve ──> judge every address ──> dial what passed
 *   socks5://      resolve ──> judge every address ──> dial the parent ──> ask it for one address after the other
 *   other parents  dial the parent ──> ask it for the name
 *
 * A parent that gets a name resolves it itself: which address that is, nobody here can judge, and what the name may
 * lead to is up to the parent's own rules (sbx-security(7)). An address that was asked for as such has been judged
 * whole. The parent's own name is resolved and not judged: the user has named it.
 *
 * Each step has a deadline, and all together have LIMITS_REACH_MS: a parent that is slow to find each address
 * unreachable would take many times as long.
 */
#include "proxy/reach.h"

#include "proxy/parent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct reach {
  struct proxy *proxy;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  const struct upstream *upstream; /* NULL: directly */
  bool bare; /* only the parent is wanted */
  struct gate_addrs addrs; /* judged, for a parent that gets addresses */
  size_t tried; /* of them */
  void (*done)(void *data, const struct reach_result *result);
  void *data;
  struct reach **slot;
  struct loop_timer *deadline;
  struct resolve_query *query;
  struct dial *dial;
  struct parent *parent;
};

static void finish(struct reach *reach, const struct reach_result *result)
{
  void (*done)(void *data, const struct reach_result *result) = reach->done;
  void *data = reach->data;

  *reach->slot = NULL;
  loop_timer_free(&reach->deadline);
  reach->proxy->reach_count--;
  free(reach);
  done(data, result);
}

/* The policy allows it, the network does not. */
static void fail(struct reach *reach, enum reason reason, const struct addr *addr, const char *cause)
{
  struct reach_result result = { .verdict = reach->verdict, .fd = -1, .route = { .upstream = reach->upstream } };

  result.verdict.reason = reason;
  if (addr) {
    result.route.has_addr = true;
    result.route.addr = *addr;
  }
  snprintf(result.cause, sizeof result.cause, "%s", cause);
  finish(reach, &result);
}

/* The same of the parent, which is named. */
static void fail_parent(struct reach *reach, enum reason reason, const char *cause)
{
  buf_autofree struct buf text = BUF_INIT(REACH_CAUSE_BYTES);

  upstream_print(reach->upstream, &text);
  if (*cause)
    buf_printf(&text, ": %s", cause);
  fail(reach, reason, NULL, text.data ? text.data : "");
}

static void on_dialled(void *data, const struct dial_result *dialled)
{
  struct reach *reach = data;
  struct reach_result result = { .verdict = reach->verdict,
                                 .fd = dialled->fd,
                                 .route = { .has_addr = true, .addr = dialled->addr } };

  if (dialled->fd < 0)
    /* Where it was our own limit, the address has nothing to do with it. */
    fail(reach, dialled->reason, reason_is_limit(dialled->reason) ? NULL : &dialled->addr, strerror(dialled->error));
  else
    finish(reach, &result);
}

static void dial(struct reach *reach, const struct gate_addrs *addrs, uint16_t port,
                 void (*done)(void *data, const struct dial_result *result))
{
  if (dial_start(reach->proxy->loop, addrs, port, done, reach, &reach->dial) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

/* Through the parent. */

static void dial_parent(struct reach *reach);

static void on_parent(void *data, const struct parent_result *asked)
{
  struct reach *reach = data;
  struct reach_result result = { .verdict = reach->verdict, .fd = asked->fd, .route = { .upstream = reach->upstream } };
  bool reached = asked->reason != REASON_PARENT_AUTH && asked->reason != REASON_PARENT_UNREACHABLE &&
                 asked->reason != REASON_PARENT_BAD_REPLY;

  if (reach->addrs.count) {
    result.route.has_addr = true;
    result.route.addr = reach->addrs.items[reach->tried];
  }
  if (asked->fd >= 0)
    finish(reach, &result);
  else if (reached && ++reach->tried < reach->addrs.count)
    dial_parent(reach);
  else
    fail_parent(reach, asked->reason, asked->cause);
}

static void on_parent_dialled(void *data, const struct dial_result *dialled)
{
  struct reach *reach = data;
  struct host host = reach->host;

  if (dialled->fd < 0) {
    fail_parent(reach, REASON_PARENT_UNREACHABLE, strerror(dialled->error));
    return;
  }
  if (reach->bare) {
    finish(reach, &(struct reach_result){
                      .verdict = reach->verdict, .fd = dialled->fd, .route = { .upstream = reach->upstream } });
    return;
  }
  if (reach->addrs.count)
    host_of_addr(&reach->addrs.items[reach->tried], &host);
  if (parent_start(reach->proxy->loop, reach->upstream, &host, reach->port, dialled->fd, on_parent, reach,
                   &reach->parent) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

static void on_parent_resolved(void *data, const struct resolve_answer *answer)
{
  struct reach *reach = data;
  struct gate_addrs addrs = { .count = 0 };

  if (!answer->count) {
    fail_parent(reach, REASON_PARENT_UNREACHABLE, answer->cause);
    return;
  }
  for (size_t i = 0; i < answer->count && i < LIMITS_ADDRESSES; i++)
    addrs.items[addrs.count++] = answer->addrs[i];
  dial(reach, &addrs, reach->upstream->port, on_parent_dialled);
}

static void dial_parent(struct reach *reach)
{
  const struct host *host = &reach->upstream->host;

  if (host->kind == HOST_ADDR)
    dial(reach, &(struct gate_addrs){ .items = { host->addr }, .count = 1 }, reach->upstream->port, on_parent_dialled);
  else if (resolve_start(reach->proxy->resolve, host->name, on_parent_resolved, reach, &reach->query) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

static void on_resolved(void *data, const struct resolve_answer *answer)
{
  struct reach *reach = data;
  struct reach_result result = { .fd = -1, .route.has_addr = true };

  if (!answer->count) {
    fail(reach, REASON_RESOLVE_FAILED, NULL, answer->cause);
    return;
  }
  result.verdict = gate_judge_addrs(reach->proxy->policy, &reach->verdict, &reach->host, reach->port, answer->addrs,
                                    answer->count, &reach->addrs);
  if (!result.verdict.allow) {
    result.route.addr = answer->addrs[0];
    finish(reach, &result);
    return;
  }
  /* A deny rule on requests may be about an address. */
  reach->verdict.request_rule = result.verdict.request_rule;
  if (reach->upstream)
    dial_parent(reach);
  else
    dial(reach, &reach->addrs, reach->port, on_dialled);
}

/* What one gets that could not be begun. */
static const struct reach_result *over(const struct proxy *proxy)
{
  static const struct reach_result dials = { .verdict = { .allow = true, .reason = REASON_LIMIT_DIALS }, .fd = -1 };
  static const struct reach_result memory = { .verdict = { .allow = true, .reason = REASON_LIMIT }, .fd = -1 };

  return proxy->reach_count < proxy->reach_max ? &memory : &dials;
}

static void on_deadline(void *data)
{
  struct reach *reach = data;

  resolve_cancel(&reach->query);
  dial_cancel(&reach->dial);
  parent_cancel(&reach->parent);
  if (reach->upstream)
    fail_parent(reach, REASON_PARENT_UNREACHABLE, "it did not answer in time");
  else
    fail(reach, REASON_CONNECT_TIMEOUT, NULL, "");
}

static struct reach *reach_new(struct proxy *proxy, uint16_t port, const struct verdict *verdict,
                               void (*done)(void *data, const struct reach_result *result), void *data,
                               struct reach **slot)
{
  struct reach *reach = proxy->reach_count < proxy->reach_max ? mem_calloc(1, sizeof *reach) : NULL;

  if (!reach || loop_timer_new(proxy->loop, on_deadline, reach, &reach->deadline) < 0) {
    free(reach);
    done(data, over(proxy));
    return NULL;
  }
  reach->proxy = proxy;
  reach->port = port;
  reach->verdict = *verdict;
  reach->done = done;
  reach->data = data;
  reach->slot = slot;
  proxy->reach_count++;
  loop_timer_set(reach->deadline, LIMITS_REACH_MS);
  *slot = reach;
  return reach;
}

void reach_start(struct proxy *proxy, const struct host *host, uint16_t port, bool plain, const struct verdict *verdict,
                 void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot)
{
  struct reach *reach = reach_new(proxy, port, verdict, done, data, slot);
  bool by_name;

  if (!reach)
    return;
  reach->host = *host;
  reach->upstream = upstream_find(&proxy->upstreams, host, port, plain);
  by_name = reach->upstream && reach->upstream->kind != UPSTREAM_SOCKS5;
  if (reach->upstream && (by_name || host->kind == HOST_ADDR))
    dial_parent(reach);
  else if (host->kind == HOST_ADDR)
    /* decide_target() has judged the address whole. */
    dial(reach, &(struct gate_addrs){ .items = { host->addr }, .count = 1 }, port, on_dialled);
  else if (resolve_start(proxy->resolve, host->name, on_resolved, reach, &reach->query) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

/* 127.0.0.1 first, as ever: a deny rule may be about one of them. */
static struct verdict judge_loopback(struct reach *reach)
{
  static const struct addr loopback[] = { { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } },
                                          { .family = ADDR_V6, .bytes = { [15] = 1 } } };
  struct verdict denied = { .allow = false };

  for (size_t i = 0; i < MEM_COUNT(loopback); i++) {
    struct verdict verdict =
        decide_addr_of(reach->proxy->policy, &reach->verdict, &reach->host, &loopback[i], reach->port);

    if (verdict.allow)
      reach->addrs.items[reach->addrs.count++] = loopback[i];
    else
      denied = verdict;
  }
  return reach->addrs.count ? reach->verdict : denied;
}

void reach_forward(struct proxy *proxy, uint16_t port, const struct verdict *verdict,
                   void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot)
{
  struct reach *reach = reach_new(proxy, port, verdict, done, data, slot);
  struct reach_result result = { .fd = -1 };

  if (!reach)
    return;
  reach->host = (struct host){ .kind = HOST_NAME, .name = "localhost" };
  result.verdict = judge_loopback(reach);
  if (result.verdict.allow)
    dial(reach, &reach->addrs, port, on_dialled);
  else
    finish(reach, &result);
}

void reach_parent(struct proxy *proxy, const struct upstream *upstream, const struct verdict *verdict,
                  void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot)
{
  struct reach *reach = reach_new(proxy, upstream->port, verdict, done, data, slot);

  if (!reach)
    return;
  reach->upstream = upstream;
  reach->bare = true;
  dial_parent(reach);
}

void reach_cancel(struct reach **slot)
{
  if (!*slot)
    return;
  loop_timer_free(&(*slot)->deadline);
  resolve_cancel(&(*slot)->query);
  dial_cancel(&(*slot)->dial);
  parent_cancel(&(*slot)->parent);
  (*slot)->proxy->reach_count--;
  free(*slot);
  *slot = NULL;
}
