#include "proxy/http_target.h"

#include <errno.h>

#define HTTP_PORT 80
#define HTTPS_PORT 443

/* The scheme with its colon and slashes, or an empty span. */
static struct span scheme_of(struct span target)
{
  size_t colon = span_find(target, ':');

  for (size_t i = 0; i < colon; i++)
    if (!span_is_alpha(target.ptr[i]))
      return (struct span){ .ptr = target.ptr, .len = 0 };
  if (!span_equal(span_sub(target, colon, 3), SPAN("://")))
    return (struct span){ .ptr = target.ptr, .len = 0 };
  return span_sub(target, 0, colon + 3);
}

struct span http_target_authority(struct span target)
{
  struct span rest = span_sub(target, scheme_of(target).len, target.len);
  size_t end = 0;

  while (end < rest.len && !strchr("/?#", rest.ptr[end]))
    end++;
  return span_sub(rest, 0, end);
}

uint16_t http_target_default_port(bool tls)
{
  return tls ? HTTPS_PORT : HTTP_PORT;
}

static int check_scheme(struct span scheme, bool tls, struct err *err)
{
  if (tls && !span_equal_nocase(scheme, SPAN("https://")))
    return err_set(err, EBADMSG, "inside TLS the request target is not an https:// URL");
  if (!tls && span_equal_nocase(scheme, SPAN("https://")))
    return err_set(err, EBADMSG, "https:// goes through CONNECT, not through a plain request");
  if (!tls && !span_equal_nocase(scheme, SPAN("http://")))
    return err_set(err, EBADMSG, "the request target is not an http:// URL");
  return 0;
}

int http_target_parse_absolute(struct span target, bool tls, struct err *err, struct http_target *ret_target)
{
  struct span scheme = scheme_of(target);
  struct span authority = http_target_authority(target);
  int r;

  if (target.len && (target.ptr[0] == '/' || target.ptr[0] == '*'))
    return err_set(err, EBADMSG, "this is a proxy: the request line has to name a whole http:// URL");
  r = check_scheme(scheme, tls, err);
  if (r < 0)
    return r;
  if (span_find(authority, '@') < authority.len)
    return err_set(err, EBADMSG, "the request target holds user information");
  if (span_find(target, '#') < target.len)
    return err_set(err, EBADMSG, "the request target holds a fragment");
  /* host.h takes a bare IPv6 address; in a URL, where a port may follow, it is ambiguous (F53; RFC 3986, 3.2.2). */
  if (span_find(authority, ':') != span_find_last(authority, ':') && authority.ptr[0] != '[')
    return err_set(err, EINVAL, "an IPv6 address in a URL stands in brackets");
  r = host_parse_target(authority, http_target_default_port(tls), err, &ret_target->host, &ret_target->port);
  if (r < 0)
    return r;
  ret_target->tls = tls;
  ret_target->path = span_sub(target, scheme.len + authority.len, target.len);
  return 0;
}

int http_target_parse_authority(struct span target, struct err *err, struct http_target *ret_target)
{
  ret_target->tls = false;
  ret_target->path = (struct span){ .ptr = target.ptr, .len = 0 };
  return host_parse_target(target, 0, err, &ret_target->host, &ret_target->port);
}

struct span http_target_path(const struct http_target *target)
{
  struct span path = span_sub(target->path, 0, span_find(target->path, '?'));

  return path.len ? path : SPAN("/");
}
