#include "base/base64.h"
#include "policy/stand_in.h"
#include "unit/unit.h"

#define VALUE "s3cr3t/+v=alue"
#define OTHER "another-value"
#define OUT_BYTES 4096

/* Each text with the placeholders PPP and <Q> in place of the values; NULL: refused. */
static void test_forms(void **state)
{
  static const struct {
    const char *text;
    const char *expected;
    size_t found;
  } rows[] = {
    { "", "", 0 },
    { "nothing of it: s3cr3t", "nothing of it: s3cr3t", 0 },
    { VALUE, "PPP", 1 },
    { "a" VALUE VALUE "b", "aPPPPPPb", 2 },
    { "x=s3cr3t%2F%2bv%3dalue&", "x=PPP&", 1 },
    { "%73%33%63r3t/%2Bv=alue", "PPP", 1 },
    { "\"s3cr3t\\/+v=alue\"", "\"PPP\"", 1 },
    { VALUE " " OTHER " " VALUE, "PPP Q PPP", 2 },
    /* base64 of the value, alone, and behind one, two, three and five bytes */
    { "czNjcjN0Lyt2PWFsdWU=", "UFBQ", 1 },
    { "YXMzY3IzdC8rdj1hbHVl", "YVBQUA==", 1 },
    { "YWJzM2NyM3QvK3Y9YWx1ZQ==", "YWJQUFA=", 1 },
    { "auth: YWJjczNjcjN0Lyt2PWFsdWU=!", "auth: YWJjUFBQ!", 1 },
    { "\"dXNlcjpzM2NyM3QvK3Y9YWx1ZQ==\"", "\"dXNlcjpQUFA=\"", 1 },
    /* with something behind it, without padding, and in the alphabet of URLs */
    { "YXMzY3IzdC8rdj1hbHVlOnRhaWw=", "YVBQUDp0YWls", 1 },
    { "dXNlcjpzM2NyM3QvK3Y9YWx1ZQ", "dXNlcjpQUFA", 1 },
    { "Pj8-czNjcjN0Lyt2PWFsdWU", "Pj8-UFBQ", 1 },
    /* both in one */
    { "czNjcjN0Lyt2PWFsdWU6YW5vdGhlci12YWx1ZQ==", "UFBQOlE=", 1 },
    /* behind a path, whose bytes are digits as well */
    { "/x/czNjcjN0Lyt2PWFsdWU=", "/x/UFBQ", 1 },
    /* in two lines, split within the value; and a digit escaped */
    { "czNjcjN0Lyt2\nPWFsdWU=", NULL, 0 },
    { "s3cr3t\\\n/+v=alue", NULL, 0 },
    { "czNjcjN0Lyt2PWFsdWU%3D czNjcjN0%4cyt2PWFsdWU=", NULL, 0 },
    /* a length that no encoder makes */
    { "czNjcjN0Lyt2PWFsdWUaaaaaaaaaa", NULL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autowipe struct buf out = BUF_INIT(OUT_BYTES);
    struct stand_in pairs[] = { { .value = SPAN(OTHER), .placeholder = SPAN("Q") },
                                { .value = SPAN(VALUE), .placeholder = SPAN("PPP") } };
    size_t left = 9;
    int r = stand_in_text(pairs, 2, span_of(rows[i].text), &out, &left);

    buf_append_str(&out, "");
    if (!rows[i].expected) {
      unit_assert_row(r == -EILSEQ && left == 1, rows[i].text, out.data);
      continue;
    }
    unit_assert_row(r == 0 && strcmp(out.data, rows[i].expected) == 0, rows[i].text, out.data);
    unit_assert_row(pairs[1].found == rows[i].found, rows[i].text, "counted wrongly");
  }
}

/* Of a value that begins another the longer one is meant. */
static void test_longest(void **state)
{
  buf_autowipe struct buf out = BUF_INIT(OUT_BYTES);
  struct stand_in pairs[] = { { .value = SPAN("token-1234"), .placeholder = SPAN("A") },
                              { .value = SPAN("token-1234-5678"), .placeholder = SPAN("B") } };
  size_t left;

  (void)state;
  assert_int_equal(stand_in_text(pairs, 2, SPAN("token-1234 token-1234-5678"), &out, &left), 0);
  assert_string_equal(out.data, "A B");
}

static void test_full(void **state)
{
  buf_autowipe struct buf out = BUF_INIT(16);
  struct stand_in pair = { .value = SPAN(VALUE), .placeholder = SPAN("PPP") };
  size_t left;

  (void)state;
  assert_int_equal(stand_in_text(&pair, 1, SPAN("0123456789abcd" VALUE), &out, &left), -E2BIG);
}

/* Wherever the value begins and ends in base64, nothing of it is left, and what is beside it stays. */
static void test_everywhere(void **state)
{
  (void)state;
  for (size_t before = 0; before < 12; before++) {
    for (size_t behind = 0; behind < 12; behind++) {
      buf_autowipe struct buf plain = BUF_INIT(OUT_BYTES);
      buf_autowipe struct buf text = BUF_INIT(OUT_BYTES);
      buf_autowipe struct buf expected = BUF_INIT(OUT_BYTES);
      buf_autowipe struct buf right = BUF_INIT(OUT_BYTES);
      buf_autowipe struct buf out = BUF_INIT(OUT_BYTES);
      struct stand_in pair = { .value = SPAN(VALUE), .placeholder = SPAN("PPP") };
      size_t left;

      buf_printf(&plain, "%.*s%s%.*s", (int)before, "abcdefghijkl", VALUE, (int)behind, "ABCDEFGHIJKL");
      base64_append(buf_span(&plain), &text);
      buf_printf(&expected, "%.*s%s%.*s", (int)before, "abcdefghijkl", "PPP", (int)behind, "ABCDEFGHIJKL");
      base64_append(buf_span(&expected), &right);
      assert_int_equal(stand_in_text(&pair, 1, buf_span(&text), &out, &left), 0);
      assert_string_equal(out.data, right.data);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms),
    cmocka_unit_test(test_longest),
    cmocka_unit_test(test_full),
    cmocka_unit_test(test_everywhere),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
