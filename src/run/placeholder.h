/* placeholder: what stands inside in place of a credential's value: random, shaped like a value of the service, and the
 * same in every run of the project. It is not derived from the value, and worthless to whoever has it. */
#ifndef SBX_RUN_PLACEHOLDER_H
#define SBX_RUN_PLACEHOLDER_H

#include "base/err.h"
#include "policy/policy.h"

/* Fills *ret_placeholders with one for each credential of the policy, in their order: those that the file path has, and
 * new ones for the rest, which are added to it where keep is true. A file that is not there has none. 0; -EEXIST where
 * one holds another, so that it could not be told which is meant; or -errno. */
int placeholder_load(const struct policy *policy, const char *path, bool keep, struct err *err,
                     struct strv *ret_placeholders);

#endif
