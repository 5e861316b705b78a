/* route: how an origin was reached, or tried, for the audit. */
#ifndef SBX_PROXY_ROUTE_H
#define SBX_PROXY_ROUTE_H

#include "policy/upstream.h"

struct route {
  const struct upstream *upstream; /* through this parent proxy; NULL: directly. Borrowed from the proxy */
  bool has_addr;
  struct addr addr; /* the origin's, as far as it was resolved here */
};

#endif
