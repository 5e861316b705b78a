#include "policy/rule.h"

#include "base/num.h"
#include "policy/rule_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Longest rule text: a name with its wildcard and ports. */
#define RULE_TEXT_MAX 512

static const struct policy_ports rule_ports_web[] = { { 80, 80 }, { 443, 443 } };
static const struct policy_ports rule_ports_all[] = { { 1, UINT16_MAX } };
static const struct policy_ports rule_ports_tls[] = { { 443, 443 } };

void rule_free(struct policy_rule *rule)
{
  free(rule->name);
  free(rule->ports);
  strv_free(&rule->methods);
  strv_free(&rule->paths);
  free(rule->text);
  free(rule->origin.file);
  free(rule->origin.json_path);
  *rule = (struct policy_rule){ 0 };
}

/* N, N-M or '*'. */
static int rule_parse_ports(struct span text, struct err *err, struct policy_ports *ret_ports)
{
  struct span first = text;
  struct span last = text;
  size_t dash = span_find(text, '-');
  uint64_t low;
  uint64_t high;

  if (span_equal_str(text, "*")) {
    *ret_ports = (struct policy_ports){ 1, UINT16_MAX };
    return 0;
  }
  if (dash < text.len) {
    first = span_sub(text, 0, dash);
    last = span_sub(text, dash + 1, text.len);
  }
  if (num_parse_u64(first, 1, UINT16_MAX, &low) < 0 || num_parse_u64(last, 1, UINT16_MAX, &high) < 0)
    return err_set(err, EINVAL,
                   "ports are not well formed; write HOST:N, HOST:N-M or HOST:* with numbers from 1 to "
                   "65535, and an IPv6 address in brackets");
  if (low > high)
    return err_set(err, EINVAL, "port range %u-%u is upside down; write %u-%u", (unsigned)low, (unsigned)high,
                   (unsigned)high, (unsigned)low);
  *ret_ports = (struct policy_ports){ (uint16_t)low, (uint16_t)high };
  return 0;
}

static int rule_set_ports(struct policy_rule *rule, const struct policy_ports *ports, size_t count)
{
  rule->ports = mem_calloc(count, sizeof *ports);
  if (!rule->ports)
    return -ENOMEM;
  memcpy(rule->ports, ports, count * sizeof *ports);
  rule->port_count = count;
  return 0;
}

static int rule_set_name(struct policy_rule *rule, enum policy_host_kind kind, const char *name)
{
  rule->kind = kind;
  rule->name = mem_strndup(name, strlen(name));
  return rule->name ? 0 : -ENOMEM;
}

/* "*.name". A wildcard over a whole top-level domain would be as good as '*', so it is refused. */
static int rule_parse_wildcard(struct span text, struct err *err, struct policy_rule *rule)
{
  struct span parent = span_sub(text, 2, text.len);
  struct host host;
  int r;

  if (!span_starts_with(text, SPAN("*.")) || span_find(parent, '*') < parent.len)
    return err_set(err, EINVAL, "a wildcard stands only as the whole first label; write *.example.com");
  r = host_parse(parent, err, &host);
  if (r < 0)
    return r;
  if (host.kind != HOST_NAME)
    return err_set(err, EINVAL, "a wildcard before an address; write a prefix such as 10.20.0.0/16");
  if (!strchr(host.name, '.'))
    return err_set(err, EINVAL, "a wildcard over a whole top-level domain; name the domain, as in *.example.%s",
                   host.name);
  return rule_set_name(rule, POLICY_HOST_SUBDOMAINS, host.name);
}

/* ADDR/LENGTH, or what looks like it. */
static int rule_parse_prefix(struct span text, struct err *err, struct policy_rule *rule)
{
  size_t slash = span_find(text, '/');
  struct addr_prefix prefix;
  uint64_t length;

  if (addr_prefix_parse(text, &prefix) == 0) {
    rule->kind = POLICY_HOST_PREFIX;
    rule->prefix = prefix;
    return 0;
  }
  if (addr_parse(span_sub(text, 0, slash), &prefix.addr) < 0)
    return err_set(err, EINVAL, "a path where a host is wanted; write HOST[:PORTS] without a path");
  if (num_parse_u64(span_sub(text, slash + 1, text.len), 0, prefix.addr.family == ADDR_V4 ? 32 : 128, &length) < 0)
    return err_set(err, EINVAL, "prefix length is not well formed; write %s",
                   prefix.addr.family == ADDR_V4 ? "a number from 0 to 32 after the '/'"
                                                 : "a number from 0 to 128 after the '/', and before ports brackets: "
                                                   "[ADDRESS/LENGTH]:PORTS");
  prefix.addr = addr_mask(&prefix.addr, (unsigned)length);
  prefix.length = (unsigned)length;
  buf_autofree struct buf fixed = BUF_INIT(RULE_TEXT_MAX);
  addr_prefix_print(&prefix, &fixed);
  if (buf_error(&fixed) < 0)
    return buf_error(&fixed);
  return err_set(err, EINVAL, "bits are set past the prefix length; write %s", fixed.data);
}

