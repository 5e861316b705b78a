/* Published ports: which of the host's loopback lead inside, and what stands in their way there.
 *
 * A server inside needs its port free on the loopback, better on every address. A port that the proxy itself listens on
 * there would lead a client of the host into the proxy, or through a forwarded port back to the host: it is refused. A
 * port that the proxy listens on for a rule's own address is free on the loopback only; that is said.
 */
#include "config.h"

#include "plan/ops.h"
#include "policy/limits.h"
#include "policy/rule.h"

#include <errno.h>

static int refuse(const struct policy_port_map *map, struct err *err, const char *text)
{
  const struct policy_origin *origin = &map->origin;

  err_set(err, EADDRINUSE, "port %u inside %s; let the server inside use another port, and publish that one",
          (unsigned)map->port, text);
  if (origin->line)
    return err_wrap(err, "%s:%u: %s", origin->file, origin->line, origin->json_path);
  return err_wrap(err, "%s", origin->file ? origin->file : "network.publish");
}

static const char *use_of(const struct plan_listener *listener)
{
  switch (listener->front) {
  case CONTROL_FRONT_FORWARD:
    return "leads to the host already (network.forward, or a rule for localhost)";
  case CONTROL_FRONT_HTTP: /* they make way (build_network.c) */
  case CONTROL_FRONT_SOCKS5:
  case CONTROL_FRONT_TRANSPARENT:
  case CONTROL_FRONT_DNS_UDP:
  case CONTROL_FRONT_DNS_TCP:
  case CONTROL_FRONT_PUBLISH:
  case CONTROL_FRONT_REFUSED:
    break;
  }
  return "is listened on for a rule with a prefix of addresses or one for the loopback";
}

/* Where connections to the port come in the way of a server on 0.0.0.0. */
static int warn(struct plan *plan, uint16_t port, const char *what)
{
  return strv_addf(&plan->warnings,
                   "network.publish: port %u is one of %s too: a server inside may find it taken on 0.0.0.0 and ::; "
                   "let it listen on 127.0.0.1",
                   (unsigned)port, what);
}

static int check_listeners(struct plan *plan, const struct policy_port_map *map, struct err *err, bool *warned)
{
  for (size_t i = 0; i < plan->listeners.count; i++) {
    const struct plan_listener *listener = &plan->listeners.items[i];

    if (listener->udp || listener->port != map->port)
      continue;
    if (listener->any || addr_class_outer(&listener->addr) == ADDR_LOOPBACK)
      return refuse(map, err, use_of(listener));
    if (!*warned && warn(plan, map->port, "a rule with an address") < 0)
      return err_set(err, ENOMEM, "out of memory");
    *warned = true;
  }
  return 0;
}

/* Of a rule with names the proxy listens on the first ports, once a name is looked up (build_network.c). */
static bool is_listened_on(const struct policy_rule *rule, uint16_t port)
{
  return rule->kind != POLICY_HOST_PREFIX && rule->kind != POLICY_HOST_LOCALHOST && build_rule_lists_port(rule, port);
}

static int check_rules(const struct policy *policy, struct plan *plan, uint16_t port, struct err *err, bool *warned)
{
  for (size_t i = 0; i < policy->allow.count && !*warned; i++) {
    if (!is_listened_on(&policy->allow.items[i], port))
      continue;
    if (warn(plan, port, policy->allow.items[i].text) < 0)
      return err_set(err, ENOMEM, "out of memory");
    *warned = true;
  }
  return 0;
}

static int add(const struct policy *policy, const struct policy_port_map *map, struct err *err, struct plan *plan)
{
  struct plan_publishes *list = &plan->publishes;
  bool warned = false;
  int r;

  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].host_port == map->host_port)
      return err_set(err, EINVAL,
                     "network.publish: port %u of the host cannot lead to port %u and to port %u inside; take one of "
                     "them out",
                     (unsigned)map->host_port, (unsigned)list->items[i].port, (unsigned)map->port);
  }
  r = check_listeners(plan, map, err, &warned);
  if (r == 0)
    r = check_rules(policy, plan, map->port, err, &warned);
  if (r < 0)
    return r;
  if (plan->listeners.count + 2 * list->count + 2 > CONTROL_FRONTS_MAX)
    return err_set(err, E2BIG, "network: more than %d listeners; allow, forward or publish fewer ports",
                   CONTROL_FRONTS_MAX);
  list->items[list->count++] = (struct plan_publish){ .host_port = map->host_port, .port = map->port };
  return 0;
}

int build_publish(const struct policy *policy, struct err *err, struct plan *plan)
{
  int r = 0;

  if (policy->network != POLICY_NETWORK_PROXY)
    return 0;
  for (size_t i = 0; i < policy->publish.count && r == 0; i++)
    r = add(policy, &policy->publish.items[i], err, plan);
  return r;
}
