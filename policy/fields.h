/* fields: which member of struct policy holds a key's list. Internal to this directory: validate fills, print reads. */
#ifndef SBX_POLICY_FIELDS_H
#define SBX_POLICY_FIELDS_H

#include "policy/keys.h"
#include "policy/policy.h"

/* The list of a key with paths or names, with rules, with port maps; NULL for a key of another type. */
struct policy_paths *fields_paths(struct policy *policy, enum key_id id);
struct policy_rules *fields_rules(struct policy *policy, enum key_id id);
struct policy_port_maps *fields_port_maps(struct policy *policy, enum key_id id);

/* The number (value_number) of a scalar key; fields_set_number ignores keys of other types. */
uint64_t fields_number(struct policy *policy, enum key_id id);
void fields_set_number(struct policy *policy, enum key_id id, uint64_t number);

#endif
