/* facts_hide: what the patterns of filesystem.hide match on this host. */
#ifndef SBX_PLAN_FACTS_HIDE_H
#define SBX_PLAN_FACTS_HIDE_H

#include "plan/facts.h"

/* Appends to facts->hidden the absolute paths that the patterns of policy->hide match now. Symbolic links are matched
 * by name and not followed. Without a pattern nothing is read (P12). What cannot be searched whole is an error, since a
 * file that stays visible would be a broken promise: an unreadable directory, another file system mounted below, more
 * than LIMITS_HIDE_ENTRIES entries, more than LIMITS_HIDE_MATCHES matches. 0 or -errno. */
int facts_hide_expand(const struct policy *policy, struct err *err, struct facts *facts);

#endif
