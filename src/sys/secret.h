/* secret: memory for a secret: never swapped out where the kernel lets us, not in a core dump, not copied into
 * children, and wiped when it is let go. */
#ifndef SBX_SYS_SECRET_H
#define SBX_SYS_SECRET_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>

struct secret {
  char *bytes; /* NULL while there is none */
  size_t size; /* that may be used */
  size_t len; /* that is: the user's */
};

#define SECRET_INIT { .bytes = NULL }

/* Zeroed memory for size bytes. That it cannot be locked (RLIMIT_MEMLOCK) is no error. 0 or -ENOMEM. */
int secret_new(size_t size, struct err *err, struct secret *ret_secret);

/* Wipes and gives it back. Harmless without any. */
void secret_free(struct secret *secret);
#define secret_autofree MEM_CLEANUP(secret_free)

/* Keeps this process from being read by others of the user, through ptrace(2), /proc or a core dump, or lets it be. */
void secret_guard_process(bool on);

#endif
