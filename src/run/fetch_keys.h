/* fetch_keys: the value of a credential with which requests are signed: an access key id, its secret key, and the token
 * of a session where it is of one. Made one line of (credential_word() of policy/credential_word.h). */
#ifndef SBX_RUN_FETCH_KEYS_H
#define SBX_RUN_FETCH_KEYS_H

#include "plan/facts.h"
#include "policy/policy.h"
#include "sys/secret.h"

/* Errors read "cause; mend" and never hold anything of a value. *value has room for LIMITS_SECRET_BYTES. */

/* Of variables: of their names, the third may be missing, and what it names may be unset or empty. 0 or -errno. */
int fetch_keys_variables(const struct strv *names, const struct facts *facts, struct err *err, struct secret *value);

/* Of a text in one of two forms: JSON with "AccessKeyId", "SecretAccessKey", "SessionToken" and "Expiration", which
 * programs for credential_process of AWS print; or the section [default] of a file such as ~/.aws/credentials.
 * *ret_valid_ms as in fetch.h. 0 or -EINVAL. */
int fetch_keys_text(struct span text, struct err *err, struct secret *value, uint64_t *ret_valid_ms);

/* What can be said of the policy's sources before anything is started: an error where of two variables that belong
 * together only one is set. Such a run would fail at its first request. 0 or -EINVAL. */
int fetch_keys_check(const struct policy *policy, const struct facts *facts, struct err *err);

#endif
