#include "config.h"

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
  [REASON_METHOD_NOT_ALLOWED] = { "method-not-allowed", "a rule allows this host, but not this method" },
  [REASON_PATH_NOT_ALLOWED] = { "path-not-allowed", "a rule allows this host, but not this path" },
  [REASON_AMBIGUOUS_REQUEST] = { "ambiguous-request", "a server could read the request in two ways" },
  [REASON_NOT_HTTP] = { "not-http", "a rule is about methods or paths, and this is no HTTP that can be judged" },
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
  [REASON_NOT_TERMINATED] = { "not-terminated",
                              "its requests have to be seen, and this is no TLS that can be terminated" },
  [REASON_CREDENTIAL_MISUSE] = { "credential-misuse", "a placeholder stands where its credential may not go" },
  [REASON_CREDENTIAL_SIGNATURE] = { "credential-signature",
                                    "it is signed with a placeholder, in a way that cannot be signed anew" },
  [REASON_RESOLVE_FAILED] = { "resolve-failed", "the host name could not be resolved" },
  [REASON_CONNECT_REFUSED] = { "connect-refused", "the host refused the connection" },
  [REASON_CONNECT_TIMEOUT] = { "connect-timeout", "the host did not answer in time" },
  [REASON_CONNECT_FAILED] = { "connect-failed", "the connection could not be made" },
  [REASON_PARENT_UNREACHABLE] = { "parent-unreachable", "the proxy that the host has to use could not be reached" },
  [REASON_PARENT_AUTH] = { "parent-auth", "the proxy that the host has to use wants a user and password, or takes not "
                                          "the ones given" },
  [REASON_PARENT_REFUSED] = { "parent-refused", "the proxy that the host has to use refused the connection" },
  [REASON_PARENT_BAD_REPLY] = { "parent-bad-reply",
                                "the answer of the proxy that the host has to use is not well formed" },
  [REASON_UPSTREAM_TLS] = { "upstream-tls", "the host has not proved by TLS who it is" },
  [REASON_CLIENT_TLS] = { "client-tls", "the program has broken off TLS with " SBX_NAME },
  [REASON_CREDENTIAL_UNAVAILABLE] = { "credential-unavailable", "the value of a credential could not be had" },
  [REASON_UPSTREAM_CLOSED] = { "upstream-closed", "the host closed the connection before it answered" },
  [REASON_BAD_RESPONSE] = { "bad-response", "the host's answer is not well formed" },
  [REASON_LIMIT] = { "limit", "the proxy is out of memory or descriptors" },
  [REASON_LIMIT_CONNECTIONS] = { "limit-connections", "too many connections are open" },
  [REASON_LIMIT_DIALS] = { "limit-dials", "too many connections are being made" },
  [REASON_LIMIT_HEAD] = { "limit-head", "the head of the request is too large" },
  [REASON_LIMIT_BODY] = { "limit-body",
                          "the body of the request is too large to be kept, which signing or changing it takes" },
  [REASON_LIMIT_TIME] = { "limit-time", "nothing came for too long" },
  [REASON_LIMIT_LOOKUPS] = { "limit-lookups", "too many lookups wait for an answer" },
  [REASON_LIMIT_NAMES] = { "limit-names", "too many names have been looked up" },
  [REASON_LIMIT_PORTS] = { "limit-ports", "too many ports are listened on for names" },
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

