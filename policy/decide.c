#include "policy/decide.h"

#include "policy/rule.h"

#include <string.h>

struct reason_row {
  const char *word;
  const char *text;
};

static const struct reason_row reason_table[REASON_COUNT] = {
  [REASON_ALLOWED] = { "allowed", "a rule allows it" },
  [REASON_DENY_RULE] = { "deny-rule", "a deny rule refuses it" },
  [REASON_NOT_ALLOWED] = { "not-allowed", "no rule allows this host" },
  [REASON_PORT_NOT_ALLOWED] = { "port-not-allowed", "a rule allows this host, but not on this port" },
  [REASON_ADDRESS_LOOPBACK] = { "address-loopback", "the address is a loopback address of the host" },
  [REASON_ADDRESS_UNSPECIFIED] = { "address-unspecified", "the address is the unspecified address" },
  [REASON_ADDRESS_PRIVATE] = { "address-private", "the address is in a private network" },
  [REASON_ADDRESS_CGNAT] = { "address-cgnat", "the address is in the carrier's shared network" },
  [REASON_ADDRESS_LINK_LOCAL] = { "address-link-local", "the address is link-local" },
  [REASON_ADDRESS_METADATA] = { "address-metadata", "the address is a metadata service that hands out credentials" },
  [REASON_ADDRESS_MULTICAST] = { "address-multicast", "the address is a multicast or broadcast address" },
  [REASON_BAD_TARGET] = { "bad-target", "the host or port is not well formed" },
  [REASON_BAD_REQUEST] = { "bad-request", "the request is not well formed" },
  [REASON_IDENTITY_MISMATCH] = { "identity-mismatch", "the connection names another host than its target" },
  [REASON_RESOLVE_FAILED] = { "resolve-failed", "the host name could not be resolved" },
  [REASON_CONNECT_REFUSED] = { "connect-refused", "the host refused the connection" },
  [REASON_CONNECT_TIMEOUT] = { "connect-timeout", "the host did not answer in time" },
  [REASON_CONNECT_FAILED] = { "connect-failed", "the connection could not be made" },
  [REASON_UPSTREAM_CLOSED] = { "upstream-closed", "the host closed the connection before it answered" },
  [REASON_BAD_RESPONSE] = { "bad-response", "the host's answer is not well formed" },
  [REASON_LIMIT] = { "limit", "a limit of the proxy was reached" },
  [REASON_NETWORK_NONE] = { "network-none", "the policy gives no network (network.mode \"none\")" },
};

const char *reason_word(enum reason reason)
{
  return (unsigned)reason < REASON_COUNT ? reason_table[reason].word : "unknown";
}

const char *reason_text(enum reason reason)
{
  return (unsigned)reason < REASON_COUNT ? reason_table[reason].text : "unknown reason";
}

static enum reason decide_class_reason(enum addr_class class)
{
  switch (class) {
  case ADDR_PUBLIC:
    return REASON_ALLOWED;
  case ADDR_LOOPBACK:
    return REASON_ADDRESS_LOOPBACK;
  case ADDR_UNSPECIFIED:
    return REASON_ADDRESS_UNSPECIFIED;
  case ADDR_PRIVATE:
    return REASON_ADDRESS_PRIVATE;
  case ADDR_CGNAT:
    return REASON_ADDRESS_CGNAT;
  case ADDR_LINK_LOCAL:
    return REASON_ADDRESS_LINK_LOCAL;
  case ADDR_METADATA:
    return REASON_ADDRESS_METADATA;
  case ADDR_MULTICAST:
    return REASON_ADDRESS_MULTICAST;
  }
  return REASON_ADDRESS_PRIVATE;
}

/* 127.0.0.1 and ::1, which is all that a `localhost` rule opens. */
static bool decide_is_localhost(const struct addr *addr)
{
  static const struct addr v4 = { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } };
  static const struct addr v6 = { .family = ADDR_V6, .bytes = { [15] = 1 } };

  return addr_equal(addr, &v4) || addr_equal(addr, &v6);
}

