/* h2: HTTP/2 (RFC 9113) with a client and with an origin, both over TLS that is terminated (terminate.c). */
#ifndef SBX_PROXY_H2_H
#define SBX_PROXY_H2_H

#include "proxy/conn.h"
#include "proxy/http_fixed.h"

/* Serves the connection from here on. Both ends have chosen HTTP/2 and sent nothing yet. Takes *origin over, which is
 * connected by fixed->route; NULL where fixed->refused. May end the connection. */
void h2_start(struct conn *conn, const struct http_fixed *fixed, struct sock *origin);

#endif