bool reason_is_limit(enum reason reason)
{
  return reason >= REASON_LIMIT && reason <= REASON_LIMIT_PORTS;
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

bool decide_is_localhost(const struct addr *addr)
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

/* Whether a deny rule covers the host, or the address, on this port. */
static bool decide_rule_denies(const struct policy_rule *rule, const struct host *host, uint16_t port)
{
  bool loopback = host->kind == HOST_ADDR && addr_classify(&host->addr) == ADDR_LOOPBACK;
  bool covers = rule_covers_inside(rule, host) || (loopback && rule->kind == POLICY_HOST_LOCALHOST);

  return covers && rule_covers_port(rule, port);
}

/* The first deny rule that does: of those on whole connections, or of those on methods and paths. */
static const struct policy_rule *decide_find_deny(const struct policy *policy, const struct host *host, uint16_t port,
                                                  bool whole)
{
  for (size_t i = 0; i < policy->deny.count; i++) {
    const struct policy_rule *rule = &policy->deny.items[i];
    if (rule_is_whole(rule) == whole && decide_rule_denies(rule, host, port))
      return rule;
  }
  return NULL;
}

/* Whether an allow rule permits the host, on whatever port. */
static bool decide_rule_permits(const struct policy_rule *rule, const struct host *host)
{
  enum addr_class class;

  if (host->kind == HOST_NAME)
    return rule_covers_host(rule, host) && !(rule->kind == POLICY_HOST_ANY && strcmp(host->name, "localhost") == 0);
  class = addr_classify(&host->addr);
  return decide_permits_addr(rule, &host->addr, class) || (rule->kind == POLICY_HOST_ANY && class == ADDR_PUBLIC);
}

/* An allow rule that does not let the target pass. The reason is the most telling of those that the rules give: a rule
 * permits it but not the port, then where an address leads, then that nothing names it. */
static void decide_note_refusal(const struct policy_rule *rule, const struct host *host, bool permits,
                                struct verdict *verdict)
{
  if (permits && verdict->reason != REASON_PORT_NOT_ALLOWED)
    *verdict = (struct verdict){ .reason = REASON_PORT_NOT_ALLOWED, .rule = rule };
  else if (!permits && host->kind == HOST_ADDR && rule_covers_host(rule, host) && verdict->reason == REASON_NOT_ALLOWED)
    *verdict = (struct verdict){ .reason = decide_class_reason(addr_classify(&host->addr)),
                                 .has_addr = true,
                                 .addr = host->addr };
}

/* A rule on whole connections is preferred to one on some of their requests, wherever it stands, and that one to what a
 * credential implies. */
static struct verdict decide_allow(const struct policy *policy, const struct host *host, uint16_t port)
{
  struct verdict verdict = { .allow = false, .reason = REASON_NOT_ALLOWED };
  const struct policy_rule *partly = NULL;
  const struct policy_rule *implied = NULL;

  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    bool permits = decide_rule_permits(rule, host);
    if (!permits || !rule_covers_port(rule, port))
      decide_note_refusal(rule, host, permits, &verdict);
    else if (rule->implied)
      implied = implied ? implied : rule;
    else if (rule_is_whole(rule))
      return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = rule };
    else if (!partly)
      partly = rule;
  }
  if (partly)
    return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = partly, .request_rule = partly };
  return implied ? (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = implied } : verdict;
}

struct verdict decide_target(const struct policy *policy, const struct host *host, uint16_t port)
{
  const struct policy_rule *deny;
  struct verdict verdict;

