#include "policy/layers.h"

#include "policy/limits.h"

#include <errno.h>
#include <stdlib.h>

struct layers *layers_new_empty(void)
{
  return mem_calloc(1, sizeof(struct layers));
}

static void layers_value_clear(struct layer_value *value)
{
  free(value->json_path);
  free(value->name);
  free(value->text);
}

void layers_free(struct layers *layers)
{
  if (!layers)
    return;
  for (size_t i = 0; i < layers->source_count; i++) {
    free(layers->sources[i].place);
    free(layers->sources[i].owner);
  }
  for (size_t i = 0; i < layers->value_count; i++)
    layers_value_clear(&layers->values[i]);
  free(layers->sources);
  free(layers->values);
  free(layers->profiles);
  strv_free(&layers->files);
  free(layers);
}

void layers_free_indirect(struct layers **layers)
{
  layers_free(*layers);
}

int layers_add_source(struct layers *layers, enum layer_kind kind, enum layer_kind rank, const char *place,
                      const char *owner, size_t *ret_source)
{
  struct layer_source source = { .kind = kind, .rank = rank };

  if (mem_grow(&layers->sources, layers->source_count, &layers->source_cap, sizeof *layers->sources,
               LIMITS_POLICY_ITEMS) < 0)
    return -ENOMEM;
  source.place = mem_strndup(place, strlen(place));
  source.owner = mem_strndup(owner, strlen(owner));
  if (!source.place || !source.owner) {
    free(source.place);
    free(source.owner);
    return -ENOMEM;
  }
  *ret_source = layers->source_count;
  layers->sources[layers->source_count++] = source;
  return 0;
}

/* Index of a file's name among the names that origins use. Equal names mostly follow each other. */
static int layers_intern_file(struct layers *layers, const char *file, size_t *ret_index)
{
  for (size_t i = layers->files.count; i > 0; i--) {
    if (strcmp(layers->files.items[i - 1], file) == 0) {
      *ret_index = i - 1;
      return 0;
    }
  }
  *ret_index = layers->files.count;
  return strv_add(&layers->files, file);
}

int layers_add_value(struct layers *layers, const struct key *key, size_t source, const char *name, const char *text,
                     const struct layer_place *place)
{
  struct layer_value value = { .key = key, .source = source, .line = place->line };
  int r =
      mem_grow(&layers->values, layers->value_count, &layers->value_cap, sizeof *layers->values, LIMITS_POLICY_ITEMS);

  if (r == 0)
    r = layers_intern_file(layers, place->file, &value.file);
  if (r < 0)
    return r;
  value.json_path = mem_strndup(place->json_path, strlen(place->json_path));
  if (name)
    value.name = mem_strndup(name, strlen(name));
  if (text)
    value.text = mem_strndup(text, strlen(text));
  if (!value.json_path || (name && !value.name) || (text && !value.text)) {
    layers_value_clear(&value);
    return -ENOMEM;
  }
  layers->values[layers->value_count++] = value;
  return 0;
}

int layers_add_profile_name(struct layers *layers, const char *name, enum layer_kind kind)
{
  if (mem_grow(&layers->profiles, layers->profile_count, &layers->profile_cap, sizeof *layers->profiles,
               LIMITS_POLICY_ITEMS) < 0)
    return -ENOMEM;
  layers->profiles[layers->profile_count++] = (struct layer_profile){ name, kind };
  return 0;
}

bool layers_has_profile(const struct layers *layers, const char *name, enum layer_kind kind)
{
  for (size_t i = 0; i < layers->profile_count; i++)
    if (strcmp(layers->profiles[i].name, name) == 0 &&
        (layers->profiles[i].kind == kind || layers->profiles[i].kind == LAYER_PROFILE))
      return true;
  return false;
}
