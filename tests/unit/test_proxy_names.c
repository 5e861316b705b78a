#include "policy/limits.h"
#include "proxy/names.h"
#include "unit/unit.h"

static struct addr addr_of(const char *text)
{
  struct addr addr;

  assert_int_equal(addr_parse(span_of(text), &addr), 0);
  return addr;
}

static struct names_pair get(struct names *names, const char *name, bool expect_fresh)
{
  struct names_pair pair;
  bool fresh = !expect_fresh;

  assert_int_equal(names_get(names, name, &fresh, &pair), 0);
  assert_int_equal(fresh, expect_fresh);
  return pair;
}

static void test_pairs(void **state)
{
  struct names *names = names_new(0);
  struct names_pair first = get(names, "a.test", true);
  struct names_pair second = get(names, "b.test", true);
  struct names_pair again = get(names, "a.test", false);
  struct addr v4 = addr_of("198.18.0.1");
  struct addr v6 = addr_of("2001:2::1");

  (void)state;
  assert_true(addr_equal(&first.v4, &v4) && addr_equal(&first.v6, &v6));
  assert_true(addr_equal(&first.v4, &again.v4) && addr_equal(&first.v6, &again.v6));
  assert_false(addr_equal(&first.v4, &second.v4) || addr_equal(&first.v6, &second.v6));
  assert_string_equal(names_find(names, &second.v4), "b.test");
  assert_string_equal(names_find(names, &second.v6), "b.test");
  names_free(names);
}

/* Near misses of both ranges stand for nothing. */
static void test_other_addresses(void **state)
{
  static const char *const rows[] = {
    "198.18.0.0", "198.18.0.2",    "198.19.0.1",    "198.20.0.1", "199.18.0.1", "0.0.0.1",           "2001:2::",
    "2001:2::2",  "2001:2:0:1::1", "2001:2::1:0:1", "2001:3::1",  "::1",        "::ffff:198.18.0.1", "2001:2::1:1",
  };
  struct names *names = names_new(0);

  (void)state;
  (void)get(names, "a.test", true);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct addr addr = addr_of(rows[i]);

    unit_assert_row(names_find(names, &addr) == NULL, rows[i], "stands for a name");
  }
  names_free(names);
}

/* A proxy that takes the place of one that died gives other addresses, however many there were. */
static void test_generations(void **state)
{
  struct names *names = names_new(0);
  struct names_pair old = get(names, "a.test", true);

  (void)state;
  names_free(names);
  for (unsigned generation = 1; generation < LIMITS_PROXY_STARTS; generation++) {
    struct names_pair pair = { 0 };
    char name[32];

    names = names_new(generation);
    assert_null(names_find(names, &old.v4));
    assert_null(names_find(names, &old.v6));
    for (unsigned i = 0; i < LIMITS_NAMES_LATER; i++) {
      snprintf(name, sizeof name, "n%u.test", i);
      pair = get(names, name, true);
    }
    assert_string_equal(names_find(names, &pair.v4), name);
    assert_int_equal(pair.v4.bytes[1], 19);
    assert_true(names_is_synthetic(&pair.v4) && names_is_synthetic(&pair.v6));
    old = pair;
    names_free(names);
  }
}

/* All of them, each found again by either address, none twice, and not one more. */
static void test_as_many_as_there_may_be(void **state)
{
  struct names *names = names_new(0);
  struct names_pair pair;
  char name[32];
  bool fresh;

  (void)state;
  for (unsigned i = 0; i < LIMITS_NAMES; i++) {
    snprintf(name, sizeof name, "n%u.test", i);
    pair = get(names, name, true);
    assert_string_equal(names_find(names, &pair.v4), name);
    assert_string_equal(names_find(names, &pair.v6), name);
    assert_int_equal(addr_classify(&pair.v4), ADDR_PRIVATE);
  }
  assert_int_equal(names_get(names, "one.more.test", &fresh, &pair), -ENOSPC);
  for (unsigned i = 0; i < LIMITS_NAMES; i += 997) {
    snprintf(name, sizeof name, "n%u.test", i);
    pair = get(names, name, false);
    assert_string_equal(names_find(names, &pair.v4), name);
  }
  names_free(names);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pairs),
    cmocka_unit_test(test_generations),
    cmocka_unit_test(test_other_addresses),
    cmocka_unit_test(test_as_many_as_there_may_be),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
