#include "policy/upstream.h"

#include "base/num.h"

#include <errno.h>

/* What policy_print() puts in the place of user and password. */
#define MASK "***"

static const struct {
  struct span scheme;
  enum upstream_kind kind;
} schemes[] = {
  { SPAN_INIT("http://"), UPSTREAM_HTTP },
  { SPAN_INIT("socks5://"), UPSTREAM_SOCKS5 },
  { SPAN_INIT("socks5h://"), UPSTREAM_SOCKS5_NAMES },
};

static int parse_scheme(struct span *rest, bool bare, struct err *err, enum upstream_kind *ret_kind)
{
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    struct span scheme = schemes[i].scheme;

    if (!span_equal_nocase(span_sub(*rest, 0, scheme.len), scheme))
      continue;
    *rest = span_sub(*rest, scheme.len, rest->len);
    *ret_kind = schemes[i].kind;
    return 0;
  }
  for (size_t i = 0; i + 2 < rest->len; i++)
    bare = bare && !span_equal(span_sub(*rest, i, 3), SPAN("://"));
  if (!bare)
    return err_set(
        err, EINVAL,
        "neither a known word nor a URL; write env, none, http://[USER:PASSWORD@]HOST:PORT, or the same with "
        "socks5:// or socks5h://");
  *ret_kind = UPSTREAM_HTTP;
  return 0;
}

/* Decodes %XX. Control bytes would end a header's line, or a C string. */
static int decode(struct span text, char out[UPSTREAM_WORD_BYTES + 1], struct err *err)
{
  size_t len = 0;

  for (size_t i = 0; i < text.len; i++) {
    uint64_t byte = (unsigned char)text.ptr[i];

    if (byte == '%' && i + 2 < text.len && num_parse_hex(span_sub(text, i + 1, 2), &byte) == 0)
      i += 2;
    else if (byte == '%')
      return err_set(err, EINVAL, "a '%%' in the user or password that no two hexadecimal digits follow; write %%25");
    if (byte < 0x20 || byte == 0x7f)
      return err_set(err, EINVAL, "a control byte in the user or password");
    if (len == UPSTREAM_WORD_BYTES)
      return err_set(err, EINVAL, "a user or password of more than %d bytes", UPSTREAM_WORD_BYTES);
    out[len++] = (char)byte;
  }
  out[len] = '\0';
  return 0;
}

static int parse_login(struct span text, struct err *err, struct upstream *upstream)
{
  size_t colon = span_find(text, ':');
  int r;

  if (span_equal(text, SPAN(MASK)))
    return err_set(err, EINVAL, "user and password were left out when this was printed; write them");
  r = decode(span_sub(text, 0, colon), upstream->user, err);
  if (r == 0)
    r = decode(span_sub(text, colon + 1, text.len), upstream->password, err);
  if (r < 0)
    return r;
  if (upstream->user[0] == '\0' || strchr(upstream->user, ':'))
    return err_set(err, EINVAL, "an empty user before '@', or one with a ':' in it");
  upstream->has_login = true;
  return 0;
}

int upstream_parse(struct span url, bool bare, struct err *err, struct upstream *ret_upstream)
{
  struct upstream upstream = { .kind = UPSTREAM_NONE };
  struct span rest = url;
  size_t at;
  int r;

  if (url.len >= LIMITS_UPSTREAM_BYTES)
    return err_set(err, EINVAL, "a URL of more than %d bytes", LIMITS_UPSTREAM_BYTES - 1);
  for (size_t i = 0; i < url.len; i++)
    if ((unsigned char)url.ptr[i] <= 0x20 || (unsigned char)url.ptr[i] >= 0x7f)
      return err_set(err, EINVAL, "a space, control byte or byte that is not ASCII in a URL; escape it as %%XX");
  r = parse_scheme(&rest, bare, err, &upstream.kind);
  at = span_find_last(rest, '@');
  if (r == 0 && at < rest.len) {
    r = parse_login(span_sub(rest, 0, at), err, &upstream);
    rest = span_sub(rest, at + 1, rest.len);
  }
  if (span_ends_with(rest, SPAN("/")))
    rest.len--;
  if (r == 0)
    r = host_parse_target(rest, 0, err, &upstream.host, &upstream.port);
  if (r == 0)
    *ret_upstream = upstream;
  mem_wipe(&upstream, sizeof upstream);
  return r;
}

void upstream_print(const struct upstream *upstream, struct buf *out)
{
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
    if (schemes[i].kind == upstream->kind)
      buf_append(out, schemes[i].scheme);
  host_print_target(&upstream->host, upstream->port, out);
}

/* One entry, without its port. */
static bool names_host(struct span entry, const struct host *host)
{
  struct addr_prefix prefix;
  struct host named;

  if (addr_prefix_parse(entry, &prefix) == 0)
    return host->kind == HOST_ADDR && addr_in_prefix(&host->addr, &prefix);
  if (span_starts_with(entry, SPAN("*.")))
    entry = span_sub(entry, 1, entry.len);
  if (span_starts_with(entry, SPAN(".")))
    entry = span_sub(entry, 1, entry.len);
  if (host_parse(entry, NULL, &named) < 0 || named.kind != host->kind)
    return false;
  return strcmp(named.name, host->name) == 0 ||
         (named.kind == HOST_NAME && host_is_subdomain(span_of(host->name), span_of(named.name)));
}

static bool is_named(struct span entry, const struct host *host, uint16_t port)
{
  size_t colon = span_find_last(entry, ':');
  struct addr_prefix prefix;
  uint64_t number;

  if (span_equal(entry, SPAN("*")) || names_host(entry, host))
    return true;
  /* A bare IPv6 address ends in what looks like a port. */
  if (addr_prefix_parse(entry, &prefix) == 0 || colon == entry.len ||
      num_parse_u64(span_sub(entry, colon + 1, entry.len), 1, UINT16_MAX, &number) < 0 || number != port)
    return false;
  return names_host(span_sub(entry, 0, colon), host);
}

bool upstream_is_exempt(struct span no_proxy, const struct host *host, uint16_t port)
{
  struct span commas = no_proxy;
  struct span part;
  struct span entry;

  while (span_split(&commas, ',', &part)) {
    while (span_split(&part, ' ', &entry)) {
      entry = span_trim(entry);
      if (entry.len && is_named(entry, host, port))
        return true;
    }
  }
  return false;
}

static bool is_loopback(const struct host *host)
{
  if (host->kind == HOST_ADDR)
    return addr_classify(&host->addr) == ADDR_LOOPBACK;
  return strcmp(host->name, "localhost") == 0 || host_is_subdomain(span_of(host->name), SPAN("localhost"));
}

const struct upstream *upstream_find(const struct upstreams *upstreams, const struct host *host, uint16_t port,
                                     bool plain)
{
  const struct upstream *upstream = plain || port == 80 ? &upstreams->http : &upstreams->other;

  if (upstream->kind == UPSTREAM_NONE || is_loopback(host) ||
      upstream_is_exempt(span_of(upstreams->no_proxy), host, port))
    return NULL;
  return upstream;
}
