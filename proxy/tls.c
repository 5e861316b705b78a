/* Theory of operation
 *
 * OpenSSL reads and writes the socket through a BIO of ours, which first gives out what was read before TLS began (the
 * ClientHello that was judged), and sends without signals. It holds one record at most in each direction:
 *
 *   reading   no read-ahead: what is left of a record after SSL_read() is SSL_pending(), and sock.c asks for it (holds)
 *   writing   what the socket does not take of a record stays in OpenSSL; the same bytes stay in the sock's queue, and
 *             SSL_write() gets them again (SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER)
 *
 * So back-pressure works as on a bare socket, and an end that is idle has no buffers (SSL_MODE_RELEASE_BUFFERS). What
 * an end is taken to hold is charged to the budget as a whole.
 *
 *   state       then
 *   shaking     tls_shake() alone may be called
 *   open        recv, send, finish
 *   unwritable  the socket has failed to send: recv alone
 *   broken      after a fatal error: nothing is sent any more, not even an alert
 */
#include "config.h"

#include "proxy/tls.h"

#include "base/fd.h"
#include "base/mem.h"
#include "policy/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>

#define OWN_MESSAGES 8 /* of TLS, that one read goes on after */
#define HTTP_1_1 "\x08http/1.1"
#define HTTP_2 "\x02h2"

struct tls {
  SSL_CTX *client;
  SSL_CTX *server;
  BIO_METHOD *method;
};

struct end {
  SSL *ssl;
  int fd; /* the sock's */
  struct budget *budget;
  struct buf first; /* what the peer has sent before TLS began */
  size_t given; /* of it */
  bool is_server;
  tls_protocols protocol; /* is_server: what the client is answered */
  bool broken;
  bool unwritable; /* the socket takes nothing any more; what the peer has sent before can be read */
  bool cut; /* the socket has ended */
  int error; /* the last of the socket, as a positive errno; 0: none */
  bool dry; /* the socket had no bytes when it was read last */
  unsigned shake_waits; /* LOOP_READ, LOOP_WRITE */
  unsigned recv_waits;
  unsigned send_waits;
};

/* The BIO. */

