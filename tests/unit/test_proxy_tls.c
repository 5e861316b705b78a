/* TLS as a layer of a sock: both ends ours in a real loop, or one of them OpenSSL's own across a socket. */
#include "base/fd.h"
#include "proxy/tls.h"
#include "unit/unit.h"

#include <openssl/ssl.h>
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
};

static char pattern(size_t at)
{
  return (char)(at * 7 + at / 251);
}

static void send_some(struct side *side)
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

static void on_ready(void *data)
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

static void on_late(void *data)
{
  struct bench *bench = data;

  bench->late = true;
  loop_stop(bench->loop);
}

static void on_turn(void *data)
{
  loop_stop(((struct bench *)data)->loop);
}

/* Lets the loop run for a moment. */
static void turn(struct bench *bench)
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

static struct host target(const char *name)
{
  struct host host;

  assert_int_equal(host_parse(span_of(name), NULL, &host), 0);
  return host;
}

static void side_open(struct bench *bench, struct side *side, int fd)
{
  *side = (struct side){ .end = -EAGAIN, .got = BUF_INIT(2 * BULK_BYTES), .piece = LIMITS_RELAY_BYTES };
  assert_int_equal(fd_set_nonblock(fd, true), 0);
  assert_int_equal(sock_open(&side->sock, bench->loop, &bench->budget, fd, on_ready, side), 0);
}

static void make_pair(int fds[2])
{
  int small = 4096;

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
}

static void shake_as_client(struct bench *bench, const char *name)
{
  struct host host = target(name);

  assert_int_equal(tls_client(bench->tls, &bench->client.sock, &host), 0);
  bench->client.shaking = true;
  on_ready(&bench->client);
}

static void shake_as_server(struct bench *bench, const char *name, struct span first)
{
  const struct ca_leaf *leaf;
  struct host host = target(name);

  assert_int_equal(ca_leaf(bench->ca, &host, NULL, &leaf), 0);
  assert_int_equal(tls_server(bench->tls, &bench->server.sock, leaf, first), 0);
  bench->server.shaking = true;
  on_ready(&bench->server);
}

/* Both ends ours: a client that wants one name, a server that shows another or the same. */
static void connect_ends(struct bench *bench, const char *wanted, const char *shown)
{
  int fds[2];

  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  side_open(bench, &bench->server, fds[1]);
  shake_as_client(bench, wanted);
  shake_as_server(bench, shown, SPAN(""));
}

static void connect_both(struct bench *bench)
{
  connect_ends(bench, "api.test", "api.test");
  RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
  if (!bench->client.open || !bench->server.open)
    fail_msg("%s %s", bench->client.err.message, bench->server.err.message);
}

static int setup(void **state)
{
  static const struct policy none;
  struct bench *bench = mem_calloc(1, sizeof *bench);
  struct policy policy = none;
  struct policy_rule rules[] = { { .kind = POLICY_HOST_NAME, .name = (char[]){ "test" } },
                                 { .kind = POLICY_HOST_PREFIX,
                                   .prefix = { .addr = { .bytes = { 192, 0, 2, 0 } }, .length = 24 } } };
  struct policy_credential credential = { .bind = { .items = rules, .count = 2 } };
  struct err err = ERR_INIT;

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

static int teardown(void **state)
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
  assert_int_equal(bench->server.end, -ECONNRESET);
  assert_int_equal(bench->server.sock.error, ECONNRESET);
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

/* OpenSSL's own server on the other side, blocking, after a handshake with our client. */
static SSL *accept_raw(struct bench *bench, SSL_CTX *context, int fd)
{
  SSL *ssl = SSL_new(context);
  int r = -1;

  assert_int_equal(SSL_set_fd(ssl, fd), 1);
  assert_int_equal(fd_set_nonblock(fd, true), 0);
  for (int i = 0; i < 200 && r != 1; i++) {
    r = SSL_accept(ssl);
    turn(bench);
  }
  assert_int_equal(r, 1);
  return ssl;
}

static SSL_CTX *raw_context(struct bench *bench, const SSL_METHOD *method)
{
  struct host host = target("api.test");
  SSL_CTX *context = SSL_CTX_new(method);
  const struct ca_leaf *leaf;

  assert_int_equal(ca_leaf(bench->ca, &host, NULL, &leaf), 0);
  assert_int_equal(SSL_CTX_use_certificate(context, leaf->certificate), 1);
  assert_int_equal(SSL_CTX_use_PrivateKey(context, leaf->key), 1);
  return context;
}

static int accept_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len, const unsigned char *offered,
                           unsigned len, void *data)
{
  struct buf *seen = data;

  (void)ssl;
  buf_append(seen, (struct span){ (const char *)offered, len });
  *ret = offered + 1;
  *ret_len = offered[0];
  return SSL_TLSEXT_ERR_OK;
}

