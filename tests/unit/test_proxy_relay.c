/* sock, relay and dial on real sockets in a real loop. */
#include "base/fd.h"
#include "proxy/dial.h"
#include "proxy/relay.h"
#include "unit/unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

struct bench {
  struct proxy proxy;
  struct relay relay;
  struct sock client;
  struct sock origin;
  int client_peer; /* what a client would hold */
  int origin_peer;
  bool over;
  enum relay_look answer; /* of look() */
  unsigned looks;
  bool ended; /* what look() was told last */
  char seen[64];
  enum relay_look heard_answer;
  size_t heard;
  struct dial *dial;
  struct dial_result dialled;
  struct loop_timer *timer;
  bool timer_again;
};

static void on_over(void *data)
{
  ((struct bench *)data)->over = true;
}

static enum relay_look on_look(void *data, struct span held, bool end)
{
  struct bench *bench = data;

  assert_in_range(held.len, 0, sizeof bench->seen - 1);
  memset(bench->seen, 0, sizeof bench->seen);
  if (held.len)
    memcpy(bench->seen, held.ptr, held.len);
  bench->looks++;
  bench->ended = end;
  if (bench->answer == RELAY_GONE)
    relay_clear(&bench->relay);
  return bench->answer;
}

/* The first time nothing may have been looked at: from libuv 1.45 on a timer that is due comes before that. */
static void on_turn(void *data)
{
  struct bench *bench = data;

  if (bench->timer_again)
    loop_timer_set(bench->timer, 10);
  else
    loop_stop(bench->proxy.loop);
  bench->timer_again = false;
}

/* Lets the loop run for a moment. */
static void turn(struct bench *bench)
{
  assert_int_equal(loop_timer_new(bench->proxy.loop, on_turn, bench, &bench->timer), 0);
  bench->timer_again = true;
  loop_timer_set(bench->timer, 10);
  loop_run(bench->proxy.loop);
  loop_timer_free(&bench->timer);
}

static int open_end(struct bench *bench, struct sock *sock)
{
  int fds[2];
  int small = 4096;

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  assert_int_equal(sock_open(sock, bench->proxy.loop, &bench->proxy.budget, fds[0], on_over, bench), 0);
  return fds[1];
}

static int setup(void **state)
{
  struct bench *bench = mem_calloc(1, sizeof *bench);

  assert_non_null(bench);
  assert_int_equal(loop_new(NULL, &bench->proxy.loop), 0);
  bench->proxy.budget.max = 1024 * 1024;
  bench->client_peer = open_end(bench, &bench->client);
  bench->origin_peer = open_end(bench, &bench->origin);
  *state = bench;
  return 0;
}

static int teardown(void **state)
{
  struct bench *bench = *state;

  sock_close(&bench->client, false);
  sock_close(&bench->origin, false);
  assert_int_equal(bench->proxy.budget.used, 0);
  fd_close(&bench->client_peer);
  fd_close(&bench->origin_peer);
  loop_free(bench->proxy.loop);
  free(bench);
  return 0;
}

static void start(struct bench *bench)
{
  relay_start(&bench->relay, &bench->proxy, &bench->client, &bench->origin, on_over, bench);
  turn(bench);
}

static void start_held(struct bench *bench, const char *first, enum relay_look answer)
{
  bench->answer = answer;
  relay_start_held(&bench->relay, &bench->proxy, &bench->client, &bench->origin, span_of(first), on_look, NULL, on_over,
                   bench);
  turn(bench);
}

/* What the peer can read now. */
static size_t drain(int fd, char *bytes, size_t size)
{
  ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);

  return n > 0 ? (size_t)n : 0;
}

static void test_both_ways(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  start(bench);
  assert_int_equal(send(bench->client_peer, "up", 2, 0), 2);
  assert_int_equal(send(bench->origin_peer, "down!", 5, 0), 5);
  turn(bench);
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 2);
  assert_memory_equal(bytes, "up", 2);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 5);
  assert_int_equal(bench->relay.up, 2);
  assert_int_equal(bench->relay.down, 5);
  assert_null(bench->client.queue.data);
  assert_null(bench->origin.queue.data);
  assert_false(bench->over);
}

