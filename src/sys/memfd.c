#include "sys/memfd.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int memfd_empty(const char *name)
{
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

  return fd < 0 ? -errno : fd;
}

int memfd_fill(int fd, struct span bytes)
{
  int r = fd_write_all(fd, bytes);

  if (r < 0)
    return r;
  if (lseek(fd, 0, SEEK_SET) < 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    return -errno;
  return 0;
}

int memfd_sealed(const char *name, struct span bytes)
{
  fd_autoclose int fd = memfd_empty(name);
  int r = fd < 0 ? fd : memfd_fill(fd, bytes);

  return r < 0 ? r : fd_steal(&fd);
}
