/* facts_browser: browsers that the command may start, which trust what a database of NSS says. */
#ifndef SBX_PLAN_FACTS_BROWSER_H
#define SBX_PLAN_FACTS_BROWSER_H

#include "plan/facts.h"

/* Looks for their usual names in the directories of PATH, as the command will have it, and for the directories where
 * test tools keep theirs: on the host, and in the private home. Adds what is there to facts->browsers, and to the paths
 * that are to be looked at. 0 or -ENOMEM. */
int facts_find_browsers(const char *path_variable, struct facts *facts, struct strv *wanted);

#endif
