/* tunnel: bytes between a client and the origin that it was allowed, once both are connected (see tunnel.c). */
#ifndef SBX_PROXY_TUNNEL_H
#define SBX_PROXY_TUNNEL_H

#include "proxy/conn.h"
#include "proxy/route.h"

struct tunnel_start {
  const char *via; /* the front, for the audit */
  const char *method; /* CONNECT of the HTTP front, else NULL */
  struct host host; /* the target */
  uint16_t port;
  struct verdict verdict;
  struct route route; /* how it was reached */
  int fd; /* connected to it */
  struct span first; /* what the client has sent through the tunnel already */
  uint64_t begun_ns;
  bool has_addr; /* the target is `localhost`, and the client has connected to this address for it */
  struct addr addr;
  bool blind; /* the bytes need not name the target: a port of the host's loopback that the user has handed in */
};

/* Serves the connection from here on; takes start->fd over. May end the connection. */
void tunnel_start(struct conn *conn, const struct tunnel_start *start);

#endif
