/* inject_find: where the bytes of a secret, or of a placeholder, stand in a text, in whatever form. Pure. */
#ifndef SBX_POLICY_INJECT_FIND_H
#define SBX_POLICY_INJECT_FIND_H

#include "base/span.h"

enum inject_form {
  INJECT_FORM_RAW, /* as it is */
  INJECT_FORM_ESCAPED, /* bytes as %XX in either case, once or up to three times over; ' ' as '+'; a '\' before any */
  INJECT_FORM_BASE64, /* within base64 of either alphabet, whatever stands before and behind it */
};

struct inject_match {
  size_t at;
  size_t len;
  enum inject_form form;
};

/* The first place in text, not before from, where wanted stands. Bytes of base64 that stand for a part of wanted and
 * for what is beside it belong to the match. Wanted of less than four bytes is not looked for in base64, where anything
 * might be it. */
bool inject_find(struct span text, size_t from, struct span wanted, struct inject_match *ret_match);

/* The same, of places that are not in base64. */
bool inject_find_escaped(struct span text, size_t from, struct span wanted, struct inject_match *ret_match);

/* The same, of raw places only; text.len where there is none. */
size_t inject_find_raw(struct span text, size_t from, struct span wanted);

/* The byte at text[at], which is inside text, %XX decoded once. Returns how many bytes of text it takes. */
size_t inject_unescape(struct span text, size_t at, char *ret_byte);

#endif
