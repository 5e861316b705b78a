#include "proxy/conn.h"

#include "base/fd.h"
#include "proxy/http.h"
#include "proxy/listener.h"
#include "proxy/sniff.h"

#include <errno.h>
#include <stdlib.h>

/* The first bytes: which front? */
static void on_first(void *data)
{
  struct conn *conn = data;
  struct proxy *proxy = conn->proxy;
  ssize_t n = sock_recv(&conn->client, proxy->scratch, LIMITS_HTTP_HEAD_BYTES);
  struct span first = { .ptr = proxy->scratch, .len = n > 0 ? (size_t)n : 0 };

  if (n == -EAGAIN)
    return;
  if (n <= 0) {
    conn_end(conn);
    return;
  }
  /* TLS or SOCKS on this port: the client will hardly understand, but a person who looks at the bytes will. */
  http_start(conn, first, sniff_first(first) == SNIFF_HTTP ? NULL : "this port speaks HTTP");
}

static void on_timer(void *data)
{
  struct conn *conn = data;

  if (conn->http)
    http_timeout(conn->http);
  else
    conn_end(conn);
}

void conn_new(struct proxy *proxy, int fd)
{
  struct conn *conn = mem_calloc(1, sizeof *conn);

  if (!conn) {
    fd_close(&fd);
    return;
  }
  sock_init(&conn->client);
  if (loop_timer_new(proxy->loop, on_timer, conn, &conn->timer) < 0) {
    fd_close(&fd);
    free(conn);
    return;
  }
  if (sock_open(&conn->client, proxy->loop, &proxy->budget, fd, on_first, conn) < 0) {
    loop_timer_free(&conn->timer);
    free(conn);
    return;
  }
  conn->proxy = proxy;
  conn->over = proxy->conn_count >= proxy->conn_max;
  conn->next = proxy->conns;
  if (conn->next)
    conn->next->prev = conn;
  proxy->conns = conn;
  proxy->conn_count++;
  sock_watch(&conn->client, true);
  loop_timer_set(conn->timer, LIMITS_HEAD_MS);
}

void conn_end(struct conn *conn)
{
  struct proxy *proxy = conn->proxy;

  if (conn->http)
    http_free(conn->http);
  sock_close(&conn->client, false);
  loop_timer_free(&conn->timer);
  if (conn->prev)
    conn->prev->next = conn->next;
  else
    proxy->conns = conn->next;
  if (conn->next)
    conn->next->prev = conn->prev;
  proxy->conn_count--;
  free(conn);
  listener_resume_all(proxy);
}

void conn_end_all(struct proxy *proxy)
{
  while (proxy->conns)
    conn_end(proxy->conns);
}
