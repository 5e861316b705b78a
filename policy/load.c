/* Theory of operation
 *
 * A text becomes a tree (doc.h), and the tree a flat row of values (layers.h): one per list item, scalar and map
 * entry, each with its key, its text and its place. Only the shape is judged here: known keys and JSON types. What
 * the texts mean is validate's business, and what counts is merge's, so that every value of every layer is judged,
 * also one that a later layer overrides or that is ignored because its file is not trusted.
 *
 * `extends` is no value: it adds the profiles that it names in front of the file's own values.
 */
#include "config.h"

#include "policy/load.h"

#include "base/buf.h"
#include "base/num.h"
#include "policy/credential.h"
#include "policy/doc.h"
#include "policy/layers.h"
#include "policy/limits.h"
#include "policy/profiles.h"

#include <errno.h>
#include <stdio.h>

/* One text that is being loaded. */
struct load {
  struct layers *layers;
  const char *place;
  size_t source;
  bool canonical; /* list items and map entries are objects with value, file, path and line */
  struct err *err;
};

struct layers *layers_new(void)
{
  layers_autofree struct layers *layers = layers_new_empty();
  const struct profile *base = profiles_find(SPAN("default"));

  if (!layers || !base || layers_add_profile_name(layers, base->name, LAYER_PROFILE) < 0)
    return NULL;
  if (layers_add_text(layers, LAYER_BUILTIN, "built-in", (struct span){ base->text, base->len }, NULL) < 0)
    return NULL;
  return mem_steal(layers);
}

const char *const *profile_names(void)
{
  return profiles_names();
}

static int load_out_of_memory(struct err *err)
{
  return err_set(err, ENOMEM, "policy: out of memory");
}

static int load_add_value(struct load *load, const struct key *key, const char *name, const char *text,
                          struct layer_place place)
{
  int r = layers_add_value(load->layers, key, load->source, name, text, &place);

  if (r == -E2BIG)
    return err_set(load->err, EINVAL, "%s: more than %d values; name fewer", load->place, LIMITS_POLICY_ITEMS);
  return r < 0 ? load_out_of_memory(load->err) : 0;
}

static int load_refuse(struct load *load, const struct doc *doc, const char *json_path, const char *cause)
{
  return err_set(load->err, EINVAL, "%s:%u: %s: %s", load->place, doc->line, json_path, cause);
}

/* Whether a JSON value of this type may stand for a value of the key. */
static bool load_type_fits(const struct key *key, enum doc_type type)
{
  switch (key->type) {
  case KEY_TYPE_PORT_MAP:
  case KEY_TYPE_SIZE:
  case KEY_TYPE_CPUS:
  case KEY_TYPE_DURATION:
    return type == DOC_NUMBER || type == DOC_STRING;
  case KEY_TYPE_NUMBER:
    return type == DOC_NUMBER;
  case KEY_TYPE_BOOL:
    return type == DOC_BOOL;
  case KEY_TYPE_CREDENTIAL:
    return type == DOC_OBJECT;
  case KEY_TYPE_PROFILE:
  case KEY_TYPE_PATH:
  case KEY_TYPE_PATTERN:
  case KEY_TYPE_WORD:
  case KEY_TYPE_RULE:
  case KEY_TYPE_UPSTREAM:
  case KEY_TYPE_ENV_NAME:
  case KEY_TYPE_ENV_VALUE:
  case KEY_TYPE_FILE:
    break;
  }
  return type == DOC_STRING;
}

static const char *load_wanted(const struct key *key)
{
  if (load_type_fits(key, DOC_NUMBER))
    return load_type_fits(key, DOC_STRING) ? "a number or a string" : "a number";
  if (load_type_fits(key, DOC_OBJECT))
    return "an object";
  return load_type_fits(key, DOC_BOOL) ? "true or false" : "a string";
}

/* A value with its origin, as policy_print writes them. */
static int load_unwrap(struct load *load, const struct doc *doc, const char *json_path, const struct doc **ret_value,
                       struct layer_place *ret_place)
{
  const struct doc *value = doc_member(doc, "value");
  const struct doc *file = doc_member(doc, "file");
  const struct doc *path = doc_member(doc, "path");
  const struct doc *line = doc_member(doc, "line");
  uint64_t number;

