/* replace: a file of the user's gets another text in one step. */
#ifndef SBX_SYS_REPLACE_H
#define SBX_SYS_REPLACE_H

#include "base/err.h"
#include "base/span.h"

#include <sys/types.h>

/* Whether the name in the directory dir can be given a text: nothing is there, or a regular file. 0; or -errno with
 * "is ..." in err, to be wrapped with the path. */
int replace_check(int dir, const char *name, struct err *err);

/* Writes a file beside the name and gives it the name: who reads sees the text as it was or as it is, and a link that
 * has come there meanwhile is replaced, not followed. A regular file's permissions stay; a new one has mode, less the
 * umask. 0 or -errno; then nothing has changed. */
int replace_file(int dir, const char *name, mode_t mode, struct span text);

#endif
