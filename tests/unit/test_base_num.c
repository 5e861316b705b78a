#include "base/num.h"
#include "unit/unit.h"

#include "base/mem.h"

/* What an output is set to beforehand: a failure has to leave it. */
#define UNTOUCHED UINT64_C(0x5bad5bad5bad5bad)

struct verdict {
  const char *text;
  int result;
  uint64_t value;
};

static void check(const struct verdict *row, int result, uint64_t value)
{
  unit_assert_row(result == row->result, row->text, "wrong verdict");
  unit_assert_row(value == (row->result < 0 ? UNTOUCHED : row->value), row->text, "wrong value");
}

static void test_u64(void **state)
{
  static const struct verdict rows[] = {
    { "0", 0, 0 },
    { "7", 0, 7 },
    { "443", 0, 443 },
    { "18446744073709551615", 0, UINT64_MAX },
    { "18446744073709551616", -ERANGE, 0 },
    { "184467440737095516150", -ERANGE, 0 },
    { "99999999999999999999999999", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "00", -EINVAL, 0 },
    { "007", -EINVAL, 0 },
    { "+1", -EINVAL, 0 },
    { "-1", -EINVAL, 0 },
    { " 1", -EINVAL, 0 },
    { "1 ", -EINVAL, 0 },
    { "1\n", -EINVAL, 0 },
    { "0x10", -EINVAL, 0 },
    { "443x", -EINVAL, 0 }, /* F53 */
    { "1e3", -EINVAL, 0 },
    { "1,000", -EINVAL, 0 },
    { "\xd9\xa1", -EINVAL, 0 }, /* an Arabic digit */
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t value = UNTOUCHED;
    int result = num_parse_u64(span_of(rows[i].text), 0, UINT64_MAX, &value);

    check(&rows[i], result, value);
  }
}

static void test_u64_bounds(void **state)
{
  uint64_t value = UNTOUCHED;

  (void)state;
  assert_int_equal(num_parse_u64(SPAN("1"), 2, 4, &value), -ERANGE);
  assert_int_equal(num_parse_u64(SPAN("5"), 2, 4, &value), -ERANGE);
  assert_true(value == UNTOUCHED);
  assert_int_equal(num_parse_u64(SPAN("2"), 2, 4, &value), 0);
  assert_true(value == 2);
  assert_int_equal(num_parse_u64(SPAN("4"), 2, 4, &value), 0);
  assert_true(value == 4);
  assert_int_equal(num_parse_u64((struct span){ "1\0", 2 }, 0, 9, &value), -EINVAL);
  assert_int_equal(num_parse_u64((struct span){ "12", 1 }, 0, 9, &value), 0);
  assert_true(value == 1);
}

/* strtoull(3) is the oracle for what is made of digits alone, without zeros in front. */
static void test_u64_against_strtoull(void **state)
{
  struct unit_random random = unit_seed(__func__);

  (void)state;
  for (int round = 0; round < 20000; round++) {
    static const char alphabet[] = "0123456789012345678901234567890123456789x -+";
    char text[24];
    size_t len = unit_below(&random, 22);
    uint64_t value = UNTOUCHED;
    bool digits = len > 0;
    int expected;
    uint64_t oracle;

    for (size_t i = 0; i < len; i++) {
      text[i] = alphabet[unit_below(&random, sizeof alphabet - 1)];
      digits = digits && text[i] >= '0' && text[i] <= '9';
    }
    text[len] = '\0';
    errno = 0;
    oracle = strtoull(text, NULL, 10);
    expected = !digits || (len > 1 && text[0] == '0') ? -EINVAL : -errno;
    unit_assert_row(num_parse_u64(span_of(text), 0, UINT64_MAX, &value) == expected, text, "verdict of the oracle");
    unit_assert_row(value == (expected < 0 ? UNTOUCHED : oracle), text, "value of the oracle");
  }
}

