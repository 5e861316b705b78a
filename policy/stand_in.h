/* stand_in: a text with placeholders in place of values, which it may hold in several forms. Pure. */
#ifndef SBX_POLICY_STAND_IN_H
#define SBX_POLICY_STAND_IN_H

#include "base/buf.h"

/* A value, and what stands in for it: letters, digits and '_', '-', '.', which no encoding changes. */
struct stand_in {
  struct span value;
  struct span placeholder;
  size_t found; /* how often it was there: counted up */
};

/* Appends text to out with every value replaced that inject_find() finds. Within base64 the whole of what is encoded
 * stays but for the value, and the kind of base64. 0; -EILSEQ where one is left that cannot be replaced, such as in
 * base64 over several lines, with which one in *ret_left; or as buf_error(). After an error out may hold values: wipe
 * it. */
int stand_in_text(struct stand_in *pairs, size_t count, struct span text, struct buf *out, size_t *ret_left);

#endif