static int rule_parse_host(struct span text, struct err *err, struct policy_rule *rule)
{
  struct host host;
  int r;

  if (span_equal_str(text, "*")) {
    rule->kind = POLICY_HOST_ANY;
    return 0;
  }
  if (span_find(text, '/') < text.len)
    return rule_parse_prefix(text, err, rule);
  if (span_find(text, '*') < text.len)
    return rule_parse_wildcard(text, err, rule);
  r = host_parse(text, err, &host);
  if (r < 0)
    return r;
  if (host.kind == HOST_ADDR) {
    rule->kind = POLICY_HOST_PREFIX;
    rule->prefix = (struct addr_prefix){ .addr = host.addr, .length = host.addr.family == ADDR_V4 ? 32 : 128 };
    return 0;
  }
  if (strcmp(host.name, "localhost") == 0) {
    rule->kind = POLICY_HOST_LOCALHOST;
    return 0;
  }
  return rule_set_name(rule, POLICY_HOST_NAME, host.name);
}

/* Splits a rule at the ':' before its ports. IPv6 keeps its colons: ports follow it only behind brackets (F53). */
static int rule_split(struct span text, struct err *err, struct span *ret_host, struct span *ret_ports)
{
  size_t colon = span_find(text, ':');

  *ret_ports = (struct span){ NULL, 0 };
  *ret_host = text;
  if (text.len > 0 && text.ptr[0] == '[') {
    size_t close = span_find(text, ']');
    *ret_host = span_sub(text, 1, close - 1);
    if (close == text.len || span_find(*ret_host, ':') == ret_host->len)
      return err_set(err, EINVAL, "not an IPv6 address in brackets; write [ADDRESS]:PORTS");
    if (close + 1 == text.len)
      return 0;
    if (text.ptr[close + 1] != ':')
      return err_set(err, EINVAL, "text follows the brackets; write [ADDRESS]:PORTS, a prefix length inside them");
    colon = close + 1;
  } else if (colon == text.len || span_find_last(text, ':') != colon) {
    return 0;
  } else {
    *ret_host = span_sub(text, 0, colon);
  }
  *ret_ports = (struct span){ text.ptr + colon + 1, text.len - colon - 1 };
  return 0;
}

static bool rule_is_all_ports(const struct policy_rule *rule)
{
  return rule->ports[0].first == 1 && rule->ports[0].last == UINT16_MAX;
}

/* Whether the rule's ports are those that it has without naming any. */
static bool rule_has_default_ports(const struct policy_rule *rule, enum rule_list list)
{
  switch (list) {
  case RULE_DENY:
    return rule_is_all_ports(rule);
  case RULE_BIND:
    return rule->port_count == 1 && memcmp(rule->ports, rule_ports_tls, sizeof rule_ports_tls) == 0;
  case RULE_ALLOW:
    break;
  }
  return rule->port_count == MEM_COUNT(rule_ports_web);
}

int rule_reprint(struct policy_rule *rule, enum rule_list list)
{
  buf_autofree struct buf out = BUF_INIT(RULE_TEXT_MAX);
  bool ports_follow = !rule_has_default_ports(rule, list);
  bool brackets = rule->kind == POLICY_HOST_PREFIX && rule->prefix.addr.family == ADDR_V6 && ports_follow;

  if (brackets)
    buf_append_byte(&out, '[');
  switch (rule->kind) {
  case POLICY_HOST_NAME:
    buf_append_str(&out, rule->name);
    break;
  case POLICY_HOST_SUBDOMAINS:
    buf_printf(&out, "*.%s", rule->name);
    break;
  case POLICY_HOST_PREFIX:
    addr_prefix_print(&rule->prefix, &out);
    break;
  case POLICY_HOST_LOCALHOST:
    buf_append_str(&out, "localhost");
    break;
  case POLICY_HOST_ANY:
    buf_append_byte(&out, '*');
    break;
  }
  if (brackets)
    buf_append_byte(&out, ']');
  if (ports_follow) {
    struct policy_ports ports = rule->ports[0];
    if (rule_is_all_ports(rule))
      buf_append_str(&out, ":*");
    else if (ports.first == ports.last)
      buf_printf(&out, ":%u", ports.first);
    else
      buf_printf(&out, ":%u-%u", ports.first, ports.last);
  }
  free(rule->text);
  rule->text = buf_steal(&out);
  return rule->text ? 0 : -ENOMEM;
}

