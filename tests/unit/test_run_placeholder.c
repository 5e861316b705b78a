#include "run/placeholder.h"
#include "unit/policy_make.h"
#include "unit/temp.h"

#define FILE_NAME "state/placeholders/key"

static const char three[] =
    "{\"credentials\": {\"github\": {}, \"anthropic\": {}, \"x\": {\"source\": {\"env\": \"X\"}, \"env\": \"X\", "
    "\"bind\": [\"a.test\"]}}}";

static int load(void **state, const char *text, bool keep, struct err *err, struct strv *placeholders)
{
  policy_autofree struct policy *policy = make_policy(text);

  return placeholder_load(policy, temp_path(state, FILE_NAME), keep, err, placeholders);
}

static void load_or_fail(void **state, const char *text, bool keep, struct strv *placeholders)
{
  struct err err = ERR_INIT;

  if (load(state, text, keep, &err, placeholders) < 0)
    fail_msg("%s", err.message);
}

static char *read_kept(void **state)
{
  struct buf text = BUF_INIT(65536);

  assert_int_equal(fd_read_file(AT_FDCWD, temp_path(state, FILE_NAME), &text), 0);
  return buf_steal(&text);
}

/* Shaped like values, stable, kept for the user alone. */
static void test_kept(void **state)
{
  strv_autofree struct strv first = STRV_INIT;
  strv_autofree struct strv second = STRV_INIT;
  char *text;

  load_or_fail(state, three, true, &first);
  assert_int_equal(first.count, 3); /* by name: anthropic, github, x */
  assert_int_equal(strlen(first.items[0]), 108);
  assert_int_equal(strncmp(first.items[0], "sk-ant-api03-", 13), 0);
  assert_int_equal(strlen(first.items[1]), 40);
  assert_int_equal(strncmp(first.items[1], "ghp_", 4), 0);
  assert_int_equal(strncmp(first.items[2], "sbx_", 4), 0);
  for (size_t i = 0; i < first.count; i++)
    for (const char *at = first.items[i]; *at; at++)
      assert_true(span_is_alpha(*at) || span_is_digit(*at) || *at == '-' || *at == '_');
  load_or_fail(state, three, true, &second);
  for (size_t i = 0; i < first.count; i++)
    assert_string_equal(second.items[i], first.items[i]);
  assert_int_equal(temp_mode(temp_path(state, FILE_NAME)), S_IFREG | 0600);
  assert_int_equal(temp_mode(temp_path(state, "state/placeholders")), S_IFDIR | 0700);
  text = read_kept(state);
  assert_non_null(strstr(text, first.items[1]));
  free(text);
}

/* Another project's are others; a plan that is only shown leaves nothing behind. */
static void test_not_kept(void **state)
{
  strv_autofree struct strv first = STRV_INIT;
  strv_autofree struct strv second = STRV_INIT;

  load_or_fail(state, three, false, &first);
  load_or_fail(state, three, false, &second);
  assert_string_not_equal(first.items[1], second.items[1]);
  assert_int_equal(temp_mode(temp_path(state, "state")), 0);
}

/* Lines of credentials that this run has not are left alone, and new ones are added. */
static void test_others_stay(void **state)
{
  strv_autofree struct strv all = STRV_INIT;
  strv_autofree struct strv one = STRV_INIT;
  strv_autofree struct strv again = STRV_INIT;

  load_or_fail(state, three, true, &all);
  load_or_fail(state, "{\"credentials\": {\"npm\": {}}}", true, &one);
  load_or_fail(state, three, true, &again);
  for (size_t i = 0; i < all.count; i++)
    assert_string_equal(again.items[i], all.items[i]);
}

