/* TLS as a layer of a sock: both ends ours. */
#include "unit/tls_bench.h"

static void assert_pattern(const struct side *side, size_t size)
{
  assert_int_equal(side->got.len, size);
  for (size_t i = 0; i < size; i++)
    if (side->got.data[i] != pattern(i))
      fail_msg("byte %zu differs", i);
}

static void test_bulk(void **state)
{
  struct bench *bench = *state;

  connect_both(bench);
  bench->client.to_send = bench->server.to_send = BULK_BYTES;
  on_ready(&bench->client);
  on_ready(&bench->server);
  RUN_UNTIL(bench, bench->server.got.len >= BULK_BYTES && bench->client.got.len >= BULK_BYTES);
  assert_pattern(&bench->server, BULK_BYTES);
  assert_pattern(&bench->client, BULK_BYTES);
  assert_in_range(bench->client.most_pending, 1, 30000);
}

/* A side that does not read stops the other, and makes it hold no more than what it was given. */
static void test_back_pressure(void **state)
{
  struct bench *bench = *state;

  connect_both(bench);
  bench->server.piece = 0;
  bench->client.to_send = BULK_BYTES;
  sock_watch(&bench->server.sock, false);
  on_ready(&bench->client);
  for (int i = 0; i < 20; i++)
    turn(bench);
  assert_true(bench->client.sent < BULK_BYTES / 2);
  assert_in_range(sock_pending(&bench->client.sock), 1, 30000);
  assert_in_range(bench->budget.used, 1, 2 * LIMITS_TLS_END_BYTES + 30000);
  bench->server.piece = LIMITS_RELAY_BYTES;
  sock_watch(&bench->server.sock, true);
  bench->server.to_send = BULK_BYTES;
  on_ready(&bench->server);
  RUN_UNTIL(bench, bench->server.got.len >= BULK_BYTES && bench->client.got.len >= BULK_BYTES);
  assert_pattern(&bench->server, BULK_BYTES);
}

/* F57: the socket has nothing more to tell while a record is only half read. */
static void test_read_in_pieces(void **state)
{
  struct bench *bench = *state;

  connect_both(bench);
  bench->server.piece = PIECE;
  bench->client.to_send = 10000;
  on_ready(&bench->client);
  RUN_UNTIL(bench, bench->server.got.len >= 10000);
  assert_pattern(&bench->server, 10000);
}

/* An end that was announced, in one direction; the other goes on. */
static void test_half_close(void **state)
{
  struct bench *bench = *state;

  connect_both(bench);
  bench->client.to_send = 30000;
  on_ready(&bench->client);
  sock_finish(&bench->client.sock);
  RUN_UNTIL(bench, bench->server.end != -EAGAIN);
  assert_int_equal(bench->server.end, 0);
  assert_true(bench->server.sock.eof);
  assert_pattern(&bench->server, 30000);
  bench->server.to_send = 1000;
  on_ready(&bench->server);
  sock_close(&bench->server.sock, false);
  RUN_UNTIL(bench, bench->client.end != -EAGAIN);
  assert_int_equal(bench->client.end, 0);
  assert_pattern(&bench->client, 1000);
}

/* The same, unannounced: an attacker may have cut the stream. */
static void test_truncated(void **state)
{
  struct bench *bench = *state;
  int copy;

  connect_both(bench);
  copy = dup(bench->client.sock.fd);
  bench->client.to_send = 1000;
  on_ready(&bench->client);
  turn(bench);
  shutdown(copy, SHUT_WR);
  RUN_UNTIL(bench, bench->server.end != -EAGAIN);
  assert_int_equal(bench->server.end, -ECONNABORTED);
  assert_int_equal(bench->server.sock.error, ECONNABORTED);
  assert_false(bench->server.sock.eof);
  assert_pattern(&bench->server, 1000);
  close(copy);
}

