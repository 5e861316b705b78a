#include "sys/replace.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BESIDE_BYTES 32

int replace_check(int dir, const char *name, struct err *err)
{
  struct stat stat;

  if (fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? 0 : err_set_errno(err, errno, "cannot be looked at");
  if (S_ISLNK(stat.st_mode))
    return err_set(err, ELOOP, "is a symbolic link, which is not written through");
  if (!S_ISREG(stat.st_mode))
    return err_set(err, EINVAL, "is no regular file");
  return 0;
}

static int write_beside(int dir, const char *beside, const struct stat *old, mode_t mode, struct span text)
{
  fd_autoclose int fd = openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  int r;

  if (fd < 0)
    return -errno;
  r = fd_write_all(fd, text);
  if (r == 0 && old && fchmod(fd, old->st_mode & 07777) < 0)
    r = -errno;
  return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int replace_file(int dir, const char *name, mode_t mode, struct span text)
{
  char beside[BESIDE_BYTES];
  uint64_t noise = 0;
  struct stat old;
  bool there = fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode);
  int r;

  if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) < 0)
    noise = clock_mono_ns();
  snprintf(beside, sizeof beside, ".sbx-%016" PRIx64, noise);
  r = write_beside(dir, beside, there ? &old : NULL, mode, text);
  if (r == 0 && renameat(dir, beside, dir, name) < 0)
    r = -errno;
  if (r < 0 && r != -EEXIST)
    (void)unlinkat(dir, beside, 0);
  return r;
}
