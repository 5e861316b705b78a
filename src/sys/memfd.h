/* memfd: text handed to another program by descriptor, never by argv or a file (F4). */
#ifndef SBX_SYS_MEMFD_H
#define SBX_SYS_MEMFD_H

#include "base/span.h"

/* A sealed (no write, grow, shrink or seal), close-on-exec memfd that holds bytes, its offset at 0. name shows in
 * /proc/PID/fd only. Descriptor or -errno. */
int memfd_sealed(const char *name, struct span bytes);

/* The same in two steps: an empty one that another program may have been given already, and what fills and seals it.
 * Descriptor, or 0; or -errno. */
int memfd_empty(const char *name);
int memfd_fill(int fd, struct span bytes);

#endif
