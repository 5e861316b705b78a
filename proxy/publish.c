/* Theory of operation
 *
 * Here the client is a program of the host, and the server one of the sandbox: the other way round than at all other
 * fronts. The listener stands on the host's loopback and was made by sbx. A socket that reaches the sandbox's loopback
 * must be made in its network namespace, which the proxy cannot enter: sbx makes one of each family on request
 * (inside.h), for this connection alone, and the proxy connects them.
 *
 *   accept ──> ask sbx for sockets ──> 127.0.0.1, else ::1 ── connected ──> tunnel, blind
 *                       │                        │ refused
 *                       └── none, or too late ───┴──> reset: as near to "refused" as an accepted connection can come
 *
 * Nothing of the client is read before both ends stand. The server may start long after the run, and listen on
 * 127.0.0.1, ::1 or every address. There is nothing to judge: the user has published the port.
 *
 * No way out: the sockets that are connected here belong to the sandbox's namespace, where every address is the
 * sandbox's own, and the connection at the host's end was made by the host. What the server answers goes to who has
 * asked.
 */
#include "proxy/publish.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/dial.h"
#include "proxy/inside.h"
#include "proxy/tell.h"
#include "proxy/tunnel.h"

#include <stdlib.h>

struct publish {
  struct conn *conn;
  struct host host; /* the sandbox's loopback */
  struct verdict verdict;
  uint64_t begun_ns;
  struct dial *dial;
  bool told;
};

static void record(struct publish *publish)
{
  if (!publish->told)
    tell(publish->conn->proxy, &(struct tell){ .event = "connect",
                                               .via = "publish",
                                               .verdict = publish->verdict,
                                               .host = &publish->host,
                                               .port = publish->conn->port,
                                               .begun_ns = publish->begun_ns,
                                               .quiet = true });
  publish->told = true;
}

static void publish_free(void *data)
{
  struct publish *publish = data;

  record(publish);
  inside_forget(publish->conn->proxy->inside, publish);
  dial_cancel(&publish->dial);
  free(publish);
}

static void fail(struct publish *publish, enum reason reason)
{
  publish->verdict.reason = reason;
  conn_reset(publish->conn);
}

static void on_dialled(void *data, const struct dial_result *result)
{
  struct publish *publish = data;
  struct conn *conn = publish->conn;
  struct tunnel_start start = { .via = "publish",
                                .host = publish->host,
                                .port = conn->port,
                                .verdict = publish->verdict,
                                .route = { .has_addr = true, .addr = result->addr },
                                .fd = result->fd,
                                .begun_ns = publish->begun_ns,
                                .blind = true };

  if (result->fd < 0) {
    fail(publish, result->reason);
    return;
  }
  publish->told = true; /* by the tunnel */
  conn_serve(conn, NULL, NULL);
  publish_free(publish);
  tunnel_start(conn, &start);
}

static void on_sockets(void *data, int *fds, size_t count)
{
  static const struct gate_addrs loopback = { .items = { { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } },
                                                         { .family = ADDR_V6, .bytes = { [15] = 1 } } } };
  struct publish *publish = data;
  struct gate_addrs addrs = loopback;

  addrs.count = count;
  if (count == 0)
    fail(publish, REASON_CONNECT_FAILED);
  else if (dial_start_on(publish->conn->proxy->loop, &addrs, publish->conn->port, fds, on_dialled, publish,
                         &publish->dial) < 0)
    fail(publish, REASON_LIMIT);
}

/* sbx does not answer, or stands still. */
static void expired(void *data)
{
  fail(data, REASON_CONNECT_TIMEOUT);
}

static const struct conn_server server = { .expired = expired, .free = publish_free };

void publish_start(struct conn *conn)
{
  struct publish *publish = mem_calloc(1, sizeof *publish);

  if (!publish) {
    conn_reset(conn);
    return;
  }
  publish->conn = conn;
  publish->host = (struct host){ .kind = HOST_NAME, .name = "localhost" };
  publish->verdict = (struct verdict){ .allow = true, .reason = REASON_ALLOWED };
  publish->begun_ns = clock_mono_ns();
  conn_serve(conn, &server, publish);
  if (conn->over || inside_connect(conn->proxy->inside, on_sockets, publish) < 0)
    fail(publish, conn->over ? REASON_LIMIT_CONNECTIONS : REASON_LIMIT);
}
