/* upstream: the proxy that the host itself has to use (network.upstreamProxy), and for what. Pure.
 *
 * Two are told apart, as the variables of the host do: one for http:// requests and port 80, one for everything else.
 * Loopback targets, and what NO_PROXY names, go without.
 */
#ifndef SBX_POLICY_UPSTREAM_H
#define SBX_POLICY_UPSTREAM_H

#include "policy/host.h"
#include "policy/limits.h"

#define UPSTREAM_WORD_BYTES 255 /* of a user's name and of a password (RFC 1929) */

enum upstream_kind {
  UPSTREAM_NONE,
  UPSTREAM_HTTP, /* http://: gets names, by CONNECT or in an absolute-form request */
  UPSTREAM_SOCKS5, /* socks5://: gets the address that was judged here (RFC 1928) */
  UPSTREAM_SOCKS5_NAMES, /* socks5h://: gets names */
};

struct upstream {
  enum upstream_kind kind;
  struct host host;
  uint16_t port;
  bool has_login;
  char user[UPSTREAM_WORD_BYTES + 1]; /* decoded; neither empty nor with ':' */
  char password[UPSTREAM_WORD_BYTES + 1];
};

struct upstreams {
  struct upstream http; /* for http:// requests and port 80 */
  struct upstream other;
  char no_proxy[LIMITS_NO_PROXY_BYTES];
};

/* SCHEME://[USER[:PASSWORD]@]HOST:PORT[/], in the schemes above; bare: HOST:PORT alone means http://, as variables have
 * it. USER and PASSWORD are decoded (%XX). 0 or -EINVAL; no message holds a part of the text. */
int upstream_parse(struct span url, bool bare, struct err *err, struct upstream *ret_upstream);

/* The proxy for a connection to a target, or NULL: none. plain: for an http:// request, whatever its port. */
const struct upstream *upstream_find(const struct upstreams *upstreams, const struct host *host, uint16_t port,
                                     bool plain);

/* Whether a NO_PROXY list (commas or spaces) names the target: NAME or .NAME or *.NAME (it and all below it), ADDRESS,
 * CIDR, each with an optional :PORT, or *. What is none of these names nothing. */
bool upstream_is_exempt(struct span no_proxy, const struct host *host, uint16_t port);

/* The URL without user and password, for messages and the audit. */
void upstream_print(const struct upstream *upstream, struct buf *out);

#endif
