/* relay with long streams over TCP, by splice(2) and by copying: each peer gets what the other has sent. */
#include "base/fd.h"
#include "proxy/relay.h"
#include "unit/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define TURNS_MAX 200000
#define CASES 36

/* One peer: what it does until it ends, and what has come of it. Byte n of what it sends is pattern(seed, n). */
struct peer {
  int fd; /* -1: closed */
  uint32_t seed;
  uint64_t size; /* sends so many bytes, then ends its direction */
  uint64_t sent;
  uint64_t got;
  uint64_t close_at; /* closes once it has sent and got so many bytes; UINT64_MAX: never */
  size_t step; /* writes and reads at most so much at once */
  unsigned lazy; /* reads in one of so many turns */
  bool finished;
  bool saw_end;
};

struct bench {
  struct proxy proxy;
  struct relay relay;
  struct sock client;
  struct sock origin;
  struct peer peers[2]; /* client's and origin's */
  int turn_fd;
  struct loop_io *turn; /* ends a turn of the loop */
  bool over;
  uint32_t random;
};

static uint32_t next(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static unsigned char pattern(uint32_t seed, uint64_t at)
{
  return (unsigned char)((at * 2654435761u + seed) >> 13);
}

static void on_over(void *data)
{
  ((struct bench *)data)->over = true;
}

static void on_turn(void *data, unsigned events)
{
  (void)events;
  loop_stop(data);
}

/* One turn of the loop, without waiting. A timer would not do: from libuv 1.45 on one that is due ends the loop before
 * anything was looked at. */
static void turn(struct bench *bench)
{
  loop_io_again(bench->turn);
  loop_run(bench->proxy.loop);
}

/* A TCP connection on loopback: the proxy's end becomes sock, the other is returned. */
static int open_end(struct bench *bench, struct sock *sock)
{
  fd_autoclose int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t len = sizeof local;
  int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int own;

  assert_int_equal(bind(listener, (const struct sockaddr *)&local, sizeof local), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&local, &len), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(connect(peer, (const struct sockaddr *)&local, sizeof local), 0);
  own = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  assert_true(own >= 0);
  assert_int_equal(fd_set_nonblock(peer, true), 0);
  assert_int_equal(sock_open(sock, bench->proxy.loop, &bench->proxy.budget, own, on_over, bench), 0);
  return peer;
}

static void begin(struct bench *bench)
{
  bench->over = false;
  bench->peers[0] = (struct peer){ .fd = open_end(bench, &bench->client), .step = BLOCK, .close_at = UINT64_MAX };
  bench->peers[1] = (struct peer){ .fd = open_end(bench, &bench->origin), .step = BLOCK, .close_at = UINT64_MAX };
  relay_start(&bench->relay, &bench->proxy, &bench->client, &bench->origin, on_over, bench);
}

/* After each stream: nothing is held, and nothing is left in the pipe for the next one. */
static void end(struct bench *bench)
{
  int left = 0;

  sock_close(&bench->client, false);
  sock_close(&bench->origin, false);
  fd_close(&bench->peers[0].fd);
  fd_close(&bench->peers[1].fd);
  assert_int_equal(bench->proxy.budget.used, 0);
  if (bench->proxy.splice.size)
    assert_int_equal(ioctl(bench->proxy.splice.out, FIONREAD, &left), 0);
  assert_int_equal(left, 0);
}

static void peer_send(struct peer *peer)
{
  static unsigned char block[BLOCK];
  uint64_t left = peer->size - peer->sent;
  size_t len = left < peer->step ? (size_t)left : peer->step;
  ssize_t n;

  if (peer->finished)
    return;
  for (size_t i = 0; i < len; i++)
    block[i] = pattern(peer->seed, peer->sent + i);
  n = len ? send(peer->fd, block, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
  peer->sent += n > 0 ? (uint64_t)n : 0;
  /* A failed send: the other peer has closed. */
  peer->finished = peer->sent == peer->size || (n < 0 && errno != EAGAIN);
  if (peer->finished)
    shutdown(peer->fd, SHUT_WR);
}

static void peer_recv(struct peer *peer, uint32_t seed)
{
  static unsigned char block[BLOCK];
  ssize_t n = recv(peer->fd, block, peer->step, MSG_DONTWAIT);

  for (ssize_t i = 0; i < n; i++)
    if (block[i] != pattern(seed, peer->got + (uint64_t)i))
      fail_msg("byte %llu is another", (unsigned long long)(peer->got + (uint64_t)i));
  peer->got += n > 0 ? (uint64_t)n : 0;
  peer->saw_end = n == 0;
}

static void peer_act(struct bench *bench, struct peer *peer, const struct peer *other)
{
  if (peer->fd < 0)
    return;
  peer_send(peer);
  if (next(&bench->random) % peer->lazy == 0)
    peer_recv(peer, other->seed);
  if (peer->sent + peer->got >= peer->close_at)
    fd_close(&peer->fd);
}

static void run(struct bench *bench)
{
  struct peer *client = &bench->peers[0];
  struct peer *origin = &bench->peers[1];
  unsigned turns = 0;

  while (!bench->over && turns++ < TURNS_MAX) {
    peer_act(bench, client, origin);
    peer_act(bench, origin, client);
    turn(bench);
  }
  assert_true(bench->over);
  /* What is still in the kernel. */
  for (size_t i = 0; i < 2; i++)
    for (struct peer *peer = &bench->peers[i]; peer->fd >= 0 && !peer->saw_end; turns++) {
      uint64_t before = peer->got;

      peer_recv(peer, bench->peers[1 - i].seed);
      if (peer->got == before)
        break;
    }
}

/* A peer that is random in all it does. */
static void randomise(struct bench *bench, struct peer *peer, bool closes)
{
  static const size_t steps[] = { 1000, 16 * 1024, BLOCK };

  peer->seed = next(&bench->random);
  peer->size = next(&bench->random) % 3 == 0 ? next(&bench->random) % 1000 : next(&bench->random) % (3 << 20);
  peer->step = steps[next(&bench->random) % MEM_COUNT(steps)];
  peer->lazy = 1 + next(&bench->random) % 4;
  if (closes)
    peer->close_at = next(&bench->random) % (2 << 20);
}

static void run_random(struct bench *bench, uint32_t seed)
{
  bool closes = seed % 3 == 0;
  struct peer *client = &bench->peers[0];
  struct peer *origin = &bench->peers[1];

  bench->random = seed;
  begin(bench);
  randomise(bench, client, closes);
  randomise(bench, origin, closes && seed % 2);
  run(bench);
  assert_true(origin->got <= bench->relay.up && bench->relay.up <= client->sent);
  assert_true(client->got <= bench->relay.down && bench->relay.down <= origin->sent);
  if (!closes) {
    assert_int_equal(bench->relay.up, client->size);
    assert_int_equal(origin->got, client->size);
    assert_int_equal(bench->relay.down, origin->size);
    assert_int_equal(client->got, origin->size);
    assert_true(client->saw_end && origin->saw_end);
  }
  end(bench);
}

static int setup(void **state)
{
  struct bench *bench = mem_calloc(1, sizeof *bench);

  assert_non_null(bench);
  assert_int_equal(loop_new(NULL, &bench->proxy.loop), 0);
  bench->turn_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  assert_true(bench->turn_fd >= 0);
  assert_int_equal(loop_io_new(bench->proxy.loop, bench->turn_fd, on_turn, bench->proxy.loop, &bench->turn), 0);
  bench->proxy.budget.max = 64 * 1024 * 1024;
  *state = bench;
  return 0;
}

static int setup_splice(void **state)
{
  struct bench *bench;

  setup(state);
  bench = *state;
  splice_open(&bench->proxy.splice);
  assert_true(bench->proxy.splice.size >= LIMITS_RELAY_BYTES);
  return 0;
}

static int teardown(void **state)
{
  struct bench *bench = *state;

  splice_close(&bench->proxy.splice);
  loop_io_free(&bench->turn);
  fd_close(&bench->turn_fd);
  loop_free(bench->proxy.loop);
  free(bench);
  return 0;
}

static void test_random(void **state)
{
  for (uint32_t seed = 1; seed <= CASES; seed++) {
    print_message("seed %u\n", seed);
    run_random(*state, seed);
  }
}

/* A long stream to a reader that stops: its sender is held back, and what waits is bounded, also when all are short. */
static void hold_back(struct bench *bench, size_t bound)
{
  struct peer *client = &bench->peers[0];
  struct peer *origin = &bench->peers[1];

  begin(bench);
  client->size = 64 << 20;
  client->lazy = origin->lazy = 1;
  for (unsigned i = 0; i < 2000 && client->sent < 1 << 20; i++) {
    peer_act(bench, client, origin);
    peer_act(bench, origin, client);
    turn(bench);
  }
  for (unsigned i = 0; i < 500; i++) {
    peer_send(client);
    turn(bench);
    assert_true(sock_pending(&bench->origin) <= bound);
  }
  assert_true(sock_pending(&bench->origin) > 0);
  assert_true(client->sent < client->size);
  origin->step = 64 * 1024;
  run(bench);
  assert_int_equal(origin->got, client->size);
  end(bench);
}

static void test_slow_reader(void **state)
{
  struct bench *bench = *state;

  hold_back(bench, bench->proxy.splice.size ? LIMITS_SPLICE_BYTES : LIMITS_RELAY_BYTES);
}

/* The client sends up to so many bytes in all, and the origin gets them. */
static void pump(struct bench *bench, uint64_t until)
{
  struct peer *client = &bench->peers[0];
  struct peer *origin = &bench->peers[1];

  client->size = UINT64_MAX;
  for (unsigned turns = 0; turns < TURNS_MAX && origin->got < until; turns++) {
    client->step = until - client->sent < BLOCK ? (size_t)(until - client->sent) : BLOCK;
    if (client->step)
      peer_send(client);
    peer_recv(origin, client->seed);
    turn(bench);
  }
  assert_int_equal(origin->got, until);
  client->step = BLOCK;
}

/* A long stream that stops being read; when the relay ends, or after a while. */
static void stall(struct bench *bench, size_t bound)
{
  pump(bench, 4 << 20);
  assert_true(bench->client.bulk > 0);
  for (unsigned i = 0; i < 100 && !bench->over; i++) {
    for (unsigned more = 0; more < 16 && !bench->peers[0].finished; more++)
      peer_send(&bench->peers[0]);
    turn(bench);
    assert_true(sock_pending(&bench->origin) <= bound);
  }
}

static void test_short_of_bytes(void **state)
{
  struct bench *bench = *state;
  size_t used = bench->proxy.budget.max / 8 + 1;

  assert_true(budget_take(&bench->proxy.budget, used));
  begin(bench);
  stall(bench, LIMITS_RELAY_BYTES);
  assert_true(sock_pending(&bench->origin) > 0);
  budget_give(&bench->proxy.budget, used);
  end(bench);
}

/* What cannot be held ends the relay; the pipe is as empty as ever. */
static void test_out_of_bytes(void **state)
{
  struct bench *bench = *state;

  bench->proxy.budget.max = LIMITS_RELAY_BYTES + 1000;
  for (unsigned i = 0; i < 8; i++) {
    begin(bench);
    bench->peers[0].seed = i;
    stall(bench, LIMITS_SPLICE_BYTES);
    end(bench);
  }
}

/* The reader of a long stream goes: what is on its way to it must not stay in the pipe, nor come out of another. */
static void test_reader_gone(void **state)
{
  struct bench *bench = *state;

  for (unsigned i = 0; i < 8; i++) {
    begin(bench);
    bench->peers[0].seed = i;
    pump(bench, (2 << 20) + i);
    fd_close(&bench->peers[1].fd);
    for (unsigned turns = 0; turns < TURNS_MAX && !bench->over; turns++) {
      for (unsigned more = 0; more < 16 && !bench->peers[0].finished; more++)
        peer_send(&bench->peers[0]);
      turn(bench);
    }
    assert_true(bench->over);
    end(bench);
  }
}

/* Where the system has no pipe to give there is none, and nothing of one to close. */
static void test_no_pipe(void **state)
{
  struct splice pipe = { .size = 0 };
  struct rlimit limit;
  struct rlimit none;

  (void)state;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = 3;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  splice_open(&pipe);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_int_equal(pipe.size, 0);
  splice_close(&pipe);
  assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

/* One stream does not keep the others waiting: of a full buffer only so much is moved in one turn of the loop. */
static void test_one_turn(void **state)
{
  struct bench *bench = *state;
  struct peer *client = &bench->peers[0];
  uint64_t before;

  begin(bench);
  pump(bench, 8 << 20);
  for (unsigned more = 0; more < 64; more++)
    peer_send(client);
  before = bench->relay.up;
  assert_true(client->sent - before > 2 * LIMITS_SPLICE_BYTES);
  turn(bench);
  assert_in_range(bench->relay.up - before, 1, 2 * LIMITS_SPLICE_BYTES);
  end(bench);
}

/* F57: urgent bytes in a long stream. splice(2) stops in front of each, and the socket stays readable. */
static void test_urgent(void **state)
{
  struct bench *bench = *state;
  struct peer *client = &bench->peers[0];

  begin(bench);
  client->lazy = bench->peers[1].lazy = 1;
  for (uint64_t i = 1; i <= 4; i++) {
    pump(bench, i << 20);
    assert_int_equal(send(client->fd, "!", 1, MSG_OOB), 1);
  }
  client->size = client->sent + 1000;
  run(bench);
  assert_int_equal(bench->peers[1].got, client->size);
  assert_int_equal(bench->relay.up, client->size);
  end(bench);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_random, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_random, setup, teardown),
    cmocka_unit_test_setup_teardown(test_slow_reader, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
    cmocka_unit_test_setup_teardown(test_short_of_bytes, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_out_of_bytes, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_reader_gone, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_reader_gone, setup, teardown),
    cmocka_unit_test(test_no_pipe),
    cmocka_unit_test_setup_teardown(test_one_turn, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_one_turn, setup, teardown),
    cmocka_unit_test_setup_teardown(test_urgent, setup_splice, teardown),
    cmocka_unit_test_setup_teardown(test_urgent, setup, teardown),
  };

  struct sigaction ignore = { .sa_handler = SIG_IGN };

  /* As in the proxy: splice(2) to a socket that is gone raises it. */
  if (sigaction(SIGPIPE, &ignore, NULL))
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
