#include "policy/value.h"

#include "base/buf.h"
#include "base/num.h"
#include "policy/credential.h"
#include "policy/fspath.h"
#include "policy/host.h"
#include "policy/limits.h"
#include "policy/rule.h"
#include "policy/upstream.h"

#include <errno.h>
#include <stdlib.h>

/* "a, b or c" */
static void value_print_words(const struct key *key, struct buf *out)
{
  for (size_t i = 0; key->words[i]; i++) {
    if (i > 0)
      buf_append_str(out, key->words[i + 1] ? ", " : " or ");
    buf_append_str(out, key->words[i]);
  }
}

static int value_word(const struct key *key, struct span text, struct err *err, uint64_t *ret_index)
{
  buf_autofree struct buf words = BUF_INIT(256);

  for (size_t i = 0; key->words[i]; i++) {
    if (span_equal_str(text, key->words[i])) {
      *ret_index = i;
      return 0;
    }
  }
  value_print_words(key, &words);
  return err_set(err, EINVAL, "unknown word; write %s", words.data ? words.data : "another");
}

static int value_limit(const struct key *key, struct span text, struct err *err, uint64_t *ret_number)
{
  uint64_t number = 0;
  const char *fix = "";
  int r = -EINVAL;

  if (key->type == KEY_TYPE_SIZE) {
    r = num_parse_size(text, &number);
    fix = "a size such as 512m or 4g (powers of 1024), or bytes";
  } else if (key->type == KEY_TYPE_CPUS) {
    r = num_parse_milli(text, &number);
    fix = "a number of CPUs such as 2 or 0.5, up to 4096, with at most three decimals";
  } else if (key->type == KEY_TYPE_NUMBER) {
    r = num_parse_u64(text, 1, LIMITS_PIDS, &number);
    fix = "a whole number from 1 to 4194304";
  } else if (key->type == KEY_TYPE_DURATION) {
    r = num_parse_duration(text, &number);
    fix = "a time such as 90s, 30m or 1h, or seconds, up to 10 years";
  }
  if (r < 0 || number == 0 || number > INT64_MAX)
    return err_set(err, EINVAL, "%s; write %s", r == -EINVAL ? "not well formed" : "out of range", fix);
  *ret_number = number;
  return 0;
}

int value_number(const struct key *key, const char *text, struct err *err, uint64_t *ret_number)
{
  if (!text) {
    *ret_number = 0;
    return 0;
  }
  if (key->words)
    return value_word(key, span_of(text), err, ret_number);
  return value_limit(key, span_of(text), err, ret_number);
}

bool value_is_narrower(const struct key *key, uint64_t new_number, uint64_t old_number)
{
  if (key->words)
    return new_number < old_number;
  return new_number != 0 && (old_number == 0 || new_number < old_number);
}

int value_port_map(const char *text, struct err *err, struct policy_port_map *ret_map)
{
  struct span whole = span_of(text);
  size_t colon = span_find(whole, ':');
  struct span first = span_sub(whole, 0, colon);
  struct span second = colon < whole.len ? span_sub(whole, colon + 1, whole.len) : first;
  uint64_t host_port;
  uint64_t port;

  if (num_parse_u64(first, 1, UINT16_MAX, &host_port) < 0 || num_parse_u64(second, 1, UINT16_MAX, &port) < 0)
    return err_set(err, EINVAL, "not a port; write PORT or HOSTPORT:PORT with numbers from 1 to 65535");
  ret_map->host_port = (uint16_t)host_port;
  ret_map->port = (uint16_t)port;
  return 0;
}

/* Nothing inside has the privilege to listen below 1024 (ip_unprivileged_port_start of a new network namespace). */
static int value_check_published(const struct policy_port_map *map, struct err *err)
{
  if (map->port < LIMITS_FREE_PORT)
    return err_set(err, EINVAL, "nothing inside can listen on port %u; write HOSTPORT:PORT with a PORT from %d on",
                   map->port, LIMITS_FREE_PORT);
  return 0;
}

