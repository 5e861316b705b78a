/* TLS as a layer of a sock: what OpenSSL's own ends see of it, and what it trusts. */
#include "unit/tls_bench.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

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

/* An end behind tickets is news: a request that went to such an origin would be lost. */
static void test_end_behind_tickets(void **state)
{
  struct bench *bench = *state;
  SSL_CTX *context = raw_context(bench, TLS_server_method());
  SSL *ssl;
  int fds[2];

  make_pair(fds);
  side_open(bench, &bench->client, fds[0]);
  shake_as_client(bench, "api.test");
  ssl = accept_raw(bench, context, fds[1]);
  assert_true(bench->client.open);
  bench->client.piece = 0;
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 3; i++) {
      assert_int_equal(SSL_new_session_ticket(ssl), 1);
      assert_int_equal(SSL_do_handshake(ssl), 1);
    }
    if (round == 1)
      assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    bench->client.sock.readable = true;
    assert_int_equal(sock_stirs(&bench->client.sock), round == 1);
  }
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
  assert_int_equal(tls_client(bench->tls, &bench->client.sock, &host, TLS_HTTP_1_1), -ENOBUFS);
  assert_null(bench->client.sock.layer);
  close(fds[1]);
}

/* Whether a certificate that is trusted as such is enough. */
static bool trusts_itself(struct bench *bench)
{
  struct host host = target("api.test");
  struct tls *kept = bench->tls;
  BIO *bio = BIO_new(BIO_s_mem());
  const struct ca_leaf *leaf;
  const char *text;
  bool trusted;
  long len;

  assert_int_equal(ca_leaf(bench->ca, &host, NULL, &leaf), 0);
  assert_int_equal(PEM_write_bio_X509(bio, leaf->certificate), 1);
  len = BIO_get_mem_data(bio, &text);
  assert_int_equal(tls_new(NULL, &bench->tls), 0);
  assert_int_equal(tls_trust(bench->tls, (struct span){ text, (size_t)len }, NULL), 1);
  connect_ends(bench, "api.test", "api.test");
  RUN_UNTIL(bench, !bench->client.shaking && !bench->server.shaking);
  trusted = bench->client.open;
  sock_close(&bench->client.sock, true);
  sock_close(&bench->server.sock, true);
  tls_free(bench->tls);
  bench->tls = kept;
  BIO_free(bio);
  return trusted;
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
  /* What the host trusts need not be a root. */
  assert_true(trusts_itself(bench));
  buf_append(&twice, text);
  assert_int_equal(tls_trust(bench->tls, buf_span(&twice), &err), -EINVAL);
  assert_string_equal(err.message, "certificate 3 cannot be read");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_as_client), TEST(test_end_behind_tickets), TEST(test_as_server), TEST(test_no_tls), TEST(test_budget),
    TEST(test_trust),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
