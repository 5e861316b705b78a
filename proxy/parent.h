/* parent: asks a parent proxy, once connected to it, for a connection to a target; see parent.c. */
#ifndef SBX_PROXY_PARENT_H
#define SBX_PROXY_PARENT_H

#include "policy/decide.h"
#include "policy/upstream.h"
#include "proxy/loop.h"

struct parent;

struct parent_result {
  int fd; /* connected to the target through the parent, the receiver's; -1 when that failed */
  enum reason reason; /* REASON_ALLOWED, or why not */
  char cause[64]; /* in a few words, or "" */
};

/* Starts on fd, connected to the parent and non-blocking, which it takes over, also on failure. upstream must outlive
 * it. Sets *slot while it runs and clears it before done(data, result) is called, not from within this call. 0 or
 * -ENOMEM. */
int parent_start(struct loop *loop, const struct upstream *upstream, const struct host *host, uint16_t port, int fd,
                 void (*done)(void *data, const struct parent_result *result), void *data, struct parent **slot);

/* Gives up; done is not called. NULL is fine. */
void parent_cancel(struct parent **slot);

#endif
