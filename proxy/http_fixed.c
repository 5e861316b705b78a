#include "proxy/http_fixed.h"

#include "policy/decide.h"

#include <errno.h>

static bool is_loopback(const struct host *host)
{
  return host->kind == HOST_ADDR ? addr_classify(&host->addr) == ADDR_LOOPBACK : strcmp(host->name, "localhost") == 0;
}

static bool is_same_host(const struct host *a, const struct host *b)
{
  return a->kind == b->kind && strcmp(a->name, b->name) == 0;
}

/* An address was allowed as such: a name that is allowed by itself may come along. */
static bool may_name(const struct http_fixed *fixed, const struct policy *policy, const struct host *host)
{
  if (fixed->tls)
    return is_same_host(&fixed->name, host);
  if (is_same_host(&fixed->host, host) || (is_loopback(&fixed->host) && is_loopback(host)))
    return true;
  return fixed->host.kind == HOST_ADDR && host->kind == HOST_NAME && decide_target(policy, host, fixed->port).allow;
}

static int check_named(const struct http_fixed *fixed, const struct policy *policy, struct span authority,
                       const char *what, struct err *err, struct host *ret_host)
{
  uint16_t port;
  struct err ignored = ERR_INIT;

  if (host_parse_target(authority, fixed->port, &ignored, ret_host, &port) < 0)
    return err_set(err, EBADMSG, "%s is not well formed", what);
  if (port == fixed->port && may_name(fixed, policy, ret_host))
    return 0;
  return err_set(err, EACCES, "%s names %s", what, ret_host->name);
}

int http_fixed_check(const struct http_fixed *fixed, const struct policy *policy, const struct http_head *head,
                     struct err *err, struct http_target *ret_target)
{
  const struct http_field *field = http_head_find(head, "host", NULL);
  struct http_target target = { .host = fixed->host, .port = fixed->port, .path = head->target, .tls = fixed->tls };
  struct host named;
  int r;

  /* The refusal of the target is the answer, and says what to type; the next request shows the other fault. */
  if (fixed->refused) {
    *ret_target = target;
    return 0;
  }
  if (span_equal(head->method, SPAN("CONNECT")))
    return err_set(err, EACCES, "CONNECT inside a tunnel");
  if (head->target.len && head->target.ptr[0] != '/' && !span_equal(head->target, SPAN("*"))) {
    r = http_target_parse_absolute(head->target, fixed->tls, err, &target);
    if (r == 0)
      r = check_named(fixed, policy, http_target_authority(head->target), "the request line", err, &named);
    if (r < 0)
      return r;
  }
  if (span_equal(target.path, SPAN("*"))) {
    if (!span_equal(head->method, SPAN("OPTIONS")))
      return err_set(err, EBADMSG, "the request target \"*\" goes with OPTIONS only");
    target.path.len = 0;
  }
  if (span_find(target.path, '#') < target.path.len)
    return err_set(err, EBADMSG, "the request target holds a fragment");
  if (field) {
    r = check_named(fixed, policy, field->value, "its Host", err, &named);
    if (r < 0)
      return r;
    if (fixed->host.kind == HOST_ADDR)
      target.host = named;
  }
  target.port = fixed->port;
  if (fixed->tls)
    target.host = fixed->name;
  else if (fixed->host.kind != HOST_ADDR)
    target.host = fixed->host;
  *ret_target = target;
  return 0;
}