/* What has not the shape, whoever wrote it, is not used: a placeholder such as "a" would stand in every request. */
static void test_wrong_shape(void **state)
{
  static const char *const lines[] = {
    "github a",
    "github ",
    "github",
    "github ghp_short",
    "github ghp_0123456789012345678901234567890123456789",
    "github ghx_012345678901234567890123456789012345",
    "github ghp_01234567890123456789012345678901234\n",
    "github ghp_0123456789 0123456789012345678901234",
    "githubx ghp_012345678901234567890123456789012345",
  };

  for (size_t i = 0; i < MEM_COUNT(lines); i++) {
    strv_autofree struct strv made = STRV_INIT;
    temp_put(temp_path(state, FILE_NAME), lines[i]);
    load_or_fail(state, "{\"credentials\": {\"github\": {}}}", true, &made);
    unit_assert_row(strlen(made.items[0]) == 40 && !strstr(lines[i], made.items[0]), lines[i], made.items[0]);
    char *text = read_kept(state);
    unit_assert_row(strstr(text, made.items[0]), lines[i], text);
    free(text);
  }
}

/* A key's id, and its secret key, as SDKs check them. */
static void test_keys(void **state)
{
  static const char *const lines[] = {
    "aws AKIA234567ABCDEFGHIJ 0123456789012345678901234567890123456789x",
    "aws AKIA234567ABCDEFGHI1 0123456789012345678901234567890123456789",
    "aws AKIA234567ABCDEFGHIJ 01234567890123456789012345678901234567 9",
    "aws AKIA234567ABCDEFGHIJ",
    "aws ABIA234567ABCDEFGHIJ 0123456789012345678901234567890123456789",
  };
  static const char good[] = "AKIA234567ABCDEFGHIJ 0123456789012345678901234567890123456789";
  strv_autofree struct strv kept = STRV_INIT;
  char text[128];

  for (size_t i = 0; i < MEM_COUNT(lines); i++) {
    strv_autofree struct strv made = STRV_INIT;
    temp_put(temp_path(state, FILE_NAME), lines[i]);
    load_or_fail(state, "{\"credentials\": {\"aws\": {}}}", true, &made);
    unit_assert_row(strlen(made.items[0]) == 61 && !strstr(lines[i], made.items[0]), lines[i], made.items[0]);
    unit_assert_row(strncmp(made.items[0], "AKIA", 4) == 0 && made.items[0][20] == ' ', lines[i], made.items[0]);
    for (size_t j = 0; j < 61; j++)
      unit_assert_row(j == 20 || span_is_alpha(made.items[0][j]) || span_is_digit(made.items[0][j]), lines[i],
                      made.items[0]);
  }
  snprintf(text, sizeof text, "aws %s\n", good);
  temp_put(temp_path(state, FILE_NAME), text);
  load_or_fail(state, "{\"credentials\": {\"aws\": {}}}", true, &kept);
  assert_string_equal(kept.items[0], good);
}

static void test_clash(void **state)
{
  static const char same[] = "sbx_0123456789012345678901234567890123456789";
  strv_autofree struct strv made = STRV_INIT;
  struct err err = ERR_INIT;
  char text[256];

  snprintf(text, sizeof text, "a %s\nb %s\n", same, same);
  temp_put(temp_path(state, FILE_NAME), text);
  assert_int_equal(
      load(state,
           "{\"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, \"env\": \"A\", \"bind\": [\"a.test\"]}, "
           "\"b\": {\"source\": {\"env\": \"B\"}, \"env\": \"B\", \"bind\": [\"b.test\"]}}}",
           true, &err, &made),
      -EEXIST);
  assert_non_null(strstr(err.message, "the placeholder of \"a\" holds that of \"b\"; remove "));
  assert_int_equal(made.count, 0);
}

static void test_unwritable(void **state)
{
  strv_autofree struct strv made = STRV_INIT;
  struct err err = ERR_INIT;

  temp_put(temp_path(state, "state"), "a file in the way");
  assert_true(load(state, three, true, &err, &made) < 0);
  assert_int_equal(strncmp(err.message, "credentials: ", 13), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_kept, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_not_kept, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_others_stay, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_wrong_shape, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_keys, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_clash, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_unwritable, temp_make, temp_remove),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