/* F57 */
static void test_half_close(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  start(bench);
  assert_int_equal(send(bench->client_peer, "last", 4, 0), 4);
  assert_int_equal(shutdown(bench->client_peer, SHUT_WR), 0);
  turn(bench);
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 4);
  assert_int_equal(recv(bench->origin_peer, bytes, sizeof bytes, MSG_DONTWAIT), 0);
  assert_false(bench->over);
  assert_true(relay_time_left(&bench->relay) <= LIMITS_HALF_CLOSED_MS);
  assert_int_equal(send(bench->origin_peer, "answer", 6, 0), 6);
  turn(bench);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 6);
  assert_int_equal(shutdown(bench->origin_peer, SHUT_WR), 0);
  turn(bench);
  assert_true(bench->over);
  assert_int_equal(bench->client.fd, -1);
  assert_int_equal(bench->origin.fd, -1);
}

/* F54, F55: nothing goes up before it has been let pass; what comes down flows. */
static void test_held(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  start_held(bench, "fi", RELAY_MORE);
  assert_string_equal(bench->seen, "fi");
  assert_int_equal(send(bench->client_peer, "rst", 3, 0), 3);
  assert_int_equal(send(bench->origin_peer, "banner", 6, 0), 6);
  turn(bench);
  assert_string_equal(bench->seen, "first");
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 0);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 6);
  assert_int_equal(bench->proxy.budget.used, 5);
  bench->answer = RELAY_PASS;
  assert_int_equal(send(bench->client_peer, "!", 1, 0), 1);
  turn(bench);
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 6);
  assert_memory_equal(bytes, "first!", 6);
  assert_int_equal(bench->proxy.budget.used, 0);
  assert_int_equal(bench->looks, 3);
  assert_int_equal(send(bench->client_peer, "more", 4, 0), 4);
  turn(bench);
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 4);
  assert_int_equal(bench->looks, 3);
  assert_int_equal(bench->relay.up, 10);
}

static void test_held_to_the_end(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  start_held(bench, "", RELAY_MORE);
  assert_int_equal(bench->looks, 0);
  bench->answer = RELAY_PASS;
  assert_int_equal(shutdown(bench->client_peer, SHUT_WR), 0);
  turn(bench);
  assert_true(bench->ended);
  assert_int_equal(recv(bench->origin_peer, bytes, sizeof bytes, MSG_DONTWAIT), 0);
  assert_false(bench->over);
}

static enum relay_look on_hear(void *data, struct span bytes)
{
  struct bench *bench = data;

  bench->heard += bytes.len;
  return bench->heard_answer;
}

/* What comes down is heard before it goes on, as long as that is asked for. */
static void test_hear(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  bench->answer = RELAY_PASS;
  bench->heard_answer = RELAY_MORE;
  relay_start_held(&bench->relay, &bench->proxy, &bench->client, &bench->origin, SPAN("up"), on_look, on_hear, on_over,
                   bench);
  assert_int_equal(send(bench->origin_peer, "one", 3, 0), 3);
  turn(bench);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 3);
  bench->heard_answer = RELAY_PASS;
  assert_int_equal(send(bench->origin_peer, "two!", 4, 0), 4);
  turn(bench);
  assert_int_equal(send(bench->origin_peer, "three", 5, 0), 5);
  turn(bench);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 9);
  assert_int_equal(bench->heard, 7);
  assert_int_equal(bench->relay.down, 12);
  assert_int_equal(shutdown(bench->origin_peer, SHUT_WR), 0);
  turn(bench);
  assert_int_equal(recv(bench->client_peer, bytes, 1, MSG_DONTWAIT), 0);
  assert_false(bench->over);
}

