/* decide: the judgement. One function serves the proxy, `why`, `check`, the audit and the summary (P10).
 *
 * A target is judged twice: its name and port before anything is resolved, and each address that the name resolves to
 * before it is dialled. Deny wins over allow wherever either stands. No rule matches: denied.
 *
 * Allow is narrow: `*` covers public hosts only, and a prefix permits addresses that are public or of the class of its
 * own network address (10.0.0.0/8 permits private ones, 0.0.0.0/0 public ones only). A metadata or unspecified address
 * needs a rule for that one address. Deny is wide: `*` covers everything, `localhost` every loopback address.
 *
 * network.mode "none" refuses every target; "host" lets every one pass, since nothing of ours stands in the way then.
 */
#ifndef SBX_POLICY_DECIDE_H
#define SBX_POLICY_DECIDE_H

#include "policy/host.h"
#include "policy/policy.h"

/* Why a request was let through or not: one word each in the audit, in denials and in sbx-proxy(8). */
enum reason {
  REASON_ALLOWED, /* "allowed" */
  REASON_DENY_RULE, /* "deny-rule": a deny rule matches */
  REASON_NOT_ALLOWED, /* "not-allowed": no rule matches */
  REASON_PORT_NOT_ALLOWED, /* "port-not-allowed": a rule matches the host, none the port */
  REASON_ADDRESS_LOOPBACK, /* "address-loopback", and so on: a name led to such a place, no address rule allows it */
  REASON_ADDRESS_UNSPECIFIED,
  REASON_ADDRESS_PRIVATE,
  REASON_ADDRESS_CGNAT,
  REASON_ADDRESS_LINK_LOCAL,
  REASON_ADDRESS_METADATA,
  REASON_ADDRESS_MULTICAST,
  REASON_BAD_TARGET, /* "bad-target": the host or port is not well formed */
  REASON_BAD_REQUEST, /* "bad-request": the protocol is not well formed */
  REASON_IDENTITY_MISMATCH, /* "identity-mismatch": SNI, Host or :authority differ from the target */
  REASON_RESOLVE_FAILED, /* "resolve-failed" */
  REASON_CONNECT_REFUSED, /* "connect-refused" */
  REASON_CONNECT_TIMEOUT, /* "connect-timeout" */
  REASON_CONNECT_FAILED, /* "connect-failed": any other error of connect(2) */
  REASON_UPSTREAM_CLOSED, /* "upstream-closed": the origin closed before it answered */
  REASON_BAD_RESPONSE, /* "bad-response": the origin's answer is not well formed */
  REASON_LIMIT, /* "limit": a limit of the proxy was reached */
  REASON_NETWORK_NONE, /* "network-none" */
  REASON_COUNT,
};

struct verdict {
  bool allow;
  enum reason reason;
  const struct policy_rule *rule; /* the rule that decided, or NULL; borrowed from the policy */
  bool has_addr; /* addr is the address that was refused for where it leads (REASON_ADDRESS_*) */
  struct addr addr;
};

/* Judges the target before resolving. A HOST_ADDR target is judged whole here (rules and class of the address). */
struct verdict decide_target(const struct policy *policy, const struct host *host, uint16_t port);

/* Judges one address that an allowed name resolved to: a deny rule on the address, or a class other than public that no
 * address rule allows on this port, refuses it. `localhost` (the name) is expected to lead to loopback. */
struct verdict decide_addr(const struct policy *policy, const struct host *host, const struct addr *addr,
                           uint16_t port);

/* Whether a name may be resolved inside: some port of it is allowed. A denied one is judged as for port 443, the
 * likeliest to be meant. The rule of the verdict is the one that lets it pass. */
struct verdict decide_lookup(const struct policy *policy, const struct host *host);

/* Stable word of a reason ("not-allowed"), and the sentence that explains it to a person. */
const char *reason_word(enum reason reason);
const char *reason_text(enum reason reason);

/* What to type so that the target passes: "sbx run --allow api.example.com ...", or the place of the deny rule that has
 * to go, or "" where nothing helps. One line. */
void decide_fix(const struct verdict *verdict, const struct host *host, uint16_t port, struct buf *out);

#endif
