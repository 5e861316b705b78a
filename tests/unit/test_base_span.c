#include "base/span.h"
#include "unit/unit.h"

#include "base/mem.h"

static const struct span none = { NULL, 0 };

static void test_equal(void **state)
{
  (void)state;
  assert_true(span_equal(SPAN("abc"), SPAN("abc")));
  assert_false(span_equal(SPAN("abc"), SPAN("abd")));
  assert_false(span_equal(SPAN("abc"), SPAN("ab")));
  assert_true(span_equal(none, SPAN("")));
  assert_true(span_equal(SPAN("a\0b"), SPAN("a\0b")));
  assert_false(span_equal(SPAN("a\0b"), SPAN("a\0c")));
  assert_false(span_equal(SPAN("abc"), SPAN("ABC")));
  assert_true(span_equal_nocase(SPAN("aBz"), SPAN("AbZ")));
  assert_false(span_equal_nocase(SPAN("["), SPAN("{")));
  assert_false(span_equal_nocase(SPAN("@"), SPAN("`")));
  assert_false(span_equal_nocase(SPAN("\xc3\xa4"), SPAN("\xc3\x84"))); /* letters outside ASCII are not folded */
  assert_true(span_equal_str(SPAN("x"), "x"));
  assert_false(span_equal_str(SPAN("x\0"), "x"));
  assert_true(span_equal(span_of(NULL), SPAN("")));
}

static void test_ends(void **state)
{
  (void)state;
  assert_true(span_starts_with(SPAN("--allow"), SPAN("--")));
  assert_true(span_starts_with(SPAN("x"), none));
  assert_false(span_starts_with(SPAN("-"), SPAN("--")));
  assert_true(span_ends_with(SPAN("a.b"), SPAN(".b")));
  assert_false(span_ends_with(SPAN("b"), SPAN(".b")));
  assert_true(span_ends_with(SPAN(""), SPAN("")));
}

static void test_find(void **state)
{
  (void)state;
  assert_int_equal(span_find(SPAN("a:b:c"), ':'), 1);
  assert_int_equal(span_find_last(SPAN("a:b:c"), ':'), 3);
  assert_int_equal(span_find(SPAN("abc"), ':'), 3);
  assert_int_equal(span_find_last(SPAN("abc"), ':'), 3);
  assert_int_equal(span_find(SPAN("a\0:"), ':'), 2);
  assert_int_equal(span_find(none, ':'), 0);
  assert_int_equal(span_find_last(none, ':'), 0);
}

static void test_sub_is_clipped(void **state)
{
  struct span s = SPAN("hello");

  (void)state;
  assert_true(span_equal_str(span_sub(s, 1, 3), "ell"));
  assert_true(span_equal_str(span_sub(s, 3, SIZE_MAX), "lo"));
  assert_int_equal(span_sub(s, 5, 1).len, 0);
  assert_int_equal(span_sub(s, SIZE_MAX, SIZE_MAX).len, 0);
  assert_ptr_equal(span_sub(s, SIZE_MAX, 1).ptr, s.ptr + 5);
  assert_int_equal(span_sub(none, 0, 7).len, 0);
}

static void test_trim(void **state)
{
  (void)state;
  assert_true(span_equal_str(span_trim(SPAN(" \t a b\t ")), "a b"));
  assert_true(span_equal_str(span_trim(SPAN("\na\n")), "\na\n"));
  assert_int_equal(span_trim(SPAN(" \t ")).len, 0);
  assert_int_equal(span_trim(none).len, 0);
}

/* The parts of a text, joined by '|'. */
static void test_split(void **state)
{
  static const struct {
    const char *text;
    const char *parts;
  } rows[] = {
    { "a,b", "|a|b" }, { "a,,b", "|a||b" }, { ",", "||" }, { "", "|" }, { "a", "|a" }, { "a,", "|a|" }, { ",a", "||a" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char got[64] = "";
    struct span rest = span_of(rows[i].text);
    struct span part;
    size_t used = 0;

    while (span_split(&rest, ',', &part)) {
      got[used++] = '|';
      memcpy(got + used, part.ptr, part.len);
      used += part.len;
    }
    unit_assert_row(strcmp(got, rows[i].parts) == 0, rows[i].text, got);
    assert_false(span_split(&rest, ',', &part));
  }
}

static void test_classes(void **state)
{
  (void)state;
  for (int byte = 0; byte < 256; byte++) {
    char c = (char)byte;
    bool upper = byte >= 'A' && byte <= 'Z';

    assert_int_equal(span_is_digit(c), byte >= '0' && byte <= '9');
    assert_int_equal(span_is_alpha(c), upper || (byte >= 'a' && byte <= 'z'));
    assert_int_equal(span_lower(c), upper ? (char)(byte + 32) : c);
  }
}

/* Encodes a code point without any check, in so many bytes. */
static size_t encode(uint32_t code, size_t len, char *out)
{
  static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

  if (len == 1) {
    out[0] = (char)code;
    return 1;
  }
  for (size_t i = len - 1; i > 0; i--, code >>= 6)
    out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)(lead[len] | code);
  return len;
}

