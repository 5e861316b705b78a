/* unit: what every unit test includes: cmocka with the headers it wants first, and repeatable random numbers. */
#ifndef SBX_TESTS_UNIT_UNIT_H
#define SBX_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/num.h"

/* State of a generator (splitmix64). Seed it with unit_seed(). */
struct unit_random {
  uint64_t state;
};

/* A fixed seed, or SBX_TEST_SEED (decimal); printed, so that a failure can be repeated. */
static inline struct unit_random unit_seed(const char *test)
{
  const char *text = getenv("SBX_TEST_SEED");
  struct unit_random random = { .state = UINT64_C(20240229) };

  if (text && num_parse_u64(span_of(text), 0, UINT64_MAX, &random.state) < 0)
    fail_msg("SBX_TEST_SEED is not a number: %s", text);
  print_message("%s: SBX_TEST_SEED=%llu\n", test, (unsigned long long)random.state);
  return random;
}

static inline uint64_t unit_next(struct unit_random *random)
{
  uint64_t value = random->state += UINT64_C(0x9e3779b97f4a7c15);

  value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
  return value ^ value >> 31;
}

/* A number below limit. */
static inline size_t unit_below(struct unit_random *random, size_t limit)
{
  return (size_t)(unit_next(random) % limit);
}

/* Fails with the row of a table beside the message. */
#define unit_assert_row(condition, row, what) \
  do { \
    if (!(condition)) \
      fail_msg("row \"%s\": %s (%s)", (row), (what), #condition); \
  } while (0)

#endif
