/* cgroup: a cgroup (version 2) of one's own for a run, where the host delegates one (cgroups(7), "Delegation"). */
#ifndef SBX_SYS_CGROUP_H
#define SBX_SYS_CGROUP_H

#include "base/err.h"

#include <stdint.h>

struct cgroup_limits {
  uint64_t memory_bytes; /* memory.max, with swap at zero; 0: no limit; so the next two */
  uint64_t cpu_milli; /* cpu.max, thousandths of a CPU */
  uint64_t pids; /* pids.max */
};

/* Makes a cgroup below the nearest ancestor of our own that distributes the controllers these limits need and that we
 * may write, sets the limits and opens its cgroup.procs. Leftovers of runs that were killed are removed on the way.
 * 0; -EEXIST where a process with our number, of another pid namespace, has one there; or another -errno, with the
 * reason in err and nothing left. Caller frees *ret_path. */
int cgroup_make(const struct cgroup_limits *limits, struct err *err, char **ret_path, int *ret_procs);

/* The second half: sets the limits of a cgroup that is there, and opens its cgroup.procs. 0 or -errno. */
int cgroup_limit(const char *dir, const struct cgroup_limits *limits, struct err *err, int *ret_procs);

/* Closes procs and removes the cgroup; kills what is left in it first. */
void cgroup_remove(const char *path, int *procs);

/* The directory where cgroup_make would make one for these limits, for doctor. 0 or -errno. Caller frees. */
int cgroup_find(const struct cgroup_limits *limits, struct err *err, char **ret_parent);

#endif
