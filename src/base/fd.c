#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void fd_close(int *fd)
{
  int saved = errno;

  if (*fd >= 0)
    close(*fd);
  *fd = -1;
  errno = saved;
}

int fd_steal(int *fd)
{
  int value = *fd;

  *fd = -1;
  return value;
}

int fd_write_all(int fd, struct span bytes)
{
  while (bytes.len) {
    ssize_t n = write(fd, bytes.ptr, bytes.len);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    bytes = span_sub(bytes, (size_t)n, bytes.len);
  }
  return 0;
}

int fd_read_all(int fd, struct buf *buf)
{
  char block[4096];

  for (;;) {
    ssize_t n = read(fd, block, sizeof block);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    if (n == 0)
      return buf_error(buf);
    buf_append(buf, (struct span){ .ptr = block, .len = (size_t)n });
    if (buf_error(buf))
      return buf_error(buf);
  }
}

int fd_read_file(int dirfd, const char *path, struct buf *buf)
{
  fd_autoclose int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

  if (fd < 0)
    return -errno;
  return fd_read_all(fd, buf);
}

int fd_set_nonblock(int fd, bool on)
{
  int flags = fcntl(fd, F_GETFL);

  if (flags < 0)
    return -errno;
  flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
  return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}
