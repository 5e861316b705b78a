/* netns: sockets and routes made in another process's network namespace. */
#ifndef SBX_SYS_NETNS_H
#define SBX_SYS_NETNS_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A network namespace, held open with the user namespace that owns it. */
struct netns {
  int userns;
  int net;
};

#define NETNS_INIT { .userns = -1, .net = -1 }

#define NETNS_REFUSAL_BYTES 64

struct netns_socket {
  int type; /* SOCK_STREAM: listens; SOCK_DGRAM: tells the address each datagram was sent to (IP_PKTINFO) */
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6; /* only IPv6, unless both */
  } address;
  /* Neither of these two: hears which TCP connections the kernel there has refused to other addresses than the
   * loopback's, as the first NETNS_REFUSAL_BYTES of each reset, from its IP header on; but from its TCP header on where
   * recvfrom(2) tells an address of AF_INET6, which it is from. Only the family counts. Left out (fd -1) where it
   * cannot be had. */
  bool refusals;
  bool unbound; /* of SOCK_STREAM: does not listen and has no address; for connect(2). Only the family counts */
  bool both; /* an IPv6 wildcard that takes IPv4 as well; IPv4 alone where the kernel has no IPv6 */
  bool optional; /* left out (fd -1) where the namespace has no such address family or address */
  int fd; /* set on success: non-blocking, close-on-exec, the caller's */
};

/* Opens the network namespace of pid. It must be owned by a user namespace in which we have capabilities: one made by
 * our own user. 0 or -errno. ioctl_ns(2). */
int netns_open(pid_t pid, struct err *err, struct netns *ret_netns);
void netns_close(struct netns *netns);

/* Makes the sockets there. 0; or -errno with none left open. */
int netns_make(const struct netns *netns, struct netns_socket *sockets, size_t count, struct err *err);

/* The same once every address of the namespace has been made local to it: whatever a program inside connects to is
 * accepted by a listener on that port, or refused at once. Waits until `lo` is up, which whoever made the namespace
 * does; gives up when alive_fd (a pipe that they hold) reports its end. ret_v6 tells whether IPv6 has such a route as
 * well. 0; or -errno with no socket left open. */
int netns_set_up(const struct netns *netns, int alive_fd, struct netns_socket *sockets, size_t count, struct err *err,
                 bool *ret_v6);

#endif
