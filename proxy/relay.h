/* relay: bytes between two sockets, both ways, until both directions have ended. */
#ifndef SBX_PROXY_RELAY_H
#define SBX_PROXY_RELAY_H

#include "proxy/proxy.h"

struct relay {
  struct proxy *proxy;
  struct sock *client; /* both borrowed */
  struct sock *origin;
  uint64_t up; /* bytes from the client */
  uint64_t down; /* bytes from the origin */
  uint64_t active_ms; /* loop time of the last byte */
  bool cut; /* a socket has failed: end with a reset once what was received is through */
  void (*done)(void *data);
  void *data;
};

/* Takes over the events of two open sockets; may call done at once. done(data) comes once, when both directions have
 * ended or one socket has failed; both sockets are closed by then, with a reset where the stream was cut. */
void relay_start(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                 void (*done)(void *data), void *data);

/* Milliseconds until the relay has been silent for too long; 0 when it has. */
uint64_t relay_time_left(const struct relay *relay);

#endif
