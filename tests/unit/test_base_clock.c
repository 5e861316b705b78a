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

static void test_parse(void **state)
{
  static const struct {
    const char *text;
    int64_t ms; /* -1: refused */
  } rows[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "2026-01-02T03:04:05.678Z", 1767323045678 },
    { "2026-01-02t03:04:05.6z", 1767323045600 },
    { "2026-01-02 03:04:05.678999Z", 1767323045678 },
    { "2026-01-02T08:34:05+05:30", 1767323045000 },
    { "2026-01-01T19:04:05-08:00", 1767323045000 },
    { "2000-02-29T00:00:00Z", 951782400000 },
    { "2016-12-31T23:59:60Z", 1483228799000 },
    { "9999-12-31T23:59:59.999Z", 253402300799999 },
    { "1969-12-31T23:59:59Z", -1 },
    { "1970-01-01T00:00:00+00:01", -1 },
    { "2026-02-29T00:00:00Z", -1 },
    { "2026-13-01T00:00:00Z", -1 },
    { "2026-00-01T00:00:00Z", -1 },
    { "2026-01-32T00:00:00Z", -1 },
    { "2026-01-01T24:00:00Z", -1 },
    { "2026-01-01T00:60:00Z", -1 },
    { "2026-01-01T00:00:61Z", -1 },
    { "2026-01-01T00:00:00", -1 },
    { "2026-01-01T00:00Z", -1 },
    { "2026-01-01", -1 },
    { "2026-1-1T00:00:00Z", -1 },
    { "2026-01-01T00:00:00.Z", -1 },
    { "2026-01-01T00:00:00+0100", -1 },
    { "2026-01-01T00:00:00+24:00", -1 },
    { "2026-01-01T00:00:00Zx", -1 },
    { " 2026-01-01T00:00:00Z", -1 },
    { "", -1 },
    { "1767323045", -1 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t ms = 0;

    unit_assert_row(clock_parse(span_of(rows[i].text), &ms) == (rows[i].ms < 0 ? -EINVAL : 0), rows[i].text, "result");
    if (rows[i].ms >= 0)
      unit_assert_row(ms == (uint64_t)rows[i].ms, rows[i].text, "time");
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
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_format), cmocka_unit_test(test_parse),
                                      cmocka_unit_test(test_order) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
