/* Theory of operation
 *
 * In this order: every value of every layer is judged (an error names its place, also where a later layer overrides the
 * value or the file is not trusted); merge.h says which values count; the policy is built from these; equal list items
 * are dropped, the first one stays. The checks of a whole policy come last.
 */
#include "policy/validate.h"

#include "base/buf.h"
#include "policy/credential.h"
#include "policy/credentials.h"
#include "policy/fields.h"
#include "policy/fspath.h"
#include "policy/layers.h"
#include "policy/limits.h"
#include "policy/merge.h"
#include "policy/print.h"
#include "policy/rule.h"
#include "policy/value.h"

#include <errno.h>
#include <stdlib.h>

/* Longest part of a value that an error quotes. */
#define VALIDATE_QUOTE_MAX 200

/* An item of a list while equal items are looked for. */
struct validate_item {
  const char *item;
  int (*compare)(const void *a, const void *b);
};

static int validate_out_of_memory(struct err *err)
{
  return err_set(err, ENOMEM, "policy: out of memory");
}

/* Puts the place and the value before the cause. */
static void validate_place(const struct layers *layers, const struct layer_value *value, struct err *err)
{
  const char *file = layers->files.items[value->file];
  const char *text = value->text ? value->text : "null";
  const char *dots = strlen(text) > VALIDATE_QUOTE_MAX ? "..." : "";
  /* Not what may hold a password. */
  bool secret = value->name || value->key->type == KEY_TYPE_UPSTREAM;

  if (value->line > 0 && secret)
    err_wrap(err, "%s:%u: %s", file, value->line, value->json_path);
  else if (value->line > 0)
    err_wrap(err, "%s:%u: %s: \"%.*s%s\"", file, value->line, value->json_path, VALIDATE_QUOTE_MAX, text, dots);
  else if (secret)
    err_wrap(err, "%s %.*s", file, VALIDATE_QUOTE_MAX, value->name ? value->name : "");
  else
    err_wrap(err, "%s \"%.*s%s\"", file, VALIDATE_QUOTE_MAX, text, dots);
}

static int validate_values(const struct layers *layers, struct err *err)
{
  for (size_t i = 0; i < layers->value_count; i++) {
    const struct layer_value *value = &layers->values[i];
    bool option = layers->sources[value->source].kind == LAYER_OPTION;
    int r = value_check(value->key, value->name, value->text, option, err);
    if (r == -EINVAL)
      validate_place(layers, value, err);
    if (r < 0)
      return r;
  }
  return 0;
}

static int validate_origin(const struct layers *layers, const struct layer_value *value,
                           struct policy_origin *ret_origin)
{
  const char *file = layers->files.items[value->file];
  struct policy_origin origin = { .line = value->line };

  origin.file = mem_strndup(file, strlen(file));
  origin.json_path = mem_strndup(value->json_path, strlen(value->json_path));
  if (!origin.file || !origin.json_path) {
    policy_origin_clear(&origin);
    return -ENOMEM;
  }
  *ret_origin = origin;
  return 0;
}

static int validate_add_path(struct policy_paths *paths, const struct key *key, const char *text,
                             struct policy_origin origin)
{
  struct policy_path item = { .origin = origin };
  int r = mem_grow(&paths->items, paths->count, &paths->cap, sizeof *paths->items, LIMITS_POLICY_ITEMS);

  if (r < 0)
    return r;
  if (key->type == KEY_TYPE_ENV_NAME) {
    item.text = mem_strndup(text, strlen(text));
    r = item.text ? 0 : -ENOMEM;
  } else {
    r = fspath_parse(span_of(text), key->type == KEY_TYPE_PATTERN, NULL, &item.text);
  }
  if (r == 0)
    paths->items[paths->count++] = item;
  return r;
}

static int validate_add_rule(struct policy_rules *rules, const struct key *key, const char *text,
                             struct policy_origin origin)
{
  struct policy_rule rule;
  int r = mem_grow(&rules->items, rules->count, &rules->cap, sizeof *rules->items, LIMITS_POLICY_ITEMS);

  if (r == 0)
    r = rule_parse(span_of(text), key->id == KEY_DENY ? RULE_DENY : RULE_ALLOW, NULL, &rule);
  if (r < 0)
    return r;
  rule.origin = origin;
  rules->items[rules->count++] = rule;
  return 0;
}

