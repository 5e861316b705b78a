/* proc: what /proc tells of a process (proc(5)). */
#ifndef SBX_SYS_PROC_H
#define SBX_SYS_PROC_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The first child of a process, in the numbers of our own pid namespace; whatever namespace the child lives in.
 * Pid, -ENOENT when it has none, or -errno. */
pid_t proc_first_child(pid_t pid);

/* State letter of /proc/PID/stat ('R', 'S', 'T', 'Z' ...), or -errno. */
int proc_state(pid_t pid);

/* Whether a process is known to live in another pid namespace than ours. False for one that has gone already. */
bool proc_in_other_pid_namespace(pid_t pid);

#endif
