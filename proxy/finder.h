/* finder: where any of several secrets, or placeholders, stands in a stream that comes piece by piece. Pure.
 *
 * The forms are those in which programs write a value: as it is; with bytes as %XX, once or up to three times over, ' '
 * as '+'; with bytes as \u00XX or \xXX, or a '\' before any (JSON); within base64 of either alphabet, whatever stands
 * before and behind it, and its digits escaped as above. What is not one piece (base64 over several lines), or is in
 * another form (compressed, UTF-16, hexadecimal) is not found: this is no defence against who means to hide it.
 *
 * Nothing is compiled and no pattern is copied: a finder is made for each piece of text, in a microsecond
 * or two, and may be thrown away with the spans that it borrows. What has to be kept between two pieces is
 * the text that may begin an occurrence.
 */
#ifndef SBX_PROXY_FINDER_H
#define SBX_PROXY_FINDER_H

#include "base/span.h"
#include "policy/limits.h"

#include <stdint.h>

/* The words of all values, and of those before. */
#define FINDER_PATTERNS_MAX ((1 + LIMITS_SECRET_FORMER) * LIMITS_SECRET_WORDS * LIMITS_CREDENTIALS)

/* Bytes of the longest form of one byte: %252541. */
#define FINDER_FORM_MAX 7

struct finder {
  size_t count;
  struct {
    struct span bytes;
    size_t which;
  } patterns[FINDER_PATTERNS_MAX];
  bool leads[256]; /* bytes that an occurrence may begin with */
  uint64_t pairs[256 * 256 / 64]; /* the same of the first two, a bit for each */
};

struct finder_hit {
  size_t at;
  size_t len;
  size_t which; /* of the longest pattern there */
};

/* Without any pattern. */
void finder_clear(struct finder *finder);

/* One more; bytes are borrowed. Empty ones are left out. Ones of less than four bytes are not looked for in base64,
 * where anything might be them. False past FINDER_PATTERNS_MAX: it is not looked for. */
bool finder_add(struct finder *finder, struct span bytes, size_t which);

/* The first occurrence that begins at from or behind it, the longest one there. Of base64 it has the digits that stand
 * for bytes of the pattern and for nothing else.
 *
 * True with *ret_hit. False where there is none: then what begins at *ret_open and goes to the end of text may be the
 * beginning of one, at most FINDER_FORM_MAX times as long as the longest pattern; with end nothing comes behind text,
 * and it is text.len. What is told does not depend on where a stream is cut, if a search goes on with the text
 * from *ret_open. */
bool finder_next(const struct finder *finder, struct span text, size_t from, bool end, struct finder_hit *ret_hit,
                 size_t *ret_open);

#endif
