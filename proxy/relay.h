/* relay: bytes between two sockets, both ways, until both directions have ended. */
#ifndef SBX_PROXY_RELAY_H
#define SBX_PROXY_RELAY_H

#include "proxy/proxy.h"

enum relay_look {
  RELAY_MORE, /* hold what has come, and ask again when there is more */
  RELAY_TRICKLE, /* send on what has come, and ask again when there is more */
  RELAY_PASS, /* send it on, and do not ask again */
  RELAY_GONE, /* the relay has been cleared and its ends taken by another: it must not be touched any more */
};

struct relay {
  struct proxy *proxy;
  struct sock *client; /* both borrowed */
  struct sock *origin;
  uint64_t up; /* bytes from the client */
  uint64_t down; /* bytes from the origin */
  uint64_t active_ms; /* loop time of the last byte */
  bool cut; /* a socket has failed: end with a reset once what was received is through */
  struct buf held; /* what the client has sent, while look() has not let it pass */
  size_t passed; /* bytes of it that have gone on all the same */
  enum relay_look (*look)(void *data, struct span held, bool end);
  enum relay_look (*hear)(void *data, struct span bytes);
  void (*done)(void *data);
  void *data;
};

/* Takes over the events of two open sockets; may call done at once. done(data) comes once, when both directions have
 * ended or one socket has failed; both sockets are closed by then, with a reset where the stream was cut. */
void relay_start(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                 void (*done)(void *data), void *data);

/* The same, but nothing of the client goes on to the origin before look(data, bytes, end) lets it pass. bytes is all
 * that the client has sent, beginning with first; end: it will send no more, and the answer must not be RELAY_MORE.
 * What the origin sends flows meanwhile; each piece goes through hear(data, bytes) first, while the answer is
 * RELAY_MORE. hear may be NULL. */
void relay_start_held(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                      struct span first, enum relay_look (*look)(void *data, struct span held, bool end),
                      enum relay_look (*hear)(void *data, struct span bytes), void (*done)(void *data), void *data);

/* Sends on what is held, and what comes from now on at once; look is asked on all the same, and can still cut it
 * off. */
void relay_trickle(struct relay *relay);

/* Frees what is held. To be called before a relay with look() goes. */
void relay_clear(struct relay *relay);

/* Milliseconds until the relay has been silent for too long; 0 when it has. */
uint64_t relay_time_left(const struct relay *relay);

#endif
