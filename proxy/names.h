/* names: the synthetic addresses of a run: one per name that the stub has answered for, never reused.
 *
 * IPv4 from 198.18.0.0/15 (RFC 2544), IPv6 from 2001:2::/48 (RFC 5180); both ranges are for benchmarks and never
 * routed, and a name has the same number in both.
 */
#ifndef SBX_PROXY_NAMES_H
#define SBX_PROXY_NAMES_H

#include "policy/host.h"

#include <stdbool.h>

struct names;

struct names_pair {
  struct addr v4;
  struct addr v6;
};

/* generation: how many proxies there were before in this run. Each has numbers of its own, so that an address that one
 * of them gave never stands for another name: the first LIMITS_NAMES, the others LIMITS_NAMES_LATER. NULL when memory
 * is short. */
struct names *names_new(unsigned generation);
void names_free(struct names *names);

/* The addresses of a canonical name, given now where it has none yet. *ret_fresh tells that.
 * 0; -ENOSPC when all are given; or -ENOMEM. */
int names_get(struct names *names, const char *name, bool *ret_fresh, struct names_pair *ret_pair);

/* Whether the address is one of those that are given to names, in whatever run or generation. */
bool names_is_synthetic(const struct addr *addr);

/* The name that a synthetic address stands for; NULL for any other address. Borrowed until names_free(). */
const char *names_find(const struct names *names, const struct addr *addr);

#endif
