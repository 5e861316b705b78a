#include "base/mem.h"
#include "unit/unit.h"

/* A sanitizer's malloc(3) shall fail by value too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

static void test_calloc_zeroes(void **state)
{
  mem_autofree unsigned char *bytes = mem_calloc(16, 4);
  mem_autofree void *nothing = mem_calloc(0, 8);

  (void)state;
  assert_non_null(bytes);
  assert_non_null(nothing);
  for (size_t i = 0; i < 64; i++)
    assert_int_equal(bytes[i], 0);
  assert_null(mem_calloc(SIZE_MAX / 2, 4));
}

static void test_steal(void **state)
{
  char *text = mem_strndup("abc", 2);
  char *taken = mem_steal(text);

  (void)state;
  assert_null(text);
  assert_string_equal(taken, "ab");
  free(taken);
}

static void test_strndup(void **state)
{
  mem_autofree char *holes = mem_strndup("a\0b", 3);
  mem_autofree char *empty = mem_strndup(NULL, 0);

  (void)state;
  assert_memory_equal(holes, "a\0b\0", 4);
  assert_string_equal(empty, "");
  assert_null(mem_strndup("x", SIZE_MAX));
  assert_null(mem_strndup("x", SIZE_MAX / 2));
}

static void test_grow_to_the_ceiling(void **state)
{
  static const size_t ceilings[] = { 1, 7, 8, 9, 100 };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(ceilings); i++) {
    int *items = NULL;
    size_t cap = 0;
    size_t count = 0;
    int *before;

    while (count < ceilings[i]) {
      assert_int_equal(mem_grow(&items, count, &cap, sizeof *items, ceilings[i]), 0);
      assert_true(cap > count && cap <= ceilings[i]);
      items[count] = (int)count;
      count++;
    }
    before = items;
    assert_int_equal(mem_grow(&items, count, &cap, sizeof *items, ceilings[i]), -E2BIG);
    assert_ptr_equal(items, before);
    assert_int_equal(cap, ceilings[i]);
    for (size_t k = 0; k < count; k++)
      assert_int_equal(items[k], (int)k);
    free(items);
  }
}

/* The ceiling holds also where more was allocated under another one. */
static void test_grow_below_what_is_allocated(void **state)
{
  int *items = NULL;
  size_t cap = 0;

  (void)state;
  assert_int_equal(mem_grow(&items, 0, &cap, sizeof *items, 100), 0);
  assert_true(cap > 4);
  assert_int_equal(mem_grow(&items, 3, &cap, sizeof *items, 4), 0);
  assert_int_equal(mem_grow(&items, 4, &cap, sizeof *items, 4), -E2BIG);
  assert_int_equal(mem_grow(&items, 0, &cap, sizeof *items, 0), -E2BIG);
  free(items);
}

static void test_grow_overflow(void **state)
{
  char *items = NULL;
  size_t cap = 0;

  (void)state;
  assert_int_equal(mem_grow(&items, 0, &cap, SIZE_MAX / 2, SIZE_MAX), -ENOMEM);
  assert_null(items);
  assert_int_equal(cap, 0);
}

static void test_wipe(void **state)
{
  char secret[8] = "secret!";
  static const char zero[8];

  (void)state;
  mem_wipe(secret, sizeof secret);
  assert_memory_equal(secret, zero, sizeof zero);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calloc_zeroes),
    cmocka_unit_test(test_steal),
    cmocka_unit_test(test_strndup),
    cmocka_unit_test(test_grow_to_the_ceiling),
    cmocka_unit_test(test_grow_below_what_is_allocated),
    cmocka_unit_test(test_grow_overflow),
    cmocka_unit_test(test_wipe),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
