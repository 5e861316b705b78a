/* project_file: the user's own policy for one project, which `sbx run --ask` adds to. It lies outside of the workspace,
 * where no command can write. */
#ifndef SBX_RUN_PROJECT_FILE_H
#define SBX_RUN_PROJECT_FILE_H

#include "base/err.h"

/* Adds a rule at the end of network.allow of the policy file at path, which is made (mode 0600) where it is absent.
 * Everything else in it stays, byte by byte. Atomic: who reads sees the file as it was or as it is; two runs that write
 * at once both get their rule in. 0 or -errno: -ELOOP where a symbolic link stands there, which is not written through,
 * -EINVAL where the file cannot be understood. */
int project_file_allow(const char *path, const char *rule, struct err *err);

#endif