/* And nothing of it goes on where another has taken the ends. */
static void test_hear_gone(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  bench->answer = RELAY_PASS;
  bench->heard_answer = RELAY_GONE;
  relay_start_held(&bench->relay, &bench->proxy, &bench->client, &bench->origin, SPAN("up"), on_look, on_hear, on_over,
                   bench);
  assert_int_equal(send(bench->origin_peer, "answer", 6, 0), 6);
  turn(bench);
  assert_int_equal(bench->heard, 6);
  assert_int_equal(drain(bench->client_peer, bytes, sizeof bytes), 0);
  assert_false(bench->over);
}

/* Sent on while it is still looked at, and cut off in time. */
static void test_trickle(void **state)
{
  struct bench *bench = *state;
  char bytes[64];

  start_held(bench, "GET", RELAY_MORE);
  relay_trickle(&bench->relay);
  turn(bench);
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 3);
  assert_int_equal(send(bench->client_peer, " /", 2, 0), 2);
  turn(bench);
  assert_string_equal(bench->seen, "GET /");
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 2);
  bench->answer = RELAY_GONE;
  assert_int_equal(send(bench->client_peer, " HTTP/1.1", 9, 0), 9);
  turn(bench);
  assert_string_equal(bench->seen, "GET / HTTP/1.1");
  assert_int_equal(drain(bench->origin_peer, bytes, sizeof bytes), 0);
  assert_int_equal(bench->proxy.budget.used, 0);
  assert_false(bench->over);
}

/* Whatever the budget does not have is not held. */
static void test_held_over_budget(void **state)
{
  struct bench *bench = *state;

  bench->proxy.budget.max = 3;
  start_held(bench, "four", RELAY_MORE);
  assert_true(bench->over);
  assert_int_equal(bench->looks, 0);
}

static void test_back_pressure(void **state)
{
  static char block[LIMITS_RELAY_BYTES];
  struct bench *bench = *state;
  size_t sent = 0;
  size_t got = 0;

  memset(block, 'x', sizeof block);
  start(bench);
  for (int i = 0; i < 50; i++) {
    ssize_t n = send(bench->client_peer, block, sizeof block, MSG_DONTWAIT);

    sent += n > 0 ? (size_t)n : 0;
    turn(bench);
    assert_true(sock_pending(&bench->origin) <= LIMITS_RELAY_BYTES);
  }
  assert_true(bench->proxy.budget.used <= LIMITS_RELAY_BYTES);
  assert_true(sock_pending(&bench->origin) > 0);
  assert_int_equal(shutdown(bench->client_peer, SHUT_WR), 0);
  for (int i = 0; i < 1000 && got < sent; i++) {
    got += drain(bench->origin_peer, block, sizeof block);
    turn(bench);
  }
  assert_int_equal(got, sent);
  assert_int_equal(bench->proxy.budget.used, 0);
  assert_null(bench->origin.queue.data);
  assert_int_equal(recv(bench->origin_peer, block, 1, MSG_DONTWAIT), 0);
}

static void test_peer_gone(void **state)
{
  struct bench *bench = *state;

  start(bench);
  fd_close(&bench->client_peer);
  turn(bench);
  assert_int_equal(send(bench->origin_peer, "to nobody", 9, MSG_NOSIGNAL), 9);
  turn(bench);
  assert_true(bench->over);
  assert_int_equal(bench->origin.fd, -1);
}

static void test_budget(void **state)
{
  static char block[LIMITS_RELAY_BYTES];
  struct bench *bench = *state;
  struct span bytes = { block, sizeof block };

  bench->proxy.budget.max = LIMITS_RELAY_BYTES;
  assert_int_equal(sock_send(&bench->origin, bytes, false), 0);
  assert_int_equal(sock_send(&bench->origin, bytes, false), -ENOBUFS);
  assert_true(sock_pending(&bench->origin) <= sizeof block);
  assert_true(budget_take(&bench->proxy.budget, bench->proxy.budget.max - bench->proxy.budget.used));
  assert_false(budget_take(&bench->proxy.budget, 1));
  budget_give(&bench->proxy.budget, bench->proxy.budget.used - sock_pending(&bench->origin));
  assert_int_equal(sock_send(&bench->client, SPAN("x"), false), 0);
}

