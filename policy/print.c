/* Theory of operation
 *
 * The keys are printed in the order of keys.c, where those of one object stand together. Both forms have the same
 * shape; with origins, a list item or map entry is an object {"value", "file", "path", "line"} instead of the value
 * itself.
 */
#include "policy/print.h"

#include "policy/credential.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/rule.h"

#include <inttypes.h>

struct print {
  struct policy policy; /* a shallow copy */
  bool with_origins;
  bool top; /* the key that is being printed stands in no object */
  struct buf *out;
};

static void print_text(struct print *print, const char *text)
{
  buf_append_json(print->out, span_of(text));
}

/* Opens and closes the object round a list item's or map entry's value. */
static void print_item_begin(struct print *print)
{
  if (print->with_origins)
    buf_append_str(print->out, "{\"value\": ");
}

static void print_item_end(struct print *print, const struct policy_origin *origin)
{
  if (!print->with_origins)
    return;
  buf_append_str(print->out, ", \"file\": ");
  print_text(print, origin->file ? origin->file : "");
  buf_append_str(print->out, ", \"path\": ");
  print_text(print, origin->json_path ? origin->json_path : "");
  buf_printf(print->out, ", \"line\": %u}", origin->line);
}

/* What stands in front of item index, and behind the last of count. */
static void print_item_separator(struct print *print, size_t index)
{
  buf_append_str(print->out, index > 0 ? "," : "");
  buf_append_str(print->out, print->top ? "\n    " : "\n      ");
}

static void print_list_end(struct print *print, size_t count, const char *close)
{
  if (count > 0)
    buf_append_str(print->out, print->top ? "\n  " : "\n    ");
  buf_append_str(print->out, close);
}

static void print_paths(struct print *print, const struct policy_paths *paths)
{
  buf_append_byte(print->out, '[');
  for (size_t i = 0; i < paths->count; i++) {
    print_item_separator(print, i);
    print_item_begin(print);
    print_text(print, paths->items[i].text);
    print_item_end(print, &paths->items[i].origin);
  }
  print_list_end(print, paths->count, "]");
}

/* Without what credentials imply, which they do again when the text is read. */
static void print_rules(struct print *print, const struct policy_rules *rules)
{
  size_t count = 0;

  buf_append_byte(print->out, '[');
  for (size_t i = 0; i < rules->count; i++) {
    if (rules->items[i].implied)
      continue;
    print_item_separator(print, count++);
    print_item_begin(print);
    if (rule_is_whole(&rules->items[i]))
      print_text(print, rules->items[i].text);
    else
      buf_append_str(print->out, rules->items[i].text);
    print_item_end(print, &rules->items[i].origin);
  }
  print_list_end(print, count, "]");
}

static void print_port_maps(struct print *print, const struct policy_port_maps *maps)
{
  buf_append_byte(print->out, '[');
  for (size_t i = 0; i < maps->count; i++) {
    const struct policy_port_map *map = &maps->items[i];
    print_item_separator(print, i);
    print_item_begin(print);
    if (map->host_port == map->port)
      buf_printf(print->out, "%u", map->port);
    else
      buf_printf(print->out, "\"%u:%u\"", map->host_port, map->port);
    print_item_end(print, &map->origin);
  }
  print_list_end(print, maps->count, "]");
}

static void print_env_sets(struct print *print, const struct policy_env_sets *sets)
{
  buf_append_byte(print->out, '{');
  for (size_t i = 0; i < sets->count; i++) {
    print_item_separator(print, i);
    print_text(print, sets->items[i].name);
    buf_append_str(print->out, ": ");
    print_item_begin(print);
    print_text(print, sets->items[i].value);
    print_item_end(print, &sets->items[i].origin);
  }
  print_list_end(print, sets->count, "}");
}

static void print_credentials(struct print *print, const struct policy_credentials *credentials)
{
  buf_append_byte(print->out, '{');
  for (size_t i = 0; i < credentials->count; i++) {
    print_item_separator(print, i);
    print_text(print, credentials->items[i].name);
    buf_append_str(print->out, ": ");
    print_item_begin(print);
    credential_print(&credentials->items[i], print->out);
    print_item_end(print, &credentials->items[i].origin);
  }
  print_list_end(print, credentials->count, "}");
}

/* number of units in the largest unit that divides it. */
static void print_unit(struct print *print, uint64_t number, const uint64_t *factors, const char *const *units,
                       size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (number % factors[i] != 0)
      continue;
    buf_printf(print->out, "\"%" PRIu64 "%s\"", number / factors[i], units[i]);
    return;
  }
}

/* Thousandths as a decimal number, without zeros at its end. */
static void print_milli(struct print *print, uint64_t number)
{
  uint64_t places = number % 1000;
  int width = 3;

  while (width > 0 && places % 10 == 0) {
    places /= 10;
    width--;
  }
  buf_printf(print->out, "%" PRIu64, number / 1000);
  if (width > 0)
    buf_printf(print->out, ".%0*" PRIu64, width, places);
}

