/* learn_hosts: from the audit of a run to the rules that it needed. */
#ifndef SBX_CMD_LEARN_HOSTS_H
#define SBX_CMD_LEARN_HOSTS_H

#include "base/err.h"
#include "base/span.h"
#include "base/strv.h"
#include "policy/policy.h"

/* Reads the lines of an audit. *ret_rules gets the fewest rules that let pass what the network has let pass, beside
 * what policy allows anyway: sorted, exact names, exact ports. *ret_notes gets one line for each target that was
 * allowed and not reached, for many names below one domain, and for an audit that is not whole. 0 or -errno. */
int learn_hosts(const struct policy *policy, struct span audit, struct err *err, struct strv *ret_rules,
                struct strv *ret_notes);

#endif