/* What the rule means without ports. */
static int rule_set_default_ports(struct policy_rule *rule, enum rule_list list)
{
  switch (list) {
  case RULE_DENY:
    return rule_set_ports(rule, rule_ports_all, MEM_COUNT(rule_ports_all));
  case RULE_BIND:
    return rule_set_ports(rule, rule_ports_tls, MEM_COUNT(rule_ports_tls));
  case RULE_ALLOW:
    break;
  }
  return rule_set_ports(rule, rule_ports_web, MEM_COUNT(rule_ports_web));
}

static int rule_fill(struct span text, enum rule_list list, struct err *err, struct policy_rule *rule)
{
  struct policy_ports ports;
  struct span host_text;
  struct span ports_text;
  int r;

  if (text.len == 0)
    return err_set(err, EINVAL, "empty rule; write HOST[:PORTS]");
  for (size_t i = 0; i + 2 < text.len; i++)
    if (memcmp(text.ptr + i, "://", 3) == 0)
      return err_set(err, EINVAL, "a URL where a rule is wanted; write the host name alone, without scheme and path");
  r = rule_split(text, err, &host_text, &ports_text);
  if (r < 0)
    return r;
  r = rule_parse_host(host_text, err, rule);
  if (r < 0)
    return r;
  if (ports_text.ptr) {
    r = rule_parse_ports(ports_text, err, &ports);
    if (r == 0)
      r = rule_set_ports(rule, &ports, 1);
  } else {
    r = rule_set_default_ports(rule, list);
  }
  return r < 0 ? r : rule_reprint(rule, list);
}

int rule_parse(struct span text, enum rule_list list, struct err *err, struct policy_rule *ret_rule)
{
  struct policy_rule rule = { 0 };
  int r;

  if (rule_object_is(text) && list != RULE_BIND)
    return rule_object_parse(text, list, err, ret_rule);
  r = rule_fill(text, list, err, &rule);
  if (r < 0) {
    rule_free(&rule);
    return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
  }
  *ret_rule = rule;
  return 0;
}

bool rule_is_whole(const struct policy_rule *rule)
{
  return rule->methods.count == 0 && rule->paths.count == 0;
}

bool rule_covers_addr(const struct policy_rule *rule, const struct addr *addr)
{
  struct addr inner;

  if (rule->kind != POLICY_HOST_PREFIX)
    return false;
  inner = addr_unmap(addr);
  return addr_in_prefix(addr, &rule->prefix) || addr_in_prefix(&inner, &rule->prefix);
}

bool rule_covers_inside(const struct policy_rule *rule, const struct host *host)
{
  struct addr inner;

  if (rule_covers_host(rule, host))
    return true;
  inner = addr_unwrap(&host->addr);
  return host->kind == HOST_ADDR && rule_covers_addr(rule, &inner);
}

bool rule_covers_host(const struct policy_rule *rule, const struct host *host)
{
  if (host->kind == HOST_ADDR)
    return rule->kind == POLICY_HOST_ANY || rule_covers_addr(rule, &host->addr);
  switch (rule->kind) {
  case POLICY_HOST_NAME:
    return strcmp(rule->name, host->name) == 0;
  case POLICY_HOST_SUBDOMAINS:
    return host_is_subdomain(span_of(host->name), span_of(rule->name));
  case POLICY_HOST_LOCALHOST:
    return strcmp(host->name, "localhost") == 0;
  case POLICY_HOST_ANY:
    return true;
  case POLICY_HOST_PREFIX:
    break;
  }
  return false;
}

bool rule_covers_port(const struct policy_rule *rule, uint16_t port)
{
  for (size_t i = 0; i < rule->port_count; i++)
    if (port >= rule->ports[i].first && port <= rule->ports[i].last)
      return true;
  return false;
}

/* Whether the host of a, which is a name or an address, is one of b's. */
static bool rule_is_within(const struct policy_rule *a, const struct policy_rule *b)
{
  struct host host = { .kind = HOST_NAME };

  if (a->kind == POLICY_HOST_PREFIX)
    host_of_addr(&a->prefix.addr, &host);
  else if (a->kind == POLICY_HOST_NAME)
    snprintf(host.name, sizeof host.name, "%s", a->name);
  else
    return false;
  return rule_covers_host(b, &host);
}

bool rule_overlaps(const struct policy_rule *a, const struct policy_rule *b)
{
  bool hosts = rule_is_within(a, b) || rule_is_within(b, a);
  bool ports = false;

  if (a->kind == POLICY_HOST_SUBDOMAINS && b->kind == POLICY_HOST_SUBDOMAINS)
    hosts = strcmp(a->name, b->name) == 0 || host_is_subdomain(span_of(a->name), span_of(b->name)) ||
            host_is_subdomain(span_of(b->name), span_of(a->name));
  for (size_t i = 0; i < a->port_count; i++)
    for (size_t j = 0; j < b->port_count; j++)
      ports |= a->ports[i].first <= b->ports[j].last && b->ports[j].first <= a->ports[i].last;
  return hosts && ports;
}