  if (doc->type != DOC_OBJECT || doc->count != 4 || !value || !file || file->type != DOC_STRING || !path ||
      path->type != DOC_STRING || !line || line->type != DOC_NUMBER ||
      num_parse_u64(span_of(line->text), 0, UINT32_MAX, &number) < 0)
    return load_refuse(load, doc, json_path, "not in canonical form; this text is for programs, not for editing");
  *ret_value = value;
  *ret_place = (struct layer_place){ file->text, path->text, (unsigned)number };
  return 0;
}

/* An object goes on as text: a rule that names methods or paths (rule_object.h), a credential (credential.h). */
static int load_value_object(struct load *load, const struct key *key, const struct doc *doc, const char *name,
                             struct layer_place place)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);

  doc_print(doc, &text);
  if (buf_error(&text) < 0)
    return buf_error(&text) == -ENOMEM ? load_out_of_memory(load->err)
                                       : load_refuse(load, doc, place.json_path, "too long; make it several");
  return load_add_value(load, key, name, text.data, place);
}

/* A scalar, list item or map entry. */
static int load_value(struct load *load, const struct key *key, const struct doc *doc, const char *json_path,
                      const char *name)
{
  struct layer_place place = { load->place, json_path, doc->line };

  if (load->canonical && key->merge != KEY_SCALAR) {
    int r = load_unwrap(load, doc, json_path, &doc, &place);
    if (r < 0)
      return r;
  }
  if (doc->type == DOC_NULL && key->nullable)
    return load_add_value(load, key, name, NULL, place);
  if ((key->type == KEY_TYPE_RULE || key->type == KEY_TYPE_CREDENTIAL) && doc->type == DOC_OBJECT)
    return load_value_object(load, key, doc, name, place);
  if (key->type == KEY_TYPE_RULE && doc->type == DOC_STRING && doc->text[0] == '{')
    return load_refuse(load, doc, json_path, "an object in quotes; write it without them");
  if (!load_type_fits(key, doc->type))
    return err_set(load->err, EINVAL, "%s:%u: %s: %s where %s is wanted; see " SBX_POLICY_PAGE "(5)", load->place,
                   doc->line, json_path, doc_type_name(doc->type), load_wanted(key));
  return load_add_value(load, key, name, doc->text, place);
}

/* Longest json_path: a key and an index or name. */
#define LOAD_PATH_MAX (LIMITS_ENV_NAME_BYTES + 128)

static int load_list(struct load *load, const struct key *key, const struct doc *doc)
{
  if (doc->type != DOC_ARRAY)
    return err_set(load->err, EINVAL, "%s:%u: %s: %s where a list is wanted; write it in [ ]", load->place, doc->line,
                   key->path, doc_type_name(doc->type));
  for (size_t i = 0; i < doc->count; i++) {
    char path[LOAD_PATH_MAX];
    snprintf(path, sizeof path, "%s[%zu]", key->path, i);
    int r = load_value(load, key, &doc->items[i], path, NULL);
    if (r < 0)
      return r;
  }
  return 0;
}

static int load_map(struct load *load, const struct key *key, const struct doc *doc)
{
  if (doc->type != DOC_OBJECT)
    return err_set(load->err, EINVAL, "%s:%u: %s: %s where an object is wanted; write {\"NAME\": %s}", load->place,
                   doc->line, key->path, doc_type_name(doc->type),
                   key->type == KEY_TYPE_CREDENTIAL ? "{...}" : "\"VALUE\"");
  for (size_t i = 0; i < doc->count; i++) {
    char path[LOAD_PATH_MAX];
    snprintf(path, sizeof path, "%s.%s", key->path, doc->items[i].name);
    int r = load_value(load, key, &doc->items[i], path, doc->items[i].name);
    if (r < 0)
      return r;
  }
  return 0;
}

static int load_unknown(struct load *load, const struct doc *doc, const char *parent, const char *path)
{
  struct span near;

  if (keys_suggest(span_of(parent), span_of(doc->name), &near))
    return err_set(load->err, EINVAL, "%s:%u: %s: unknown key; did you mean \"%.*s\"?", load->place, doc->line, path,
                   (int)near.len, near.ptr);
  return load_refuse(load, doc, path, "unknown key; the keys are listed in " SBX_POLICY_PAGE "(5)");
}

static int load_object(struct load *load, const struct doc *doc, const char *parent);

