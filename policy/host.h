/* host: DNS names and host[:port] targets in one canonical form.
 *
 * Canonical: lower case, no trailing dot, A-labels (RFC 5891; a name with bytes above 0x7f is refused with the advice
 * to write it as xn--), letters, digits, hyphen and underscore, labels of 1..63 and names of at most 253 bytes, last
 * label not all digits and not 0x-hexadecimal. Control bytes, '%', NUL, spaces, schemes and paths are refused (F53).
 */
#ifndef SBX_POLICY_HOST_H
#define SBX_POLICY_HOST_H

#include "base/err.h"
#include "policy/addr.h"

#define HOST_NAME_MAX_BYTES 253

enum host_kind {
  HOST_NAME,
  HOST_ADDR,
};

struct host {
  enum host_kind kind;
  char name[HOST_NAME_MAX_BYTES + 1]; /* HOST_NAME: canonical; HOST_ADDR: canonical text without brackets */
  struct addr addr; /* HOST_ADDR only */
};

/* A name or an address, IPv6 with or without brackets. 0 or -EINVAL with a reason in err. */
int host_parse(struct span text, struct err *err, struct host *ret_host);

/* The target that an address is. */
void host_of_addr(const struct addr *addr, struct host *ret_host);

/* HOST or HOST:PORT, IPv6 only in brackets when a port follows. *ret_port is default_port when none is given; with
 * default_port 0 a port is required. Port 0, signs and trailing bytes are refused ("443x"). 0 or -EINVAL. */
int host_parse_target(struct span text, uint16_t default_port, struct err *err, struct host *ret_host,
                      uint16_t *ret_port);

/* HOST:PORT with brackets round an IPv6 address. */
void host_print_target(const struct host *host, uint16_t port, struct buf *out);

/* Whether name is a strict subdomain of parent (both canonical): one label or more in front of ".parent". */
bool host_is_subdomain(struct span name, struct span parent);

#endif