static int validate_add_port_map(struct policy_port_maps *maps, const char *text, struct policy_origin origin)
{
  struct policy_port_map map = { .origin = origin };
  int r = mem_grow(&maps->items, maps->count, &maps->cap, sizeof *maps->items, LIMITS_POLICY_ITEMS);

  if (r == 0)
    r = value_port_map(text, NULL, &map);
  if (r == 0)
    maps->items[maps->count++] = map;
  return r;
}

static int validate_add_env(struct policy_env_sets *sets, const struct layer_value *value, struct policy_origin origin)
{
  struct policy_env_set item = { .origin = origin };
  int r = mem_grow(&sets->items, sets->count, &sets->cap, sizeof *sets->items, LIMITS_POLICY_ITEMS);

  if (r < 0)
    return r;
  item.name = mem_strndup(value->name, strlen(value->name));
  item.value = mem_strndup(value->text, strlen(value->text));
  if (!item.name || !item.value) {
    free(item.name);
    free(item.value);
    return -ENOMEM;
  }
  sets->items[sets->count++] = item;
  return 0;
}

static int validate_add_credential(struct policy_credentials *credentials, const struct layer_value *value,
                                   struct policy_origin origin)
{
  struct policy_credential item;
  int r = mem_grow(&credentials->items, credentials->count, &credentials->cap, sizeof *credentials->items,
                   LIMITS_POLICY_ITEMS);

  if (r == 0)
    r = credential_parse(value->name, value->text, NULL, &item);
  if (r < 0)
    return r;
  item.origin = origin;
  credentials->items[credentials->count++] = item;
  return 0;
}

/* A list item or map entry. */
static int validate_add(const struct layers *layers, const struct layer_value *value, struct policy *policy)
{
  struct policy_paths *paths = fields_paths(policy, value->key->id);
  struct policy_rules *rules = fields_rules(policy, value->key->id);
  struct policy_port_maps *maps = fields_port_maps(policy, value->key->id);
  struct policy_origin origin;
  int r = validate_origin(layers, value, &origin);

  if (r < 0)
    return r;
  if (paths)
    r = validate_add_path(paths, value->key, value->text, origin);
  else if (rules)
    r = validate_add_rule(rules, value->key, value->text, origin);
  else if (maps)
    r = validate_add_port_map(maps, value->text, origin);
  else if (value->key->type == KEY_TYPE_CREDENTIAL)
    r = validate_add_credential(&policy->credentials, value, origin);
  else
    r = validate_add_env(&policy->env_set, value, origin);
  if (r < 0)
    policy_origin_clear(&origin);
  return r;
}

static int validate_set(const struct layer_value *value, struct policy *policy)
{
  uint64_t number;
  int r;

  if (value->key->type == KEY_TYPE_UPSTREAM) {
    free(mem_steal(policy->upstream_url));
    return value_upstream(value->text, NULL, &policy->upstream, &policy->upstream_url);
  }
  if (value->key->type == KEY_TYPE_FILE) {
    free(mem_steal(policy->audit_file));
    return value_file(value->text, true, NULL, &policy->audit_file);
  }
  r = value_number(value->key, value->text, NULL, &number);
  if (r == 0)
    fields_set_number(policy, value->key->id, number);
  return r;
}

static int validate_compare_paths(const void *a, const void *b)
{
  const struct policy_path *left = a;
  const struct policy_path *right = b;

  return strcmp(left->text, right->text);
}

static int validate_compare_rules(const void *a, const void *b)
{
  const struct policy_rule *left = a;
  const struct policy_rule *right = b;

  return strcmp(left->text, right->text);
}

static int validate_compare_env(const void *a, const void *b)
{
  const struct policy_env_set *left = a;
  const struct policy_env_set *right = b;

  return strcmp(left->name, right->name);
}

static int validate_compare_credentials(const void *a, const void *b)
{
  const struct policy_credential *left = a;
  const struct policy_credential *right = b;

  return strcmp(left->name, right->name);
}

static int validate_compare_port_maps(const void *a, const void *b)
{
  const struct policy_port_map *left = a;
  const struct policy_port_map *right = b;
  int order = left->host_port - right->host_port;

  return order != 0 ? order : left->port - right->port;
}

static void validate_clear_path(void *item)
{
  policy_path_clear(item);
}

static void validate_clear_rule(void *item)
{
  rule_free(item);
}

