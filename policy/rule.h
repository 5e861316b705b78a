/* rule: the grammar of network.allow, network.deny and bind, HOST[:PORTS], and the match of one rule with a target. */
#ifndef SBX_POLICY_RULE_H
#define SBX_POLICY_RULE_H

#include "policy/host.h"
#include "policy/policy.h"

/* The list that a rule stands in: what it means without ports. */
enum rule_list {
  RULE_ALLOW, /* 80 and 443: what a web client needs and no more */
  RULE_DENY, /* every port: a host that is denied is out of reach */
  RULE_BIND, /* 443: where a credential goes, and it goes over TLS */
};

/* Parses a whole rule in the grammar of sbx-policy(5). The origin of *ret_rule is left empty; rule_free() frees the
 * rest. 0, -EINVAL with "cause; fix", or -ENOMEM. */
int rule_parse(struct span text, enum rule_list list, struct err *err, struct policy_rule *ret_rule);

/* Writes rule->text anew, as the rule of another list that means the same; of a whole rule. 0 or -ENOMEM. */
int rule_reprint(struct policy_rule *rule, enum rule_list list);

/* Frees what the rule holds, origin included. */
void rule_free(struct policy_rule *rule);

/* Whether the rule is about connections as a whole, and not about some requests of them. */
bool rule_is_whole(const struct policy_rule *rule);

/* Whether the rule's host part names the host. A v4-mapped address is the IPv4 address that it carries. */
bool rule_covers_host(const struct policy_rule *rule, const struct host *host);

/* For deny rules, also whether it names the address that an IPv6 address carries inside in any form (F52). To allow an
 * IPv4 address is not to allow those: 2**80 of 6to4 alone carry it, and each is another host. */
bool rule_covers_inside(const struct policy_rule *rule, const struct host *host);

/* The same for an address; false for rules on names. */
bool rule_covers_addr(const struct policy_rule *rule, const struct addr *addr);

/* Whether some host and port is named by both; rules on names and on single addresses only. */
bool rule_overlaps(const struct policy_rule *a, const struct policy_rule *b);

bool rule_covers_port(const struct policy_rule *rule, uint16_t port);

#endif
