/* socks: the SOCKS 5 front (RFC 1928; socks5.h has the messages). */
#ifndef SBX_PROXY_SOCKS_H
#define SBX_PROXY_SOCKS_H

struct conn;

/* Serves a new connection of CONTROL_FRONT_SOCKS5. May end the connection. */
void socks_start(struct conn *conn);

#endif