/* Whether an allow rule that covers addr permits it in spite of its class. */
static bool decide_permits_addr(const struct policy_rule *rule, const struct addr *addr, enum addr_class class)
{
  if (rule->kind == POLICY_HOST_LOCALHOST)
    return decide_is_localhost(addr);
  if (!rule_covers_addr(rule, addr))
    return false;
  if (class == ADDR_PUBLIC || addr_prefix_is_single(&rule->prefix))
    return true;
  if (class == ADDR_METADATA || class == ADDR_UNSPECIFIED)
    return false;
  return addr_class_outer(&rule->prefix.addr) == class;
}

/* The deny rule that covers the host, or the address, on this port. */
static const struct policy_rule *decide_find_deny(const struct policy *policy, const struct host *host, uint16_t port)
{
  bool loopback = host->kind == HOST_ADDR && addr_classify(&host->addr) == ADDR_LOOPBACK;

  for (size_t i = 0; i < policy->deny.count; i++) {
    const struct policy_rule *rule = &policy->deny.items[i];
    bool covers = rule_covers_host(rule, host) || (loopback && rule->kind == POLICY_HOST_LOCALHOST);
    if (covers && rule_covers_port(rule, port))
      return rule;
  }
  return NULL;
}

static struct verdict decide_name(const struct policy *policy, const struct host *host, uint16_t port)
{
  struct verdict verdict = { .allow = false, .reason = REASON_NOT_ALLOWED };
  bool localhost = strcmp(host->name, "localhost") == 0;

  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    if ((localhost && rule->kind == POLICY_HOST_ANY) || !rule_covers_host(rule, host))
      continue;
    if (rule_covers_port(rule, port))
      return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = rule };
    if (verdict.reason == REASON_NOT_ALLOWED) {
      verdict.reason = REASON_PORT_NOT_ALLOWED;
      verdict.rule = rule;
    }
  }
  return verdict;
}

/* An address that was asked for as such. The reason is the most telling of those that the rules give: a rule permits it
 * but not the port, then where the address leads, then that nothing names it. */
static struct verdict decide_literal(const struct policy *policy, const struct host *host, uint16_t port)
{
  enum addr_class class = addr_classify(&host->addr);
  struct verdict verdict = { .allow = false, .reason = REASON_NOT_ALLOWED };

  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    bool permits =
        decide_permits_addr(rule, &host->addr, class) || (rule->kind == POLICY_HOST_ANY && class == ADDR_PUBLIC);
    if (permits && rule_covers_port(rule, port))
      return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = rule };
    if (permits && verdict.reason != REASON_PORT_NOT_ALLOWED)
      verdict = (struct verdict){ .reason = REASON_PORT_NOT_ALLOWED, .rule = rule };
    else if (!permits && rule_covers_host(rule, host) && verdict.reason == REASON_NOT_ALLOWED)
      verdict = (struct verdict){ .reason = decide_class_reason(class), .has_addr = true, .addr = host->addr };
  }
  return verdict;
}

struct verdict decide_target(const struct policy *policy, const struct host *host, uint16_t port)
{
  const struct policy_rule *deny;

  if (policy->network == POLICY_NETWORK_NONE)
    return (struct verdict){ .reason = REASON_NETWORK_NONE };
  if (port == 0)
    return (struct verdict){ .reason = REASON_BAD_TARGET };
  if (policy->network == POLICY_NETWORK_HOST)
    return (struct verdict){ .allow = true, .reason = REASON_ALLOWED };
  deny = decide_find_deny(policy, host, port);
  if (deny)
    return (struct verdict){ .reason = REASON_DENY_RULE, .rule = deny };
  return host->kind == HOST_ADDR ? decide_literal(policy, host, port) : decide_name(policy, host, port);
}

struct verdict decide_lookup(const struct policy *policy, const struct host *host)
{
  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];

    for (size_t j = 0; j < rule->port_count && rule_covers_host(rule, host); j++) {
      struct verdict verdict = decide_target(policy, host, rule->ports[j].first);

      if (verdict.allow)
        return verdict;
    }
  }
  return decide_target(policy, host, 443);
}

struct verdict decide_addr(const struct policy *policy, const struct host *host, const struct addr *addr, uint16_t port)
{
  struct verdict target = decide_target(policy, host, port);

  return decide_addr_of(policy, &target, host, addr, port);
}

