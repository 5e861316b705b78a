#include "base/clock.h"
#include "unit/unit.h"

#include "base/mem.h"

static void test_format(void **state)
{
  static const struct {
    uint64_t ms;
    const char *text;
  } rows[] = {
    { 0, "1970-01-01T00:00:00.000Z" },
    { 1, "1970-01-01T00:00:00.001Z" },
    { UINT64_C(951782400000), "2000-02-29T00:00:00.000Z" },
    { UINT64_C(1767323045678), "2026-01-02T03:04:05.678Z" },
    { UINT64_C(4102444799999), "2099-12-31T23:59:59.999Z" },
    { UINT64_C(253402300799999), "9999-12-31T23:59:59.999Z" },
    { UINT64_C(253402300800000), "9999-12-31T23:59:59.999Z" },
    { UINT64_MAX, "9999-12-31T23:59:59.999Z" },
  };

  (void)state;
  setenv("TZ", "Asia/Kolkata", 1); /* UTC whatever the caller's zone */
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char text[CLOCK_TEXT_MAX];

    clock_format(rows[i].ms, text);
    unit_assert_row(strcmp(text, rows[i].text) == 0, rows[i].text, text);
  }
}

static void test_order(void **state)
{
  uint64_t first = clock_mono_ns();

  (void)state;
  assert_true(first > 0);
  assert_true(clock_mono_ns() >= first);
  assert_true(clock_real_ms() > UINT64_C(1700000000000)); /* milliseconds since 1970, not seconds or nanoseconds */
  assert_true(clock_real_ms() < UINT64_C(253402300800000));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_format), cmocka_unit_test(test_order) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
