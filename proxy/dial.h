/* dial: connects to the first of some judged addresses that answers (RFC 8305, in its simple form).
 *
 * The addresses are tried in their order, the next one as soon as one fails or has not answered within 250 ms. The
 * first connection wins and the others are closed.
 */
#ifndef SBX_PROXY_DIAL_H
#define SBX_PROXY_DIAL_H

#include "policy/decide.h"
#include "proxy/gate.h"
#include "proxy/loop.h"

struct dial;

struct dial_result {
  int fd; /* the connected, non-blocking socket, the receiver's; -1 when every address failed */
  struct addr addr; /* what it is connected to */
  enum reason reason; /* REASON_ALLOWED, or the most telling failure */
  int error; /* positive errno of that failure */
};

/* Starts. Sets *slot while it runs and clears it before done(data, result) is called, which may be from within this
 * call. 0, or -ENOMEM (done is not called then). */
int dial_start(struct loop *loop, const struct gate_addrs *addrs, uint16_t port,
               void (*done)(void *data, const struct dial_result *result), void *data, struct dial **slot);

/* The same with sockets that were made elsewhere, one of the right family for each address, unconnected and
 * non-blocking: fds, which it takes over, also on failure. */
int dial_start_on(struct loop *loop, const struct gate_addrs *addrs, uint16_t port, const int *fds,
                  void (*done)(void *data, const struct dial_result *result), void *data, struct dial **slot);

/* Gives up; done is not called. NULL is fine. */
void dial_cancel(struct dial **slot);

#endif