static int bio_recv(BIO *bio, char *bytes, size_t size, size_t *ret_count)
{
  struct end *end = BIO_get_data(bio);
  struct span first = span_sub(buf_span(&end->first), end->given, end->first.len);
  ssize_t n = 0;

  BIO_clear_retry_flags(bio);
  if (first.len) {
    *ret_count = first.len < size ? first.len : size;
    memcpy(bytes, first.ptr, *ret_count);
    end->given += *ret_count;
    if (end->given == end->first.len) {
      buf_free(&end->first);
      end->given = 0;
    }
    return 1;
  }
  do
    n = recv(end->fd, bytes, size, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  end->cut = n == 0;
  end->dry = n < 0 && errno == EAGAIN;
  if (end->dry)
    BIO_set_retry_read(bio);
  else if (n < 0)
    end->error = errno;
  *ret_count = n > 0 ? (size_t)n : 0;
  return n > 0;
}

static int bio_send(BIO *bio, const char *bytes, size_t size, size_t *ret_count)
{
  struct end *end = BIO_get_data(bio);
  ssize_t n;

  BIO_clear_retry_flags(bio);
  do
    n = send(end->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN)
    BIO_set_retry_write(bio);
  else if (n < 0)
    end->error = errno;
  *ret_count = n > 0 ? (size_t)n : 0;
  return n > 0;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
  const struct end *end = BIO_get_data(bio);

  (void)number;
  (void)pointer;
  if (command == BIO_CTRL_EOF)
    return end->cut;
  return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

static BIO_METHOD *method_new(void)
{
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sock");

  if (method && BIO_meth_set_read_ex(method, bio_recv) == 1 && BIO_meth_set_write_ex(method, bio_send) == 1 &&
      BIO_meth_set_ctrl(method, bio_control) == 1)
    return method;
  BIO_meth_free(method);
  return NULL;
}

/* What a call of OpenSSL has come to. */

/* -EAGAIN with what it waits for in *ret_waits; 0 at the announced end; -ECONNABORTED at another, or -errno, and the
 * end is broken. */
static int outcome(struct end *end, int r, unsigned *ret_waits)
{
  *ret_waits = 0;
  switch (SSL_get_error(end->ssl, r)) {
  case SSL_ERROR_WANT_READ:
    *ret_waits = LOOP_READ;
    return -EAGAIN;
  case SSL_ERROR_WANT_WRITE:
    *ret_waits = LOOP_WRITE;
    return -EAGAIN;
  case SSL_ERROR_ZERO_RETURN:
    return 0;
  default:
    end->broken = true;
    return end->error ? -end->error : end->cut ? -ECONNABORTED : -EPROTO;
  }
}

/* A call may come to a message of TLS's own, such as a ticket; of an answer or end behind it nobody tells again. */
static int take(struct end *end, bool peek, char *bytes, size_t size, size_t *ret_count)
{
  unsigned left = OWN_MESSAGES;
  int r;

  do {
    ERR_clear_error();
    end->dry = false;
    r = peek ? SSL_peek_ex(end->ssl, bytes, size, ret_count) : SSL_read_ex(end->ssl, bytes, size, ret_count);
  } while (r != 1 && !end->dry && SSL_get_error(end->ssl, r) == SSL_ERROR_WANT_READ && --left > 0);
  return r;
}

static ssize_t end_recv(void *data, char *bytes, size_t size)
{
  struct end *end = data;
  size_t count = 0;
  int r;

  if (end->broken)
    return -EPROTO;
  r = take(end, false, bytes, size, &count);
  end->recv_waits = 0;
  if (r == 1)
    return (ssize_t)count;
  r = outcome(end, r, &end->recv_waits);
  end->recv_waits &= LOOP_WRITE; /* the owner waits for bytes itself */
  return r;
}

static ssize_t end_send(void *data, struct span bytes)
{
  struct end *end = data;
  size_t count = 0;
  int r;

  if (end->broken || end->unwritable)
    return -EPROTO;
  ERR_clear_error();
  r = SSL_write_ex(end->ssl, bytes.ptr, bytes.len, &count);
  end->send_waits = 0;
  if (r == 1)
    return (ssize_t)count;
  if (SSL_get_error(end->ssl, r) == SSL_ERROR_SYSCALL) {
    end->unwritable = true;
    return end->error ? -end->error : -EPIPE;
  }
  r = outcome(end, r, &end->send_waits);
  end->send_waits &= LOOP_READ;
  return r ? r : -EPIPE;
}

static int end_finish(void *data)
{
  struct end *end = data;
  unsigned waits;
  int r;

  if (end->broken || end->unwritable || !SSL_is_init_finished(end->ssl))
    return 0;
  ERR_clear_error();
  r = SSL_shutdown(end->ssl);
  return r >= 0 ? 0 : outcome(end, r, &waits);
}

static bool end_peek(void *data)
{
  struct end *end = data;
  unsigned waits;
  size_t count;
  char byte;
  int r;

  if (end->broken)
    return true;
  r = take(end, true, &byte, 1, &count);
  return r == 1 || outcome(end, r, &waits) != -EAGAIN;
}

static bool end_holds(const void *data)
{
  const struct end *end = data;

  return !end->broken && (SSL_pending(end->ssl) > 0 || end->first.len > 0);
}

static unsigned end_waits(const void *data)
{
  const struct end *end = data;

  return end->broken ? 0 : end->shake_waits | end->recv_waits | end->send_waits;
}

static void end_free(void *data)
{
  struct end *end = data;

  budget_give(end->budget, LIMITS_TLS_END_BYTES);
  SSL_free(end->ssl);
  buf_free(&end->first);
  free(end);
}

static const struct sock_layer layer = {
  .recv = end_recv,
  .send = end_send,
  .finish = end_finish,
  .peek = end_peek,
  .holds = end_holds,
  .waits = end_waits,
  .free = end_free,
};

/* Contexts. */

static int fail(struct err *err, const char *step)
{
  return err_set(err, EIO, "tls: %s failed", step);
}

/* As ALPN has them on the wire. */
static struct span names_of(tls_protocols protocols)
{
  switch (protocols) {
  case TLS_HTTP_2:
  case TLS_HTTP_2 | TLS_HTTP_2_FIRST:
    return SPAN(HTTP_2);
  case TLS_HTTP_1_1:
    return SPAN(HTTP_1_1);
  case TLS_HTTP_1_1 | TLS_HTTP_2:
    return SPAN(HTTP_1_1 HTTP_2);
  default:
    return SPAN(HTTP_2 HTTP_1_1);
  }
}

static bool select_of(struct span wanted, const unsigned char *offered, unsigned len, const unsigned char **ret_name,
                      unsigned char *ret_len)
{
  unsigned char *name = NULL;

  if (SSL_select_next_proto(&name, ret_len, (const unsigned char *)wanted.ptr, (unsigned)wanted.len, offered, len) !=
      OPENSSL_NPN_NEGOTIATED)
    return false;
  *ret_name = name;
  return true;
}

/* A client that offers protocols, and not what it would get, would not understand that. */
static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
                           const unsigned char *offered, unsigned len, void *data)
{
  const struct end *end = BIO_get_data(SSL_get_rbio(ssl));
  struct span wanted = names_of(end->protocol ? end->protocol : TLS_HTTP_1_1 | TLS_HTTP_2);

  (void)data;
  if (!select_of(wanted, offered, len, ret_name, ret_len))
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  return end->protocol ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static bool set_up(SSL_CTX *context)
{
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

static SSL_CTX *client_new(void)
{
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());

  if (!context)
    return NULL;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  /* Who has put a company's own authority there means it, also where it is not a root. */
  X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_PARTIAL_CHAIN);
  if (set_up(context))
    return context;
  SSL_CTX_free(context);
  return NULL;
}

static SSL_CTX *server_new(void)
{
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());

  if (!context)
    return NULL;
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
  if (set_up(context) && SSL_CTX_set_num_tickets(context, 0) == 1)
    return context;
  SSL_CTX_free(context);
  return NULL;
}

