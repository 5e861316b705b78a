/* freeze: stops everything in a sandbox for a moment, and lets it go on. */
#ifndef SBX_SYS_FREEZE_H
#define SBX_SYS_FREEZE_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct freeze {
  pid_t *pids; /* stopped by us: in the order in which they were found, parents before children */
  size_t count;
  size_t cap;
};

#define FREEZE_INIT { .pids = NULL }

/* Stops every process below init, which goes on itself. What is stopped already is left as it is. May be called again,
 * for what has been continued meanwhile. 0; -EAGAIN where that cannot be had in a short time, and then nothing is
 * stopped any more. */
int freeze_below(struct freeze *freeze, pid_t init, struct err *err);

/* Continues what was stopped. Harmless where nothing was. */
void freeze_thaw(struct freeze *freeze);

#endif