static void print_limit(struct print *print, const struct key *key, uint64_t number)
{
  static const uint64_t sizes[] = { UINT64_C(1) << 40, UINT64_C(1) << 30, UINT64_C(1) << 20, UINT64_C(1) << 10 };
  static const char *const size_units[] = { "t", "g", "m", "k" };
  static const uint64_t times[] = { 3600 * 1000, 60 * 1000, 1000, 1 };
  static const char *const time_units[] = { "h", "m", "s", "ms" };

  if (number == 0)
    buf_append_str(print->out, "null");
  else if (key->type == KEY_TYPE_SIZE && number % 1024 == 0)
    print_unit(print, number, sizes, size_units, MEM_COUNT(sizes));
  else if (key->type == KEY_TYPE_DURATION)
    print_unit(print, number, times, time_units, MEM_COUNT(times));
  else if (key->type == KEY_TYPE_CPUS)
    print_milli(print, number);
  else
    buf_printf(print->out, "%" PRIu64, number);
}

/* Never user and password. What a person gets has a mark in their place, which no policy takes back; what the proxy
 * gets has none, since it does not use this value. */
static void print_upstream(struct print *print)
{
  const struct policy *policy = &print->policy;
  buf_autofree struct buf shown = BUF_INIT(2 * LIMITS_UPSTREAM_BYTES);
  struct span url = span_of(policy->upstream_url);
  size_t at = span_find_last(url, '@');

  if (policy->upstream != POLICY_UPSTREAM_URL) {
    print_text(print, policy->upstream == POLICY_UPSTREAM_NONE ? "none" : "env");
    return;
  }
  /* The value was parsed once: what stands before the last '@' is scheme, user and password. */
  if (at < url.len) {
    buf_append(&shown, span_sub(url, 0, span_find(url, '/') + 2));
    if (!print->with_origins)
      buf_append_str(&shown, "***@");
    buf_append(&shown, span_sub(url, at + 1, url.len));
  }
  print_text(print, at < url.len ? shown.data : policy->upstream_url);
}

/* A descriptor means something to this run alone, so a policy that a person may save leaves it out. */
static void print_file(struct print *print, const char *file)
{
  if (!file || (!print->with_origins && span_starts_with(span_of(file), SPAN("fd:"))))
    buf_append_str(print->out, "null");
  else
    print_text(print, file);
}

static void print_value(struct print *print, const struct key *key)
{
  struct policy *policy = &print->policy;

  switch (key->type) {
  case KEY_TYPE_PATH:
  case KEY_TYPE_PATTERN:
  case KEY_TYPE_ENV_NAME:
    print_paths(print, fields_paths(policy, key->id));
    break;
  case KEY_TYPE_RULE:
    print_rules(print, fields_rules(policy, key->id));
    break;
  case KEY_TYPE_PORT_MAP:
    print_port_maps(print, fields_port_maps(policy, key->id));
    break;
  case KEY_TYPE_ENV_VALUE:
    print_env_sets(print, &policy->env_set);
    break;
  case KEY_TYPE_CREDENTIAL:
    print_credentials(print, &policy->credentials);
    break;
  case KEY_TYPE_UPSTREAM:
    print_upstream(print);
    break;
  case KEY_TYPE_FILE:
    print_file(print, policy->audit_file);
    break;
  case KEY_TYPE_WORD:
    print_text(print, key->words[fields_number(policy, key->id)]);
    break;
  case KEY_TYPE_BOOL:
    buf_append_str(print->out, key->words[fields_number(policy, key->id)]);
    break;
  case KEY_TYPE_SIZE:
  case KEY_TYPE_CPUS:
  case KEY_TYPE_NUMBER:
  case KEY_TYPE_DURATION:
    print_limit(print, key, fields_number(policy, key->id));
    break;
  case KEY_TYPE_PROFILE:
    break;
  }
}

void policy_print(const struct policy *policy, bool with_origins, struct buf *out)
{
  struct print print = { .policy = *policy, .with_origins = with_origins, .out = out };
  struct span object = { NULL, 0 };

  buf_append_str(out, "{");
  for (unsigned id = 0; id < KEY_COUNT; id++) {
    const struct key *key = keys_at(id);
    struct span path = span_of(key->path);
    struct span parent = span_sub(path, 0, span_find(path, '.'));
    if (key->type == KEY_TYPE_PROFILE)
      continue;
    print.top = parent.len == path.len;
    if (object.len > 0 && span_equal(parent, object)) {
      buf_append_str(out, ",\n    ");
    } else {
      buf_append_str(out, object.len > 0 ? "\n  }" : "");
      buf_append_str(out, out->len > 1 ? ",\n  " : "\n  ");
      object = print.top ? (struct span){ NULL, 0 } : parent;
      buf_append_json(out, parent);
      buf_append_str(out, print.top ? ": " : ": {\n    ");
    }
    if (!print.top) {
      buf_append_json(out, span_sub(path, parent.len + 1, path.len));
      buf_append_str(out, ": ");
    }
    print_value(&print, key);
  }
  buf_append_str(out, object.len > 0 ? "\n  }\n}\n" : "\n}\n");
}
