/* engine: carries out a plan.
 *
 * A run goes through these calls, in this order; engine_abort() may be called at any point after the first.
 *
 *   engine_prepare  the engine's program loads; the plan need only have been begun (plan_begin)
 *   engine_start    namespaces, mounts, filter and listeners are being made; the command does not run
 *   engine_complete where the plan has late files: they get what they hold
 *   engine_settle   waits until everything stands, and compares each judged object with the one mounted (F26)
 *   engine_release  the command runs
 *   engine_finish   after waitpid(2) of guard: what became of it
 *
 * The process guard is the caller's child; while it lives the kernel ties everything inside to it, and it to the
 * caller: when either dies, all inside is killed by the kernel (P6). Nothing above this header knows how an engine
 * does it. */
#ifndef SBX_ENGINE_ENGINE_H
#define SBX_ENGINE_ENGINE_H

#include "base/err.h"
#include "plan/plan.h"
#include "sys/netns.h"

#include <stdbool.h>
#include <sys/types.h>

struct engine_own; /* what an engine keeps to itself */

struct engine_run {
  pid_t guard; /* our child */
  pid_t init; /* pid 1 inside, in our numbers */
  struct engine_own *own;
  struct netns netns; /* the sandbox's; not open without PLAN_NETWORK_PROXY */
  int listeners[CONTROL_FRONTS_MAX]; /* one for each of plan->listeners, ours; -1 for one that could not be there */
  size_t listener_count;
  bool has_v6; /* IPv6 addresses are local to the sandbox as well */
};

#define ENGINE_RUN_INIT { .guard = -1, .init = -1, .own = NULL, .netns = NETNS_INIT, .listener_count = 0 }

#define ENGINE_FILES_MAX 64
#define ENGINE_LATE_MAX 48

/* What the caller adds to a plan for one run. */
struct engine_inputs {
  const int *keep_fds; /* descriptors that the command gets under the same numbers, besides 0, 1 and 2 */
  size_t keep_count;
  int cgroup_procs; /* cgroup.procs to start in, or -1 */
  size_t file_count; /* how many operations with data the plan will have (data_max); at most ENGINE_FILES_MAX */
  size_t late_count; /* the same of late ones (late_max); at most ENGINE_LATE_MAX */
};

/* 0; or -errno with "part: cause; fix" in err, and nothing left behind. */
int engine_prepare(const struct plan *plan, const struct engine_inputs *inputs, struct err *err,
                   struct engine_run *ret_run);

/* closed_dir: a directory of ours with mode 000, to stand for hidden ones. 0; or -errno with "part: cause; fix" in err,
 * after which the caller calls engine_abort(). */
int engine_start(const struct plan *plan, const char *closed_dir, struct err *err, struct engine_run *run);

/* Gives the late files what they hold: one text for each late operation, in their order. Until then the mounts wait for
 * it. Harmless where there are none. 0; or -errno, after which the caller calls engine_abort(). */
int engine_complete(const struct plan *plan, const struct span *texts, struct err *err, struct engine_run *run);

/* 0; or -errno: an engine's own fault, or -ESTALE where another object was mounted than the one judged. */
int engine_settle(const struct plan *plan, struct engine_run *run, struct err *err);

int engine_release(struct engine_run *run, struct err *err);

/* Kills everything of the run and reaps it. Harmless on a run that never started. */
void engine_abort(struct engine_run *run);

/* status: of waitpid(guard). Whether the command was executed at all; if so its exit status (0..255; 128+n for signal
 * n). Closes what the run still holds, except for the listeners. */
bool engine_finish(struct engine_run *run, int status, int *ret_exit_status);

/* The command's process in our numbers, for signals; -ESRCH where it has not started or has gone. */
pid_t engine_command(const struct engine_run *run);

#endif