  if (policy->network == POLICY_NETWORK_NONE)
    return (struct verdict){ .reason = REASON_NETWORK_NONE };
  if (port == 0)
    return (struct verdict){ .reason = REASON_BAD_TARGET };
  if (policy->network == POLICY_NETWORK_HOST)
    return (struct verdict){ .allow = true, .reason = REASON_ALLOWED };
  deny = decide_find_deny(policy, host, port, true);
  if (deny)
    return (struct verdict){ .reason = REASON_DENY_RULE, .rule = deny };
  verdict = decide_allow(policy, host, port);
  if (verdict.allow && !verdict.request_rule)
    verdict.request_rule = decide_find_deny(policy, host, port, false);
  return verdict;
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

uint32_t decide_bound(const struct policy *policy, const struct host *host, uint16_t port)
{
  uint32_t bound = 0;

  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_rules *bind = &policy->credentials.items[i].bind;

    for (size_t j = 0; j < bind->count; j++)
      if (rule_covers_host(&bind->items[j], host) && rule_covers_port(&bind->items[j], port))
        bound |= UINT32_C(1) << i;
  }
  return bound;
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
  deny = decide_find_deny(policy, &literal, port, true);
  if (deny)
    return (struct verdict){ .reason = REASON_DENY_RULE, .rule = deny };
  if (!verdict.request_rule)
    verdict.request_rule = decide_find_deny(policy, &literal, port, false);
  if (host->kind == HOST_NAME && strcmp(host->name, "localhost") == 0 && decide_is_localhost(addr))
    return verdict;
  /* `localhost` leads to the loopback or nowhere, whatever a resolver says. */
  if (class == ADDR_PUBLIC && !(verdict.rule && verdict.rule->kind == POLICY_HOST_LOCALHOST))
    return verdict;
  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    if (rule->kind == POLICY_HOST_PREFIX && rule_is_whole(rule) && decide_permits_addr(rule, addr, class) &&
        rule_covers_port(rule, port)) {
      verdict.rule = rule;
      return verdict;
    }
  }
  return (struct verdict){ .reason = class == ADDR_PUBLIC ? REASON_NOT_ALLOWED : decide_class_reason(class),
                           .has_addr = true,
                           .addr = *addr };
}

/* The reading of a request that is judged. */
struct decide_reading {
  const struct request *request;
  struct request_path path;
  const char *ambiguous; /* why the path has more than one; NULL: it has one */
};

/* Whether a rule that covers the target names the request: true also where that cannot be told, with the reason
 * REASON_AMBIGUOUS_REQUEST in *verdict; else *verdict has what the rule lacks. */
static bool decide_names_request(const struct policy_rule *rule, const struct decide_reading *reading, bool deny,
                                 struct verdict *verdict)
{
  *verdict = (struct verdict){ .reason = REASON_METHOD_NOT_ALLOWED, .rule = rule };
  if (!request_matches_method(rule, reading->request->method))
    return false;
  verdict->reason = REASON_AMBIGUOUS_REQUEST;
  verdict->detail = reading->ambiguous;
  if (reading->ambiguous && rule->paths.count > 0)
    return true;
  verdict->reason = REASON_PATH_NOT_ALLOWED;
  verdict->detail = NULL;
  if (!request_matches_path(rule, &reading->path, deny))
    return false;
  verdict->reason = REASON_ALLOWED;
  return true;
}

/* A deny rule on methods or paths that names the request, or could. */
static bool decide_denies_request(const struct policy *policy, const struct host *host, const struct addr *addr,
                                  uint16_t port, const struct decide_reading *reading, struct verdict *ret_verdict)
{
  struct host literal;
  struct verdict verdict;

  if (addr)
    host_of_addr(addr, &literal);
  for (size_t i = 0; i < policy->deny.count; i++) {
    const struct policy_rule *rule = &policy->deny.items[i];
    bool covers = decide_rule_denies(rule, host, port) || (addr && decide_rule_denies(rule, &literal, port));
    if (rule_is_whole(rule) || !covers || !decide_names_request(rule, reading, true, &verdict))
      continue;
    if (verdict.reason == REASON_ALLOWED)
      verdict.reason = REASON_DENY_RULE;
    *ret_verdict = verdict;
    return true;
  }
  return false;
}

static struct verdict decide_allows_request(const struct policy *policy, const struct host *host, uint16_t port,
                                            const struct decide_reading *reading)
{
  struct verdict refusal = { .reason = REASON_NOT_ALLOWED };
  const struct policy_rule *implied = NULL;

  for (size_t i = 0; i < policy->allow.count; i++) {
    const struct policy_rule *rule = &policy->allow.items[i];
    struct verdict verdict;
    if (!decide_rule_permits(rule, host) || !rule_covers_port(rule, port))
      continue;
    if (rule->implied) {
      implied = implied ? implied : rule;
      continue;
    }
    if (decide_names_request(rule, reading, false, &verdict) && verdict.reason == REASON_ALLOWED)
      return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = rule };
    /* The words stand in the order in which they tell more. */
    if (verdict.reason > refusal.reason)
      refusal = verdict;
  }
  if (implied && refusal.reason == REASON_NOT_ALLOWED)
    return (struct verdict){ .allow = true, .reason = REASON_ALLOWED, .rule = implied };
  return refusal;
}

