/* limits: the plan's limits on this host: a cgroup where one can be had, else what setrlimit(2) and
 * sched_setaffinity(2) can do. */
#ifndef SBX_RUN_LIMITS_H
#define SBX_RUN_LIMITS_H

#include "base/err.h"
#include "plan/plan.h"

#include <sys/types.h>

struct limits {
  char *cgroup; /* directory of the run's own cgroup, or NULL */
  int procs_fd; /* its cgroup.procs, or -1 */
};

#define LIMITS_INIT { .cgroup = NULL, .procs_fd = -1 }

/* Makes the cgroup where the plan has limits and the host delegates the controllers they need. Without that, checks
 * that the other means can hold them. 0; -ENOTSUP where nothing can, with the mend in err. */
int limits_prepare(const struct plan *plan, struct err *err, struct limits *limits);

/* Sets what no cgroup holds on pid 1 of the sandbox, from which the command inherits it; the sandbox stands by then, so
 * RLIMIT_NPROC counts in its user namespace alone. */
int limits_apply(const struct plan *plan, const struct limits *limits, pid_t init, struct err *err);

/* Removes the cgroup. Everything in it must have ended. */
void limits_release(struct limits *limits);

/* What holds them, in words, for -v. */
const char *limits_means(const struct limits *limits);

#endif
