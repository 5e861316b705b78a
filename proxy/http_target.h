/* http_target: the target in a proxy's request line (RFC 9112, section 3.2): absolute-form and authority-form. Pure. */
#ifndef SBX_PROXY_HTTP_TARGET_H
#define SBX_PROXY_HTTP_TARGET_H

#include "policy/host.h"

struct http_target {
  bool tls; /* https:// */
  struct host host;
  uint16_t port;
  struct span path; /* absolute-form: path and query as written; empty, or beginning with '/' or '?' */
};

/* The host[:port] part of an absolute or authority form, for messages about a target that does not parse. */
struct span http_target_authority(struct span target);

/* http://HOST[:PORT][PATH][?QUERY] without user information or fragment; https:// with tls. 0; -EBADMSG where the form
 * is another one; -EINVAL where the host or port is not well formed; the cause in err. */
int http_target_parse_absolute(struct span target, bool tls, struct err *err, struct http_target *ret_target);

/* HOST:PORT, of CONNECT. 0 or -EINVAL. */
int http_target_parse_authority(struct span target, struct err *err, struct http_target *ret_target);

/* The port that a URL without one means: 80 or 443. */
uint16_t http_target_default_port(bool tls);

/* The path without its query, as the audit has it. */
struct span http_target_path(const struct http_target *target);

#endif
