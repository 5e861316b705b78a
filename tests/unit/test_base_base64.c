#include "base/base64.h"
#include "unit/unit.h"

static void check_encoded(const char *bytes, const char *expected)
{
  buf_autofree struct buf out = BUF_INIT(256);

  base64_append(span_of(bytes), &out);
  buf_append(&out, SPAN(""));
  assert_string_equal(out.data, expected);
}

/* RFC 4648, section 10 */
static void test_vectors(void **state)
{
  (void)state;
  check_encoded("", "");
  check_encoded("f", "Zg==");
  check_encoded("fo", "Zm8=");
  check_encoded("foo", "Zm9v");
  check_encoded("foob", "Zm9vYg==");
  check_encoded("fooba", "Zm9vYmE=");
  check_encoded("foobar", "Zm9vYmFy");
  check_encoded("\xfb\xff\xbf", "+/+/");
}

static void test_strict(void **state)
{
  static const struct {
    const char *text;
    const char *bytes; /* NULL: refused */
  } rows[] = {
    { "", "" },
    { "Zg==", "f" },
    { "Zg", "f" },
    { "Zm8=", "fo" },
    { "Zm8", "fo" },
    { "Zm9v", "foo" },
    { "+/+/", "\xfb\xff\xbf" },
    { "-_-_", NULL }, /* another alphabet */
    { "Z", NULL },
    { "Z===", NULL },
    { "Zg=", NULL },
    { "Zg===", NULL },
    { "Zm9v=", NULL },
    { "Zm9v====", NULL },
    { "=", NULL },
    { "==", NULL },
    { "Zh==", NULL }, /* bits that are no byte's */
    { "Zm9=", NULL },
    { "Zm9", NULL },
    { "Zg==Zg==", NULL },
    { "Z g=", NULL },
    { "Zm9v\n", NULL },
    { "Zm=v", NULL },
    { "Zm9\xc3", NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf out = BUF_INIT(64);
    int r;

    buf_append_str(&out, "<");
    r = base64_decode(span_of(rows[i].text), &out);
    unit_assert_row(r == (rows[i].bytes ? 0 : -EINVAL), rows[i].text, "accepted");
    unit_assert_row(span_equal_str(span_sub(buf_span(&out), 1, out.len), rows[i].bytes ? rows[i].bytes : ""),
                    rows[i].text, "bytes");
  }
}

static void test_round_trip(void **state)
{
  struct unit_random random = unit_seed("test_round_trip");

  (void)state;
  for (int i = 0; i < 2000; i++) {
    buf_autofree struct buf text = BUF_INIT(256);
    buf_autofree struct buf again = BUF_INIT(256);
    char bytes[64];
    struct span all = { bytes, unit_below(&random, sizeof bytes) };

    for (size_t j = 0; j < all.len; j++)
      bytes[j] = (char)unit_next(&random);
    base64_append(all, &text);
    assert_int_equal(text.len, (all.len + 2) / 3 * 4);
    while (i % 2 && text.len && text.data[text.len - 1] == '=')
      text.len--;
    assert_int_equal(base64_decode(buf_span(&text), &again), 0);
    assert_true(span_equal(buf_span(&again), all));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_vectors),
    cmocka_unit_test(test_strict),
    cmocka_unit_test(test_round_trip),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
