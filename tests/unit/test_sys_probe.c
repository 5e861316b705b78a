#include "sys/probe.h"
#include "unit/temp.h"

static void test_number(void **state)
{
  static const struct {
    const char *text;
    int result;
    int64_t value;
  } rows[] = {
    { "0\n", 0, 0 },
    { "1", 0, 1 },
    { "15000\n\n", 0, 15000 },
    { "9223372036854775807\n", 0, INT64_MAX },
    { "9223372036854775808\n", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "-1\n", -EINVAL, 0 },
    { "yes\n", -EINVAL, 0 },
    { "1 2\n", -EINVAL, 0 },
  };
  int64_t value = 7;

  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    int r;

    temp_put("number", rows[i].text);
    value = 7;
    r = probe_number(temp_path(state, "number"), &value);
    unit_assert_row(r == rows[i].result, rows[i].text, "wrong verdict");
    unit_assert_row(value == (r < 0 ? 7 : rows[i].value), rows[i].text, "wrong value");
  }
  assert_int_equal(probe_number(temp_path(state, "absent"), &value), -ENOENT);
  assert_int_equal(probe_number(*state, &value), -EISDIR);
}

static void test_program(void **state)
{
  mem_autofree char *found = NULL;
  mem_autofree char *absolute = NULL;
  char *nothing = NULL;

  temp_put("bin/sh", "");
  assert_int_equal(chmod("bin/sh", 0755), 0);
  assert_int_equal(setenv("PATH", temp_path(state, "bin"), 1), 0); /* PATH has no say */
  assert_int_equal(probe_program("sh", &found), 0);
  assert_true(strcmp(found, "/usr/bin/sh") == 0 || strcmp(found, "/bin/sh") == 0);
  assert_int_equal(probe_program(temp_path(state, "bin/sh"), &absolute), 0);
  assert_string_equal(absolute, temp_path(state, "bin/sh"));
  assert_int_equal(chmod("bin/sh", 0644), 0);
  assert_int_equal(probe_program(temp_path(state, "bin/sh"), &nothing), -ENOENT);
  assert_int_equal(probe_program("no-such-program-of-sbx", &nothing), -ENOENT);
  assert_null(nothing);
}

/* Where these tests run, sandboxes can be made. */
static void test_user_namespaces(void **state)
{
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(probe_userns(), 0);
  assert_int_equal(probe_userns_settings(&err), 0);
  assert_int_equal(err.code, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_number, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_program, temp_make, temp_remove),
    cmocka_unit_test(test_user_namespaces),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
