#include "proxy/identity.h"

#include "proxy/http_head.h"

#include <errno.h>
#include <string.h>

#define TLS_FIRST_TYPE 20
#define TLS_ALERT 21
#define TLS_HANDSHAKE 22
#define TLS_LAST_TYPE 26
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

bool identity_is_tls(struct span bytes)
{
  return bytes.len && (unsigned char)bytes.ptr[0] == TLS_HANDSHAKE;
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
  bool record = first >= TLS_FIRST_TYPE && first <= TLS_LAST_TYPE;
  bool ssl2 = first & 0x80;

  if ((record && bytes.len < 2) || (ssl2 && bytes.len < 3))
    return end ? IDENTITY_PASS : IDENTITY_MORE;
  if (record && (unsigned char)bytes.ptr[1] < TLS_STRANGE_MAJOR)
    return refuse(err, "a TLS record that is not the ClientHello");
  if (ssl2 && bytes.ptr[2] == SSL2_CLIENT_HELLO)
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

static bool holds_nocase(struct span line, struct span word)
{
  for (size_t i = 0; i + word.len <= line.len; i++) {
    if (span_equal_nocase(span_sub(line, i, word.len), word))
      return true;
  }
  return false;
}

/* Space as the most lenient of servers may see it in front of and within a request line. */
static bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static size_t count_words(struct span line)
{
  size_t count = 0;

  for (size_t i = 0; i < line.len; i++) {
    bool inside = !is_space(line.ptr[i]) && line.ptr[i] != '\r';

    if (inside && (i == 0 || is_space(line.ptr[i - 1])))
      count++;
  }
  return count;
}

/* A request line has "HTTP/" in it; of HTTP/0.9, two words the second of which may be a whole URL. */
static bool is_request(struct span line)
{
  return holds_nocase(line, SPAN("HTTP/")) || (count_words(line) == 2 && holds_nocase(line, SPAN("://")));
}

static struct span skip_empty_lines(struct span bytes)
{
  while (bytes.len && (bytes.ptr[0] == '\r' || bytes.ptr[0] == '\n' || is_space(bytes.ptr[0])))
    bytes = span_sub(bytes, 1, bytes.len);
  return bytes;
}

/* A first line that an HTTP server might take for a request: a token, a space, and what is_request() looks for. Servers
 * skip empty lines in front of it (RFC 9112, 2.2), so they are skipped here. A line that does not end is waited for:
 * passing its beginning would let the rest follow unseen. No server takes a NUL in it. */
static enum identity_answer look_for_request(const struct host *host, struct span bytes, bool end, struct err *err)
{
  bool last = end || bytes.len >= LIMITS_HTTP_HEAD_BYTES;
  struct span line;
  size_t token = 0;

  bytes = skip_empty_lines(bytes);
  while (token < bytes.len && http_head_is_token((unsigned char)bytes.ptr[token]))
    token++;
  if (token == bytes.len)
    return end ? IDENTITY_PASS : last ? refuse(err, "its first line does not end") : IDENTITY_MORE;
  if (token == 0 || !is_space(bytes.ptr[token]))
    return IDENTITY_PASS;
  line = span_sub(bytes, 0, span_find(bytes, '\n'));
  if (span_find(line, '\0') < line.len)
    return IDENTITY_PASS;
  if (line.len == bytes.len && !last)
    return IDENTITY_MORE;
  if (span_starts_with(line, SPAN("PRI * HTTP/2.0")))
    return is_free_name(host) ? IDENTITY_PASS : refuse(err, "HTTP/2 in the clear cannot be judged; use TLS");
  if (span_starts_with(line, SPAN("PROXY ")))
    return refuse(err, "a PROXY header hides what follows it");
  if (line.len == bytes.len && !end)
    return refuse(err, "its first line does not end");
  return is_request(line) ? IDENTITY_HTTP : IDENTITY_PASS;
}

enum identity_answer identity_look(struct identity *identity, const struct policy *policy, const struct host *host,
                                   uint16_t port, struct span bytes, bool end, struct err *err)
{
  static const struct span proxy_v2 = SPAN_INIT("\r\n\r\n\0\r\nQUIT\n");
  enum identity_answer answer;

  if (!bytes.len)
    return end ? IDENTITY_PASS : IDENTITY_MORE;
  if (!is_hello(identity, bytes)) {
    answer = identity->spoken ? IDENTITY_PASS : look_for_record(bytes, end, err);
    if (answer != IDENTITY_PASS)
      return answer;
    if (span_starts_with(bytes, proxy_v2))
      return refuse(err, "a PROXY header hides what follows it");
    if (!end && span_starts_with(proxy_v2, bytes))
      return IDENTITY_MORE;
    return look_for_request(host, bytes, end, err);
  }
  answer = look_at_tls(identity, policy, host, port, bytes, err);
  return answer == IDENTITY_MORE && end ? refuse(err, "its ClientHello is cut short") : answer;
}