static void validate_clear_env(void *item)
{
  policy_env_set_clear(item);
}

static void validate_clear_credential(void *item)
{
  credential_clear(item);
}

static void validate_clear_port_map(void *item)
{
  policy_port_map_clear(item);
}

/* Equal items in the order of the list. */
static int validate_compare_items(const void *a, const void *b)
{
  const struct validate_item *left = a;
  const struct validate_item *right = b;
  int order = left->compare(left->item, right->item);

  return order != 0 ? order : (left->item > right->item) - (left->item < right->item);
}

/* How to treat one type of list. */
struct validate_list {
  size_t size; /* of an item */
  int (*compare)(const void *a, const void *b);
  void (*clear)(void *item);
  bool keep_last; /* of equal items the last one stays, not the first */
};

/* Drops equal items. By sorting, since a hostile workspace file may hold thousands. */
static int validate_unique(char *items, size_t *count, const struct validate_list *list)
{
  mem_autofree struct validate_item *sorted = mem_calloc(*count + 1, sizeof *sorted);
  mem_autofree bool *drop = mem_calloc(*count + 1, sizeof *drop);
  size_t kept = 0;

  if (!sorted || !drop)
    return -ENOMEM;
  for (size_t i = 0; i < *count; i++)
    sorted[i] = (struct validate_item){ items + i * list->size, list->compare };
  qsort(sorted, *count, sizeof *sorted, validate_compare_items);
  for (size_t i = 1; i < *count; i++)
    if (list->compare(sorted[i - 1].item, sorted[i].item) == 0)
      drop[(size_t)(sorted[list->keep_last ? i - 1 : i].item - items) / list->size] = true;
  for (size_t i = 0; i < *count; i++) {
    if (drop[i])
      list->clear(items + i * list->size);
    else if (kept++ != i)
      memcpy(items + (kept - 1) * list->size, items + i * list->size, list->size);
  }
  *count = kept;
  return 0;
}

static int validate_unique_all(struct policy *policy)
{
  static const struct validate_list paths_list = { sizeof(struct policy_path), validate_compare_paths,
                                                   validate_clear_path, false };
  static const struct validate_list rules_list = { sizeof(struct policy_rule), validate_compare_rules,
                                                   validate_clear_rule, false };
  static const struct validate_list maps_list = { sizeof(struct policy_port_map), validate_compare_port_maps,
                                                  validate_clear_port_map, false };
  static const struct validate_list env_list = { sizeof(struct policy_env_set), validate_compare_env,
                                                 validate_clear_env, true };
  int r = 0;

  for (unsigned id = 0; r == 0 && id < KEY_COUNT; id++) {
    struct policy_paths *paths = fields_paths(policy, id);
    struct policy_rules *rules = fields_rules(policy, id);
    struct policy_port_maps *maps = fields_port_maps(policy, id);
    if (paths)
      r = validate_unique((char *)paths->items, &paths->count, &paths_list);
    else if (rules)
      r = validate_unique((char *)rules->items, &rules->count, &rules_list);
    else if (maps)
      r = validate_unique((char *)maps->items, &maps->count, &maps_list);
  }
  return r < 0 ? r : validate_unique((char *)policy->env_set.items, &policy->env_set.count, &env_list);
}

static bool validate_is_about_loopback(const struct policy_rule *rule)
{
  static const struct host loopback[] = {
    { .kind = HOST_NAME, .name = "localhost" },
    { .kind = HOST_ADDR, .addr = { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } } },
    { .kind = HOST_ADDR, .addr = { .family = ADDR_V6, .bytes = { [15] = 1 } } },
  };

  for (size_t i = 0; i < MEM_COUNT(loopback); i++)
    if (rule_covers_inside(rule, &loopback[i]))
      return true;
  return false;
}

/* The last entry of each name, by name, and what they imply. */
static int validate_credentials(struct policy *policy)
{
  static const struct validate_list list = { sizeof(struct policy_credential), validate_compare_credentials,
                                             validate_clear_credential, true };
  struct policy_credentials *credentials = &policy->credentials;
  int r = validate_unique((char *)credentials->items, &credentials->count, &list);

  if (r < 0)
    return r;
  if (credentials->count > 1)
    qsort(credentials->items, credentials->count, sizeof *credentials->items, validate_compare_credentials);
  return credentials_extend(policy);
}

