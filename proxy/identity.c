#include "proxy/identity.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define TLS_FIRST_TYPE 20
#define TLS_ALERT 21
#define TLS_HANDSHAKE 22
#define TLS_LAST_TYPE 24
#define TLS_MAJOR 3
#define TLS_STRANGE_MAJOR 0x10
#define SSL2_CLIENT_HELLO 1

static bool is_free_name(const struct host *host)
{
  return host->kind == HOST_ADDR || strcmp(host->name, "localhost") == 0;
}

static enum identity_answer refuse(struct err *err, const char *cause)
{
  err_set(err, EACCES, "%s", cause);
  return IDENTITY_REFUSE;
}

static enum identity_answer judge_hello(const struct tls_hello *hello, const struct policy *policy,
                                        const struct host *host, uint16_t port, struct err *err)
{
  /* Browsers send an extension that looks like ECH always (GREASE); where it is real, the outer name is the provider's
   * and differs from the target. So the outer name decides. */
  if (!hello->has_name)
    return is_free_name(host) ? IDENTITY_PASS : refuse(err, "its ClientHello names no host");
  if (host->kind == HOST_NAME && strcmp(hello->host.name, host->name) == 0)
    return IDENTITY_PASS;
  /* An address was allowed by a rule on addresses; the name must be allowed by itself. */
  if (host->kind == HOST_ADDR && decide_target(policy, &hello->host, port).allow)
    return IDENTITY_PASS;
  err_set(err, EACCES, "its ClientHello names %s", hello->host.name);
  return IDENTITY_REFUSE;
}

static enum identity_answer look_at_tls(struct identity *identity, const struct policy *policy, const struct host *host,
                                        uint16_t port, struct span bytes, struct err *err)
{
  char scratch[LIMITS_TLS_HELLO_BYTES];
  struct tls_hello hello = { .has_name = false };
  size_t len;
  int r = tls_hello_scan(&identity->scan, bytes, err, &len);

  if (r == 0)
    return IDENTITY_MORE;
  if (r > 0)
    r = tls_hello_parse(span_sub(bytes, 0, len), scratch, err, &hello);
  return r < 0 ? IDENTITY_REFUSE : judge_hello(&hello, policy, host, port, err);
}

bool identity_name(struct span bytes, struct host *ret_host)
{
  char scratch[LIMITS_TLS_HELLO_BYTES];
  struct tls_hello_scan scan = { .record = 0 };
  struct tls_hello hello;
  size_t len;

  if (tls_hello_scan(&scan, bytes, NULL, &len) <= 0 ||
      tls_hello_parse(span_sub(bytes, 0, len), scratch, NULL, &hello) < 0 || !hello.has_name)
    return false;
  *ret_host = hello.host;
  return true;
}

bool identity_is_tls(struct span bytes)
{
  return bytes.len && (unsigned char)bytes.ptr[0] == TLS_HANDSHAKE &&
         (bytes.len < 2 || (unsigned char)bytes.ptr[1] < TLS_STRANGE_MAJOR);
}

bool identity_is_answer(struct span bytes)
{
  unsigned type = bytes.len > 1 ? (unsigned char)bytes.ptr[0] : 0;

  if (span_starts_with(bytes, SPAN("HTTP/")))
    return true;
  return (type == TLS_ALERT || type == TLS_HANDSHAKE) && bytes.ptr[1] == TLS_MAJOR;
}

/* What a TLS server may take in front of a ClientHello or for one: OpenSSL skips an empty change of ciphers, Go and
 * Java a warning, Go whatever the version of its record up to 0x0fff. A hello in the form of SSL 2 names no host.
 * PASS: none of these. */
static enum identity_answer look_for_record(struct span bytes, bool end, struct err *err)
{
  unsigned first = (unsigned char)bytes.ptr[0];
  unsigned major = bytes.len > 1 ? (unsigned char)bytes.ptr[1] : TLS_MAJOR;
  bool record = first >= TLS_FIRST_TYPE && first <= TLS_LAST_TYPE &&
                (first == TLS_ALERT ? major < TLS_STRANGE_MAJOR : major == TLS_MAJOR);
  bool ssl2 = (first & 0x80) && (bytes.len < 3 || bytes.ptr[2] == SSL2_CLIENT_HELLO) &&
              (bytes.len < 4 || bytes.ptr[3] == TLS_MAJOR || bytes.ptr[3] == 0);

