/* refused: connections that the kernel inside has refused, since nothing listens on their port: told as every denial is
 * (P10). The client has its answer already, ECONNREFUSED (P2). */
#ifndef SBX_PROXY_REFUSED_H
#define SBX_PROXY_REFUSED_H

#include "proxy/proxy.h"

/* What one reset is about: where the client wanted to go. */
struct refused_target {
  struct addr addr;
  uint16_t port;
};

/* Reads the beginning of a reset as netns.h gives it; from: who it is from, where it comes without its IP header, else
 * NULL. False where it is none that answers a connection. Pure. */
bool refused_parse(struct span packet, const struct addr *from, struct refused_target *ret_target);

/* Listens to a socket of `struct netns_socket` with refusals, which it takes over, also on failure. 0 or -errno. */
int refused_new(struct proxy *proxy, int fd, struct err *err);
void refused_free_all(struct proxy *proxy);

/* Tells what has come up to now. */
void refused_drain(struct proxy *proxy);

#endif
