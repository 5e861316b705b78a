/* layers: the values between load and merge. Internal to this directory: load.c fills it, merge.c reads it. */
#ifndef SBX_POLICY_LAYERS_H
#define SBX_POLICY_LAYERS_H

#include "policy/keys.h"
#include "policy/load.h"

/* A text that values came from. */
struct layer_source {
  enum layer_kind kind; /* what its values may do; a profile that an untrusted file extends is as untrusted */
  enum layer_kind rank; /* where it stands in the order of layers */
  char *place; /* what messages call it: a path, "profile git" */
  char *owner; /* of a profile: the file that extends it; else equal to place */
};

/* One list item, scalar or map entry, with its type checked and nothing else. */
struct layer_value {
  const struct key *key;
  size_t source; /* index into layers->sources */
  size_t file; /* index into layers->files: policy_origin.file */
  unsigned line;
  char *json_path;
  char *name; /* KEY_MAP: the name; else NULL */
  char *text; /* NULL for null */
};

/* A profile that was added, under the kind that it was added as. */
struct layer_profile {
  const char *name; /* of the built-in table */
  enum layer_kind kind;
};

struct layers {
  struct layer_source *sources;
  size_t source_count;
  size_t source_cap;
  struct layer_value *values; /* in the order in which they were added */
  size_t value_count;
  size_t value_cap;
  struct layer_profile *profiles;
  size_t profile_count;
  size_t profile_cap;
  struct strv files;
};

/* As layers_new, without the built-in base. */
struct layers *layers_new_empty(void);

/* Adds what policy_print wrote with origins. name is what messages call the text. */
int layers_add_canonical(struct layers *layers, const char *name, struct span text, struct err *err);

#endif