/* Where the certificate is for another name nothing is ever sent. */
static void test_names(void **state)
{
  static const struct {
    const char *wanted, *shown;
    bool good;
  } rows[] = {
    { "api.test", "other.test", false },       { "x.api.test", "api.test", false }, { "192.0.2.7", "192.0.2.7", true },
    { "192.0.2.7", "192.0.2.8", false },       { "192.0.2.7", "api.test", false },  { "api.test", "192.0.2.7", false },
    { "evil.example", "evil.example", false }, /* past the constraints of its CA */
  };
  struct bench *bench = *state;

  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    connect_ends(bench, rows[i].wanted, rows[i].shown);
    RUN_UNTIL(bench, !bench->client.shaking);
    if (bench->client.open != rows[i].good)
      fail_msg("%s with the certificate of %s: %s", rows[i].wanted, rows[i].shown, bench->client.err.message);
    if (!rows[i].good) {
      assert_int_equal(bench->client.failure, -EACCES);
      assert_true(strstr(bench->client.err.message, "its certificate is refused: "));
      assert_int_equal(sock_send(&bench->client.sock, SPAN("secret"), false), -EPROTO);
    }
    sock_close(&bench->client.sock, true);
    sock_close(&bench->server.sock, true);
  }
}

/* A client that does not trust the CA: the server learns of it. */
static void test_distrust(void **state)
{
  struct bench *bench = *state;
  struct tls *other = NULL;
  struct tls *kept = bench->tls;

  assert_int_equal(tls_new(NULL, &other), 0);
  bench->tls = other; /* it trusts nobody */
  connect_ends(bench, "api.test", "api.test");
  RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
  assert_int_equal(bench->client.failure, -EACCES);
  assert_int_equal(bench->server.failure, -EACCES);
  assert_true(strstr(bench->server.err.message, "does not trust"));
  sock_close(&bench->client.sock, true);
  sock_close(&bench->server.sock, true);
  tls_free(other);
  bench->tls = kept;
}

/* The bytes of a ClientHello that were read before, and the rest that comes over the socket. */
static void test_first_bytes(void **state)
{
  struct bench *bench = *state;
  char first[4096];
  int fds[2];
  ssize_t n;

  for (size_t size = 1; size < sizeof first; size = size * 3 + 1) {
    make_pair(fds);
    side_open(bench, &bench->client, fds[0]);
    shake_as_client(bench, "api.test");
    n = recv(fds[1], first, size, 0);
    assert_true(n > 0);
    side_open(bench, &bench->server, fds[1]);
    shake_as_server(bench, "api.test", (struct span){ first, (size_t)n });
    RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
    assert_true(bench->client.open && bench->server.open);
    sock_close(&bench->client.sock, true);
    sock_close(&bench->server.sock, true);
  }
}

/* The server answers what it was told, whatever the order of the offer; one that the client has not offered ends the
 * handshake. */
static void test_protocols(void **state)
{
  const tls_protocols both = TLS_HTTP_1_1 | TLS_HTTP_2;
  const struct {
    tls_protocols offered, chosen;
    bool good;
  } rows[] = {
    { TLS_HTTP_1_1, TLS_HTTP_1_1, true },
    { TLS_HTTP_2 | TLS_HTTP_2_FIRST, TLS_HTTP_2, true },
    { both | TLS_HTTP_2_FIRST, TLS_HTTP_1_1, true },
    { both, TLS_HTTP_2, true },
    { both, 0, true },
    { TLS_HTTP_2 | TLS_HTTP_2_FIRST, 0, true },
    { TLS_HTTP_1_1, TLS_HTTP_2, false },
    { TLS_HTTP_2 | TLS_HTTP_2_FIRST, TLS_HTTP_1_1, false },
  };
  struct bench *bench = *state;

  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    bench->offered = rows[i].offered;
    bench->chosen = rows[i].chosen;
    connect_ends(bench, "api.test", "api.test");
    RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
    if (bench->client.open != rows[i].good || bench->server.open != rows[i].good)
      fail_msg("row %zu: %s %s", i, bench->client.err.message, bench->server.err.message);
    if (rows[i].good) {
      assert_int_equal(tls_chosen(&bench->client.sock), rows[i].chosen);
      assert_int_equal(tls_chosen(&bench->server.sock), rows[i].chosen);
    }
    sock_close(&bench->client.sock, true);
    sock_close(&bench->server.sock, true);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_bulk),  TEST(test_back_pressure), TEST(test_read_in_pieces), TEST(test_half_close), TEST(test_truncated),
    TEST(test_names), TEST(test_distrust),      TEST(test_first_bytes),    TEST(test_protocols),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
