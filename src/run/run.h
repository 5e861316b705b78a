/* run: one command in one sandbox, from plan to exit status. */
#ifndef SBX_RUN_RUN_H
#define SBX_RUN_RUN_H

#include "engine/engine.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "run/limits.h"

/* Exit statuses of sbx itself, as timeout(1), env(1) and the shells use them. */
enum run_exit {
  RUN_EXIT_TIMEOUT = 124,
  RUN_EXIT_FAILED = 125, /* sbx could not do what was asked; the command did not start */
  RUN_EXIT_NOT_EXECUTABLE = 126,
  RUN_EXIT_NOT_FOUND = 127,
};

enum run_summary {
  RUN_SUMMARY_AUTO, /* when something was denied */
  RUN_SUMMARY_ALWAYS,
  RUN_SUMMARY_NEVER,
};

/* Who is asked about a target that no rule names (--ask). */
enum ask_channel {
  ASK_NOBODY,
  ASK_TERMINAL, /* whoever sits at the controlling terminal */
  ASK_FD, /* whoever is at the other end of a descriptor */
};

struct ask_setup {
  enum ask_channel channel;
  int fd; /* open for reading and writing; ASK_TERMINAL: the controlling terminal */
  uint64_t answer_ms; /* after so long the answer is no */
  const char *project_file; /* where a rule goes that is allowed for the project */
};

struct trace;

struct run_request {
  const struct policy *policy;
  const struct facts *facts;
  const struct plan *plan; /* checked, with its program resolved */
  const char *proxy_program; /* absolute path of sbx-proxy */
  const int *keep_fds;
  size_t keep_count;
  int audit_fd; /* where the audit goes; -1: the file that policy or state directory name */
  enum run_summary summary;
  struct ask_setup ask;
  struct trace *trace; /* told of paths in vain, where plan->syscalls.trace_paths is set; else NULL */
};

/* A run whose sandbox loads while its plan is being made. */
struct run {
  struct engine_run engine;
  struct limits limits;
  int passing_lock; /* passing.h; -1 */
};

#define RUN_INIT { .engine = ENGINE_RUN_INIT, .limits = LIMITS_INIT, .passing_lock = -1 }

/* Begins a run. request->plan need only have been begun (plan_begin). 0 or -errno with nothing left behind. */
int run_prepare(const struct run_request *request, struct err *err, struct run *ret_run);

/* Ends a run that was begun and will not come to be. */
void run_abandon(struct run *run);

/* Runs the command to its end and returns the exit status for sbx: the command's (0..255), 128+n for signal n, or one
 * of run_exit. Everything that has to be said has been said. The run is at its end. *ret_started is whether the command
 * has run. */
int run_command(const struct run_request *request, struct run *run, bool *ret_started);

#endif
