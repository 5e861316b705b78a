/* rule_object: {"host": HOST[:PORTS], "methods": [...], "paths": [...]}. Internal to this directory. */
#ifndef SBX_POLICY_RULE_OBJECT_H
#define SBX_POLICY_RULE_OBJECT_H

#include "policy/rule.h"

/* Whether the text of a rule is an object. */
bool rule_object_is(struct span text);

/* rule_parse() for such a text. */
int rule_object_parse(struct span text, enum rule_list list, struct err *err, struct policy_rule *ret_rule);

#endif
