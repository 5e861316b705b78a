/* http_fixed: the HTTP machine (http.c) on a connection whose target stands already: a tunnel or a transparent
 * connection that turned out to carry cleartext HTTP, or TLS that is terminated. */
#ifndef SBX_PROXY_HTTP_FIXED_H
#define SBX_PROXY_HTTP_FIXED_H

#include "proxy/conn.h"
#include "proxy/http_head.h"
#include "proxy/http_target.h"
#include "proxy/reach.h"

struct http_fixed {
  struct host host;
  uint16_t port;
  bool tls; /* both ends are TLS; requests are https:// */
  struct host name; /* with tls: what the certificates are for, the target or a name that came along with an address */
  const char *via; /* the front, for the audit */
  struct route route; /* to the origin, where it is connected or was tried */
  struct verdict once; /* where it allows: the user has allowed the target once, for this connection */
  bool refused; /* every request is answered with refusal: denied by the policy, or not to be reached */
  struct verdict refusal;
  char cause[REACH_CAUSE_BYTES]; /* in a few words, or "" */
};

/* Serves the connection from here on: bytes (at most LIMITS_HTTP_HEAD_BYTES) is what the client has sent. Takes *origin
 * over, which is connected by fixed->route; NULL where fixed->refused. May end the connection. */
void http_fixed_start(struct conn *conn, const struct http_fixed *fixed, struct sock *origin, struct span bytes);

/* Finds the target of a request on such a connection. In origin-form it is the fixed one; in absolute-form it must be;
 * Host must name it too, port 80 or the target's own being meant where it names none. A nested CONNECT is refused.
 * Where the target is an address, Host may name a host that the policy allows on this port; in TLS it must be the
 * name that came along.
 * 0; -EACCES when another host is named (REASON_IDENTITY_MISMATCH); -EBADMSG or -EINVAL as http_target.h has it.
 * Pure. */
int http_fixed_check(const struct http_fixed *fixed, const struct policy *policy, const struct http_head *head,
                     struct err *err, struct http_target *ret_target);

#endif
