/* conn: one client connection, from accept to close. */
#ifndef SBX_PROXY_CONN_H
#define SBX_PROXY_CONN_H

#include "proxy/proxy.h"
#include "sys/control.h"

/* What serves a connection: http.h, socks.h, direct.h or tunnel.h. A connection has one at a time. */
struct conn_server {
  void (*expired)(void *data); /* the connection's timer; may end the connection */
  void (*free)(void *data); /* writes what it owes the audit, and frees it */
};

struct conn {
  struct conn *prev;
  struct conn *next;
  struct proxy *proxy;
  enum control_front front;
  uint16_t port; /* CONTROL_FRONT_FORWARD: of the host's loopback; CONTROL_FRONT_PUBLISH: of the sandbox's */
  struct sock client;
  struct loop_timer *timer; /* the deadline of whatever the connection waits for */
  bool over; /* accepted past proxy->conn_max, only to be told so */
  bool lingering;
  const struct conn_server *server; /* NULL: none yet, or none any more */
  void *data; /* of the server */
};

/* Takes over an accepted, non-blocking socket; closes it where memory is short. */
void conn_new(struct proxy *proxy, enum control_front front, uint16_t port, int fd);

/* The connection is served by another from now on; the one before has freed itself. NULL: by none. */
void conn_serve(struct conn *conn, const struct conn_server *server, void *data);

/* A last answer has been sent, and there is no server any more: ends our direction, throws away for a short while what
 * the client still sends, then ends the connection. Closing with unread bytes would make the kernel send RST, which can
 * overtake the answer. */
void conn_linger(struct conn *conn);

/* Closes and frees the connection and its server; what it owes the audit is written. */
void conn_end(struct conn *conn);

/* The same, with a reset: the client does not take it for an orderly end. */
void conn_reset(struct conn *conn);

/* The same for all connections, at the end of the run. */
void conn_end_all(struct proxy *proxy);

#endif
