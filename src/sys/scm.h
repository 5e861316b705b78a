/* scm: bytes and descriptors over a Unix socket (SCM_RIGHTS, unix(7)). */
#ifndef SBX_SYS_SCM_H
#define SBX_SYS_SCM_H

#include "base/span.h"

#include <stddef.h>
#include <sys/types.h>

/* Most descriptors in one message. */
#define SCM_FDS_MAX 64

/* Sends one message with count descriptors (0..SCM_FDS_MAX); the descriptors stay the caller's. bytes must not be
 * empty. 0 or -errno. Restarts on EINTR; -EAGAIN on a non-blocking socket that is full. */
int scm_send(int socket, struct span bytes, const int *fds, size_t count);

/* Receives one message. Received descriptors are close-on-exec and the caller's; when more than *count come, or the
 * message was cut, all are closed and -EMSGSIZE is returned.
 * count    in: room in fds; out: how many came
 * Returns the number of bytes, 0 at end of file, or -errno. */
ssize_t scm_recv(int socket, void *bytes, size_t size, int *fds, size_t *count);

#endif