struct verdict decide_addr_of(const struct policy *policy, const struct verdict *target, const struct host *host,
                              const struct addr *addr, uint16_t port)
{
  struct verdict verdict = *target;
  enum addr_class class = addr_classify(addr);
  const struct policy_rule *deny;
  struct host literal;

  if (!verdict.allow || policy->network == POLICY_NETWORK_HOST ||
      (host->kind == HOST_ADDR && addr_equal(addr, &host->addr)))
    return verdict;
  host_of_addr(addr, &literal);
  deny = decide_find_deny(policy, &literal, port);
  if (deny)
    return (struct verdict){ .reason = REASON_DENY_RULE, .rule = deny };
  if (host->kind == HOST_NAME && strcmp(host->name, "localhost") == 0 && decide_is_localhost(addr))
    return verdict;
  /* `localhost` leads to the loopback or nowhere, whatever a resolver says. */
  if (class == ADDR_PUBLIC && !(verdict.rule && verdict.rule->kind == POLICY_HOST_LOCALHOST))
    return verdict;
  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    if (rule->kind == POLICY_HOST_PREFIX && decide_permits_addr(rule, addr, class) && rule_covers_port(rule, port))
      return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = rule };
  }
  return (struct verdict){ .reason = class == ADDR_PUBLIC ? REASON_NOT_ALLOWED : decide_class_reason(class),
                           .has_addr = true,
                           .addr = *addr };
}

bool decide_may_ask(const struct verdict *verdict, const struct host *host)
{
  if (verdict->allow || (verdict->reason != REASON_NOT_ALLOWED && verdict->reason != REASON_PORT_NOT_ALLOWED))
    return false;
  if (host->kind == HOST_ADDR)
    return addr_classify(&host->addr) == ADDR_PUBLIC;
  return strcmp(host->name, "localhost") != 0 && !host_is_subdomain(span_of(host->name), SPAN("localhost"));
}

const char *decide_asked_word(enum decide_asked asked)
{
  static const char *const words[DECIDE_ASKED_COUNT] = {
    [DECIDE_ASKED_NOBODY] = "",         [DECIDE_ASKED_ONCE] = "once", [DECIDE_ASKED_RUN] = "run",
    [DECIDE_ASKED_PROJECT] = "project", [DECIDE_ASKED_DENY] = "deny", [DECIDE_ASKED_DEADLINE] = "deadline",
    [DECIDE_ASKED_LIMIT] = "limit",
  };

  return (unsigned)asked < DECIDE_ASKED_COUNT ? words[asked] : "";
}

void decide_rule(const struct host *host, uint16_t port, struct buf *out)
{
  if (port == 80 || port == 443)
    buf_append_str(out, host->name);
  else
    host_print_target(host, port, out);
}

/* Where the rule has to go from. */
static void decide_fix_deny(const struct policy_rule *rule, struct buf *out)
{
  const struct policy_origin *origin = &rule->origin;

  buf_append_str(out, origin->line > 0 ? "remove the deny rule " : "leave out the deny rule ");
  buf_append_json(out, span_of(rule->text));
  if (!origin->file)
    return;
  buf_append_str(out, origin->line > 0 ? " in " : " of ");
  buf_append_escaped(out, span_of(origin->file));
  if (origin->line > 0)
    buf_printf(out, ":%u", origin->line);
  if (origin->json_path && origin->json_path[0] != '\0')
    buf_printf(out, " (%s)", origin->json_path);
}

void decide_fix(const struct verdict *verdict, const struct host *host, uint16_t port, struct buf *out)
{
  struct host literal = *host;

  if (verdict->allow)
    return;
  if (verdict->reason == REASON_DENY_RULE && verdict->rule) {
    decide_fix_deny(verdict->rule, out);
    return;
  }
  if (verdict->has_addr)
    host_of_addr(&verdict->addr, &literal);
  else if (verdict->reason != REASON_NOT_ALLOWED && verdict->reason != REASON_PORT_NOT_ALLOWED &&
           verdict->reason != REASON_NETWORK_NONE)
    return;
  if (port == 0)
    return;
  buf_append_str(out, verdict->reason == REASON_NETWORK_NONE ? "sbx run --network proxy --allow " : "sbx run --allow ");
  decide_rule(&literal, port, out);
  buf_append_str(out, " ...");
}
