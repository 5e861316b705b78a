/* strv: a growable, NULL-terminated vector of owned strings, with a ceiling. */
#ifndef SBX_BASE_STRV_H
#define SBX_BASE_STRV_H

#include "base/mem.h"
#include "base/span.h"

/* Ceiling in elements unless the maker says otherwise. */
#define STRV_MAX_DEFAULT 65536

struct strv {
  char **items; /* items[count] is NULL once anything was added; NULL before */
  size_t count;
  size_t cap;
};

#define STRV_INIT { .items = NULL, .count = 0, .cap = 0 }

void strv_free(struct strv *strv);
#define strv_autofree MEM_CLEANUP(strv_free)

/* Appends a copy. 0, -ENOMEM, or -E2BIG past STRV_MAX_DEFAULT. */
int strv_add(struct strv *strv, const char *string);
int strv_add_span(struct strv *strv, struct span bytes);
int strv_addf(struct strv *strv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a heap string and takes it over, also on failure (it is freed then). NULL is taken as -ENOMEM. */
int strv_take(struct strv *strv, char *string);

bool strv_contains(const struct strv *strv, const char *string);

/* Sorts by byte value (qsort, strcmp order). */
void strv_sort(struct strv *strv);

#endif
