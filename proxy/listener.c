/* Theory of operation
 *
 * A listener accepts whenever its socket is readable, a bounded number per turn. When the process has no descriptor or
 * memory left, or accept(2) fails in another way, the connection stays in the kernel's queue and the socket stays
 * readable: watching on would burn the CPU. So the listener pauses, and goes on as soon as a connection ends
 * (listener_resume_all) or, for limits that others have used up, after a while. Above proxy->conn_max connections are
 * still accepted, to be told so, up to a reserve; above that they wait in the kernel's queue.
 */
#include "proxy/listener.h"

#include "base/fd.h"
#include "proxy/conn.h"
#include "proxy/stub.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ACCEPTS_PER_TURN 64
#define PAUSE_MS 200

struct listener {
  struct listener *next;
  struct proxy *proxy;
  enum control_front front;
  uint16_t port;
  uint16_t any_port; /* listens on this port of every address; 0: on one address only */
  int fd;
  bool paused;
  struct loop_io *io;
  struct loop_timer *retry;
};

static void resume(struct listener *listener)
{
  if (!listener->paused)
    return;
  listener->paused = false;
  loop_timer_stop(listener->retry);
  loop_io_watch(listener->io, LOOP_READ);
}

static void on_retry(void *data)
{
  resume(data);
}

static void pause_accepting(struct listener *listener)
{
  listener->paused = true;
  loop_io_watch(listener->io, 0);
  loop_timer_set(listener->retry, PAUSE_MS);
}

static void on_ready(void *data, unsigned events)
{
  struct listener *listener = data;
  struct proxy *proxy = listener->proxy;

  (void)events;
  for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
    int fd;

    if (proxy->conn_count >= proxy->conn_max + proxy->conn_max / 8 + 1) {
      pause_accepting(listener);
      return;
    }
    fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      if (listener->front == CONTROL_FRONT_DNS_TCP)
        stub_accept(proxy->stub, fd);
      else
        conn_new(proxy, listener->front, listener->port, fd);
      continue;
    }
    /* A client that has gone again is none of our trouble. */
    if (errno == EINTR || errno == ECONNABORTED)
      continue;
    if (errno != EAGAIN)
      pause_accepting(listener);
    return;
  }
}

static uint16_t any_port_of(int fd)
{
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } own = { .any = { .sa_family = AF_UNSPEC } };
  socklen_t len = sizeof own;

  if (getsockname(fd, &own.any, &len))
    return 0;
  if (own.any.sa_family == AF_INET6)
    return IN6_IS_ADDR_UNSPECIFIED(&own.v6.sin6_addr) ? ntohs(own.v6.sin6_port) : 0;
  return own.any.sa_family == AF_INET && own.v4.sin_addr.s_addr == htonl(INADDR_ANY) ? ntohs(own.v4.sin_port) : 0;
}

int listener_new(struct proxy *proxy, enum control_front front, uint16_t port, int fd, struct err *err)
{
  struct listener *listener = mem_calloc(1, sizeof *listener);
  int r = listener ? fd_set_nonblock(fd, true) : -ENOMEM;

  if (r == 0)
    r = loop_io_new(proxy->loop, fd, on_ready, listener, &listener->io);
  if (r == 0)
    r = loop_timer_new(proxy->loop, on_retry, listener, &listener->retry);
  if (r < 0) {
    if (listener)
      loop_io_free(&listener->io);
    free(listener);
    fd_close(&fd);
    return err_set_errno(err, -r, "listener: cannot watch the socket");
  }
  listener->proxy = proxy;
  listener->front = front;
  listener->port = port;
  listener->any_port = any_port_of(fd);
  listener->fd = fd;
  listener->next = proxy->listeners;
  proxy->listeners = listener;
  loop_io_watch(listener->io, LOOP_READ);
  return 0;
}

void listener_free_all(struct proxy *proxy)
{
  while (proxy->listeners) {
    struct listener *listener = proxy->listeners;

    proxy->listeners = listener->next;
    loop_io_free(&listener->io);
    loop_timer_free(&listener->retry);
    fd_close(&listener->fd);
    free(listener);
  }
}

bool listener_takes_port(const struct proxy *proxy, uint16_t port)
{
  for (const struct listener *listener = proxy->listeners; listener; listener = listener->next) {
    if (listener->any_port == port)
      return true;
  }
  return false;
}

void listener_resume_all(struct proxy *proxy)
{
  for (struct listener *listener = proxy->listeners; listener; listener = listener->next)
    resume(listener);
}
