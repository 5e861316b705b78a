/* decide: the judgement. One function serves the proxy, `why`, `check`, the audit and the summary (P10).
 *
 * A target is judged twice: its name and port before anything is resolved, and each address that the name resolves to
 * before it is dialled. Deny wins over allow wherever either stands. No rule matches: denied.
 *
 * Allow is narrow: `*` covers public hosts only, and a prefix permits addresses that are public or of the class of its
 * own network address (10.0.0.0/8 permits private ones, 0.0.0.0/0 public ones only). A metadata or unspecified address
 * needs a rule for that one address. Deny is wide: `*` covers everything, `localhost` every loopback address.
 *
 * A rule on methods or paths lets the target pass at first, since nothing of a request is known then; the verdict has
 * it as its request_rule, and every request is judged by itself. TLS to it is terminated for that; what is neither TLS
 * nor HTTP is refused, since it cannot be judged. A rule without them allows or denies all requests. One that a
 * credential implies gives way to allow rules on methods or paths.
 *
 * network.mode "none" refuses every target; "host" lets every one pass, since nothing of ours stands in the way then.
 */
#ifndef SBX_POLICY_DECIDE_H
#define SBX_POLICY_DECIDE_H

#include "policy/host.h"
#include "policy/policy.h"
#include "policy/request.h"

/* Why a request was let through or not: one word each in the audit, in denials and in sbx-proxy(8). */
enum reason {
  REASON_ALLOWED, /* "allowed" */
  REASON_DENY_RULE, /* "deny-rule": a deny rule matches */
  REASON_NOT_ALLOWED, /* "not-allowed": no rule matches */
  REASON_PORT_NOT_ALLOWED, /* "port-not-allowed": a rule matches the host, none the port */
  REASON_METHOD_NOT_ALLOWED, /* "method-not-allowed": rules name the host and port, none the request's method */
  REASON_PATH_NOT_ALLOWED, /* "path-not-allowed": and one the method, none the path */
  REASON_AMBIGUOUS_REQUEST, /* "ambiguous-request": servers could disagree about what the request asks for */
  REASON_NOT_HTTP, /* "not-http": a rule has to judge requests, and another protocol has none */
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
  REASON_NOT_TERMINATED, /* "not-terminated": its requests have to be seen, and this is no TLS to terminate */
  REASON_CREDENTIAL_MISUSE, /* "credential-misuse": a placeholder where its value may not go */
  REASON_CREDENTIAL_SIGNATURE, /* "credential-signature": signed with a placeholder, and cannot be signed anew */
  REASON_RESOLVE_FAILED, /* "resolve-failed" */
  REASON_CONNECT_REFUSED, /* "connect-refused" */
  REASON_CONNECT_TIMEOUT, /* "connect-timeout" */
  REASON_CONNECT_FAILED, /* "connect-failed": any other error of connect(2) */
  REASON_PARENT_UNREACHABLE, /* "parent-unreachable", and so on: the proxy that the host has to use */
  REASON_PARENT_AUTH,
  REASON_PARENT_REFUSED,
  REASON_PARENT_BAD_REPLY,
  REASON_UPSTREAM_TLS, /* "upstream-tls": the origin has not proved by TLS that it is the target */
  REASON_CLIENT_TLS, /* "client-tls": the client has broken off TLS with us, which it may not trust */
  REASON_CREDENTIAL_UNAVAILABLE, /* "credential-unavailable": the value could not be had from its source */
  REASON_UPSTREAM_CLOSED, /* "upstream-closed": the origin closed before it answered */
  REASON_BAD_RESPONSE, /* "bad-response": the origin's answer is not well formed */
  REASON_LIMIT, /* "limit": the proxy is out of memory or descriptors; and so on: a limit of limits.h was reached */
  REASON_LIMIT_CONNECTIONS, /* "limit-connections" */
  REASON_LIMIT_DIALS, /* "limit-dials" */
  REASON_LIMIT_HEAD, /* "limit-head" */
  REASON_LIMIT_BODY, /* "limit-body": of a request whose body must be kept */
  REASON_LIMIT_TIME, /* "limit-time" */
  REASON_LIMIT_LOOKUPS, /* "limit-lookups" */
  REASON_LIMIT_NAMES, /* "limit-names" */
  REASON_LIMIT_PORTS, /* "limit-ports" */
  REASON_NETWORK_NONE, /* "network-none" */
  REASON_COUNT,
};

/* What came of asking the user (--ask). */
enum decide_asked {
  DECIDE_ASKED_NOBODY,
  DECIDE_ASKED_ONCE, /* "once": allowed for the connections that waited */
  DECIDE_ASKED_RUN, /* "run": allowed from here to the end of the run */
  DECIDE_ASKED_PROJECT, /* "project": allowed in every run of this project */
  DECIDE_ASKED_DENY, /* "deny": refused for the rest of the run */
  DECIDE_ASKED_DEADLINE, /* "deadline": the same, since nobody answered in time */
  DECIDE_ASKED_LIMIT, /* "limit": refused unasked for now, since there were too many questions */
  DECIDE_ASKED_UNABLE, /* "unasked": the same, since nobody could be asked */
  DECIDE_ASKED_COUNT,
};

