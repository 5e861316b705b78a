#include "proxy/identity.h"

#include "proxy/http_head.h"

#include <errno.h>
#include <string.h>

#define TLS_HANDSHAKE 22

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
  /* Browsers send an extension that looks like ECH always (GREASE); where it is real, the outer name is the provider's and
   * differs from the target. So the outer name decides. */
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

static enum identity_answer look_at_tls(struct identity *identity, const struct policy *policy,
                                        const struct host *host, uint16_t port, struct span bytes, struct err *err)
{
  char scratch[LIMITS_TLS_HELLO_BYTES];
  struct tls_hello hello;
  size_t len;
  int r = tls_hello_scan(&identity->scan, bytes, err, &len);

  if (r == 0)
    return IDENTITY_MORE;
  if (r > 0)
    r = tls_hello_parse(span_sub(bytes, 0, len), scratch, err, &hello);
  return r < 0 ? IDENTITY_REFUSE : judge_hello(&hello, policy, host, port, err);
}

static bool has_version(struct span line)
{
  for (size_t i = 0; i + 5 <= line.len; i++) {
    if (span_equal_nocase(span_sub(line, i, 5), SPAN("HTTP/")))
      return true;
  }
  return false;
}

/* A first line that an HTTP server might take for a request: a token, a space, and "HTTP/" somewhere. Servers skip empty
 * lines in front of it (RFC 9112, 2.2), so they are skipped here. A line that does not end is waited for: passing its
 * beginning would let the rest follow unseen. */
static enum identity_answer look_for_request(const struct host *host, struct span bytes, struct err *err)
{
  static const struct span preface = SPAN_INIT("PRI * HTTP/2.0");
  size_t token = 0;
  size_t end;

  while (bytes.len && (bytes.ptr[0] == '\r' || bytes.ptr[0] == '\n'))
    bytes = span_sub(bytes, 1, bytes.len);
  while (token < bytes.len && http_head_is_token((unsigned char)bytes.ptr[token]))
    token++;
  if (token == bytes.len && bytes.len < LIMITS_HTTP_HEAD_BYTES)
    return IDENTITY_MORE;
  if (token == 0 || (token < bytes.len && bytes.ptr[token] != ' ' && bytes.ptr[token] != '\t'))
    return IDENTITY_PASS;
  end = span_find(bytes, '\n');
  if (end == bytes.len && bytes.len < LIMITS_HTTP_HEAD_BYTES)
    return IDENTITY_MORE;
  if (span_starts_with(bytes, preface))
    return is_free_name(host) ? IDENTITY_PASS : refuse(err, "HTTP/2 in the clear cannot be judged; use TLS");
  return end == bytes.len || has_version(span_sub(bytes, 0, end)) ? IDENTITY_HTTP : IDENTITY_PASS;
}

enum identity_answer identity_look(struct identity *identity, const struct policy *policy, const struct host *host,
                                   uint16_t port, struct span bytes, struct err *err)
{
  if (!bytes.len)
    return IDENTITY_MORE;
  if ((unsigned char)bytes.ptr[0] == TLS_HANDSHAKE)
    return look_at_tls(identity, policy, host, port, bytes, err);
  return look_for_request(host, bytes, err);
}
