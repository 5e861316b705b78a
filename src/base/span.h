/* span: a run of bytes that somebody else owns. It need not end in NUL and may hold any byte. */
#ifndef SBX_BASE_SPAN_H
#define SBX_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
  const char *ptr;
  size_t len;
};

/* The span of a string literal. */
#define SPAN(literal) ((struct span){ .ptr = "" literal, .len = sizeof(literal) - 1 })

/* The span of a NUL-terminated string; an empty span for NULL. */
struct span span_of(const char *string);

/* The same as the initializer of a constant table. */
#define SPAN_INIT(literal) { .ptr = "" literal, .len = sizeof(literal) - 1 }

/* Same bytes; the nocase form folds ASCII letters only. */
bool span_equal(struct span a, struct span b);
bool span_equal_nocase(struct span a, struct span b);
bool span_equal_str(struct span a, const char *b);

bool span_starts_with(struct span s, struct span prefix);
bool span_ends_with(struct span s, struct span suffix);

/* Index of the first (last) such byte, or s.len when there is none. */
size_t span_find(struct span s, char byte);
size_t span_find_last(struct span s, char byte);

/* The part from index from, of at most len bytes; clipped to s. */
struct span span_sub(struct span s, size_t from, size_t len);

/* Without the spaces and tabs at both ends. */
struct span span_trim(struct span s);

/* Takes the part before the first sep off *rest into *ret_part. False when *rest was at its end (ptr NULL).
 * "a,,b" gives "a", "", "b"; the empty string gives one empty part. */
bool span_split(struct span *rest, char sep, struct span *ret_part);

/* Length of the valid UTF-8 sequence (RFC 3629) at the start of s: 1 for ASCII; 0 where there is none. */
size_t span_utf8(struct span s);

/* The same for text that goes to a terminal: 0 also for control characters, those of C1 (U+0080..U+009F) included, and
 * for format characters, such as those that turn the direction of writing. */
size_t span_printable(struct span s);

/* Edit distance (Levenshtein, ASCII case folded); SIZE_MAX where a or b is longer than SPAN_DISTANCE_MAX. */
#define SPAN_DISTANCE_MAX 32
size_t span_distance(struct span a, struct span b);

/* Whether a word at this distance from s may be what s was meant to be: two edits at most, and about a third of it. */
bool span_is_near(struct span s, size_t distance);

/* ASCII classes, whatever the locale. */
bool span_is_digit(char byte);
bool span_is_alpha(char byte);
char span_lower(char byte);

#endif