/* A port that is handed in whole, and a deny rule on some of its requests: nobody could hold that rule. */
static int validate_forward(const struct policy *policy, struct err *err)
{
  for (size_t i = 0; i < policy->forward.count; i++) {
    for (size_t j = 0; j < policy->deny.count; j++) {
      const struct policy_rule *rule = &policy->deny.items[j];
      uint16_t port = policy->forward.items[i].host_port;
      if (!rule_is_whole(rule) && validate_is_about_loopback(rule) && rule_covers_port(rule, port))
        return err_set(err, EINVAL,
                       "%s:%u: %s: a rule on requests to port %u of localhost, which network.forward hands in whole; "
                       "allow \"localhost:%u\" instead of the forward, or deny \"localhost:%u\"",
                       rule->origin.file, rule->origin.line, rule->origin.json_path, port, port, port);
    }
  }
  return 0;
}

/* What is odd about the policy as a whole. */
static int validate_notes(const struct policy *policy, struct strv *notes)
{
  bool rules = policy->allow.count > 0 || policy->deny.count > 0;
  bool host = policy->network == POLICY_NETWORK_HOST;
  int r = 0;

  if (host && rules)
    r = strv_addf(notes, "network.mode is host: the allow and deny rules have no effect; set it to proxy for them");
  if (r == 0 && policy->network != POLICY_NETWORK_PROXY && policy->publish.count > 0)
    r = strv_addf(notes, "network.mode is %s: network.publish has no effect; set it to proxy for it",
                  host ? "host" : "none");
  if (r == 0 && host && policy->credentials.count > 0)
    r = strv_addf(notes, "network.mode is host: the credentials have no effect; set it to proxy for them");
  return r < 0 ? r : credentials_note(policy, notes);
}

static int validate_build(const struct layers *layers, struct strv *notes, struct policy *policy)
{
  merged_autofree struct merged merged = { 0 };
  int r = merge_layers(layers, notes, &merged);

  for (size_t i = 0; r == 0 && i < merged.count; i++)
    r = validate_add(layers, &layers->values[merged.items[i]], policy);
  for (unsigned id = 0; r == 0 && id < KEY_COUNT; id++)
    if (merged.scalars[id])
      r = validate_set(merged.scalars[id], policy);
  if (r == 0)
    r = validate_notes(policy, notes);
  if (r == 0)
    r = validate_credentials(policy);
  return r < 0 ? r : validate_unique_all(policy);
}

int policy_validate(const struct layers *layers, struct err *err, struct strv *ret_notes, struct policy **ret_policy)
{
  policy_autofree struct policy *policy = mem_calloc(1, sizeof *policy);
  strv_autofree struct strv notes = STRV_INIT;
  int r = policy ? validate_values(layers, err) : validate_out_of_memory(err);

  if (r < 0)
    return r;
  r = validate_build(layers, &notes, policy);
  /* The values were judged before, so only memory can have failed. */
  if (r < 0)
    return validate_out_of_memory(err);
  r = validate_forward(policy, err);
  if (r == 0)
    r = credentials_check(policy, err);
  if (r < 0)
    return r;
  for (size_t i = 0; i < notes.count; i++)
    if (strv_add(ret_notes, notes.items[i]) < 0)
      return validate_out_of_memory(err);
  *ret_policy = mem_steal(policy);
  return 0;
}

int policy_parse(struct span canonical, struct err *err, struct policy **ret_policy)
{
  layers_autofree struct layers *layers = layers_new_empty();
  strv_autofree struct strv notes = STRV_INIT;
  int r = layers ? layers_add_canonical(layers, "canonical policy", canonical, err) : validate_out_of_memory(err);

  return r < 0 ? r : policy_validate(layers, err, &notes, ret_policy);
}

int policy_extend(const struct policy *base, const char *rule, const char *option, struct err *err,
                  struct policy **ret_policy)
{
  layers_autofree struct layers *layers = layers_new_empty();
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  strv_autofree struct strv notes = STRV_INIT;
  int r;

  policy_print(base, true, &text);
  if (!layers || buf_error(&text))
    return validate_out_of_memory(err);
  r = layers_add_canonical(layers, "canonical policy", buf_span(&text), err);
  if (r == 0)
    r = layers_add_option(layers, keys_at(KEY_ALLOW)->path, rule, option, err);
  return r < 0 ? r : policy_validate(layers, err, &notes, ret_policy);
}
