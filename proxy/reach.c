#include "proxy/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct reach {
  struct proxy *proxy;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  void (*done)(void *data, const struct reach_result *result);
  void *data;
  struct reach **slot;
  struct resolve_query *query;
  struct dial *dial;
};

static void finish(struct reach *reach, const struct reach_result *result)
{
  void (*done)(void *data, const struct reach_result *result) = reach->done;
  void *data = reach->data;

  *reach->slot = NULL;
  free(reach);
  done(data, result);
}

/* The policy allows it, the network does not. */
static void fail(struct reach *reach, enum reason reason, const struct addr *addr, const char *cause)
{
  struct reach_result result = { .verdict = reach->verdict, .fd = -1 };

  result.verdict.reason = reason;
  if (addr) {
    result.has_addr = true;
    result.addr = *addr;
  }
  snprintf(result.cause, sizeof result.cause, "%s", cause);
  finish(reach, &result);
}

static void on_dialled(void *data, const struct dial_result *dialled)
{
  struct reach *reach = data;
  struct reach_result result = { .verdict = reach->verdict, .fd = dialled->fd, .has_addr = true };

  if (dialled->fd < 0) {
    fail(reach, dialled->reason, &dialled->addr, strerror(dialled->error));
    return;
  }
  result.addr = dialled->addr;
  finish(reach, &result);
}

static void dial(struct reach *reach, const struct gate_addrs *addrs)
{
  if (dial_start(reach->proxy->loop, addrs, reach->port, on_dialled, reach, &reach->dial) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

static void on_resolved(void *data, const struct resolve_answer *answer)
{
  struct reach *reach = data;
  struct reach_result result = { .fd = -1, .has_addr = true };
  struct gate_addrs addrs;

  if (!answer->count) {
    fail(reach, REASON_RESOLVE_FAILED, NULL, answer->cause);
    return;
  }
  result.verdict = gate_judge_addrs(reach->proxy->policy, &reach->verdict, &reach->host, reach->port, answer->addrs,
                                    answer->count, &addrs);
  if (!result.verdict.allow) {
    result.addr = answer->addrs[0];
    finish(reach, &result);
    return;
  }
  /* A deny rule on requests may be about an address. */
  reach->verdict.request_rule = result.verdict.request_rule;
  dial(reach, &addrs);
}

void reach_start(struct proxy *proxy, const struct host *host, uint16_t port, const struct verdict *verdict,
                 void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot)
{
  struct reach *reach = mem_calloc(1, sizeof *reach);

  if (!reach) {
    done(data, &(struct reach_result){ .verdict = { .allow = true, .reason = REASON_LIMIT }, .fd = -1 });
    return;
  }
  *reach = (struct reach){
    .proxy = proxy, .host = *host, .port = port, .verdict = *verdict, .done = done, .data = data, .slot = slot
  };
  *slot = reach;
  if (host->kind == HOST_ADDR)
    /* decide_target() has judged the address whole. */
    dial(reach, &(struct gate_addrs){ .items = { host->addr }, .count = 1 });
  else if (resolve_start(proxy->resolve, host->name, on_resolved, reach, &reach->query) < 0)
    fail(reach, REASON_LIMIT, NULL, "out of memory");
}

void reach_forward(struct proxy *proxy, uint16_t port, const struct verdict *verdict,
                   void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot)
{
  static const struct gate_addrs loopback = { .items = { { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } },
                                                         { .family = ADDR_V6, .bytes = { [15] = 1 } } },
                                              .count = 2 };
  struct reach *reach = mem_calloc(1, sizeof *reach);

  if (!reach) {
    done(data, &(struct reach_result){ .verdict = { .allow = true, .reason = REASON_LIMIT }, .fd = -1 });
    return;
  }
  *reach =
      (struct reach){ .proxy = proxy, .port = port, .verdict = *verdict, .done = done, .data = data, .slot = slot };
  *slot = reach;
  dial(reach, &loopback);
}

void reach_cancel(struct reach **slot)
{
  if (!*slot)
    return;
  resolve_cancel(&(*slot)->query);
  dial_cancel(&(*slot)->dial);
  free(*slot);
  *slot = NULL;
}
