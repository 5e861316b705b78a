/* Theory of operation
 *
 * The layers stand in a fixed order (enum layer_kind), whatever the order in which they were added: built-in base,
 * profiles, system, user, workspace, --policy, options. Lists add up; of a scalar, or of one name of a map, the last
 * layer's value counts.
 *
 * A file inside the workspace can be written by whatever wrote the workspace, the command itself included, so a value
 * of it counts only as far as its key's row in keys.c says. "Narrower" is judged against the value that the layers in
 * front of it have made, and never against a layer behind it: --policy and the options are the user's own words.
 */
#include "config.h"

#include "policy/merge.h"

#include "base/buf.h"
#include "policy/value.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

void merged_free(struct merged *merged)
{
  free(merged->items);
  *merged = (struct merged){ 0 };
}

static uint64_t merge_number(const struct layer_value *value)
{
  uint64_t number = 0;

  /* Every value was checked before, so this cannot fail. */
  if (value)
    value_number(value->key, value->text, NULL, &number);
  return number;
}

/* Whether value narrows what stands in front of it, or leaves it alike. Text keys are never narrower. */
static bool merge_narrows(const struct layer_value *value, const struct layer_value *before)
{
  uint64_t number = merge_number(value);

  if (value->key->merge != KEY_SCALAR || value->key->type == KEY_TYPE_UPSTREAM || value->key->type == KEY_TYPE_FILE)
    return false;
  return number == merge_number(before) || value_is_narrower(value->key, number, merge_number(before));
}

enum merge_verdict {
  MERGE_TAKE,
  MERGE_UNTRUSTED, /* ignored until `sbx trust` */
  MERGE_NEVER, /* ignored in any workspace file */
};

/* What becomes of a value, given the value of its key so far (scalars only). */
static enum merge_verdict merge_judge(enum layer_kind kind, const struct layer_value *value,
                                      const struct layer_value *before)
{
  const struct key *key = value->key;
  bool never = key->trust == KEY_NEVER || key->trust == KEY_IF_LOWER ||
               (key->never && value->text && strcmp(key->never, value->text) == 0);

  if (kind != LAYER_WORKSPACE && kind != LAYER_WORKSPACE_TRUSTED)
    return MERGE_TAKE;
  if (key->trust == KEY_TAKEN)
    return MERGE_TAKE;
  if ((key->trust == KEY_IF_NARROWER || key->trust == KEY_IF_LOWER) && merge_narrows(value, before))
    return MERGE_TAKE;
  if (never)
    return MERGE_NEVER;
  return kind == LAYER_WORKSPACE ? MERGE_UNTRUSTED : MERGE_TAKE;
}

/* What is told about the workspace's file. */
struct merge_notes {
  const char *owner; /* NULL while nothing was ignored */
  struct buf untrusted; /* keys, separated by ", " */
  struct buf never;
};

/* Adds the name of what was ignored, once: the key, or the profile that it comes from. */
static void merge_note_ignored(const struct layers *layers, const struct layer_value *value, struct buf *list)
{
  const struct layer_source *source = &layers->sources[value->source];
  buf_autofree struct buf name = BUF_INIT(512);

  buf_append_str(&name, strcmp(source->owner, source->place) == 0 ? value->key->path : source->place);
  struct span rest = buf_span(list);
  struct span part;
  while (rest.len > 0 && span_split(&rest, ',', &part))
    if (span_equal(span_trim(part), buf_span(&name)))
      return;
  if (list->len > 0)
    buf_append_str(list, ", ");
  buf_append(list, buf_span(&name));
}

/* A profile's scalar that another file widens again: `--profile offline` must not lose its meaning silently. An option
 * and the file that itself extends the profile do so on purpose. */
static int merge_note_widened(const struct layers *layers, const struct layer_value *value,
                              const struct layer_value *before, struct strv *notes)
{
  const struct layer_source *source = &layers->sources[value->source];
  const struct layer_source *profile = before ? &layers->sources[before->source] : NULL;

  if (!profile || profile->rank != LAYER_PROFILE || source->rank == LAYER_OPTION || !value->key->words ||
      value->key->type == KEY_TYPE_UPSTREAM)
    return 0;
  if (merge_narrows(value, before) || strcmp(profile->owner, source->place) == 0)
    return 0;
  return strv_addf(notes, "%s:%u: %s \"%s\" overrides the \"%s\" of %s; remove it there to keep the profile's",
                   layers->files.items[value->file], value->line, value->key->path, value->text, before->text,
                   profile->place);
}

static int merge_value(const struct layers *layers, size_t index, struct merge_notes *told, struct strv *notes,
                       struct merged *merged)
{
  const struct layer_value *value = &layers->values[index];
  const struct layer_source *source = &layers->sources[value->source];
  const struct layer_value *before = merged->scalars[value->key->id];
  enum merge_verdict verdict = merge_judge(source->kind, value, before);

  if (verdict != MERGE_TAKE) {
    told->owner = source->owner;
    merge_note_ignored(layers, value, verdict == MERGE_NEVER ? &told->never : &told->untrusted);
    return 0;
  }
  if (value->key->merge != KEY_SCALAR) {
    merged->items[merged->count++] = index;
    return 0;
  }
  merged->scalars[value->key->id] = value;
  return merge_note_widened(layers, value, before, notes);
}

static int merge_tell(const struct merge_notes *told, struct strv *notes)
{
  int r = buf_error(&told->untrusted) < 0 ? buf_error(&told->untrusted) : buf_error(&told->never);

  if (r == 0 && told->untrusted.len > 0)
    r = strv_addf(notes, "%s: not trusted, so ignored: %s; look at the file and run: " SBX_NAME " trust", told->owner,
                  told->untrusted.data);
  if (r == 0 && told->never.len > 0)
    r = strv_addf(notes, "%s: ignored, since a file in the workspace can never set it: %s; set it in your own policy",
                  told->owner, told->never.data);
  return r < 0 ? -ENOMEM : 0;
}

int merge_layers(const struct layers *layers, struct strv *notes, struct merged *ret_merged)
{
  merged_autofree struct merged merged = { .items = mem_calloc(layers->value_count, sizeof *merged.items) };
  struct merge_notes told = { .untrusted = BUF_INIT(16384), .never = BUF_INIT(16384) };
  int r = merged.items ? 0 : -ENOMEM;

  for (unsigned rank = LAYER_BUILTIN; r == 0 && rank <= LAYER_OPTION; rank++) {
    for (size_t i = 0; r == 0 && i < layers->value_count; i++)
      if (layers->sources[layers->values[i].source].rank == rank)
        r = merge_value(layers, i, &told, notes, &merged);
  }
  if (r == 0)
    r = merge_tell(&told, notes);
  buf_free(&told.untrusted);
  buf_free(&told.never);
  if (r < 0)
    return -ENOMEM;
  *ret_merged = merged;
  merged = (struct merged){ 0 };
  return 0;
}
