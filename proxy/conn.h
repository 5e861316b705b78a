/* conn: one client connection, from accept to close. */
#ifndef SBX_PROXY_CONN_H
#define SBX_PROXY_CONN_H

#include "proxy/proxy.h"

struct http;

struct conn {
  struct conn *prev;
  struct conn *next;
  struct proxy *proxy;
  struct sock client;
  struct loop_timer *timer; /* the deadline of whatever the connection waits for */
  bool over; /* accepted past proxy->conn_max, only to be told so */
  struct http *http; /* the front, once the first bytes have told which */
};

/* Takes over an accepted, non-blocking socket; closes it where memory is short. */
void conn_new(struct proxy *proxy, int fd);

/* Closes and frees the connection and its front; what it owes the audit is written. */
void conn_end(struct conn *conn);

/* The same for all connections, at the end of the run. */
void conn_end_all(struct proxy *proxy);

#endif
