/* proxy: what the parts of the running proxy share. main.c fills it. */
#ifndef SBX_PROXY_PROXY_H
#define SBX_PROXY_PROXY_H

#include "policy/policy.h"
#include "policy/upstream.h"
#include "proxy/audit.h"
#include "proxy/loop.h"
#include "proxy/resolve.h"
#include "proxy/sock.h"
#include "proxy/splice.h"

struct ask;
struct conn;
struct inside;
struct listener;
struct refused;
struct notify;
struct stub;
struct stub_client;
struct terminator;
struct terminator_data;
struct values;

struct proxy {
  struct loop *loop;
  const struct policy *policy; /* as it is now: an answer of the user replaces it by a wider one */
  struct upstreams upstreams; /* proxies that the host has to use; of kind UPSTREAM_NONE where there are none */
  struct audit *audit;
  int control; /* the socket to sbx */
  struct loop_io *control_io;
  unsigned control_waiters; /* enum notify_waiter */
  struct notify *notify; /* tells sbx of denials */
  struct resolve *resolve;
  struct ask *ask; /* asks the user */
  struct budget budget; /* bytes held for all connections */
  struct splice splice; /* for long streams of all connections */
  struct listener *listeners;
  struct refused *refused; /* hears of what the kernel refuses */
  size_t listener_max; /* that the proxy may ask for */
  struct inside *inside; /* makes more listeners */
  const struct terminator *terminator; /* terminates TLS; NULL: nothing does */
  struct terminator_data *terminator_data;
  struct values *values; /* of credentials; NULL: the policy has none */
  struct stub *stub;
  struct stub_client *stub_clients; /* of the stub over TCP */
  size_t stub_client_count;
  struct conn *conns; /* open client connections */
  size_t conn_count;
  size_t reach_count; /* connections that are being made */
  size_t reach_max;
  size_t conn_max; /* from here on a client is answered 503 */
  char scratch[LIMITS_RELAY_BYTES]; /* for one read; its contents last until the next call of anything */
};

#endif
