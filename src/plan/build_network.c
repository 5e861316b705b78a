/* Theory of operation: the proxy's sockets inside the sandbox.
 *
 * Two explicit fronts, the DNS stub, and the transparent front: every address is local to the sandbox (netns.h), so a
 * listener on a port takes whatever the command connects to on that port, and ports without one are refused at once.
 *
 *   port                          listens on                        why
 *   below 1024 in some rule       every address                     nobody inside may bind these
 *   from 1024, rule with a name   that name's synthetic address,    a program inside may use the port itself
 *                                 when the name is first looked up
 *                                 (the proxy asks for it)
 *   from 1024, rule with an       that address
 *   address
 *   from 1024, rule with a prefix every address
 *   localhost:PORT, forward       127.0.0.1 and ::1
 *
 * 80 and 443 always have a listener: a refusal there can say why. Where the user can be asked, so have other well-known
 * ports below 1024, or there would be no question; above it they would be in the way of programs inside.
 *
 * The explicit fronts stand on every address, so they make way for what the policy says of their ports: each takes the
 * first port from its usual one on that no rule, forward or publish names.
 */
#include "plan/build.h"
#include "plan/ops.h"
#include "policy/limits.h"

#include <errno.h>

#define DNS_PORT 53

static const struct addr loopback_v4 = { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } };
static const struct addr loopback_v6 = { .family = ADDR_V6, .bytes = { [15] = 1 } };

static bool is_same(const struct plan_listener *a, const struct plan_listener *b)
{
  if (a->udp != b->udp || a->port != b->port || a->any != b->any)
    return false;
  return a->any ? a->family == b->family : addr_equal(&a->addr, &b->addr);
}

/* The kernel gives a port to every address or to single ones, not to both; the proxy tells the addresses apart. */
static bool is_covered(const struct plan_listeners *list, const struct plan_listener *listener)
{
  for (size_t i = 0; i < list->count; i++) {
    const struct plan_listener *have = &list->items[i];

    if (is_same(have, listener) ||
        (!listener->any && have->any && have->udp == listener->udp && have->port == listener->port))
      return true;
  }
  return false;
}

/* Drops what a listener on every address makes needless. */
static void drop_covered(struct plan_listeners *list, const struct plan_listener *listener)
{
  size_t kept = 0;

  for (size_t i = 0; i < list->count; i++) {
    const struct plan_listener *have = &list->items[i];

    if (!listener->any || have->any || have->udp != listener->udp || have->port != listener->port)
      list->items[kept++] = *have;
  }
  list->count = kept;
}

static int add(struct plan *plan, const struct plan_listener *listener, struct err *err)
{
  struct plan_listeners *list = &plan->listeners;

  if (is_covered(list, listener))
    return 0;
  drop_covered(list, listener);
  if (list->count == MEM_COUNT(list->items))
    return err_set(err, E2BIG, "network: more than %d listeners; allow fewer ports", CONTROL_FRONTS_MAX);
  list->items[list->count++] = *listener;
  return 0;
}

static int add_any(struct plan *plan, enum control_front front, uint16_t port, struct err *err)
{
  return add(plan, &(struct plan_listener){ .front = front, .any = true, .family = ADDR_V6, .port = port }, err);
}

static int add_udp(struct plan *plan, enum addr_family family, struct err *err)
{
  return add(plan,
             &(struct plan_listener){
                 .front = CONTROL_FRONT_DNS_UDP, .udp = true, .any = true, .family = family, .port = DNS_PORT },
             err);
}

/* What nobody listens on is refused without a question; it is told all the same. */
static int add_refused(struct plan *plan, struct err *err)
{
  struct plan_listener listener = { .front = CONTROL_FRONT_REFUSED, .any = true, .family = ADDR_V4 };
  int r = add(plan, &listener, err);

  listener.family = ADDR_V6;
  return r < 0 ? r : add(plan, &listener, err);
}

static int add_forward(struct plan *plan, uint16_t port, uint16_t host_port, struct err *err)
{
  const struct addr *const ends[] = { &loopback_v4, &loopback_v6 };
  int r = 0;

  for (size_t i = 0; i < MEM_COUNT(ends) && r == 0; i++)
    r = add(plan,
            &(struct plan_listener){ .front = CONTROL_FRONT_FORWARD,
                                     .family = ends[i]->family,
                                     .addr = *ends[i],
                                     .port = port,
                                     .forward_port = host_port },
            err);
  return r;
}

static bool is_single(const struct addr_prefix *prefix)
{
  return prefix->length == (prefix->addr.family == ADDR_V4 ? 32u : 128u);
}