static void test_hex(void **state)
{
  static const struct verdict rows[] = {
    { "0", 0, 0 },
    { "000001ffffffffff", 0, UINT64_C(0x1ffffffffff) },
    { "DeadBeef", 0, 0xdeadbeef },
    { "ffffffffffffffff", 0, UINT64_MAX },
    { "0ffffffffffffffff", -EINVAL, 0 },
    { "", -EINVAL, 0 },
    { "0x1", -EINVAL, 0 },
    { "g", -EINVAL, 0 },
    { "-1", -EINVAL, 0 },
    { "1 ", -EINVAL, 0 },
    { "@", -EINVAL, 0 },
    { "`", -EINVAL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t value = UNTOUCHED;
    int result = num_parse_hex(span_of(rows[i].text), &value);

    check(&rows[i], result, value);
  }
}

static void test_size(void **state)
{
  static const struct verdict rows[] = {
    { "0", 0, 0 },
    { "1", 0, 1 },
    { "4g", 0, UINT64_C(4) << 30 },
    { "4G", 0, UINT64_C(4) << 30 },
    { "512m", 0, UINT64_C(512) << 20 },
    { "10K", 0, 10240 },
    { "2t", 0, UINT64_C(2) << 40 },
    { "16777215t", 0, UINT64_C(16777215) << 40 },
    { "16777216t", -ERANGE, 0 }, /* 2^64 */
    { "18446744073709551615k", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "g", -EINVAL, 0 },
    { "4gb", -EINVAL, 0 },
    { "4 g", -EINVAL, 0 },
    { "1.5g", -EINVAL, 0 },
    { "-1g", -EINVAL, 0 },
    { "04g", -EINVAL, 0 },
    { "4p", -EINVAL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t value = UNTOUCHED;
    int result = num_parse_size(span_of(rows[i].text), &value);

    check(&rows[i], result, value);
  }
}

static void test_duration(void **state)
{
  static const struct verdict rows[] = {
    { "1", 0, 1000 },
    { "1s", 0, 1000 },
    { "250ms", 0, 250 },
    { "2m", 0, 120000 },
    { "1h", 0, 3600000 },
    { "3650d", 0, UINT64_C(315360000000) },
    { "3651d", -ERANGE, 0 },
    { "315360000001ms", -ERANGE, 0 },
    { "0", -ERANGE, 0 },
    { "0ms", -ERANGE, 0 },
    { "18446744073709551615d", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "h", -EINVAL, 0 },
    { "1h30m", -EINVAL, 0 },
    { "1w", -EINVAL, 0 },
    { "1 h", -EINVAL, 0 },
    { "-1s", -EINVAL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t value = UNTOUCHED;
    int result = num_parse_duration(span_of(rows[i].text), &value);

    check(&rows[i], result, value);
  }
}

static void test_milli(void **state)
{
  static const struct verdict rows[] = {
    { "1", 0, 1000 },       { "0.5", 0, 500 },      { "1.5", 0, 1500 },         { "2.25", 0, 2250 },
    { "0.001", 0, 1 },      { "4096", 0, 4096000 }, { "4096.000", 0, 4096000 }, { "4096.001", -ERANGE, 0 },
    { "4097", -ERANGE, 0 }, { "0", -ERANGE, 0 },    { "0.000", -ERANGE, 0 },    { "", -EINVAL, 0 },
    { ".5", -EINVAL, 0 },   { "1.", -EINVAL, 0 },   { "1.2345", -EINVAL, 0 },   { "1.2.3", -EINVAL, 0 },
    { "1,5", -EINVAL, 0 },  { "1.-5", -EINVAL, 0 }, { "1.5e1", -EINVAL, 0 },    { "01.5", -EINVAL, 0 },
    { "-1.5", -EINVAL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    uint64_t value = UNTOUCHED;
    int result = num_parse_milli(span_of(rows[i].text), &value);

    check(&rows[i], result, value);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_u64),   cmocka_unit_test(test_u64_bounds), cmocka_unit_test(test_u64_against_strtoull),
    cmocka_unit_test(test_hex),   cmocka_unit_test(test_size),       cmocka_unit_test(test_duration),
    cmocka_unit_test(test_milli),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
