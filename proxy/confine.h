/* confine: what sbx-proxy gives up before it reads a byte from the sandbox. See confine.c for the order and why. */
#ifndef SBX_PROXY_CONFINE_H
#define SBX_PROXY_CONFINE_H

#include "base/err.h"

#include <stddef.h>

/* The stages, to be called in this order by main.c only. 0 or -errno; after an error the program must exit. */

/* At the very start: shares its parent's death, leaves no dump, ignores the terminal's signals, closes every descriptor
 * from first_free on. */
int confine_start(unsigned first_free, struct err *err);

/* As many descriptors as allowed, up to want. Their number. */
size_t confine_descriptors(size_t want);

/* Before the event loop is made: no io_uring for the rest of the program's life. */
int confine_rings(struct err *err);

/* When nothing needs a privilege any more: all capabilities go, also from the bounding set where that is allowed; no
 * process can be made; no_new_privs. */
int confine_privilege(struct err *err);

/* When all files and sockets that the program needs to begin with are open: Landlock (where the kernel has it), then
 * the filter of system calls. */
int confine_filter(struct err *err);

#endif
