/* cmd: the commands of sbx, one file each. */
#ifndef SBX_CMD_CMD_H
#define SBX_CMD_CMD_H

#include "cmd/context.h"
#include "cmd/opts.h"
#include "plan/plan.h"
#include "policy/policy.h"

struct cmd {
  const char *name;
  enum opts_command bit;
  const char *usage; /* what follows the name */
  const char *help;
  /* Gets the arguments that are no options, NULL-terminated. Returns the exit status. */
  int (*run)(const struct opts *opts, char *const *args);
};

int cmd_run(const struct opts *opts, char *const *args);
int cmd_shell(const struct opts *opts, char *const *args);
int cmd_check(const struct opts *opts, char *const *args);
int cmd_show(const struct opts *opts, char *const *args);
int cmd_init(const struct opts *opts, char *const *args);
int cmd_trust(const struct opts *opts, char *const *args);
int cmd_why(const struct opts *opts, char *const *args);
int cmd_log(const struct opts *opts, char *const *args);
int cmd_doctor(const struct opts *opts, char *const *args);
int cmd_credential(const struct opts *opts, char *const *args);
int cmd_learn(const struct opts *opts, char *const *args);

/* Starts what the plan says and waits for its end. The plan has been begun (planning_begin); unless it is finished
 * as well, that is done here, while the sandbox loads. audit_fd: where the audit goes instead, or -1. trace: as in
 * struct run_request. *ret_started is whether the command has run. Returns the exit status. */
int cmd_start(const struct opts *opts, struct context *context, struct plan *plan, bool planned, int audit_fd,
              struct trace *trace, bool *ret_started);

/* Tells what a plan has to say, and why there is none: returns the exit status for that. */
void cmd_tell_plan(const struct plan *plan);
int cmd_fail_plan(const struct err *err, bool about_command);

/* Where sbx-proxy is, or with tls sbx-proxy-tls: beside us, as in a build tree, else where it was installed, whether it
 * is there or not. 0 or -ENOMEM. Caller frees. */
int cmd_find_proxy(bool tls, char **ret_path);

/* Prints a policy in the policy language. Returns the exit status. */
int cmd_print_policy(const struct policy *policy);

/* Prints err as an error line and returns RUN_EXIT_FAILED. */
int cmd_fail(const struct err *err);

/* Writes to standard output. RUN_EXIT_FAILED where that fails, so that a full disk is no success; else 0. */
int cmd_print(const struct buf *text);

#endif
