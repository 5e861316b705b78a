/* nested: sbx started inside a sandbox of its own. */
#ifndef SBX_CMD_NESTED_H
#define SBX_CMD_NESTED_H

#include "cmd/opts.h"

/* Whether this process is confined by sbx. Nothing that a user, a repository or the environment can set makes it so:
 * the marker lies on a root that only a sandbox has, and the process must be under a filter and no_new_privs. */
bool nested_is_inside(void);

/* Runs the command in the sandbox it is in already. Options that would change the sandbox are refused (125): it can be
 * neither widened nor narrowed from inside. Returns only on failure, with the exit status. */
int nested_run(const struct opts *opts, char *const *args);

#endif
