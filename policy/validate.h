/* validate: layers → the policy; the only constructor of struct policy. */
#ifndef SBX_POLICY_VALIDATE_H
#define SBX_POLICY_VALIDATE_H

#include "policy/load.h"
#include "policy/policy.h"

/* Merges the layers (merge.h) and checks every value. The layers stay the caller's.
 * ret_notes gets one line per thing that a user should be told (what was ignored in an untrusted workspace file).
 * 0, -EINVAL "file:line: path: cause; fix", or -ENOMEM. */
int policy_validate(const struct layers *layers, struct err *err, struct strv *ret_notes, struct policy **ret_policy);

/* Parses the canonical text that policy_print() wrote: parse(print(p)) equals p, origins included. */
int policy_parse(struct span canonical, struct err *err, struct policy **ret_policy);

/* A policy like base with one more rule in network.allow, which is written in the grammar of rule.h; option is what its
 * origin is called ("--ask"). base stays as it is. 0, -EINVAL or -ENOMEM. */
int policy_extend(const struct policy *base, const char *rule, const char *option, struct err *err,
                  struct policy **ret_policy);

#endif
