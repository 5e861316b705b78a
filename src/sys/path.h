/* path: one look at a path, and what it found.
 *
 * Resolving follows ordinary symbolic links and no magic ones (openat2(2), RESOLVE_NO_MAGICLINKS), mounts no autofs
 * entry at its end and asks no file server for attributes (AT_STATX_DONT_SYNC), so a dead server cannot hang a start
 * (F30).
 */
#ifndef SBX_SYS_PATH_H
#define SBX_SYS_PATH_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct path_object {
  char *real; /* absolute, without symbolic links */
  mode_t mode; /* type and permissions, as in struct stat */
  uid_t uid;
  uint64_t device;
  uint64_t inode;
};

void path_object_free(struct path_object *object);
#define path_object_autofree MEM_CLEANUP(path_object_free)

/* Looks at an absolute path. 0 or -errno (-ENOENT where it does not exist, which is no fault: err is not used). */
int path_resolve(const char *path, struct path_object *ret_object);

/* The same without following a symbolic link at the end of the path. */
int path_resolve_link(const char *path, struct path_object *ret_object);

/* Looks at what a descriptor (O_PATH will do) stands for; sets everything but real. 0 or -errno. */
int path_examine(int fd, struct path_object *ret_object);

/* Makes a mount point below the directory root, without following any symbolic link: directories with mode 0700, and at
 * the end a directory too where relative ends in '/', else an empty file with this mode. A link in the way, or a file
 * where a directory belongs, is removed first: root is a directory of ours, and a sandboxed command may have planted
 * one. 0 or -errno (-EINVAL for a part "." or ".."). */
int path_make_below(const char *root, const char *relative, mode_t mode, struct err *err);

/* Removes such a mount point, following no link, if it is a directory and empty, or an empty file with mode 0. */
void path_remove_below(const char *root, const char *relative);

/* As mkdir -p with mode 0700 for an absolute path. 0 or -errno (-ENOTDIR where something else stands in the way). */
int path_make_all(const char *path, struct err *err);

/* Whether path equals dir or lies below it; both absolute and canonical. */
bool path_is_within(const char *path, const char *dir);

/* The absolute path of relative as seen from dir (absolute, canonical), with "." and ".." taken off the text: links are
 * not looked at. NULL when memory is short. Caller frees. */
char *path_normalise(const char *dir, const char *relative);

/* "dir/rest" in fresh memory, with one slash between; NULL when memory is short. Caller frees. */
char *path_join(const char *dir, const char *rest);

#endif
