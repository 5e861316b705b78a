#include "base/buf.h"
#include "unit/unit.h"

/* A sanitizer's malloc(3) shall fail by value too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

static void test_ceiling(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(4);

  (void)state;
  buf_append(&buf, SPAN("abcd"));
  assert_int_equal(buf_error(&buf), 0);
  assert_true(span_equal_str(buf_span(&buf), "abcd"));
  buf_append_byte(&buf, 'e');
  assert_int_equal(buf_error(&buf), -E2BIG);
  assert_true(span_equal_str(buf_span(&buf), "abcd"));
  buf_consume(&buf, 4);
  buf_append_byte(&buf, 'f'); /* a marked buffer stays as it is, room or not */
  assert_int_equal(buf.len, 0);
  assert_null(buf_steal(&buf));
  buf_free(&buf);
  assert_int_equal(buf_error(&buf), 0);
  assert_int_equal(buf.max, 4);
  buf_append_str(&buf, "12345");
  assert_int_equal(buf_error(&buf), -E2BIG);
  assert_int_equal(buf.len, 0);
}

/* A text that is as long as the ceiling fits, whatever its length; one byte more does not, and nothing of it is
 * there. */
static void test_ceiling_at_every_length(void **state)
{
  (void)state;
  for (size_t len = 0; len < 300; len++) {
    buf_autofree struct buf fits = BUF_INIT(len);
    buf_autofree struct buf printed = BUF_INIT(len);

    for (size_t i = 0; i < len; i++)
      buf_append_byte(&fits, (char)('a' + i % 26));
    assert_int_equal(buf_error(&fits), 0);
    assert_int_equal(buf_span(&fits).len, len);
    if (len)
      assert_int_equal(fits.data[len], '\0');
    buf_printf(&printed, "%*s", (int)len, "");
    assert_int_equal(buf_error(&printed), 0);
    assert_int_equal(printed.len, len);
    buf_free(&printed);
    buf_printf(&printed, "%*s", (int)len + 1, "");
    assert_int_equal(buf_error(&printed), -E2BIG);
    assert_int_equal(printed.len, 0);
  }
}

static void test_printf_that_cannot_be_made(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(SIZE_MAX / 4);
  volatile int width = INT32_MAX; /* the compiler would see it */

  (void)state;
  buf_append_str(&buf, "before");
  buf_printf(&buf, "%*s%*s", width, "", width, ""); /* longer than an int can tell */
  assert_int_not_equal(buf_error(&buf), 0);
  assert_true(span_equal_str(buf_span(&buf), "before"));
}

static void test_no_memory(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(SIZE_MAX / 2);
  static const char byte = 'x';

  (void)state;
  buf_append_str(&buf, "before");
  buf_append(&buf, (struct span){ &byte, SIZE_MAX / 4 });
  assert_int_equal(buf_error(&buf), -ENOMEM);
  assert_true(span_equal_str(buf_span(&buf), "before"));
}

static void test_steal(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(16);
  char *text = buf_steal(&buf);

  (void)state;
  assert_string_equal(text, "");
  free(text);
  buf_append(&buf, SPAN("a\0b"));
  text = buf_steal(&buf);
  assert_memory_equal(text, "a\0b\0", 4);
  free(text);
  assert_null(buf.data);
  buf_append_str(&buf, "again");
  assert_true(span_equal_str(buf_span(&buf), "again"));
}

static void test_reserve(void **state)
{
  struct buf buf = BUF_INIT(5000);
  const char *data;

  (void)state;
  buf_append_str(&buf, "x");
  buf_reserve(&buf, 4999);
  data = buf.data;
  for (int i = 0; i < 4999; i++)
    buf_append_byte(&buf, 'y');
  assert_int_equal(buf_error(&buf), 0);
  assert_ptr_equal(buf.data, data);
  assert_int_equal(buf.len, 5000);
  buf_wipe(&buf);
  assert_null(buf.data);
  buf_reserve(&buf, 5001);
  assert_int_equal(buf_error(&buf), -E2BIG);
  buf_wipe(&buf);
}

