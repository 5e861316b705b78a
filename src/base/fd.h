/* fd: file descriptors: owned by scopes, close-on-exec from birth, whole reads and writes. */
#ifndef SBX_BASE_FD_H
#define SBX_BASE_FD_H

#include "base/buf.h"

#include <stdbool.h>

/* Closes *fd unless it is negative, sets it to -1 and keeps errno. */
void fd_close(int *fd);
#define fd_autoclose MEM_CLEANUP(fd_close)

/* Hands the descriptor out of a scope that would close it. */
int fd_steal(int *fd);

/* Writes all bytes, over short writes and EINTR. 0 or -errno. */
int fd_write_all(int fd, struct span bytes);

/* Appends everything up to end of file to buf. 0, -errno, or buf's error (-E2BIG where the ceiling is passed). */
int fd_read_all(int fd, struct buf *buf);

/* Opens path below dirfd (AT_FDCWD allowed) and reads it whole into buf. 0 or -errno. For small files in /proc,
 * /etc. */
int fd_read_file(int dirfd, const char *path, struct buf *buf);

/* Sets or clears O_NONBLOCK; sets or clears FD_CLOEXEC. 0 or -errno. */
int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);

#endif
