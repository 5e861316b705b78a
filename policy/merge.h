/* merge: which values of the layers count, in which order. Internal to this directory. */
#ifndef SBX_POLICY_MERGE_H
#define SBX_POLICY_MERGE_H

#include "policy/layers.h"

struct merged {
  size_t *items; /* indices into layers->values: of lists and maps, in the order of the layers */
  size_t count;
  const struct layer_value *scalars[KEY_COUNT]; /* the value that won, borrowed from the layers, or NULL */
};

void merged_free(struct merged *merged);
#define merged_autofree MEM_CLEANUP(merged_free)

/* Orders the values and leaves out what a workspace file may not set. Every value has passed value_check. One line per
 * thing that a user should be told is added to notes. 0 or -ENOMEM. */
int merge_layers(const struct layers *layers, struct strv *notes, struct merged *ret_merged);

#endif
