/* freeze: everything in a sandbox stands still for a moment, whatever it does against it. */
#ifndef SBX_SYS_FREEZE_H
#define SBX_SYS_FREEZE_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct freeze {
  pid_t tracer; /* our child that holds them; -1: none */
  int link; /* to it */
};

#define FREEZE_INIT { .tracer = -1, .link = -1 }

/* Stops every process below top, which is a child of ours and goes on itself. *ret_has_group is whether one of them is
 * in that process group. What is stopped stays so until freeze_thaw(), or our death. 0; or -errno with the reason in
 * err, and then everything runs: -EPERM where ptrace(2) is refused, -EBUSY where a process inside is traced already,
 * -EAGAIN where it takes too long. */
int freeze_below(struct freeze *freeze, pid_t top, pid_t group, struct err *err, bool *ret_has_group);

/* Whether everything has stood still since: the child that holds it lives. */
bool freeze_holds(const struct freeze *freeze);

/* To be told of a child that waitpid(2) has given to somebody else. True where it held everything, which runs now. */
bool freeze_reaped(struct freeze *freeze, pid_t pid);

/* Lets everything go on, but for what was stopped before. tell: whoever goes on hears SIGCONT. Harmless where nothing
 * is held. */
void freeze_thaw(struct freeze *freeze, bool tell);

#endif
