/* probe: what this machine lets an unprivileged user do, and the exact mend where it does not. */
#ifndef SBX_SYS_PROBE_H
#define SBX_SYS_PROBE_H

#include "base/err.h"

#include <stdint.h>

/* A number from a file in /proc or /sys. 0 or -errno (-ENOENT where this kernel has no such setting). */
int probe_number(const char *path, int64_t *ret_value);

/* Looks for a setting that keeps user namespaces from the caller: 0 where none is known, else -EPERM and in err the
 * setting and the command that mends it. Reads three small files. */
int probe_userns_settings(struct err *err);

/* Makes a user namespace in a child and exits it: whether the kernel lets us, whatever the settings say. 0 or
 * -errno. */
int probe_userns(void);

/* Whether a program of this name stands in one of the system's program directories (never PATH: it may hold directories
 * of the workspace). Copies the path. 0, -ENOENT, or -ENOMEM. Caller frees. An absolute name is only checked. */
int probe_program(const char *name, char **ret_path);

#endif