int value_upstream(const char *text, struct err *err, enum policy_upstream *ret_kind, char **ret_url)
{
  struct span url = span_of(text);
  struct upstream upstream;
  char *copy;

  if (!text || strcmp(text, "none") == 0 || strcmp(text, "env") == 0) {
    *ret_kind = text && text[0] == 'e' ? POLICY_UPSTREAM_ENV : POLICY_UPSTREAM_NONE;
    *ret_url = NULL;
    return 0;
  }
  if (upstream_parse(url, false, err, &upstream) < 0)
    return -EINVAL;
  mem_wipe(&upstream, sizeof upstream);
  if (span_ends_with(url, SPAN("/")))
    url.len--;
  copy = mem_strndup(url.ptr, url.len);
  if (!copy)
    return err_set(err, ENOMEM, "out of memory");
  *ret_kind = POLICY_UPSTREAM_URL;
  *ret_url = copy;
  return 0;
}

int value_file(const char *text, bool option, struct err *err, char **ret_file)
{
  struct span whole = span_of(text);
  uint64_t number;

  if (!text) {
    *ret_file = NULL;
    return 0;
  }
  if (span_starts_with(whole, SPAN("fd:"))) {
    if (!option)
      return err_set(err, EINVAL, "a descriptor in a policy file; name it by the option --audit");
    if (num_parse_u64(span_sub(whole, 3, whole.len), 0, INT32_MAX, &number) < 0)
      return err_set(err, EINVAL, "not a descriptor; write fd:N");
    *ret_file = mem_strndup(text, whole.len);
    return *ret_file ? 0 : err_set(err, ENOMEM, "out of memory");
  }
  if (text[0] != '/' && text[0] != '~')
    return err_set(err, EINVAL, "neither an absolute path nor one below ~; write one of them");
  return fspath_parse(whole, false, err, ret_file);
}

int value_check_env_name(struct span name, bool pattern, struct err *err)
{
  if (pattern && name.len > 0 && name.ptr[name.len - 1] == '*') {
    name.len--;
    if (name.len == 0)
      return err_set(err, EINVAL, "every variable of the environment; name them, or a prefix such as MYAPP_*");
  }
  if (name.len == 0 || name.len > LIMITS_ENV_NAME_BYTES)
    return err_set(err, EINVAL, "a variable's name is 1 to %d bytes long", LIMITS_ENV_NAME_BYTES);
  for (size_t i = 0; i < name.len; i++) {
    char byte = name.ptr[i];
    if (!span_is_alpha(byte) && byte != '_' && !(span_is_digit(byte) && i > 0))
      return err_set(err, EINVAL, "not a variable's name; use letters, digits and '_'%s",
                     pattern ? ", and '*' at the end only" : "");
  }
  return 0;
}

int value_check(const struct key *key, const char *name, const char *text, bool option, struct err *err)
{
  struct policy_port_map map;
  struct policy_rule rule = { 0 };
  struct policy_credential credential = { 0 };
  enum policy_upstream upstream;
  mem_autofree char *copy = NULL;
  uint64_t number;
  int r;

  switch (key->type) {
  case KEY_TYPE_PATH:
  case KEY_TYPE_PATTERN:
    return fspath_parse(span_of(text), key->type == KEY_TYPE_PATTERN, err, &copy);
  case KEY_TYPE_RULE:
    r = rule_parse(span_of(text), key->id == KEY_DENY ? RULE_DENY : RULE_ALLOW, err, &rule);
    rule_free(&rule);
    return r;
  case KEY_TYPE_PORT_MAP:
    r = value_port_map(text, err, &map);
    return r == 0 && key->id == KEY_PUBLISH ? value_check_published(&map, err) : r;
  case KEY_TYPE_UPSTREAM:
    return value_upstream(text, err, &upstream, &copy);
  case KEY_TYPE_ENV_NAME:
    return value_check_env_name(span_of(text), true, err);
  case KEY_TYPE_ENV_VALUE:
    return value_check_env_name(span_of(name), false, err);
  case KEY_TYPE_FILE:
    return value_file(text, option, err, &copy);
  case KEY_TYPE_CREDENTIAL:
    r = credential_parse(name, text, err, &credential);
    credential_clear(&credential);
    return r;
  case KEY_TYPE_WORD:
  case KEY_TYPE_SIZE:
  case KEY_TYPE_CPUS:
  case KEY_TYPE_NUMBER:
  case KEY_TYPE_DURATION:
  case KEY_TYPE_BOOL:
    return value_number(key, text, err, &number);
  case KEY_TYPE_PROFILE:
    break;
  }
  return 0;
}
