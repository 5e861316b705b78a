#include "base/strv.h"
#include "unit/unit.h"

static void test_add(void **state)
{
  strv_autofree struct strv list = STRV_INIT;

  (void)state;
  assert_false(strv_contains(&list, "a"));
  assert_int_equal(strv_add(&list, "b"), 0);
  assert_int_equal(strv_add_span(&list, span_sub(SPAN("xaay"), 1, 2)), 0);
  assert_int_equal(strv_addf(&list, "%d-%s", 7, "c"), 0);
  assert_int_equal(strv_take(&list, mem_strndup("a", 1)), 0);
  assert_int_equal(strv_take(&list, NULL), -ENOMEM);
  assert_int_equal(list.count, 4);
  assert_null(list.items[4]);
  assert_string_equal(list.items[1], "aa");
  assert_string_equal(list.items[2], "7-c");
  assert_true(strv_contains(&list, "aa"));
  assert_false(strv_contains(&list, "aaa"));
  strv_sort(&list);
  assert_string_equal(list.items[0], "7-c");
  assert_string_equal(list.items[1], "a");
  assert_string_equal(list.items[2], "aa");
  assert_string_equal(list.items[3], "b");
  assert_null(list.items[4]);
  strv_free(&list);
  assert_int_equal(list.count, 0);
  strv_sort(&list);
}

/* As many elements as the ceiling says, and always a NULL behind the last. */
static void test_ceiling(void **state)
{
  strv_autofree struct strv list = STRV_INIT;

  (void)state;
  for (size_t i = 0; i < STRV_MAX_DEFAULT; i++) {
    assert_int_equal(strv_add(&list, ""), 0);
    assert_null(list.items[list.count]);
  }
  assert_int_equal(strv_add(&list, "one too many"), -E2BIG);
  assert_int_equal(strv_take(&list, mem_strndup("freed all the same", 5)), -E2BIG);
  assert_int_equal(list.count, STRV_MAX_DEFAULT);
  assert_null(list.items[list.count]);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_add), cmocka_unit_test(test_ceiling) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
