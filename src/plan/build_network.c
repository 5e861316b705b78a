/* The proxy's sockets inside the sandbox. */
#include "plan/build.h"
#include "plan/ops.h"

#include <errno.h>

static int add(struct plan *plan, struct plan_listener listener, struct err *err)
{
  struct plan_listeners *list = &plan->listeners;

  if (list->count == MEM_COUNT(list->items))
    return err_set(err, E2BIG, "network: more than %d listeners; allow fewer ports", CONTROL_FRONTS_MAX);
  list->items[list->count++] = listener;
  return 0;
}

int build_network(const struct policy *policy, struct err *err, struct plan *plan)
{
  if (policy->network != POLICY_NETWORK_PROXY)
    return 0;
  plan->http_port = BUILD_HTTP_PORT;
  return add(
      plan,
      (struct plan_listener){ .front = CONTROL_FRONT_HTTP, .any = true, .family = ADDR_V6, .port = BUILD_HTTP_PORT },
      err);
}
