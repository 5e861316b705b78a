#include "proxy/dial.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#define STAGGER_MS 250

struct attempt {
  struct dial *dial;
  int fd; /* -1: not begun, or failed */
  struct loop_io *io;
  struct loop_timer *deadline;
};

struct dial {
  struct loop *loop;
  struct gate_addrs addrs;
  uint16_t port;
  void (*done)(void *data, const struct dial_result *result);
  void *data;
  struct dial **slot;
  struct loop_timer *stagger; /* only with a second address */
  size_t begun; /* attempts made, running or failed */
  size_t running;
  struct dial_result failure; /* the most telling so far */
  int made[LIMITS_ADDRESSES]; /* sockets for attempts that have not begun; -1: to be made here */
  struct attempt attempts[LIMITS_ADDRESSES];
};

static void begin_next(struct dial *dial);

static void attempt_close(struct attempt *attempt)
{
  loop_io_free(&attempt->io);
  loop_timer_free(&attempt->deadline);
  fd_close(&attempt->fd);
}

static void dial_free(struct dial *dial)
{
  for (size_t i = 0; i < dial->begun; i++)
    attempt_close(&dial->attempts[i]);
  for (size_t i = 0; i < dial->addrs.count; i++)
    fd_close(&dial->made[i]);
  loop_timer_free(&dial->stagger);
  free(dial);
}

static void finish(struct dial *dial, const struct dial_result *result)
{
  struct dial_result copy = *result;
  void (*done)(void *data, const struct dial_result *result) = dial->done;
  void *data = dial->data;

  *dial->slot = NULL;
  dial_free(dial);
  done(data, &copy);
}

static enum reason reason_of(int error)
{
  switch (error) {
  case ECONNREFUSED:
    return REASON_CONNECT_REFUSED;
  case ETIMEDOUT:
    return REASON_CONNECT_TIMEOUT;
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case ENOMEM:
    return REASON_LIMIT;
  default:
    return REASON_CONNECT_FAILED;
  }
}

/* A host without IPv6 answers "unreachable" for half of the addresses: the other half's failure says more. */
static unsigned rank_of(enum reason reason)
{
  if (reason == REASON_LIMIT)
    return 4;
  if (reason == REASON_CONNECT_REFUSED)
    return 3;
  return reason == REASON_CONNECT_TIMEOUT ? 2 : 1;
}

static void note_failure(struct dial *dial, const struct addr *addr, int error)
{
  enum reason reason = reason_of(error);

  if (dial->failure.reason != REASON_ALLOWED && rank_of(reason) <= rank_of(dial->failure.reason))
    return;
  dial->failure = (struct dial_result){ .fd = -1, .addr = *addr, .reason = reason, .error = error };
}

/* The attempt has failed: the next one begins; after the last one the whole has failed. May free the dial. */
static void fail(struct attempt *attempt, int error)
{
  struct dial *dial = attempt->dial;

  note_failure(dial, &dial->addrs.items[attempt - dial->attempts], error);
  attempt_close(attempt);
  dial->running--;
  begin_next(dial);
}

static void on_deadline(void *data)
{
  fail(data, ETIMEDOUT);
}

/* TCP lets a socket connect to itself (RFC 9293, 3.5, a simultaneous open), where nobody listens on a loopback port and
 * the kernel chooses it for our own end. It would send everything back. Reset, it leaves the port at once. */
static bool is_connected_to_itself(int fd)
{
  struct linger linger = { .l_onoff = 1, .l_linger = 0 };
  struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
  struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
  socklen_t own_len = sizeof own;
  socklen_t peer_len = sizeof peer;

  if (getsockname(fd, (struct sockaddr *)&own, &own_len) || getpeername(fd, (struct sockaddr *)&peer, &peer_len) ||
      own_len != peer_len || memcmp(&own, &peer, own_len) != 0)
    return false;
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  return true;
}