static int load_member(struct load *load, const struct doc *doc, const char *parent)
{
  char path[LOAD_PATH_MAX];
  const struct key *key;

  snprintf(path, sizeof path, "%s%s%s", parent, parent[0] ? "." : "", doc->name);
  /* A dot in a name would make "network.mode" at the top another spelling of a key. */
  key = strchr(doc->name, '.') ? NULL : keys_find(span_of(path));
  if (!key && parent[0] == '\0' && keys_is_object(span_of(path)) && !strchr(doc->name, '.'))
    return load_object(load, doc, path);
  if (!key)
    return load_unknown(load, doc, parent, path);
  if (key->id == KEY_EXTENDS)
    return 0;
  switch (key->merge) {
  case KEY_LIST:
    return load_list(load, key, doc);
  case KEY_MAP:
    return load_map(load, key, doc);
  case KEY_SCALAR:
    break;
  }
  return load_value(load, key, doc, path, NULL);
}

/* The members of the object parent ("" for the top). */
static int load_object(struct load *load, const struct doc *doc, const char *parent)
{
  if (doc->type != DOC_OBJECT)
    return err_set(load->err, EINVAL, "%s:%u: %s: %s where an object is wanted; write it in { }", load->place,
                   doc->line, parent[0] ? parent : "policy", doc_type_name(doc->type));
  for (size_t i = 0; i < doc->count; i++) {
    if (parent[0] == '\0' && strcmp(doc->items[i].name, "$schema") == 0)
      continue;
    int r = load_member(load, &doc->items[i], parent);
    if (r < 0)
      return r;
  }
  return 0;
}

static int load_profile(struct layers *layers, enum layer_kind kind, const char *owner, struct span name,
                        struct err *err);

/* The profiles that a text extends. */
static int load_extends(struct load *load, const struct doc *doc, enum layer_kind kind, const char *owner)
{
  const struct doc *extends = doc->type == DOC_OBJECT ? doc_member(doc, "extends") : NULL;

  if (!extends)
    return 0;
  if (extends->type != DOC_ARRAY)
    return load_refuse(load, extends, "extends", "not a list; write [\"NAME\"]");
  for (size_t i = 0; i < extends->count; i++) {
    const struct doc *item = &extends->items[i];
    if (item->type != DOC_STRING)
      return load_refuse(load, item, "extends", "not a string; write [\"NAME\"]");
    int r = load_profile(load->layers, kind, owner, span_of(item->text), load->err);
    if (r == -ENOENT) {
      err_wrap(load->err, "%s:%u: extends[%zu]", load->place, item->line, i);
      if (load->err)
        load->err->code = EINVAL;
      return -EINVAL;
    }
    if (r < 0)
      return r;
  }
  return 0;
}

/* What a profile is, given what names it: as untrusted as the file that extends it. */
static enum layer_kind load_profile_kind(enum layer_kind kind)
{
  return kind == LAYER_WORKSPACE || kind == LAYER_WORKSPACE_TRUSTED ? kind : LAYER_PROFILE;
}

static int load_text(struct layers *layers, enum layer_kind kind, enum layer_kind rank, const char *place,
                     const char *owner, struct span text, struct err *err)
{
  struct load load = { .layers = layers, .place = place, .err = err };
  doc_autofree struct doc *doc = NULL;
  int r = doc_parse(place, text, err, &doc);

  if (r < 0)
    return r;
  r = load_extends(&load, doc, load_profile_kind(kind), owner);
  if (r < 0)
    return r;
  if (layers_add_source(layers, kind, rank, place, owner, &load.source) < 0)
    return load_out_of_memory(err);
  return load_object(&load, doc, "");
}

int layers_add_text(struct layers *layers, enum layer_kind kind, const char *name, struct span text, struct err *err)
{
  return load_text(layers, kind, kind, name, name, text, err);
}

int layers_add_canonical(struct layers *layers, const char *name, struct span text, struct err *err)
{
  struct load load = { .layers = layers, .place = name, .canonical = true, .err = err };
  doc_autofree struct doc *doc = NULL;
  int r = doc_parse(name, text, err, &doc);

  if (r < 0)
    return r;
  if (layers_add_source(layers, LAYER_OPTION, LAYER_OPTION, name, name, &load.source) < 0)
    return load_out_of_memory(err);
  return load_object(&load, doc, "");
}