/* Every code point in its shortest form is valid, but for surrogates; every longer form, and every cut one, is not. */
static void test_utf8(void **state)
{
  (void)state;
  for (uint32_t code = 0; code < 0x120000; code += code < 0x1000 ? 1 : 13) {
    size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    bool valid = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);

    for (size_t len = shortest; len <= 4; len++) {
      char bytes[5] = "....";
      struct span s = { bytes, encode(code, len, bytes) };

      if (span_utf8(s) != (valid && len == shortest ? len : 0))
        fail_msg("U+%04X in %zu bytes", code, len);
      s.len--;
      if (len > 1 && span_utf8(s) != 0)
        fail_msg("U+%04X cut to %zu bytes", code, s.len);
    }
  }
  assert_int_equal(span_utf8(none), 0);
  assert_int_equal(span_utf8(SPAN("\x80")), 0);
  assert_int_equal(span_utf8(SPAN("\xff")), 0);
  assert_int_equal(span_utf8(SPAN("\xc3\xa4rger")), 2);
}

/* Text as it is, and what a terminal would obey, or what would turn or hide the text round it (CVE-2021-42574). */
static void test_printable(void **state)
{
  static const uint32_t shown[] = {
    0x20, 0x7e, 0xa0, 0xac, 0xae, 0xe4, 0x3a9, 0x20ac, 0x2027, 0x3042, 0xfffd, 0x1f642
  };
  static const uint32_t refused[] = { 0x00,   0x0a,   0x1b,   0x1f,   0x7f,   0x80,   0x9b,    0x9f,
                                      0xad,   0x61c,  0x200b, 0x200d, 0x200e, 0x200f, 0x2028,  0x2029,
                                      0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xfff9, 0xe0001, 0xe0061 };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(shown) + MEM_COUNT(refused); i++) {
    bool good = i < MEM_COUNT(shown);
    uint32_t code = good ? shown[i] : refused[i - MEM_COUNT(shown)];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char bytes[5];
    struct span s = { bytes, encode(code, len, bytes) };

    if (span_printable(s) != (good ? len : 0))
      fail_msg("U+%04X: %zu", code, span_printable(s));
  }
  assert_int_equal(span_printable(SPAN("\x9b")), 0);
  assert_int_equal(span_printable(none), 0);
}

static void test_distance(void **state)
{
  static const char longest[] = "12345678901234567890123456789012";

  (void)state;
  assert_int_equal(span_distance(SPAN("allow"), SPAN("ALLOW")), 0);
  assert_int_equal(span_distance(SPAN("alow"), SPAN("allow")), 1);
  assert_int_equal(span_distance(SPAN(""), SPAN("abc")), 3);
  assert_int_equal(span_distance(SPAN("kitten"), SPAN("sitting")), 3);
  assert_int_equal(span_distance(span_of(longest), span_of(longest)), 0);
  assert_true(span_distance(SPAN("123456789012345678901234567890123"), SPAN("1")) == SIZE_MAX);
  assert_true(span_is_near(SPAN("alow"), 1));
  assert_true(span_is_near(SPAN("dryrun"), 2));
  assert_false(span_is_near(SPAN("abc"), 2));
  assert_false(span_is_near(SPAN("abcdefghijkl"), 3));
  assert_false(span_is_near(SPAN("abc"), SIZE_MAX));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_equal),          cmocka_unit_test(test_ends), cmocka_unit_test(test_find),
    cmocka_unit_test(test_sub_is_clipped), cmocka_unit_test(test_trim), cmocka_unit_test(test_split),
    cmocka_unit_test(test_classes),        cmocka_unit_test(test_utf8), cmocka_unit_test(test_printable),
    cmocka_unit_test(test_distance),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
