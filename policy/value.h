/* value: what the text of a value means, by the type of its key (keys.h). Pure; all errors are "cause; fix" without the
 * place, which the caller puts in front. */
#ifndef SBX_POLICY_VALUE_H
#define SBX_POLICY_VALUE_H

#include "policy/keys.h"
#include "policy/policy.h"

#include "base/err.h"

/* Judges a value of any key. name is a map entry's name, else NULL; text is NULL for null. option: the value comes from
 * an option, where a file may be "fd:N". 0, -EINVAL or -ENOMEM. */
int value_check(const struct key *key, const char *name, const char *text, bool option, struct err *err);

/* KEY_TYPE_SIZE (bytes), CPUS (thousandths), NUMBER, DURATION (milliseconds), WORD and BOOL (index into key->words).
 * null is 0, which a number never is otherwise. */
int value_number(const struct key *key, const char *text, struct err *err, uint64_t *ret_number);

/* KEY_TYPE_PORT_MAP; the origin is left alone. */
int value_port_map(const char *text, struct err *err, struct policy_port_map *ret_map);

/* KEY_TYPE_UPSTREAM; null is none. *ret_url is NULL unless the kind is POLICY_UPSTREAM_URL; caller frees. */
int value_upstream(const char *text, struct err *err, enum policy_upstream *ret_kind, char **ret_url);

/* KEY_TYPE_FILE: canonical path or "fd:N"; NULL for NULL. Caller frees. */
int value_file(const char *text, bool option, struct err *err, char **ret_file);

/* Judges a variable's name: NAME, or where pattern is true also PREFIX*. 0 or -EINVAL. */
int value_check_env_name(struct span name, bool pattern, struct err *err);

/* Whether going from the number old to the number new (value_number) narrows. For limits 0, no limit, is the widest. */
bool value_is_narrower(const struct key *key, uint64_t new_number, uint64_t old_number);

#endif