struct verdict decide_request(const struct policy *policy, const struct verdict *target, const struct host *host,
                              const struct addr *addr, uint16_t port, const struct request *request)
{
  struct decide_reading reading = { .request = request };
  struct verdict allowed = *target;
  struct verdict verdict;
  struct host literal;

  if (!target->allow || policy->network == POLICY_NETWORK_HOST)
    return *target;
  if (addr && !allowed.request_rule) {
    host_of_addr(addr, &literal);
    allowed.request_rule = decide_find_deny(policy, &literal, port, false);
  }
  if (!allowed.request_rule)
    return *target;
  (void)request_read_path(request->path, &reading.path, &reading.ambiguous);
  if (decide_denies_request(policy, host, addr, port, &reading, &verdict))
    return verdict;
  /* The user has allowed the target as a whole. */
  if (target->asked == DECIDE_ASKED_ONCE)
    return allowed;
  verdict = decide_allows_request(policy, host, port, &reading);
  verdict.request_rule = allowed.request_rule;
  verdict.asked = target->asked;
  return verdict;
}

struct verdict decide_once(const struct policy *policy, const struct policy_rule *rule, const struct host *host,
                           uint16_t port)
{
  return (struct verdict){ .allow = true,
                           .reason = REASON_ALLOWED,
                           .rule = rule,
                           .asked = DECIDE_ASKED_ONCE,
                           .request_rule = decide_find_deny(policy, host, port, false) };
}

struct verdict decide_opaque(const struct verdict *verdict)
{
  if (!verdict->allow || !verdict->request_rule)
    return *verdict;
  return (struct verdict){ .reason = REASON_NOT_HTTP, .rule = verdict->request_rule };
}

struct verdict decide_cleartext(const struct policy *policy, const struct verdict *verdict, const struct host *host,
                                uint16_t port)
{
  if (!verdict->allow || policy->network != POLICY_NETWORK_PROXY || !decide_bound(policy, host, port))
    return *verdict;
  return (struct verdict){ .reason = REASON_NOT_TERMINATED };
}

static bool decide_has_partial(const struct policy_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++)
    if (!rule_is_whole(&rules->items[i]))
      return true;
  return false;
}

bool decide_may_terminate(const struct policy *policy)
{
  return policy->credentials.count > 0 || decide_has_partial(&policy->allow) || decide_has_partial(&policy->deny);
}

bool decide_is_about_request(const struct verdict *verdict)
{
  switch ((unsigned)verdict->reason) {
  case REASON_METHOD_NOT_ALLOWED:
  case REASON_PATH_NOT_ALLOWED:
  case REASON_AMBIGUOUS_REQUEST:
    return true;
  default:
    return verdict->reason == REASON_DENY_RULE && verdict->rule && !rule_is_whole(verdict->rule);
  }
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
    [DECIDE_ASKED_NOBODY] = "",         [DECIDE_ASKED_ONCE] = "once",      [DECIDE_ASKED_RUN] = "run",
    [DECIDE_ASKED_PROJECT] = "project", [DECIDE_ASKED_DENY] = "deny",      [DECIDE_ASKED_DEADLINE] = "deadline",
    [DECIDE_ASKED_LIMIT] = "limit",     [DECIDE_ASKED_UNABLE] = "unasked",
  };

  return (unsigned)asked < DECIDE_ASKED_COUNT ? words[asked] : "";
}