/* What a server sees of us, and tickets: bytes for TLS alone, which are no news for the owner. */
static void test_as_client(void **state)
{
  buf_autofree struct buf seen = BUF_INIT(100);
  struct bench *bench = *state;
  SSL_CTX *context = raw_context(bench, TLS_server_method());
  SSL *ssl;
  int fds[2];

  SSL_CTX_set_alpn_select_cb(context, accept_protocol, &seen);
  SSL_CTX_set_num_tickets(context, 2);
  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  shake_as_client(bench, "api.test");
  ssl = accept_raw(bench, context, fds[1]);
  assert_true(bench->client.open);
  assert_string_equal(seen.data, "\x08http/1.1");
  assert_string_equal(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), "api.test");
  bench->client.piece = 0;
  bench->client.sock.readable = true;
  assert_false(sock_stirs(&bench->client.sock));
  assert_int_equal(SSL_write(ssl, "x", 1), 1);
  bench->client.sock.readable = true;
  assert_true(sock_stirs(&bench->client.sock));
  bench->client.piece = LIMITS_RELAY_BYTES;
  on_ready(&bench->client);
  assert_string_equal(bench->client.got.data, "x");
  assert_int_equal(SSL_shutdown(ssl), 0);
  bench->client.sock.readable = true;
  assert_true(sock_stirs(&bench->client.sock));
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(fds[1]);
}

/* A client of OpenSSL's own: the protocols that it may offer, and the versions. */
static int connect_raw(struct bench *bench, const char *protocols, int version)
{
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  SSL *ssl = SSL_new(context);
  int fds[2];
  int got;

  SSL_set_connect_state(ssl);
  SSL_set_max_proto_version(ssl, version);
  SSL_set_min_proto_version(ssl, version);
  SSL_set_security_level(ssl, 0);
  if (protocols)
    SSL_set_alpn_protos(ssl, (const unsigned char *)protocols, (unsigned)strlen(protocols));
  make_pair(fds);
  SSL_set_fd(ssl, fds[0]);
  assert_int_equal(fd_set_nonblock(fds[0], true), 0);
  side_open(bench, &bench->server, fds[1]);
  shake_as_server(bench, "api.test", SPAN(""));
  for (int i = 0; i < 200 && bench->server.shaking; i++) {
    SSL_do_handshake(ssl);
    turn(bench);
  }
  got = bench->server.open ? SSL_version(ssl) : bench->server.failure;
  if (bench->server.open && protocols) {
    const unsigned char *name;
    unsigned len;

    SSL_get0_alpn_selected(ssl, &name, &len);
    assert_int_equal(len, 8);
    assert_memory_equal(name, "http/1.1", 8);
  }
  sock_close(&bench->server.sock, true);
  close(fds[0]);
  SSL_free(ssl);
  SSL_CTX_free(context);
  return got;
}

static void test_as_server(void **state)
{
  struct bench *bench = *state;

  assert_int_equal(connect_raw(bench, NULL, TLS1_3_VERSION), TLS1_3_VERSION);
  assert_int_equal(connect_raw(bench, NULL, TLS1_2_VERSION), TLS1_2_VERSION);
  assert_int_equal(connect_raw(bench, "\x02h2\x08http/1.1", TLS1_3_VERSION), TLS1_3_VERSION);
  assert_int_equal(connect_raw(bench, "\x02h2", TLS1_3_VERSION), -EPROTO);
  assert_int_equal(connect_raw(bench, NULL, TLS1_1_VERSION), -EPROTO);
}

static void test_no_tls(void **state)
{
  struct bench *bench = *state;
  int fds[2];

  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  shake_as_client(bench, "api.test");
  assert_int_equal(send(fds[1], "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0), 28);
  RUN_UNTIL(bench, !bench->client.shaking);
  assert_int_equal(bench->client.failure, -EPROTO);
  sock_close(&bench->client.sock, true);
  close(fds[1]);
  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  shake_as_client(bench, "api.test");
  shutdown(fds[1], SHUT_WR);
  RUN_UNTIL(bench, !bench->client.shaking);
  assert_int_equal(bench->client.failure, -ECONNRESET);
  close(fds[1]);
}

static void test_budget(void **state)
{
  struct bench *bench = *state;
  struct host host = target("api.test");
  int fds[2];

  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  bench->budget.max = LIMITS_TLS_END_BYTES - 1;
  assert_int_equal(tls_client(bench->tls, &bench->client.sock, &host), -ENOBUFS);
  assert_null(bench->client.sock.layer);
  close(fds[1]);
}

static void test_trust(void **state)
{
  static const struct span text = SPAN_INIT("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  struct bench *bench = *state;
  buf_autofree struct buf twice = BUF_INIT(100000);
  struct err err = ERR_INIT;

  assert_int_equal(tls_trust(bench->tls, SPAN("# nothing\n"), &err), 0);
  buf_append_str(&twice, "a comment\n");
  buf_append(&twice, ca_pem(bench->ca));
  buf_append(&twice, ca_pem(bench->ca));
  assert_int_equal(tls_trust(bench->tls, buf_span(&twice), &err), 2);
  buf_append(&twice, text);
  assert_int_equal(tls_trust(bench->tls, buf_span(&twice), &err), -EINVAL);
  assert_string_equal(err.message, "certificate 3 cannot be read");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_bulk),   TEST(test_back_pressure), TEST(test_read_in_pieces), TEST(test_half_close), TEST(test_truncated),
    TEST(test_names),  TEST(test_distrust),      TEST(test_first_bytes),    TEST(test_as_client),  TEST(test_as_server),
    TEST(test_no_tls), TEST(test_budget),        TEST(test_trust),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
