/* host_program: programs of the user's that sbx runs outside of the sandbox. */
#ifndef SBX_RUN_HOST_PROGRAM_H
#define SBX_RUN_HOST_PROGRAM_H

#include "plan/facts.h"

/* Finds a program by its name in the caller's PATH, or by an absolute path. One that the sandboxed command can write
 * would be run outside of the sandbox: directories that it may write are passed by in PATH, and a program in one of
 * them is refused. 0 and its path (caller frees); -ENOENT, -EPERM or -EINVAL with the mend in err; -ENOMEM. */
int host_program_find(const struct policy *policy, const struct facts *facts, const char *name, struct err *err,
                      char **ret_path);

#endif
