/* own_file: small files of ours that several runs may read and write: changed under a lock, replaced as a whole
 * (sys/replace.h). */
#ifndef SBX_RUN_OWN_FILE_H
#define SBX_RUN_OWN_FILE_H

#include "base/err.h"

/* Makes the directory of an absolute path where it is missing, opens and locks it; *ret_name is the file's name in it
 * and borrows from path. Closing *ret_dir lifts the lock. 0 or -errno. */
int own_file_lock(const char *path, struct err *err, int *ret_dir, const char **ret_name);

#endif
