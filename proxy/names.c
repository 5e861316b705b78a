#include "proxy/names.h"

#include "base/mem.h"
#include "policy/limits.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing; twice as many slots as names, so that a free one is always near. */
#define SLOTS (2 * LIMITS_NAMES)

struct names {
  char **items;
  size_t count;
  size_t cap;
  uint32_t first; /* number of items[0] */
  size_t max;
  uint32_t *slots; /* index into items, plus 1; 0 is free */
};

struct names *names_new(unsigned generation)
{
  struct names *names = mem_calloc(1, sizeof *names);

  if (!names)
    return NULL;
  names->first = generation ? 1 + LIMITS_NAMES + (generation - 1) * LIMITS_NAMES_LATER : 1;
  names->max = generation ? LIMITS_NAMES_LATER : LIMITS_NAMES;
  names->slots = mem_calloc(SLOTS, sizeof *names->slots);
  if (!names->slots) {
    free(names);
    return NULL;
  }
  return names;
}

void names_free(struct names *names)
{
  if (!names)
    return;
  for (size_t i = 0; i < names->count; i++)
    free(names->items[i]);
  free(names->items);
  free(names->slots);
  free(names);
}

static size_t slot_of(const struct names *names, const char *name)
{
  uint64_t hash = UINT64_C(14695981039346656037);
  size_t slot;

  for (const char *at = name; *at; at++)
    hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
  slot = (size_t)(hash % SLOTS);
  while (names->slots[slot] && strcmp(names->items[names->slots[slot] - 1], name) != 0)
    slot = (slot + 1) % SLOTS;
  return slot;
}

/* Number 1 is 198.18.0.1. */
static struct names_pair pair_of(uint32_t number)
{
  struct names_pair pair = {
    .v4 = { .family = ADDR_V4,
            .bytes = { 198, (uint8_t)(18 + (number >> 16)), (uint8_t)(number >> 8), (uint8_t)number } },
    .v6 = { .family = ADDR_V6,
            .bytes = { 0x20, 0x01, 0x00,
                       0x02, [13] = (uint8_t)(number >> 16), [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number } },
  };

  return pair;
}

/* 0 where the address is none of them. */
static uint32_t number_of(const struct addr *addr)
{
  const uint8_t *bytes = addr->bytes;
  uint32_t number = addr->family == ADDR_V4 ? (uint32_t)(bytes[1] & 1) << 16 | (uint32_t)bytes[2] << 8 | bytes[3]
                                            : (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15];
  struct names_pair pair = pair_of(number);

  return number < 1u << 17 && addr_equal(addr, addr->family == ADDR_V4 ? &pair.v4 : &pair.v6) ? number : 0;
}

bool names_is_synthetic(const struct addr *addr)
{
  return number_of(addr) != 0;
}

int names_get(struct names *names, const char *name, bool *ret_fresh, struct names_pair *ret_pair)
{
  size_t slot = slot_of(names, name);
  int r;

  *ret_fresh = names->slots[slot] == 0;
  if (*ret_fresh) {
    r = mem_grow(&names->items, names->count, &names->cap, sizeof *names->items, names->max);
    if (r < 0)
      return r == -E2BIG ? -ENOSPC : r;
    names->items[names->count] = mem_strndup(name, strlen(name));
    if (!names->items[names->count])
      return -ENOMEM;
    names->slots[slot] = (uint32_t)++names->count;
  }
  *ret_pair = pair_of(names->first + names->slots[slot] - 1);
  return 0;
}

const char *names_find(const struct names *names, const struct addr *addr)
{
  uint32_t number = number_of(addr);

  if (number < names->first || number - names->first >= names->count)
    return NULL;
  return names->items[number - names->first];
}
