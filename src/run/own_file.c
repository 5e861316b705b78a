#include "run/own_file.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int own_file_lock(const char *path, struct err *err, int *ret_dir, const char **ret_name)
{
  const char *slash = strrchr(path, '/');
  mem_autofree char *place = mem_strndup(path, (size_t)(slash - path));
  fd_autoclose int dir = -1;
  int r = place ? path_make_all(place, err) : err_set(err, ENOMEM, "out of memory");

  if (r < 0)
    return r;
  dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0 || flock(dir, LOCK_EX) < 0)
    return err_set_errno(err, errno, "%s", place);
  *ret_dir = fd_steal(&dir);
  *ret_name = slash + 1;
  return 0;
}

/* A file that was left by a killed run is written over: the directory is locked. */
int own_file_replace(int dir, const char *name, struct span text)
{
  buf_autofree struct buf fresh = BUF_INIT(LIMITS_PATH_BYTES);
  fd_autoclose int fd = -1;
  int r;

  buf_printf(&fresh, "%s.new", name);
  if (buf_error(&fresh))
    return buf_error(&fresh);
  if (unlinkat(dir, fresh.data, 0) < 0 && errno != ENOENT)
    return -errno;
  fd = openat(dir, fresh.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return -errno;
  r = fd_write_all(fd, text);
  if (r == 0 && (fsync(fd) < 0 || renameat(dir, fresh.data, dir, name) < 0))
    r = -errno;
  if (r < 0)
    (void)unlinkat(dir, fresh.data, 0);
  return r;
}