static int add_port(struct plan *plan, const struct policy_rule *rule, uint16_t port, struct err *err)
{
  struct plan_listener at = { .front = CONTROL_FRONT_TRANSPARENT, .port = port };

  if (rule->kind == POLICY_HOST_LOCALHOST)
    return add_forward(plan, port, port, err);
  if (port < LIMITS_FREE_PORT)
    return add_any(plan, CONTROL_FRONT_TRANSPARENT, port, err);
  if (rule->kind != POLICY_HOST_PREFIX)
    return 0;
  if (!is_single(&rule->prefix))
    return add_any(plan, CONTROL_FRONT_TRANSPARENT, port, err);
  at.family = rule->prefix.addr.family;
  at.addr = rule->prefix.addr;
  return add(plan, &at, err);
}

static int add_rule(struct plan *plan, const struct policy_rule *rule, struct err *err)
{
  unsigned listed = 0;

  for (size_t i = 0; i < rule->port_count; i++) {
    for (uint32_t port = rule->ports[i].first; port <= rule->ports[i].last; port++) {
      int r = listed++ < LIMITS_RULE_PORTS ? add_port(plan, rule, (uint16_t)port, err) : 1;

      if (r < 0)
        return r;
      if (r > 0)
        return strv_addf(&plan->notes, "network: %s: programs that know no proxy reach only its first %d ports",
                         rule->text, LIMITS_RULE_PORTS) < 0
                   ? err_set(err, ENOMEM, "out of memory")
                   : 0;
    }
  }
  return 0;
}

bool build_rule_lists_port(const struct policy_rule *rule, uint16_t port)
{
  unsigned listed = 0;

  for (size_t i = 0; i < rule->port_count; i++) {
    if (port < rule->ports[i].first)
      return false;
    if (port <= rule->ports[i].last)
      return listed + (port - rule->ports[i].first) < LIMITS_RULE_PORTS;
    listed += rule->ports[i].last - rule->ports[i].first + 1u;
  }
  return false;
}

static bool is_named(const struct policy *policy, uint16_t port)
{
  for (size_t i = 0; i < policy->forward.count; i++) {
    if (policy->forward.items[i].port == port)
      return true;
  }
  for (size_t i = 0; i < policy->publish.count; i++) {
    if (policy->publish.items[i].port == port)
      return true;
  }
  for (size_t i = 0; i < policy->allow.count; i++) {
    if (build_rule_lists_port(&policy->allow.items[i], port))
      return true;
  }
  return false;
}

/* A front of the proxy, on the first port from usual on that is free of the policy and of the other front. */
static int add_front(const struct policy *policy, enum control_front front, uint16_t usual, struct err *err,
                     struct plan *plan, uint16_t *ret_port)
{
  struct plan_listener listener = { .front = front, .any = true, .family = ADDR_V6, .port = usual };
  const char *what = front == CONTROL_FRONT_HTTP ? "HTTP" : "SOCKS";

  while (listener.port < UINT16_MAX && (is_named(policy, listener.port) || is_covered(&plan->listeners, &listener)))
    listener.port++;
  if (listener.port != usual &&
      strv_addf(&plan->notes, "network: the policy names port %u: the %s proxy inside is on %u", (unsigned)usual, what,
                (unsigned)listener.port) < 0)
    return err_set(err, ENOMEM, "out of memory");
  *ret_port = listener.port;
  return add(plan, &listener, err);
}

int build_network(const struct policy *policy, struct err *err, struct plan *plan)
{
  static const uint16_t explained[] = { 80, 443 };
  static const uint16_t asked[] = { 21, 22, 25, 143, 465, 587, 853, 873, 990, 993, 995 };
  uint16_t socks_port;
  int r;

  if (policy->network != POLICY_NETWORK_PROXY)
    return 0;
  r = add_front(policy, CONTROL_FRONT_HTTP, BUILD_HTTP_PORT, err, plan, &plan->http_port);
  if (r == 0)
    r = add_front(policy, CONTROL_FRONT_SOCKS5, BUILD_SOCKS_PORT, err, plan, &socks_port);
  if (r == 0)
    r = add_udp(plan, ADDR_V4, err);
  if (r == 0)
    r = add_udp(plan, ADDR_V6, err);
  if (r == 0)
    r = add_any(plan, CONTROL_FRONT_DNS_TCP, DNS_PORT, err);
  if (r == 0)
    r = add_refused(plan, err);
  for (size_t i = 0; i < MEM_COUNT(explained) && r == 0; i++)
    r = add_any(plan, CONTROL_FRONT_TRANSPARENT, explained[i], err);
  for (size_t i = 0; i < MEM_COUNT(asked) && r == 0 && plan->ask; i++)
    r = add_any(plan, CONTROL_FRONT_TRANSPARENT, asked[i], err);
  for (size_t i = 0; i < policy->forward.count && r == 0; i++)
    r = add_forward(plan, policy->forward.items[i].port, policy->forward.items[i].host_port, err);
  for (size_t i = 0; i < policy->allow.count && r == 0; i++)
    r = add_rule(plan, &policy->allow.items[i], err);
  return r;
}