  if ((record && bytes.len < 2) || (ssl2 && bytes.len < 4))
    return end ? IDENTITY_PASS : IDENTITY_MORE;
  if (record)
    return refuse(err, "a TLS record that is not the ClientHello");
  if (ssl2)
    return refuse(err, "a hello in the form of SSL 2, which names no host");
  return IDENTITY_PASS;
}

/* Whether the ClientHello has to be read. An origin that has spoken first may speak a protocol whose packets begin with
 * the same byte (MySQL: the length), and the version tells. */
static bool is_hello(const struct identity *identity, struct span bytes)
{
  if (identity->spoken && bytes.len > 1 && bytes.ptr[1] != TLS_MAJOR)
    return false;
  return identity_is_tls(bytes);
}

/* Ports of protocols whose clients begin with what would be a request elsewhere: a URL (RTSP), `GET key` or `KEYS *`
 * (Redis), `get /key` (memcached). */
static bool is_home_of_another(uint16_t port)
{
  return port == 554 || port == 8554 || port == 6379 || port == 11211;
}

/* What would carry requests past the judgement. PASS: none of these. */
static enum identity_answer look_for_preface(const struct host *host, struct span bytes, bool end, struct err *err)
{
  static const struct span prefaces[] = { SPAN_INIT("PRI * HTTP/2.0"), SPAN_INIT("PROXY "),
                                          SPAN_INIT("\r\n\r\n\0\r\nQUIT\n") };

  for (size_t i = 0; i < MEM_COUNT(prefaces); i++) {
    if (!end && bytes.len < prefaces[i].len && span_starts_with(prefaces[i], bytes))
      return IDENTITY_MORE;
    if (!span_starts_with(bytes, prefaces[i]))
      continue;
    if (i > 0)
      return refuse(err, "a PROXY header hides what follows it");
    if (!is_free_name(host))
      return refuse(err, "HTTP/2 in the clear cannot be judged; use TLS");
  }
  return IDENTITY_PASS;
}

static enum identity_answer look_for_request(struct identity *identity, uint16_t port, struct span bytes, bool end,
                                             struct err *err)
{
  bool last = bytes.len >= LIMITS_HTTP_HEAD_BYTES;
  enum first_line_answer answer;

  if (identity->spoken || is_home_of_another(port))
    answer = first_line_look_plainly(bytes, end);
  else
    answer = first_line_look(&identity->line, bytes, end);
  switch (answer) {
  case FIRST_LINE_MORE:
    return last ? refuse(err, "its first line does not end") : IDENTITY_MORE;
  case FIRST_LINE_STREAM:
    return last ? IDENTITY_PASS : IDENTITY_STREAM;
  case FIRST_LINE_REQUEST:
    return IDENTITY_HTTP;
  case FIRST_LINE_OTHER:
  default:
    return IDENTITY_PASS;
  }
}

enum identity_answer identity_look(struct identity *identity, const struct policy *policy, const struct host *host,
                                   uint16_t port, struct span bytes, bool end, struct err *err)
{
  enum identity_answer answer;

  if (!bytes.len)
    return end ? IDENTITY_PASS : IDENTITY_MORE;
  if (!is_hello(identity, bytes)) {
    answer = identity->spoken ? IDENTITY_PASS : look_for_record(bytes, end, err);
    if (answer != IDENTITY_PASS)
      return answer;
    answer = look_for_preface(host, bytes, end, err);
    if (answer == IDENTITY_PASS && !span_starts_with(bytes, SPAN("PRI * HTTP/2.0")))
      answer = look_for_request(identity, port, bytes, end, err);
    return answer;
  }
  answer = look_at_tls(identity, policy, host, port, bytes, err);
  return answer == IDENTITY_MORE && end ? refuse(err, "its ClientHello is cut short") : answer;
}
