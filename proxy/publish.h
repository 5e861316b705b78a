/* publish: a connection from the host to a port of the sandbox's loopback (network.publish); see publish.c. */
#ifndef SBX_PROXY_PUBLISH_H
#define SBX_PROXY_PUBLISH_H

#include "proxy/conn.h"

/* Serves the connection from here on. May end it. */
void publish_start(struct conn *conn);

#endif
