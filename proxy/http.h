/* http: the HTTP front: absolute-form requests, judged one by one, and CONNECT (see http.c for how it works). */
#ifndef SBX_PROXY_HTTP_H
#define SBX_PROXY_HTTP_H

#include "base/span.h"

struct conn;
struct http;

/* Makes the front of a connection whose first bytes were first (at most LIMITS_HTTP_HEAD_BYTES), and goes on from
 * there. With a refusal, the client is only told so (400). May end the connection. */
void http_start(struct conn *conn, struct span first, const char *refusal);

#endif
