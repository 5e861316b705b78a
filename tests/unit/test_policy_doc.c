#include "base/buf.h"
#include "policy/doc.h"
#include "policy/limits.h"
#include "unit/unit.h"

static void test_values_and_lines(void **state)
{
  static const char text[] = "// first\n"
                             "{ \"a\": \"x\\n\\u00e9\\\"\\/\",\n"
                             "  /* two\n"
                             "     lines */ \"b\": [1, -2.5e3,\n"
                             "    true, null, {}], // \"c\": 1\n"
                             "  \"d\": \"// no comment /* either */\"\r\n"
                             "}\n\n";
  struct err err = ERR_INIT;
  struct doc *doc = NULL;

  (void)state;
  assert_int_equal(doc_parse("f", span_of(text), &err, &doc), 0);
  assert_int_equal(doc->type, DOC_OBJECT);
  assert_int_equal(doc->count, 3);
  assert_int_equal(doc->line, 2);
  assert_string_equal(doc->items[0].name, "a");
  assert_string_equal(doc->items[0].text, "x\n\xc3\xa9\"/");
  assert_int_equal(doc->items[0].line, 2);
  const struct doc *list = doc_member(doc, "b");
  assert_int_equal(list->line, 4);
  assert_int_equal(list->count, 5);
  assert_string_equal(list->items[0].text, "1");
  assert_string_equal(list->items[1].text, "-2.5e3");
  assert_int_equal(list->items[1].line, 4);
  assert_string_equal(list->items[2].text, "true");
  assert_int_equal(list->items[2].line, 5);
  assert_int_equal(list->items[3].type, DOC_NULL);
  assert_int_equal(list->items[4].type, DOC_OBJECT);
  assert_string_equal(doc_member(doc, "d")->text, "// no comment /* either */");
  assert_int_equal(doc_member(doc, "d")->line, 6);
  assert_null(doc_member(doc, "c"));
  assert_int_equal(text[doc->from], '{');
  assert_int_equal(doc->to, strlen(text) - 2);
  assert_memory_equal(text + list->from, "[1, ", 4);
  assert_memory_equal(text + list->to - 3, "{}],", 4);
  assert_memory_equal(text + list->items[1].from, "-2.5e3", list->items[1].to - list->items[1].from);
  assert_int_equal(text[list->items[1].to], ',');
  assert_memory_equal(text + doc->items[0].from, "\"x\\n", 4);
  assert_int_equal(text[doc->items[0].to - 1], '"');
  assert_int_equal(text[doc->items[0].to], ',');
  doc_free(doc);
}

static void test_accepted(void **state)
{
  static const char *const texts[] = {
    "{}",
    " {} ",
    "\n{}\n",
    "{}//",
    "{}/**/",
    "//\n{}",
    "{\"\":1}",
    "[]",
    "null",
    "1",
    "\"x\"",
    "true",
    "{\"a\":\"\\ud7ff\"}",
    "{\"a\":\"\xf0\x9f\x98\x80\"}",
    "{\"a\":\"\xef\xbf\xbd\"}",
    "\t{\r\n}",
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(texts); i++) {
    struct err err = ERR_INIT;
    struct doc *doc = NULL;
    unit_assert_row(doc_parse("f", span_of(texts[i]), &err, &doc) == 0, texts[i], err.message);
    doc_free(doc);
  }
}