struct verdict {
  bool allow;
  enum reason reason;
  const struct policy_rule *rule; /* the rule that decided, or NULL; borrowed from the policy */
  const struct policy_rule
      *request_rule; /* allowed only as far as each request is: a rule on methods or paths; or NULL */
  const char *detail; /* what is ambiguous (static), or NULL */
  bool has_addr; /* addr is the address that was refused for where it leads (REASON_ADDRESS_*) */
  struct addr addr;
  enum decide_asked asked;
};

/* Judges the target before resolving. A HOST_ADDR target is judged whole here (rules and class of the address). */
struct verdict decide_target(const struct policy *policy, const struct host *host, uint16_t port);

/* Judges one address that an allowed name resolved to: a deny rule on the address, or a class other than public that no
 * address rule allows on this port, refuses it. `localhost` (the name) is expected to lead to loopback. */
struct verdict decide_addr(const struct policy *policy, const struct host *host, const struct addr *addr,
                           uint16_t port);

/* The same, after a verdict that allowed the target, which decide_target() or the user may have given. */
struct verdict decide_addr_of(const struct policy *policy, const struct verdict *target, const struct host *host,
                              const struct addr *addr, uint16_t port);

/* Whether addr is 127.0.0.1 or ::1, which is all that a `localhost` rule opens. */
bool decide_is_localhost(const struct addr *addr);

/* Whether the user can be asked about a target that got this verdict: only that no rule names it stands against it, and
 * it is public as far as can be told. Deny rules, the host's loopback and addresses of other places are not asked
 * about. */
bool decide_may_ask(const struct verdict *verdict, const struct host *host);

/* The credentials whose bind rules name the target: a bit each, in the order of policy->credentials. TLS to such a
 * target is terminated, and nothing else of it passes. A name is bound by name, never by the address that it leads to.
 */
uint32_t decide_bound(const struct policy *policy, const struct host *host, uint16_t port);

/* The rule that would let the target pass, as decide_fix() and a question name it: without ports where it is 80 or 443,
 * as a rule means both by itself. */
void decide_rule(const struct host *host, uint16_t port, struct buf *out);

/* "once", "run", ...; "" for nobody. */
const char *decide_asked_word(enum decide_asked asked);

/* Judges one request by itself, after a verdict on its target: deny rules that name the request, then the first allow
 * rule that does. addr is where the request goes, so that deny rules on addresses count; NULL while that is not known.
 */
struct verdict decide_request(const struct policy *policy, const struct verdict *target, const struct host *host,
                              const struct addr *addr, uint16_t port, const struct request *request);

/* The verdict on a target that the user allows once, by this rule. */
struct verdict decide_once(const struct policy *policy, const struct policy_rule *rule, const struct host *host,
                           uint16_t port);

/* What becomes of a connection that was allowed and carries neither HTTP nor TLS: refused where requests have to be
 * judged, else as it was. */
struct verdict decide_opaque(const struct verdict *verdict);

/* What becomes of a request without TLS to a target that was allowed: refused where a credential is bound to it,
 * whatever other rule allows it. */
struct verdict decide_cleartext(const struct policy *policy, const struct verdict *verdict, const struct host *host,
                                uint16_t port);

/* Whether TLS to some target may have to be terminated: for a credential, or for a rule on methods or paths. */
bool decide_may_terminate(const struct policy *policy);

/* Whether the verdict is about one request, and not about its target. */
bool decide_is_about_request(const struct verdict *verdict);

/* Whether a name may be resolved inside: some port of it is allowed. A denied one is judged as for port 443, the
 * likeliest to be meant. The rule of the verdict is the one that lets it pass. */
struct verdict decide_lookup(const struct policy *policy, const struct host *host);

/* Stable word of a reason ("not-allowed"), and the sentence that explains it to a person. */
const char *reason_word(enum reason reason);
const char *reason_text(enum reason reason);

/* Whether a limit was reached, whatever the policy says. */
bool reason_is_limit(enum reason reason);

/* What to do so that a request passes that was refused. For a verdict on the target the same as decide_fix(),
 * for a limit what keeps below it; host may be NULL then. */
void decide_fix_request(const struct verdict *verdict, const struct host *host, uint16_t port,
                        const struct request *request, struct buf *out);

/* What to type so that the target passes: "sbx run --allow api.example.com ...", or the place of the deny rule that has
 * to go, or "" where nothing helps. One line. */
void decide_fix(const struct verdict *verdict, const struct host *host, uint16_t port, struct buf *out);

#endif
