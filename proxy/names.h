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

/* NULL when memory is short. */
struct names *names_new(void);
void names_free(struct names *names);

/* The addresses of a canonical name, given now where it has none yet. *ret_fresh tells that.
 * 0; -ENOSPC past LIMITS_NAMES; or -ENOMEM. */
int names_get(struct names *names, const char *name, bool *ret_fresh, struct names_pair *ret_pair);

/* The name that a synthetic address stands for; NULL for any other address. Borrowed until names_free(). */
const char *names_find(const struct names *names, const struct addr *addr);

#endif