static void on_ready(void *data, unsigned events)
{
  struct attempt *attempt = data;
  struct dial *dial = attempt->dial;
  struct dial_result result = { .reason = REASON_ALLOWED };
  socklen_t len = sizeof result.error;

  (void)events;
  if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &result.error, &len))
    result.error = errno;
  else if (!result.error && is_connected_to_itself(attempt->fd))
    result.error = ECONNREFUSED;
  if (result.error) {
    fail(attempt, result.error);
    return;
  }
  result.addr = dial->addrs.items[attempt - dial->attempts];
  loop_io_free(&attempt->io);
  result.fd = fd_steal(&attempt->fd);
  finish(dial, &result);
}

static void on_stagger(void *data)
{
  begin_next(data);
}

static int connect_to(int fd, const struct addr *addr, uint16_t port)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
  int r;

  memcpy(&v4.sin_addr, addr->bytes, 4);
  memcpy(&v6.sin6_addr, addr->bytes, 16);
  if (addr->family == ADDR_V4)
    r = connect(fd, (const struct sockaddr *)&v4, sizeof v4);
  else
    r = connect(fd, (const struct sockaddr *)&v6, sizeof v6);
  return r && errno != EINPROGRESS ? -errno : 0;
}

/* 0 while the attempt runs, or -errno when it has failed at once. */
static int begin(struct attempt *attempt, const struct addr *addr)
{
  struct dial *dial = attempt->dial;
  int on = 1;
  int r;

  attempt->fd = fd_steal(&dial->made[attempt - dial->attempts]);
  if (attempt->fd < 0)
    attempt->fd = socket(addr->family == ADDR_V4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (attempt->fd < 0)
    return -errno;
  /* A tunnel may be silent for an hour; without probes a peer that has vanished would hold it that long. */
  (void)setsockopt(attempt->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  r = connect_to(attempt->fd, addr, dial->port);
  if (r == 0)
    r = loop_io_new(dial->loop, attempt->fd, on_ready, attempt, &attempt->io);
  if (r == 0)
    r = loop_timer_new(dial->loop, on_deadline, attempt, &attempt->deadline);
  if (r < 0)
    return r;
  loop_io_watch(attempt->io, LOOP_WRITE);
  loop_timer_set(attempt->deadline, LIMITS_CONNECT_MS);
  return 0;
}

/* Begins the next attempt that does not fail at once. May free the dial. */
static void begin_next(struct dial *dial)
{
  while (dial->begun < dial->addrs.count) {
    struct attempt *attempt = &dial->attempts[dial->begun];
    const struct addr *addr = &dial->addrs.items[dial->begun];
    int r;

    dial->begun++;
    *attempt = (struct attempt){ .dial = dial, .fd = -1 };
    r = begin(attempt, addr);
    if (r == 0) {
      dial->running++;
      if (dial->stagger && dial->begun < dial->addrs.count)
        loop_timer_set(dial->stagger, STAGGER_MS);
      return;
    }
    note_failure(dial, addr, -r);
    attempt_close(attempt);
  }
  if (dial->running == 0)
    finish(dial, &dial->failure);
}

int dial_start(struct loop *loop, const struct gate_addrs *addrs, uint16_t port,
               void (*done)(void *data, const struct dial_result *result), void *data, struct dial **slot)
{
  return dial_start_on(loop, addrs, port, NULL, done, data, slot);
}

int dial_start_on(struct loop *loop, const struct gate_addrs *addrs, uint16_t port, const int *fds,
                  void (*done)(void *data, const struct dial_result *result), void *data, struct dial **slot)
{
  struct dial *dial = mem_calloc(1, sizeof *dial);

  if (!dial || (addrs->count > 1 && loop_timer_new(loop, on_stagger, dial, &dial->stagger) < 0)) {
    for (size_t i = 0; fds && i < addrs->count; i++)
      fd_close(&(int){ fds[i] });
    free(dial);
    return -ENOMEM;
  }
  for (size_t i = 0; i < addrs->count; i++)
    dial->made[i] = fds ? fds[i] : -1;
  dial->loop = loop;
  dial->addrs = *addrs;
  dial->port = port;
  dial->done = done;
  dial->data = data;
  dial->slot = slot;
  dial->failure = (struct dial_result){ .fd = -1, .reason = REASON_ALLOWED };
  *slot = dial;
  begin_next(dial);
  return 0;
}

void dial_cancel(struct dial **slot)
{
  if (!*slot)
    return;
  dial_free(*slot);
  *slot = NULL;
}
