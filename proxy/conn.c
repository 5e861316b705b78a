#include "proxy/conn.h"

#include "base/fd.h"
#include "proxy/direct.h"
#include "proxy/http.h"
#include "proxy/listener.h"
#include "proxy/publish.h"
#include "proxy/sniff.h"
#include "proxy/socks.h"

#include <errno.h>
#include <stdlib.h>

#define LINGER_READS 16

/* The first bytes at the HTTP front: are they HTTP? */
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

  if (conn->server)
    conn->server->expired(conn->data);
  else
    conn_end(conn);
}

void conn_serve(struct conn *conn, const struct conn_server *server, void *data)
{
  conn->server = server;
  conn->data = data;
}

static void on_linger(void *data)
{
  struct conn *conn = data;

  if (!conn->lingering && !sock_pending(&conn->client)) {
    conn->lingering = true;
    loop_timer_set(conn->timer, conn->over ? LIMITS_FIRST_MS : LIMITS_LINGER_MS);
  }
  for (unsigned i = 0; i < LINGER_READS; i++) {
    ssize_t n = sock_recv(&conn->client, conn->proxy->scratch, sizeof conn->proxy->scratch);

    if (n == -EAGAIN || (n == 0 && sock_pending(&conn->client)))
      break;
    if (n <= 0) {
      conn_end(conn);
      return;
    }
  }
  sock_watch(&conn->client, true);
}

void conn_linger(struct conn *conn)
{
  conn_serve(conn, NULL, NULL);
  sock_own(&conn->client, on_linger, conn);
  sock_finish(&conn->client);
  loop_timer_set(conn->timer, LIMITS_HALF_CLOSED_MS);
  on_linger(conn);
}

static void serve(struct conn *conn)
{
  switch (conn->front) {
  case CONTROL_FRONT_SOCKS5:
    socks_start(conn);
    return;
  case CONTROL_FRONT_TRANSPARENT:
  case CONTROL_FRONT_FORWARD:
    direct_start(conn);
    return;
  case CONTROL_FRONT_PUBLISH:
    publish_start(conn);
    return;
  case CONTROL_FRONT_HTTP:
  case CONTROL_FRONT_DNS_UDP:
  case CONTROL_FRONT_DNS_TCP:
  case CONTROL_FRONT_REFUSED:
  default:
    /* One too many is told at once: who waits for its first bytes lets others wait for an answer. */
    if (conn->over)
      http_start(conn, SPAN(""), NULL);
    else
      sock_watch(&conn->client, true);
  }
}

void conn_new(struct proxy *proxy, enum control_front front, uint16_t port, int fd)
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
  conn->front = front;
  conn->port = port;
  conn->over = proxy->conn_count >= proxy->conn_max;
  conn->next = proxy->conns;
  if (conn->next)
    conn->next->prev = conn;
  proxy->conns = conn;
  proxy->conn_count++;
  loop_timer_set(conn->timer, conn->over ? LIMITS_FIRST_MS : LIMITS_HEAD_MS);
  serve(conn);
}

void conn_end(struct conn *conn)
{
  struct proxy *proxy = conn->proxy;

  if (conn->server)
    conn->server->free(conn->data);
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

void conn_reset(struct conn *conn)
{
  sock_close(&conn->client, true);
  conn_end(conn);
}

void conn_end_all(struct proxy *proxy)
{
  while (proxy->conns)
    conn_end(proxy->conns);
}
