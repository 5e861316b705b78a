/* resolve: names → addresses. The one module that includes c-ares' header.
 *
 * A name is looked up in the host's hosts file, as it was at the start, then by DNS (A and AAAA) with the servers of
 * the host's resolv.conf, as they were at the start: no file is opened later. `localhost` is always the loopback. A
 * name with a dot in it is absolute; one without is searched for in the host's search domains.
 */
#ifndef SBX_PROXY_RESOLVE_H
#define SBX_PROXY_RESOLVE_H

#include "policy/addr.h"
#include "proxy/loop.h"

struct resolve;
struct resolve_query;

/* Told once per query: count is 0 when it failed, cause says then why in a few words. */
struct resolve_answer {
  const struct addr *addrs;
  size_t count; /* at most LIMITS_ADDRESSES */
  const char *cause;
};

/* Reads the host's files and opens what c-ares needs. 0 or -errno. */
int resolve_new(struct loop *loop, struct err *err, struct resolve **ret_resolve);
/* Queries that run must have been cancelled. */
void resolve_free(struct resolve *resolve);

/* Looks a canonical name up. Sets *slot while the query runs and clears it before done(data, answer) is called, which
 * may be from within this call. 0, or -ENOMEM (done is not called then). */
int resolve_start(struct resolve *resolve, const char *name,
                  void (*done)(void *data, const struct resolve_answer *answer), void *data,
                  struct resolve_query **slot);

/* Forgets the query of *slot; done is not called. NULL is fine. */
void resolve_cancel(struct resolve_query **slot);

#endif
