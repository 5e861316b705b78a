/* tell: what every front but HTTP says about a connection: a line in the audit and, of a denial or failure, the
 * summary's. */
#ifndef SBX_PROXY_TELL_H
#define SBX_PROXY_TELL_H

#include "proxy/proxy.h"
#include "proxy/route.h"

struct tell {
  const char *event; /* as audit.h has it */
  const char *via;
  const char *method; /* of the request that asked for it, or NULL */
  struct verdict verdict;
  const struct host *host; /* NULL when the client named none that parses */
  uint16_t port; /* 0 when unknown */
  const struct route *route; /* or NULL: none was tried */
  const char *cause; /* of a failure, in a few words, or NULL */
  uint64_t up;
  uint64_t down;
  uint64_t begun_ns;
  bool quiet; /* not for the summary */
};

void tell(struct proxy *proxy, const struct tell *what);

/* The TLS alert access_denied (RFC 8446, section 6): fatal, in a record that every version reads. */
struct span tell_alert(void);

#endif
