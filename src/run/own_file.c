#include "run/own_file.h"

#include "base/fd.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
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
