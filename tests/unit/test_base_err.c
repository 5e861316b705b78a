#include "base/err.h"
#include "unit/unit.h"

#include "base/mem.h"

static void assert_ends(const char *message, const char *end)
{
  size_t len = strlen(message);

  assert_true(len >= strlen(end));
  assert_string_equal(message + len - strlen(end), end);
}

static void test_set(void **state)
{
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(err_set(&err, ENOENT, "%s: gone; make it", "/x"), -ENOENT);
  assert_int_equal(err.code, ENOENT);
  assert_string_equal(err.message, "/x: gone; make it");
  assert_int_equal(err_set(NULL, EPERM, "nobody listens"), -EPERM);
  assert_int_equal(err_set_errno(NULL, EPERM, "nobody listens"), -EPERM);
}

static void test_errno_and_wrap(void **state)
{
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(err_set_errno(&err, EACCES, "open %d", 7), -EACCES);
  assert_string_equal(err.message, "open 7: Permission denied");
  assert_int_equal(err_wrap(&err, "policy %s", "a.json"), -EACCES);
  assert_int_equal(err_wrap(&err, "start"), -EACCES);
  assert_int_equal(err.code, EACCES);
  assert_string_equal(err.message, "start: policy a.json: open 7: Permission denied");
  assert_int_equal(err_wrap(NULL, "nothing"), -EIO);
}

/* The message may itself be an argument. */
static void test_message_as_argument(void **state)
{
  struct err err = ERR_INIT;

  (void)state;
  err_set(&err, EINVAL, "inner");
  err_set(&err, EIO, "outer (%s)", err.message);
  assert_string_equal(err.message, "outer (inner)");
  assert_int_equal(err.code, EIO);
}

static void test_escapes(void **state)
{
  static const struct {
    const char *in;
    const char *out;
  } rows[] = {
    { "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
    { "a\nb\tc\rd\x7f", "a\\x0ab\\x09c\\x0dd\\x7f" },
    { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
    { "\xe2\x82\xac \xf0\x9f\x99\x82", "\xe2\x82\xac \xf0\x9f\x99\x82" },
    { "\xc2\x9b"
      "31m",
      "\\xc2\\x9b"
      "31m" }, /* CSI of C1 in UTF-8 */
    { "\xc2\xa0", "\xc2\xa0" }, /* the first after C1 */
    { "\x9b"
      "31m",
      "\\x9b"
      "31m" }, /* CSI for a terminal of 8 bits */
    { "\xc3(", "\\xc3(" },
    { "\xe2\x82", "\\xe2\\x82" },
    { "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
    { "\xc0\xaf", "\\xc0\\xaf" }, /* an overlong slash */
    { "back\\slash", "back\\slash" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;

    err_set(&err, EINVAL, "%s", rows[i].in);
    unit_assert_row(strcmp(err.message, rows[i].out) == 0, rows[i].out, err.message);
  }
}

/* At every length around the ceiling: whole where it fits, else cut with dots, and never past the end. */
static void test_truncation(void **state)
{
  (void)state;
  for (size_t len = ERR_MESSAGE_MAX - 12; len < ERR_MESSAGE_MAX + 12; len++) {
    mem_autofree char *text = mem_calloc(len + 1, 1);
    struct err err = ERR_INIT;

    assert_non_null(text);
    memset(text, 'x', len);
    err_set(&err, EINVAL, "%s", text);
    assert_true(strlen(err.message) < sizeof err.message);
    if (len < ERR_MESSAGE_MAX) {
      assert_string_equal(err.message, text);
    } else {
      assert_ends(err.message, "x...");
      assert_int_equal(strlen(err.message), ERR_MESSAGE_MAX - 1);
    }
    err_wrap(&err, "a longer context");
    assert_int_equal(strncmp(err.message, "a longer context: xxx", 21), 0);
    assert_ends(err.message, "x...");
  }
}

static void test_truncation_of_additions(void **state)
{
  (void)state;
  for (size_t len = ERR_MESSAGE_MAX - 40; len < ERR_MESSAGE_MAX + 4; len++) {
    mem_autofree char *text = mem_calloc(len + 1, 1);
    struct err err = ERR_INIT;

    assert_non_null(text);
    memset(text, 'x', len);
    assert_int_equal(err_set_errno(&err, EACCES, "%s", text), -EACCES);
    assert_true(strlen(err.message) < sizeof err.message);
    if (len + strlen(": Permission denied") < ERR_MESSAGE_MAX)
      assert_ends(err.message, "x: Permission denied");
    else
      assert_ends(err.message, "...");
    assert_int_equal(err_wrap(&err, "%s", text), -EACCES);
    assert_true(strlen(err.message) < sizeof err.message);
    assert_ends(err.message, "...");
  }
}

/* No escape, and no character of several bytes, is cut in the middle. */
static void test_truncation_of_wide_text(void **state)
{
  (void)state;
  for (size_t lead = 0; lead < 8; lead++) {
    char text[ERR_MESSAGE_MAX * 2];
    struct err err = ERR_INIT;
    size_t at;

    memset(text, 'x', lead);
    for (at = lead; at + 3 < sizeof text; at += 3)
      memcpy(text + at, "\xe2\x82\xac", 3);
    text[at] = '\0';
    err_set(&err, EINVAL, "%s", text);
    assert_ends(err.message, "\xe2\x82\xac...");
    memset(text + lead, '\n', sizeof text - lead - 1);
    text[sizeof text - 1] = '\0';
    err_set(&err, EINVAL, "%s", text);
    assert_ends(err.message, "\\x0a...");
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_set),
    cmocka_unit_test(test_errno_and_wrap),
    cmocka_unit_test(test_message_as_argument),
    cmocka_unit_test(test_escapes),
    cmocka_unit_test(test_truncation),
    cmocka_unit_test(test_truncation_of_additions),
    cmocka_unit_test(test_truncation_of_wide_text),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
