/* planning: the way from a loaded context to a checked plan, for the commands that need one. */
#ifndef SBX_CMD_PLANNING_H
#define SBX_CMD_PLANNING_H

#include "cmd/context.h"
#include "plan/plan.h"

/* Reads the paths, builds the plan and checks it. args: the command, NULL-terminated; empty for a plan without one.
 * 0 or -errno. *ret_command: the error is about the command itself (-ENOENT: not found, -EACCES: not executable). */
int planning_make(struct context *context, char *const *args, struct err *err, struct plan *plan, bool *ret_command);

#endif
