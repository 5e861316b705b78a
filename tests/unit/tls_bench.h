/* tls_bench: two ends of one socket in a real loop, each a sock whose owner reads and sends a pattern, for the tests of
 * TLS. */
#ifndef SBX_TESTS_UNIT_TLS_BENCH_H
#define SBX_TESTS_UNIT_TLS_BENCH_H

#include "base/fd.h"
#include "proxy/tls.h"
#include "unit/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#define BULK_BYTES (4 * 1024 * 1024)
#define PIECE 100 /* of one read where it is to be slow */

/* One end, and what its owner has made of it. */
struct side {
  struct sock sock;
  bool shaking;
  bool open;
  int failure; /* of the handshake */
  struct err err;
  size_t piece; /* of one read; one read for each event */
  struct buf got;
  size_t sent;
  size_t to_send; /* of the pattern */
  size_t most_pending;
  int end; /* what sock_recv() has said last: 0 at the end, or -errno */
};

struct bench {
  struct loop *loop;
  struct budget budget;
  struct tls *tls;
  struct ca *ca;
  struct side client;
  struct side server;
  bool late;
  tls_protocols offered;
  tls_protocols chosen;
};

static inline char pattern(size_t at)
{
  return (char)(at * 7 + at / 251);
}

static inline void send_some(struct side *side)
{
  char bytes[30000];

  while (side->sent < side->to_send && sock_pending(&side->sock) == 0) {
    size_t len = side->to_send - side->sent < sizeof bytes ? side->to_send - side->sent : sizeof bytes;

    for (size_t i = 0; i < len; i++)
      bytes[i] = pattern(side->sent + i);
    assert_int_equal(sock_send(&side->sock, (struct span){ bytes, len }, false), 0);
    side->sent += len;
    if (sock_pending(&side->sock) > side->most_pending)
      side->most_pending = sock_pending(&side->sock);
  }
}

static inline void on_ready(void *data)
{
  struct side *side = data;
  char bytes[LIMITS_RELAY_BYTES];
  ssize_t n = 1;
  int r;

  if (side->shaking) {
    r = tls_shake(&side->sock, &side->err);
    side->shaking = r == 0;
    side->open = r == 1;
    side->failure = r < 0 ? r : 0;
  }
  if (!side->open)
    return;
  send_some(side);
  while (n > 0 && side->piece) {
    n = sock_recv(&side->sock, bytes, side->piece);
    if (n > 0)
      buf_append(&side->got, (struct span){ bytes, (size_t)n });
    else if (n != -EAGAIN)
      side->end = (int)n;
    if (side->piece == PIECE)
      break;
  }
  sock_watch(&side->sock, side->piece && side->end == -EAGAIN);
}

static inline void on_late(void *data)
{
  struct bench *bench = data;

  bench->late = true;
  loop_stop(bench->loop);
}

static inline void on_turn(void *data)
{
  loop_stop(((struct bench *)data)->loop);
}

/* Lets the loop run for a moment. */
static inline void turn(struct bench *bench)
{
  struct loop_timer *timer = NULL;

  assert_int_equal(loop_timer_new(bench->loop, on_turn, bench, &timer), 0);
  loop_timer_set(timer, 10);
  loop_run(bench->loop);
  loop_timer_free(&timer);
}

/* The same until it is so. */
#define RUN_UNTIL(bench, so) \
  do { \
    struct loop_timer *timer_ = NULL; \
\
    (bench)->late = false; \
    assert_int_equal(loop_timer_new((bench)->loop, on_late, (bench), &timer_), 0); \
    loop_timer_set(timer_, 20000); \
    while (!(so) && !(bench)->late) \
      turn(bench); \
    loop_timer_free(&timer_); \
    assert_false((bench)->late); \
  } while (0)

static inline struct host target(const char *name)
{
  struct host host;

  assert_int_equal(host_parse(span_of(name), NULL, &host), 0);
  return host;
}

static inline void side_open(struct bench *bench, struct side *side, int fd)
{
  *side = (struct side){ .end = -EAGAIN, .got = BUF_INIT(2 * BULK_BYTES), .piece = LIMITS_RELAY_BYTES };
  assert_int_equal(fd_set_nonblock(fd, true), 0);
  assert_int_equal(sock_open(&side->sock, bench->loop, &bench->budget, fd, on_ready, side), 0);
}

static inline void make_pair(int fds[2])
{
  int small = 4096;

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
}

static inline void shake_as_client(struct bench *bench, const char *name)
{
  struct host host = target(name);

  assert_int_equal(tls_client(bench->tls, &bench->client.sock, &host, bench->offered), 0);
  bench->client.shaking = true;
  on_ready(&bench->client);
}

static inline void shake_as_server(struct bench *bench, const char *name, struct span first)
{
  const struct ca_leaf *leaf;
  struct host host = target(name);

  assert_int_equal(ca_leaf(bench->ca, &host, NULL, &leaf), 0);
  assert_int_equal(tls_server(bench->tls, &bench->server.sock, leaf, first, bench->chosen), 0);
  bench->server.shaking = true;
  on_ready(&bench->server);
}

/* Both ends ours: a client that wants one name, a server that shows another or the same. */
static inline void connect_ends(struct bench *bench, const char *wanted, const char *shown)
{
  int fds[2];

  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  side_open(bench, &bench->server, fds[1]);
  shake_as_client(bench, wanted);
  shake_as_server(bench, shown, SPAN(""));
}

static inline void connect_both(struct bench *bench)
{
  connect_ends(bench, "api.test", "api.test");
  RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
  if (!bench->client.open || !bench->server.open)
    fail_msg("%s %s", bench->client.err.message, bench->server.err.message);
}

static inline int setup(void **state)
{
  static const struct policy none;
  struct bench *bench = mem_calloc(1, sizeof *bench);
  struct policy policy = none;
  struct policy_rule rules[] = { { .kind = POLICY_HOST_NAME, .name = (char[]){ "test" } },
                                 { .kind = POLICY_HOST_PREFIX,
                                   .prefix = { .addr = { .bytes = { 192, 0, 2, 0 } }, .length = 24 } } };
  struct policy_credential credential = { .bind = { .items = rules, .count = 2 } };
  struct err err = ERR_INIT;

  bench->offered = bench->chosen = TLS_HTTP_1_1;
  assert_non_null(bench);
  policy.credentials = (struct policy_credentials){ .items = &credential, .count = 1 };
  bench->budget.max = (size_t)4 * BULK_BYTES;
  sock_init(&bench->client.sock);
  sock_init(&bench->server.sock);
  if (loop_new(&err, &bench->loop) < 0 || tls_new(&err, &bench->tls) < 0 || ca_new(&policy, &err, &bench->ca) < 0 ||
      tls_trust(bench->tls, ca_pem(bench->ca), &err) != 1)
    fail_msg("%s", err.message);
  *state = bench;
  return 0;
}

static inline int teardown(void **state)
{
  struct bench *bench = *state;

  sock_close(&bench->client.sock, false);
  sock_close(&bench->server.sock, false);
  buf_free(&bench->client.got);
  buf_free(&bench->server.got);
  assert_int_equal(bench->budget.used, 0);
  loop_free(bench->loop);
  tls_free(bench->tls);
  ca_free(bench->ca);
  free(bench);
  return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
