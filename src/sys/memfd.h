/* memfd: text handed to another program by descriptor, never by argv or a file (F4). */
#ifndef SBX_SYS_MEMFD_H
#define SBX_SYS_MEMFD_H

#include "base/span.h"

/* A sealed (no write, grow, shrink or seal), close-on-exec memfd that holds bytes, its offset at 0. name shows in
 * /proc/PID/fd only. Descriptor or -errno. */
int memfd_sealed(const char *name, struct span bytes);

#endif
