#include "base/strv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void strv_free(struct strv *strv)
{
  for (size_t i = 0; i < strv->count; i++)
    free(strv->items[i]);
  free(strv->items);
  *strv = (struct strv)STRV_INIT;
}

int strv_take(struct strv *strv, char *string)
{
  int r;

  if (!string)
    return -ENOMEM;
  /* One element more than is used, for the NULL at the end. */
  r = mem_grow(&strv->items, strv->count + 1, &strv->cap, sizeof *strv->items, STRV_MAX_DEFAULT + 1);
  if (r < 0) {
    free(string);
    return r;
  }
  strv->items[strv->count++] = string;
  strv->items[strv->count] = NULL;
  return 0;
}

int strv_add_span(struct strv *strv, struct span bytes)
{
  return strv_take(strv, mem_strndup(bytes.ptr, bytes.len));
}

int strv_add(struct strv *strv, const char *string)
{
  return strv_add_span(strv, span_of(string));
}

int strv_addf(struct strv *strv, const char *format, ...)
{
  va_list args;
  char *text = NULL;
  int len;

  va_start(args, format);
  len = vasprintf(&text, format, args);
  va_end(args);
  return strv_take(strv, len < 0 ? NULL : text);
}

bool strv_contains(const struct strv *strv, const char *string)
{
  for (size_t i = 0; i < strv->count; i++) {
    if (strcmp(strv->items[i], string) == 0)
      return true;
  }
  return false;
}

static int compare(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(struct strv *strv)
{
  if (strv->count)
    qsort(strv->items, strv->count, sizeof *strv->items, compare);
}