static void test_refused(void **state)
{
  static const struct {
    const char *text;
    const char *start; /* of the message */
  } rows[] = {
    { "", "f:1: " },
    { " ", "f:1: " },
    { "{", "f:1: " },
    { "{\n\"a\": 1,\n", "f:2: the text ends too early" },
    { "{\n\"a\" 1}", "f:2: not JSON, column 5: a colon is missing before '1'" },
    { "{\"a\": 1,}", "f:1: not JSON, column 9: a comma before }; take it out" },
    { "{\"a\": [1,]}", "f:1: not JSON, column 10: a comma before ]; take it out" },
    { "{\"a\": [,1]}", "f:1: not JSON, column 8: ',' is not expected here" },
    { "{\"a\": [1 2]}", "f:1: not JSON, column 10: a comma is missing before '2'" },
    { "{'a': 1}", "f:1: not JSON, column 2: a single quote; names and strings" },
    { "{a: 1}", "f:1: not JSON, column 2: the word a; names and strings stand in \"double quotes\"" },
    { "plain text", "f:1: not JSON, column 1: the word plain;" },
    { "{\"a\": tru}", "f:1: not JSON, column 7: the word tru;" },
    { "{\"\xc3\xa9\xf0\x9f\x98\x80\": [1,]}", "f:1: not JSON, column 11: a comma before ]" },
    { "{\"a\": \xc3\xa9}", "f:1: not JSON, column 7: '\xc3\xa9' is not expected here" },
    { "", "f:1: there is nothing in it; the least policy is {}" },
    { " \n// x\n", "f:1: there is nothing in it" },
    { "{\"a\": 'x'}", "f:1: not JSON, column 7: a single quote" },
    { "{\"a\": NaN}", "f:1: not JSON" },
    { "{\"a\": Infinity}", "f:1: not JSON" },
    { "{\"a\": -Infinity}", "f:1: not JSON" },
    { "{\"a\": True}", "f:1: not JSON" },
    { "{\"a\": NULL}", "f:1: not JSON" },
    { "{\"a\": 01}", "f:1: " },
    { "{\"a\": +1}", "f:1: not JSON" },
    { "{\"a\": 1.}", "f:1: " },
    { "{\"a\": .5}", "f:1: not JSON" },
    { "{\"a\": 1e}", "f:1: " },
    { "{\"a\": 0x10}", "f:1: not JSON" },
    { "{\"a\": -}", "f:1: " },
    { "{} {}", "f:1: " },
    { "{}\n\nx", "f:3: " },
    { "{}]", "f:1: " },
    { "# x\n{}", "f:1: not JSON" },
    { "/* x", "f:1: a comment without an end" },
    { "{}\n/*", "f:2: a comment without an end" },
    { "/", "f:1: " },
    { "{\"a\": 1, \"a\": 2}", "f:1: \"a\" stands twice" },
    { "{\"b\": {\"a\": 1,\n \"a\": 2}}", "f:2: \"a\" stands twice" },
    { "{\"\\u0061\": 1}", "f:1: an escape in a member's name" },
    { "{\"a\": \"\\u0000\"}", "f:1: a NUL" },
    { "{\"a\": \"x\ty\"}", "f:1: a control byte" },
    { "{\"a\": \"x\ny\"}", "f:1: a control byte" },
    { "{\"a\": \"\\ud800\"}", "f:1: a surrogate" },
    { "{\"a\": \"\\uDFFF\"}", "f:1: a surrogate" },
    { "{\"a\": \"\\x41\"}", "f:1: not JSON, column 9: 'x' cannot stand behind a backslash" },
    { "{\"a\": \"\\u12\"}", "f:1: not JSON" },
    { "{\"a\": \"\xff\"}", "f:1: a NUL byte or bytes that are not UTF-8" },
    { "{\n\"a\": \"\xc0\xaf\"}", "f:2: a NUL byte or bytes that are not UTF-8" },
    { "{\"a\": \"\xed\xa0\x80\"}", "f:1: a NUL byte or bytes that are not UTF-8" },
    { "{\"a\": \"\xf4\x90\x80\x80\"}", "f:1: a NUL byte or bytes that are not UTF-8" },
    { "{\"a\": \"\xe2\x82\"}", "f:1: a NUL byte or bytes that are not UTF-8" },
    { "\xef\xbb\xbf{}", "f:1: not JSON, column 1: a byte order mark" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct doc *doc = NULL;
    int r = doc_parse("f", span_of(rows[i].text), &err, &doc);
    unit_assert_row(r == -EINVAL, rows[i].text, "accepted");
    unit_assert_row(span_starts_with(span_of(err.message), span_of(rows[i].start)), rows[i].text, err.message);
    assert_null(doc);
  }
}

static void test_nul_byte(void **state)
{
  struct doc *doc = NULL;

  (void)state;
  assert_int_equal(doc_parse("f", (struct span){ "{}\0", 3 }, NULL, &doc), -EINVAL);
  assert_int_equal(doc_parse("f", (struct span){ "{\0}", 3 }, NULL, &doc), -EINVAL);
}

static void test_depth(void **state)
{
  (void)state;
  for (size_t depth = 1; depth < 4096; depth = depth < 20 ? depth + 1 : depth * 2) {
    struct buf text = BUF_INIT(65536);
    struct err err = ERR_INIT;
    struct doc *doc = NULL;
    for (size_t i = 0; i < depth; i++)
      buf_append_byte(&text, '[');
    for (size_t i = 0; i < depth; i++)
      buf_append_byte(&text, ']');
    int r = doc_parse("f", buf_span(&text), &err, &doc);
    assert_int_equal(r == 0, depth <= LIMITS_POLICY_DEPTH);
    assert_true(r == 0 || strstr(err.message, "nested"));
    doc_free(doc);
    buf_free(&text);
  }
}

/* Thousands of members: neither the search for duplicates nor anything else is quadratic enough to matter. */
static void test_many_members(void **state)
{
  struct buf text = BUF_INIT(4 * 1024 * 1024);
  struct err err = ERR_INIT;
  struct doc *doc = NULL;

  (void)state;
  buf_append_byte(&text, '{');
  for (int i = 0; i < 60000; i++)
    buf_printf(&text, "\"k%d\": %d,\n", i, i);
  buf_append_str(&text, "\"k59999\": 0}");
  assert_int_equal(doc_parse("f", buf_span(&text), &err, &doc), -EINVAL);
  assert_string_equal(err.message, "f:60001: \"k59999\" stands twice in the same object; remove one");
  buf_free(&text);
}

/* Texts made of JSON's own bytes never crash and never disagree with themselves. */
static void test_random_texts(void **state)
{
  static const char *const parts[] = { "{",     "}",     "[",       "]",    ",",    ":", "\"a\"",
                                       "\"b\"", "1",     "-0.5",    "true", "null", " ", "\n",
                                       "//x\n", "/*y*/", "\"\\n\"", "\"",   "\\",   "/", "*" };
  struct unit_random random = unit_seed("doc");
  size_t accepted = 0;

  (void)state;
  for (int i = 0; i < 100000; i++) {
    struct buf text = BUF_INIT(512);
    struct doc *doc = NULL;
    for (size_t count = 1 + unit_below(&random, 9); count > 0; count--)
      buf_append_str(&text, parts[unit_below(&random, MEM_COUNT(parts))]);
    if (doc_parse("f", buf_span(&text), NULL, &doc) == 0)
      accepted++;
    doc_free(doc);
    buf_free(&text);
  }
  assert_true(accepted > 500);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values_and_lines), cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
    cmocka_unit_test(test_nul_byte),         cmocka_unit_test(test_depth),    cmocka_unit_test(test_many_members),
    cmocka_unit_test(test_random_texts),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
