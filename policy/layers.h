/* layers: the values between load and merge: load.c adds them, merge.c reads them. Internal to this directory. */
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

/* Where one value stood. Borrowed texts. */
struct layer_place {
  const char *file;
  const char *json_path;
  unsigned line;
};

/* As layers_new, without the built-in base. */
struct layers *layers_new_empty(void);

/* Adds a source; its texts are copied. 0 or -ENOMEM. */
int layers_add_source(struct layers *layers, enum layer_kind kind, enum layer_kind rank, const char *place,
                      const char *owner, size_t *ret_source);

/* Adds a value; its texts are copied, and name and text may be NULL. 0, -E2BIG past LIMITS_POLICY_ITEMS, or -ENOMEM. */
int layers_add_value(struct layers *layers, const struct key *key, size_t source, const char *name, const char *text,
                     const struct layer_place *place);

/* Remembers that a profile was added as kind. name has to outlive the layers. 0 or -ENOMEM. */
int layers_add_profile_name(struct layers *layers, const char *name, enum layer_kind kind);

/* Whether a profile need not be added as kind: it was, or it was as a trusted one, which says all that it could say. */
bool layers_has_profile(const struct layers *layers, const char *name, enum layer_kind kind);

/* Adds what policy_print wrote with origins. name is what messages call the text. */
int layers_add_canonical(struct layers *layers, const char *name, struct span text, struct err *err);

#endif
