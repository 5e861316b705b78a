/* reach: from an allowed target to a connection: resolve → judge every address → dial what was judged; or through the
 * proxy that the host has to use (network.upstreamProxy).
 *
 * The caller has judged the target itself (decide_target) before.
 */
#ifndef SBX_PROXY_REACH_H
#define SBX_PROXY_REACH_H

#include "proxy/dial.h"
#include "proxy/proxy.h"
#include "proxy/route.h"

struct reach;

#define REACH_CAUSE_BYTES 384

struct reach_result {
  /* allow && REASON_ALLOWED: connected. allow && another reason: the policy lets it pass, the network does not.
   * !allow: an address was denied. */
  struct verdict verdict;
  int fd; /* connected, non-blocking, the receiver's; -1 otherwise */
  struct route route; /* its address: what was dialled, or (denied) led to the denial */
  char cause[REACH_CAUSE_BYTES]; /* of a failure, in a few words; names the parent proxy where that is at fault */
};

/* Starts; ends within LIMITS_REACH_MS. verdict is what decide_target() said; plain: the client asks by an http:// URL.
 * Sets *slot while it runs and clears it before done(data, result) is called, which may be from within this call. */
void reach_start(struct proxy *proxy, const struct host *host, uint16_t port, bool plain, const struct verdict *verdict,
                 void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot);

/* The same for a port of the host's loopback that the policy hands in (network.forward). */
void reach_forward(struct proxy *proxy, uint16_t port, const struct verdict *verdict,
                   void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot);

/* Connects to the parent proxy alone, for requests that name their target themselves (absolute-form). */
void reach_parent(struct proxy *proxy, const struct upstream *upstream, const struct verdict *verdict,
                  void (*done)(void *data, const struct reach_result *result), void *data, struct reach **slot);

/* Gives up; done is not called. NULL is fine. */
void reach_cancel(struct reach **slot);

#endif
