#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void mem_free_indirect(void *p)
{
  void *object;

  memcpy(&object, p, sizeof object);
  free(object);
}

void *mem_calloc(size_t count, size_t size)
{
  return calloc(count ? count : 1, size ? size : 1);
}

int mem_grow(void *items, size_t count, size_t *cap, size_t size, size_t max)
{
  void *old;
  void *grown;
  size_t want;

  if (count >= max)
    return -E2BIG;
  if (count < *cap)
    return 0;
  want = *cap ? *cap * 2 : 8;
  if (want > max)
    want = max;
  memcpy(&old, items, sizeof old);
  grown = reallocarray(old, want, size);
  if (!grown)
    return -ENOMEM;
  memcpy(items, &grown, sizeof grown);
  *cap = want;
  return 0;
}

char *mem_strndup(const char *bytes, size_t len)
{
  char *copy = len < SIZE_MAX ? malloc(len + 1) : NULL;

  if (!copy)
    return NULL;
  if (len)
    memcpy(copy, bytes, len);
  copy[len] = '\0';
  return copy;
}

void mem_wipe(void *bytes, size_t len)
{
  explicit_bzero(bytes, len);
}
