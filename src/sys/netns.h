/* netns: sockets made in another process's network namespace. */
#ifndef SBX_SYS_NETNS_H
#define SBX_SYS_NETNS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct netns_listener {
  uint16_t port;
  int fd; /* set on success: a listening, non-blocking, close-on-exec socket, the caller's */
};

/* Makes TCP listeners on every address (IPv6 and IPv4) in the network namespace of pid, which must be owned by a user
 * namespace in which we have capabilities (one made by our own user). setns(2), user_namespaces(7), ioctl_ns(2).
 * 0; or -errno with nothing left open. */
int netns_listen(pid_t pid, struct netns_listener *listeners, size_t count, struct err *err);

#endif
