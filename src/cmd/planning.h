/* planning: the way from a loaded context to a checked plan, for the commands that need one. */
#ifndef SBX_CMD_PLANNING_H
#define SBX_CMD_PLANNING_H

#include "cmd/context.h"
#include "plan/plan.h"

/* Begins the plan (plan_begin). args: the command, NULL-terminated; empty for a plan without one. keep: the plan is
 * carried out, so placeholders that are made for it last. 0 or -errno. */
int planning_begin(struct context *context, char *const *args, bool keep, struct err *err, struct plan *plan);

/* Reads the paths, builds the rest of the plan and checks it.
 * 0 or -errno. *ret_command: the error is about the command itself (-ENOENT: not found, -EACCES: not executable). */
int planning_finish(struct context *context, struct err *err, struct plan *plan, bool *ret_command);

/* Both, for a plan without a command. 0 or -errno. */
int planning_make(struct context *context, struct err *err, struct plan *plan);

#endif