static int load_no_profile(struct span name, struct err *err)
{
  buf_autofree struct buf list = BUF_INIT(512);

  for (const char *const *known = profiles_names(); *known; known++)
    buf_printf(&list, "%s%s", list.len > 0 ? ", " : "", *known);
  return err_set(err, ENOENT, "no profile \"%.*s\"; the profiles are %s", (int)(name.len > 64 ? 64 : name.len),
                 name.ptr, list.data ? list.data : "none");
}

static int load_profile(struct layers *layers, enum layer_kind kind, const char *owner, struct span name,
                        struct err *err)
{
  const struct profile *profile = profiles_find(name);
  char place[64];

  if (!profile)
    return load_no_profile(name, err);
  if (layers_has_profile(layers, profile->name, kind))
    return 0;
  if (layers_add_profile_name(layers, profile->name, kind) < 0)
    return load_out_of_memory(err);
  snprintf(place, sizeof place, "profile %s", profile->name);
  return load_text(layers, kind, kind == LAYER_WORKSPACE ? LAYER_WORKSPACE : LAYER_PROFILE, place,
                   owner ? owner : place, (struct span){ profile->text, profile->len }, err);
}

int layers_add_profile(struct layers *layers, const char *name, struct err *err)
{
  return load_profile(layers, LAYER_PROFILE, NULL, span_of(name), err);
}

/* The options' source: one for all of them. */
static int load_option_source(struct layers *layers, size_t *ret_source)
{
  for (size_t i = 0; i < layers->source_count; i++) {
    if (layers->sources[i].kind == LAYER_OPTION) {
      *ret_source = i;
      return 0;
    }
  }
  return layers_add_source(layers, LAYER_OPTION, LAYER_OPTION, "options", "options", ret_source);
}

/* NAME[=SOURCE] becomes the entry that a file would have. The options are one layer, in which a name stands once. */
static int load_credential(struct load *load, const char *text, struct layer_place place)
{
  MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
  buf_autofree struct buf entry = BUF_INIT(LIMITS_POLICY_BYTES);
  int r = credential_read_option(span_of(text), load->err, &credential);

  if (r == -EINVAL)
    return err_wrap(load->err, "%s", place.file);
  for (size_t i = 0; r == 0 && i < load->layers->value_count; i++) {
    const struct layer_value *value = &load->layers->values[i];
    if (value->source == load->source && value->key->id == KEY_CREDENTIALS && strcmp(value->name, credential.name) == 0)
      return err_set(load->err, EINVAL, "%s %s: given twice; leave one out", place.file, credential.name);
  }
  if (r == 0)
    credential_print(&credential, &entry);
  if (r == 0 && buf_error(&entry) < 0)
    r = load_out_of_memory(load->err);
  return r < 0 ? r : load_add_value(load, keys_at(KEY_CREDENTIALS), credential.name, entry.data, place);
}

int layers_add_option(struct layers *layers, const char *key_path, const char *text, const char *option,
                      struct err *err)
{
  struct load load = { .layers = layers, .place = option, .err = err };
  struct layer_place place = { option, "", 0 };
  const struct key *key = keys_find(strcmp(key_path, "env") == 0 ? SPAN("env.pass") : span_of(key_path));
  mem_autofree char *name = NULL;

  if (!key)
    return err_set(err, EINVAL, "%s: no policy key \"%s\"", option, key_path);
  if (!doc_is_utf8(span_of(text)))
    return err_set(err, EINVAL, "%s: bytes that are not UTF-8; write the value as UTF-8", option);
  if (key->id == KEY_EXTENDS) {
    int r = layers_add_profile(layers, text, err);
    if (r < 0)
      err_wrap(err, "%s", option);
    return r;
  }
  if (load_option_source(layers, &load.source) < 0)
    return load_out_of_memory(err);
  if (key->id == KEY_ENV_PASS || key->id == KEY_ENV_SET) {
    struct span whole = span_of(text);
    size_t equals = span_find(whole, '=');
    if (equals == whole.len)
      return load_add_value(&load, keys_at(KEY_ENV_PASS), NULL, text, place);
    name = mem_strndup(text, equals);
    if (!name)
      return load_out_of_memory(err);
    return load_add_value(&load, keys_at(KEY_ENV_SET), name, text + equals + 1, place);
  }
  if (key->id == KEY_CREDENTIALS)
    return load_credential(&load, text, place);
  if (key->nullable && key->type != KEY_TYPE_FILE && strcmp(text, "none") == 0)
    text = NULL;
  return load_add_value(&load, key, NULL, text, place);
}
