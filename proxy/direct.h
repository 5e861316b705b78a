/* direct: connections that were not made to the proxy: the transparent front and forwarded ports (see direct.c). */
#ifndef SBX_PROXY_DIRECT_H
#define SBX_PROXY_DIRECT_H

struct conn;

/* Serves a new connection of CONTROL_FRONT_TRANSPARENT or CONTROL_FRONT_FORWARD. May end the connection. */
void direct_start(struct conn *conn);

#endif