static void on_dialled(void *data, const struct dial_result *result)
{
  struct bench *bench = data;

  bench->dialled = *result;
  bench->over = true;
  loop_stop(bench->proxy.loop);
}

/* Dials addresses (words); the port is that of a listener on 127.0.0.1, or of nobody. */
static void dial(struct bench *bench, const char *words, bool listening)
{
  fd_autoclose int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t len = sizeof local;
  struct gate_addrs addrs = { .count = 0 };
  struct span rest = span_of(words);
  struct span part;

  while (span_split(&rest, ' ', &part))
    assert_int_equal(addr_parse(part, &addrs.items[addrs.count++]), 0);
  assert_int_equal(bind(listener, (const struct sockaddr *)&local, sizeof local), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&local, &len), 0);
  if (listening)
    assert_int_equal(listen(listener, 8), 0);
  bench->over = false;
  assert_int_equal(dial_start(bench->proxy.loop, &addrs, ntohs(local.sin_port), on_dialled, bench, &bench->dial), 0);
  if (!bench->over)
    loop_run(bench->proxy.loop);
  assert_true(bench->over);
  assert_null(bench->dial);
}

static void test_dial(void **state)
{
  struct bench *bench = *state;
  struct addr expected;

  assert_int_equal(addr_parse(SPAN("127.0.0.1"), &expected), 0);
  dial(bench, "127.0.0.1", true);
  assert_int_equal(bench->dialled.reason, REASON_ALLOWED);
  assert_true(bench->dialled.fd >= 0);
  assert_true(addr_equal(&bench->dialled.addr, &expected));
  fd_close(&bench->dialled.fd);
  /* The first two have no listener on this port. */
  dial(bench, "127.0.0.2 127.0.0.3 127.0.0.1", true);
  assert_int_equal(bench->dialled.reason, REASON_ALLOWED);
  assert_true(addr_equal(&bench->dialled.addr, &expected));
  fd_close(&bench->dialled.fd);
  dial(bench, "127.0.0.1", false);
  assert_int_equal(bench->dialled.fd, -1);
  assert_int_equal(bench->dialled.reason, REASON_CONNECT_REFUSED);
  /* "Refused" says more than "not possible" (broadcast), whichever comes last. */
  dial(bench, "127.0.0.1 255.255.255.255", false);
  assert_int_equal(bench->dialled.reason, REASON_CONNECT_REFUSED);
  dial(bench, "255.255.255.255", false);
  assert_int_equal(bench->dialled.reason, REASON_CONNECT_FAILED);
}

static void test_dial_cancel(void **state)
{
  struct bench *bench = *state;
  struct gate_addrs addrs = { .count = 1 };

  assert_int_equal(addr_parse(SPAN("127.0.0.1"), &addrs.items[0]), 0);
  assert_int_equal(dial_start(bench->proxy.loop, &addrs, 1, on_dialled, bench, &bench->dial), 0);
  dial_cancel(&bench->dial);
  assert_null(bench->dial);
  turn(bench);
  assert_false(bench->over);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
    cmocka_unit_test_setup_teardown(test_half_close, setup, teardown),
    cmocka_unit_test_setup_teardown(test_held, setup, teardown),
    cmocka_unit_test_setup_teardown(test_held_to_the_end, setup, teardown),
    cmocka_unit_test_setup_teardown(test_trickle, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hear, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hear_gone, setup, teardown),
    cmocka_unit_test_setup_teardown(test_held_over_budget, setup, teardown),
    cmocka_unit_test_setup_teardown(test_back_pressure, setup, teardown),
    cmocka_unit_test_setup_teardown(test_peer_gone, setup, teardown),
    cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
    cmocka_unit_test_setup_teardown(test_dial, setup, teardown),
    cmocka_unit_test_setup_teardown(test_dial_cancel, setup, teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