static void test_consume(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(16);

  (void)state;
  buf_consume(&buf, 3);
  buf_append_str(&buf, "abcdef");
  buf_consume(&buf, 2);
  assert_true(span_equal_str(buf_span(&buf), "cdef"));
  assert_string_equal(buf.data, "cdef");
  buf_consume(&buf, 0);
  buf_consume(&buf, SIZE_MAX);
  assert_int_equal(buf.len, 0);
}

static void test_escaped(void **state)
{
  buf_autofree struct buf buf = BUF_INIT(2048);

  (void)state;
  buf_append_escaped(&buf, SPAN("a\\b\x1b[0m\0\x7f\xc2\x9b\xff~ "));
  assert_true(span_equal_str(buf_span(&buf), "a\\x5cb\\x1b[0m\\x00\\x7f\\xc2\\x9b\\xff~ "));
}

static void test_json(void **state)
{
  static const struct {
    struct span in;
    const char *out;
  } rows[] = {
    { SPAN_INIT(""), "\"\"" },
    { SPAN_INIT("plain"), "\"plain\"" },
    { SPAN_INIT("\"\\/"), "\"\\\"\\\\/\"" },
    { SPAN_INIT("\n\t\r\b\f"), "\"\\n\\t\\u000d\\u0008\\u000c\"" },
    { SPAN_INIT("\0\x1f\x7f"), "\"\\u0000\\u001f\\u007f\"" },
    { SPAN_INIT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"), "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\"" },
    { SPAN_INIT("\x80"), "\"\\u0080\"" },
    { SPAN_INIT("\xff\xfe"), "\"\\u00ff\\u00fe\"" },
    { SPAN_INIT("\xc3"), "\"\\u00c3\"" },
    { SPAN_INIT("\xc3\""), "\"\\u00c3\\\"\"" }, /* the quote must not vanish into a broken sequence */
    { SPAN_INIT("\xe2\x82\""), "\"\\u00e2\\u0082\\\"\"" },
    { SPAN_INIT("\xc0\xa2"), "\"\\u00c0\\u00a2\"" }, /* an overlong quote */
    { SPAN_INIT("\xed\xa0\x80"), "\"\\u00ed\\u00a0\\u0080\"" }, /* a surrogate */
    { SPAN_INIT("\xf4\x90\x80\x80"), "\"\\u00f4\\u0090\\u0080\\u0080\"" }, /* past U+10FFFF */
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf buf = BUF_INIT(256);

    buf_append_json(&buf, rows[i].in);
    unit_assert_row(span_equal_str(buf_span(&buf), rows[i].out), rows[i].out, buf.data);
  }
}

/* Whatever the bytes: ASCII controls, quotes and backslashes only as escapes, and the rest valid UTF-8. */
static void test_json_of_random_bytes(void **state)
{
  struct unit_random random = unit_seed(__func__);

  (void)state;
  for (int round = 0; round < 5000; round++) {
    buf_autofree struct buf buf = BUF_INIT(1024);
    char bytes[24];
    size_t len = unit_below(&random, sizeof bytes + 1);
    struct span text;

    for (size_t i = 0; i < len; i++)
      bytes[i] = (char)(unit_below(&random, 3) ? 0x80 | unit_next(&random) : unit_next(&random));
    buf_append_json(&buf, (struct span){ bytes, len });
    text = buf_span(&buf);
    assert_true(text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"');
    for (text = span_sub(text, 1, text.len - 2); text.len;) {
      size_t step = span_utf8(text);

      if (text.ptr[0] == '\\')
        step = text.ptr[1] == 'u' ? 6 : 2;
      assert_true(step > 0 && step <= text.len && text.ptr[0] != '"' && text.ptr[0] != 0x7f);
      assert_true(step > 1 || text.ptr[0] >= ' ');
      text = span_sub(text, step, text.len);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ceiling),
    cmocka_unit_test(test_ceiling_at_every_length),
    cmocka_unit_test(test_printf_that_cannot_be_made),
    cmocka_unit_test(test_no_memory),
    cmocka_unit_test(test_steal),
    cmocka_unit_test(test_reserve),
    cmocka_unit_test(test_consume),
    cmocka_unit_test(test_escaped),
    cmocka_unit_test(test_json),
    cmocka_unit_test(test_json_of_random_bytes),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
