/* addr: IP addresses and prefixes as values, and what kind of place an address is.
 *
 * One textual form is accepted: dotted decimal with four parts and no leading zeros (RFC 6943, section 3.1.1, strict
 * form), and RFC 4291 text for IPv6 without a zone. Decimal, octal and hexadecimal IPv4 forms are not addresses; and
 * since no DNS name may end in an all-numeric label, host.h refuses them as names too (F52).
 */
#ifndef SBX_POLICY_ADDR_H
#define SBX_POLICY_ADDR_H

#include "base/buf.h"
#include "base/span.h"

#include <stdint.h>

enum addr_family {
  ADDR_V4,
  ADDR_V6,
};

struct addr {
  enum addr_family family;
  uint8_t bytes[16]; /* network order; IPv4 uses the first four, the rest are zero */
};

struct addr_prefix {
  struct addr addr; /* bits past length are zero */
  unsigned length; /* 0..32 or 0..128 */
};

/* Where an address leads, in the order in which decide.h looks. Documentation ranges count as public. */
enum addr_class {
  ADDR_PUBLIC,
  ADDR_LOOPBACK, /* 127/8, ::1 */
  ADDR_UNSPECIFIED, /* 0/8, :: */
  ADDR_PRIVATE, /* RFC 1918, 192.0.0/24, 198.18/15, 240/4, fc00::/7 (ULA), fec0::/10, local NAT64, discard, Teredo */
  ADDR_CGNAT, /* 100.64/10 */
  ADDR_LINK_LOCAL, /* 169.254/16, fe80::/10 */
  ADDR_METADATA, /* 169.254.169.254, 169.254.170.2, 100.100.100.200, fd00:ec2::254 and their like */
  ADDR_MULTICAST, /* 224/4, ff00::/8, and the IPv4 broadcast address */
};

/* Parses a whole span (IPv6 without brackets). 0 or -EINVAL. */
int addr_parse(struct span text, struct addr *ret_addr);

/* ADDR or ADDR/LENGTH; bits past the length must be zero. 0 or -EINVAL. */
int addr_prefix_parse(struct span text, struct addr_prefix *ret_prefix);

/* addr with the bits past length set to zero. */
struct addr addr_mask(const struct addr *addr, unsigned length);

/* Canonical text (RFC 5952); a prefix of a single address without its length. */
void addr_print(const struct addr *addr, struct buf *out);
void addr_prefix_print(const struct addr_prefix *prefix, struct buf *out);

bool addr_equal(const struct addr *a, const struct addr *b);
bool addr_in_prefix(const struct addr *addr, const struct addr_prefix *prefix);
bool addr_prefix_is_single(const struct addr_prefix *prefix);

/* The IPv4 address that an IPv6 address carries inside: v4-mapped, v4-compatible, NAT64 (64:ff9b::/96 and
 * 64:ff9b:1::/48), v4-translated, 6to4. Any other address is returned as it is. Rules and classes are judged on the
 * result as well. */
struct addr addr_unwrap(const struct addr *addr);

/* The same of a v4-mapped address alone: that is the IPv4 address itself, as another socket has it. Every other form
 * leads to a router that may do with it what it likes. */
struct addr addr_unmap(const struct addr *addr);

/* The class of addr as it stands, whatever it carries inside. */
enum addr_class addr_class_outer(const struct addr *addr);

/* The class of addr_unwrap(addr); where that is public, the class of addr itself. */
enum addr_class addr_classify(const struct addr *addr);

#endif
