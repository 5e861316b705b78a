#include "run/audit_file.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_append(const char *path)
{
  /* Not blocking: a fifo that a command put there would hold us for ever. */
  return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
}

static int rotate(const char *path)
{
  mem_autofree char *old = NULL;

  if (asprintf(&old, "%s.1", path) < 0) {
    old = NULL;
    return -ENOMEM;
  }
  return rename(path, old) < 0 ? -errno : 0;
}

static int open_rotated(const char *path, struct err *err)
{
  fd_autoclose int fd = open_append(path);
  struct stat stat;

  if (fd < 0 || fstat(fd, &stat) < 0)
    return err_set_errno(err, errno, "audit %s", path);
  if (!S_ISREG(stat.st_mode) && !S_ISCHR(stat.st_mode))
    return err_set(err, EINVAL, "audit %s: is neither a file nor a device", path);
  if (!S_ISREG(stat.st_mode) || stat.st_size <= LIMITS_AUDIT_BYTES - LIMITS_AUDIT_RUN_BYTES)
    return fd_steal(&fd);
  if (rotate(path) < 0)
    return err_set_errno(err, errno, "audit %s: rotate", path);
  fd_close(&fd);
  fd = open_append(path);
  return fd < 0 ? err_set_errno(err, errno, "audit %s", path) : fd_steal(&fd);
}

int audit_file_open(const struct run_request *request, struct err *err)
{
  mem_autofree char *path = NULL;
  int fd;

  if (request->audit_fd >= 0) {
    fd = fcntl(request->audit_fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? err_set_errno(err, errno, "audit descriptor %d", request->audit_fd) : fd;
  }
  if (request->policy->audit_file) {
    path = facts_expand(request->facts, request->policy->audit_file);
  } else {
    int r = path_make_all(request->facts->state_dir, err);

    if (r < 0)
      return err_wrap(err, "audit");
    path = path_join(request->facts->state_dir, "audit.jsonl");
  }
  return path ? open_rotated(path, err) : err_set(err, ENOMEM, "out of memory");
}

bool audit_is_named(const struct run_request *request)
{
  return request->audit_fd >= 0 || request->policy->audit_file;
}
