/* terminator: the seam between sbx-proxy and sbx-proxy-tls, which is the same program with what terminates TLS
 * (terminate.c). A run without credentials has nothing to terminate, and does not load OpenSSL. */
#ifndef SBX_PROXY_TERMINATOR_H
#define SBX_PROXY_TERMINATOR_H

#include "proxy/conn.h"
#include "proxy/http_fixed.h"
#include "proxy/sigv4.h"

struct terminator_data;

struct terminator_start {
  struct http_fixed fixed; /* what the HTTP machine gets; tls and name are set */
  const char *method; /* CONNECT of the HTTP front, else NULL */
  struct verdict verdict;
  uint64_t begun_ns;
};

struct terminator {
  /* Reads every file that is needed, and makes the CA of the run. 0 or -errno. */
  int (*open)(const struct policy *policy, struct err *err, struct terminator_data **ret_data);
  void (*close)(struct terminator_data *data);

  /* Takes in what was read, which takes some 20 ms: to be called when sbx knows already that the proxy is ready. */
  void (*warm)(struct terminator_data *data);

  /* The certificate of the CA, in PEM; borrowed. */
  struct span (*certificate)(const struct terminator_data *data);

  /* Serves the connection from here on. *origin is connected and has said nothing; it is taken over. hello is the whole
   * ClientHello of the client with what it has sent after it. May end the connection. */
  void (*start)(struct conn *conn, const struct terminator_start *start, struct sock *origin, struct span hello);

  /* TLS to an origin that was dialled anew, as tls_client() and tls_shake() have it. */
  int (*secure)(struct terminator_data *data, struct sock *origin, const struct host *name);
  int (*shake)(struct sock *origin, struct err *err);

  /* What signatures are made with. */
  const struct sigv4_crypto *(*crypto)(void);
};

/* What the program was linked with; NULL in sbx-proxy. */
const struct terminator *terminator_get(void);

#endif