int tls_new(struct err *err, struct tls **ret_tls)
{
  struct tls *tls = mem_calloc(1, sizeof *tls);

  if (!tls)
    return err_set(err, ENOMEM, "tls: out of memory");
  tls->method = method_new();
  tls->client = client_new();
  tls->server = server_new();
  if (tls->method && tls->client && tls->server) {
    *ret_tls = tls;
    return 0;
  }
  tls_free(tls);
  return fail(err, "setting up");
}

void tls_free(struct tls *tls)
{
  if (!tls)
    return;
  SSL_CTX_free(tls->client);
  SSL_CTX_free(tls->server);
  BIO_meth_free(tls->method);
  free(tls);
}

int tls_trust(struct tls *tls, struct span pem, struct err *err)
{
  X509_STORE *store = SSL_CTX_get_cert_store(tls->client);
  BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
  X509 *certificate;
  int count = 0;
  bool added = bio;

  while (added && (certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
    added = X509_STORE_add_cert(store, certificate) == 1;
    X509_free(certificate);
    count += added;
  }
  added = added && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; /* that is the end */
  ERR_clear_error();
  BIO_free(bio);
  return added ? count : err_set(err, EINVAL, "certificate %d cannot be read", count + 1);
}

int tls_read_host(struct err *err, struct buf *out)
{
  const char *const files[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Gentoo, NixOS */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
    "/etc/pki/tls/certs/ca-bundle.crt", /* older ones */
    "/etc/ssl/ca-bundle.pem", /* openSUSE */
    "/etc/ssl/cert.pem", /* Alpine */
    X509_get_default_cert_file(),
  };

  for (size_t i = 0; i < MEM_COUNT(files); i++) {
    buf_autofree struct buf text = BUF_INIT(LIMITS_ROOTS_BYTES);
    int r = fd_read_file(AT_FDCWD, files[i], &text);

    if (r == -ENOENT || r == -ENOTDIR)
      continue;
    if (r < 0)
      return err_set_errno(err, -r, "tls: %s", files[i]);
    if (!text.len || !strstr(text.data, "-----BEGIN "))
      continue;
    buf_append(out, buf_span(&text));
    return buf_error(out) ? err_set_errno(err, -buf_error(out), "tls: %s", files[i]) : 0;
  }
  return err_set(err, ENOENT,
                 "tls: there is no file of trusted authorities on this host, so no origin could be verified; "
                 "install ca-certificates");
}

/* Ends. */

/* A name is what the certificate must have as a whole label for each wildcard, and never its common name. */
static bool expect(SSL *ssl, const struct host *host)
{
  struct host named = *host; /* OpenSSL's macro takes no const text; it copies it */
  X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
  size_t size = host->addr.family == ADDR_V4 ? 4 : 16;

  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (host->kind == HOST_ADDR)
    return X509_VERIFY_PARAM_set1_ip(param, host->addr.bytes, size) == 1;
  return X509_VERIFY_PARAM_set1_host(param, host->name, 0) == 1 && SSL_set_tlsext_host_name(ssl, named.name) == 1;
}

static bool connect_bio(const struct tls *tls, struct end *end)
{
  BIO *bio = BIO_new(tls->method);

  if (!bio)
    return false;
  BIO_set_data(bio, end);
  BIO_set_init(bio, 1);
  SSL_set_bio(end->ssl, bio, bio);
  return true;
}

/* NULL when memory is short. */
static struct end *end_new(const struct tls *tls, SSL_CTX *context, const struct sock *sock)
{
  struct end *end = mem_calloc(1, sizeof *end);

  if (!end)
    return NULL;
  end->ssl = SSL_new(context);
  end->fd = sock->fd;
  end->budget = sock->budget;
  end->first = (struct buf)BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  if (end->ssl && connect_bio(tls, end))
    return end;
  SSL_free(end->ssl);
  free(end);
  return NULL;
}

int tls_client(struct tls *tls, struct sock *sock, const struct host *host, tls_protocols offered)
{
  struct span names = names_of(offered);
  struct end *end;

  if (!budget_take(sock->budget, LIMITS_TLS_END_BYTES))
    return -ENOBUFS;
  end = end_new(tls, tls->client, sock);
  if (!end) {
    budget_give(sock->budget, LIMITS_TLS_END_BYTES);
    return -ENOMEM;
  }
  if (!expect(end->ssl, host) ||
      SSL_set_alpn_protos(end->ssl, (const unsigned char *)names.ptr, (unsigned)names.len) != 0) {
    end_free(end);
    return -EIO;
  }
  SSL_set_connect_state(end->ssl);
  sock_set_layer(sock, &layer, end);
  return 0;
}

int tls_server(struct tls *tls, struct sock *sock, const struct ca_leaf *leaf, struct span first, tls_protocols chosen)
{
  struct end *end;

  if (!budget_take(sock->budget, LIMITS_TLS_END_BYTES))
    return -ENOBUFS;
  end = end_new(tls, tls->server, sock);
  if (!end) {
    budget_give(sock->budget, LIMITS_TLS_END_BYTES);
    return -ENOMEM;
  }
  buf_append(&end->first, first);
  if (buf_error(&end->first) || SSL_use_certificate(end->ssl, leaf->certificate) != 1 ||
      SSL_use_PrivateKey(end->ssl, leaf->key) != 1) {
    end_free(end);
    return -EIO;
  }
  end->is_server = true;
  end->protocol = chosen;
  SSL_set_accept_state(end->ssl);
  sock_set_layer(sock, &layer, end);
  return 0;
}

tls_protocols tls_chosen(const struct sock *sock)
{
  const struct end *end = sock->layer_data;
  const unsigned char *name;
  unsigned len;
  struct span chosen;

  SSL_get0_alpn_selected(end->ssl, &name, &len);
  chosen = (struct span){ (const char *)name, len };
  return span_equal(chosen, SPAN("h2")) ? TLS_HTTP_2 : span_equal(chosen, SPAN("http/1.1")) ? TLS_HTTP_1_1 : 0;
}

/* The handshake. */

/* Alerts by which a client says that it does not take our certificate (RFC 8446, 6.2). */
static bool is_distrust(int alert)
{
  switch (alert) {
  case SSL_AD_BAD_CERTIFICATE:
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_EXPIRED:
  case SSL_AD_CERTIFICATE_UNKNOWN:
  case SSL_AD_UNKNOWN_CA:
    return true;
  default:
    return false;
  }
}

/* Why it failed. r: what outcome() has made of it. */
static int explain(const struct end *end, int r, struct err *err)
{
  unsigned long code = ERR_peek_error();
  int reason = ERR_GET_REASON(code);
  long verified = SSL_get_verify_result(end->ssl);

  if (!end->is_server && verified != X509_V_OK)
    return err_set(err, EACCES, "its certificate is refused: %s", X509_verify_cert_error_string(verified));
  if (code && reason >= SSL_AD_REASON_OFFSET) {
    const char *alert = SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET);

    if (end->is_server && is_distrust(reason - SSL_AD_REASON_OFFSET))
      return err_set(err, EACCES, "it does not trust the certificate of " SBX_NAME "'s CA (%s)", alert);
    return err_set(err, EPROTO, "it refuses the handshake (%s)", alert);
  }
  if (end->cut)
    return err_set(
        err, ECONNRESET,
        end->is_server
            ? "it ended the connection during the handshake, as some do that do not trust the CA of " SBX_NAME
            : "it ended the connection during the handshake");
  if (end->error)
    return err_set_errno(err, -r, "the handshake failed");
  return err_set(err, EPROTO, "the handshake failed: %s", code ? ERR_reason_error_string(code) : "no cause is known");
}

int tls_shake(struct sock *sock, struct err *err)
{
  struct end *end = sock->layer_data;
  int r;

  if (end->broken)
    return err_set(err, EPROTO, "the handshake failed");
  ERR_clear_error();
  r = SSL_do_handshake(end->ssl);
  if (r == 1) {
    end->shake_waits = 0;
    sock->readable = true;
    return 1;
  }
  r = outcome(end, r, &end->shake_waits);
  if (r != -EAGAIN)
    return explain(end, r, err);
  sock_watch(sock, false);
  return 0;
}
