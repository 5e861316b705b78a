#include "base/base64.h"
#include "policy/inject_find.h"
#include "proxy/finder.h"
#include "proxy/inject_body.h"
#include "unit/inject_make.h"
#include "unit/unit.h"

#include <errno.h>

#define TEXT_MAX 4096
#define VALUE "Neal0+/=%0~\"v\\a"

static char name[] = "scrubbed";
static const struct policy_credential scrubbed = { .name = name, .scrub = POLICY_SCRUB_BODY };
static const struct policy_credential plain = { .name = name };

/* What comes of a body that comes in pieces of so many bytes, all but the first, which has first. */
static size_t scrub(const struct inject_secret *known, size_t count, struct span body, size_t first, size_t piece,
                    struct buf *result)
{
  buf_autofree struct buf held = BUF_INIT(TEXT_MAX);
  size_t masked = 0;
  size_t found = 0;

  for (size_t at = 0, len = first;; at += len, len = piece) {
    buf_autofree struct buf out = BUF_INIT(TEXT_MAX);
    struct span text = SPAN("");
    ssize_t n;

    buf_append(&held, span_sub(body, at, len));
    n = inject_body_scrub(known, count, buf_span(&held), at + len >= body.len, &masked, &out, &text);
    assert_true(n >= 0);
    found += (size_t)n;
    buf_append(result, text);
    buf_consume(&held, text.len);
    if (at + len >= body.len)
      break;
  }
  assert_int_equal(held.len, 0);
  assert_int_equal(buf_error(result), 0);
  return found;
}

/* The same, wherever it is cut. */
static void check_cuts(const struct inject_secret *known, size_t count, struct span body, const char *expected,
                       size_t expected_found)
{
  for (size_t cut = 1; cut <= body.len; cut++) {
    for (size_t piece = 1; piece < TEXT_MAX; piece += TEXT_MAX - 2) {
      buf_autofree struct buf result = BUF_INIT(TEXT_MAX);
      size_t found = scrub(known, count, body, cut, piece, &result);

      unit_assert_row(strcmp(result.data, expected) == 0, expected, result.data);
      unit_assert_row(found == expected_found, expected, "count");
    }
  }
}

static void check_value(const char *value, const char *body, const char *expected, size_t found)
{
  struct inject_secret secret = { &scrubbed, SPAN("placeholder"), span_of(value) };

  check_cuts(&secret, 1, span_of(body), expected, found);
}

static void test_forms(void **state)
{
  (void)state;
  check_value("token", "a token and tokentoken.", "a ***** and **********.", 3);
  check_value("token", "toke tok\\ento", "toke ******to", 1);
  check_value("a+b c", "a%2Bb+c a%2bb%20c a+b c %61%2B%62%20%63", "******* ********* ***** ***************", 4);
  check_value("a+bc", "a%252Bbc a%25252bbc a%2525252Bbc", "******** ********** a%2525252Bbc", 2);
  check_value("a\"b\\c", "{\"x\":\"a\\\"b\\\\c\"} a\"b\\c", "{\"x\":\"*******\"} *****", 2);
  check_value("a<b/c", "\"a\\u003cb\\/c\" a\\x3Cb/c", "\"***********\" ********", 2);
  check_value("tuxu", "t\\u0075x\\u0075 t\\x75\\x78u tu\\x\\u \\u0074\\u0075\\u0078\\u0075",
              "************** ********** ****** ************************", 4);
  check_value("%41%42", "%41%42 %2541%2542", "****** **********", 2);
}

/* base64 below by base64(1): of "token-of", "xtoken-ofy", "xytoken-ofz" and "token-of" with other alphabets. */
static void test_base64(void **state)
{
  (void)state;
  check_value("token-of", "dG9rZW4tb2Y=", "**********Y=", 1);
  check_value("token-of", "eHRva2VuLW9meQ==", "eH**********eQ==", 1);
  check_value("token-of", "eHl0b2tlbi1vZno=", "eHl**********no=", 1);
  check_value("\xff\xfe\xfb\xff\xff", "//77//8= __77__8= %2F%2f77\\/\\/8=", "******8= ******8= ************8=", 3);
  check_value("abc", "YWJj", "YWJj", 0);
}

/* Every occurrence is masked, also where two share bytes; a longer value wins over one that it begins with. */
static void test_several(void **state)
{
  const struct inject_secret known[] = {
    { &scrubbed, SPAN_INIT("p"), SPAN_INIT("abcab") },      { &scrubbed, SPAN_INIT("p"), SPAN_INIT("cabxyz") },
    { &scrubbed, SPAN_INIT("p"), SPAN_INIT("abcabcabc!") }, { &plain, SPAN_INIT("p"), SPAN_INIT("stays") },
    { &scrubbed, SPAN_INIT("p"), SPAN_INIT("") },
  };
  const struct inject_secret percent = { &scrubbed, SPAN_INIT("p"), SPAN_INIT("%25") };

  (void)state;
  check_cuts(known, MEM_COUNT(known), SPAN("-abcab-"), "-*****-", 1);
  check_cuts(known, MEM_COUNT(known), SPAN("-abcabxyz-"), "-********-", 1);
  check_cuts(known, MEM_COUNT(known), SPAN("-abcabcabc-"), "-********c-", 1);
  check_cuts(known, MEM_COUNT(known), SPAN("-abcabcabc!-stays-abcab"), "-**********-stays-*****", 2);
  check_cuts(known, MEM_COUNT(known), SPAN("abcabcab"), "********", 1);
  /* Of one value as well, where one of its forms begins with another. */
  check_cuts(&percent, 1, SPAN("-%2525-%25-"), "-*****-***-", 2);
}

/* The last of as many values as there may be is found, and one more is not passed over in silence. */
static void test_many(void **state)
{
  static struct inject_secret known[FINDER_PATTERNS_MAX + 1];
  static char values[FINDER_PATTERNS_MAX + 1][16];
  buf_autofree struct buf out = BUF_INIT(TEXT_MAX);
  size_t masked = 0;
  struct span text;

  (void)state;
  for (size_t i = 0; i <= FINDER_PATTERNS_MAX; i++) {
    snprintf(values[i], sizeof values[i], "~value%05zu~", i);
    known[i] = (struct inject_secret){ &scrubbed, SPAN("p"), span_of(values[i]) };
  }
  assert_int_equal(inject_body_scrub(known, FINDER_PATTERNS_MAX, span_of(values[FINDER_PATTERNS_MAX - 1]), true,
                                     &masked, &out, &text),
                   1);
  assert_true(span_equal(text, SPAN("************")));
  assert_int_equal(inject_body_scrub(known, FINDER_PATTERNS_MAX + 1, span_of(values[0]), true, &masked, &out, &text),
                   -ENOBUFS);
}

/* Nothing waits but what may begin a value: an event goes on when it comes. */
static void test_held(void **state)
{
  static const struct {
    const char *text;
    size_t held;
  } rows[] = { { "data: 1\n\n", 0 }, { "data: t\n\n", 0 }, { "data: t", 1 },   { "tokentoke", 4 },
               { "\\", 1 },          { "\\u", 2 },         { "\\u0074%6", 8 }, { "dG9rZW4t", 8 },
               { "dG9rZW4tb", 9 },   { "dG9rZW4tb2", 0 },  { "dG9rZW4tx", 0 }, { "token-o", 7 },
               { "token-of", 0 },    { "%2525252", 0 },    { "%2525", 5 },     { "%25257", 6 } };
  const struct inject_secret secret = { &scrubbed, SPAN("p"), SPAN("token-of") };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf out = BUF_INIT(TEXT_MAX);
    size_t masked = 0;
    struct span text;

    assert_true(inject_body_scrub(&secret, 1, span_of(rows[i].text), false, &masked, &out, &text) >= 0);
    unit_assert_row(strlen(rows[i].text) - text.len == rows[i].held, rows[i].text, "held");
  }
}

/* The search in heads (inject_find.h), which is another, finds nothing that is left. */
static void test_other_search(void **state)
{
  static const char pieces[][24] = { VALUE,
                                     "Neal0",
                                     "%2",
                                     "\\",
                                     "TmVhbDArLz0l",
                                     "+/=%0~\"v\\a",
                                     "NlYWwwKy89JTB+InZcY",
                                     "eA",
                                     "=",
                                     "*",
                                     "Neal0%2B%2F%3D%25" };
  const struct inject_secret secret = { &scrubbed, SPAN("p"), SPAN(VALUE) };
  struct inject_match match;
  unsigned seed = 1;
  size_t found = 0;

  (void)state;
  for (size_t round = 0; round < 4000; round++) {
    buf_autofree struct buf body = BUF_INIT(TEXT_MAX);
    buf_autofree struct buf result = BUF_INIT(TEXT_MAX);
    buf_autofree struct buf again = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < 8; i++) {
      seed = seed * 1103515245 + 12345;
      if (seed >> 16 & 1)
        buf_append_str(&body, pieces[(seed >> 17) % MEM_COUNT(pieces)]);
      else
        base64_append(SPAN("y" VALUE "z"), &body);
    }
    found += scrub(&secret, 1, buf_span(&body), body.len, 1, &result);
    assert_false(inject_find(buf_span(&result), 0, secret.value, &match));
    assert_int_equal(result.len, body.len);
    for (size_t i = 0; i < body.len; i++)
      assert_true(result.data[i] == '*' || result.data[i] == body.data[i]);
    (void)scrub(&secret, 1, buf_span(&body), 1 + round % 7, 1 + round % 5, &again);
    assert_string_equal(result.data, again.data);
  }
  assert_true(found > 4000);
}

static void test_find(void **state)
{
  static const char *const bodies[] = { "x=ghp_TTTTplaceholder", "x=%67hp_TTTTplaceholder",
                                        "Z2hwX1RUVFRwbGFjZWhvbGRlcg==" };
  size_t done;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(bodies); i++)
    assert_int_equal(inject_body_find(make_secrets, MAKE_COUNT, 3, span_of(bodies[i]), false, &done), 1);
  assert_int_equal(
      inject_body_find(make_secrets, MAKE_COUNT, 3, SPAN("AIzaQQQQplaceholderghp_TTTTplaceholde"), false, &done), 2);
  assert_int_equal(done, strlen("AIzaQQQQplaceholder"));
  assert_int_equal(inject_body_find(make_secrets, MAKE_COUNT, 2, SPAN("ghp_TTTTplaceholder"), false, &done), 0);
}

static void test_swap(void **state)
{
  static const struct {
    enum inject_writing writing;
    const char *body;
    const char *expected;
  } rows[] = {
    { INJECT_WRITE_RAW, "a ghp_TTTTplaceholder, ghp_TTTTplaceholder", "a " VALUE ", " VALUE },
    { INJECT_WRITE_RAW, "%67hp_TTTTplaceholder", "%67hp_TTTTplaceholder" },
    { INJECT_WRITE_RAW, "Z2hwX1RUVFRwbGFjZWhvbGRlcg==", "Z2hwX1RUVFRwbGFjZWhvbGRlcg==" },
    { INJECT_WRITE_FORM, "t=ghp_TTTTplaceholder&x=1", "t=Neal0%2B%2F%3D%250~%22v%5Ca&x=1" },
    { INJECT_WRITE_FORM, "t=%67hp%5fTTTTplaceholder", "t=Neal0%2B%2F%3D%250~%22v%5Ca" },
    { INJECT_WRITE_JSON, "{\"t\": \"ghp_TTTTplaceholder\"}", "{\"t\": \"Neal0+/=%0~\\\"v\\\\a\"}" },
    { INJECT_WRITE_JSON, "{\"t\": \"AIzaQQQQplaceholder\"}", "{\"t\": \"AIzaQQQQplaceholder\"}" },
    { INJECT_WRITE_RAW, "", "" },
  };
  const struct inject_secret secret = { &scrubbed, SPAN("ghp_TTTTplaceholder"), SPAN(VALUE) };
  const struct inject_secret none = { &scrubbed, SPAN("ghp_TTTTplaceholder"), SPAN("") };
  const struct inject_secret bad = { &scrubbed, SPAN("ghp_TTTTplaceholder"), SPAN("a\nb") };
  struct buf small = BUF_INIT(20);
  struct err err = ERR_INIT;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autowipe struct buf out = BUF_INIT(TEXT_MAX);

    assert_int_equal(inject_body_swap(&secret, 1, 1, span_of(rows[i].body), rows[i].writing, &err, &out), 0);
    unit_assert_row(span_equal(buf_span(&out), span_of(rows[i].expected)), rows[i].expected, out.data);
  }
  assert_int_equal(inject_body_swap(&none, 1, 1, SPAN("x"), INJECT_WRITE_RAW, &err, &small), -EINVAL);
  assert_int_equal(inject_body_swap(&bad, 1, 1, SPAN("x"), INJECT_WRITE_RAW, &err, &small), -EINVAL);
  assert_int_equal(
      inject_body_swap(&secret, 1, 1, SPAN("ghp_TTTTplaceholder ghp_TTTTplaceholder"), INJECT_WRITE_RAW, &err, &small),
      -ENOBUFS);
  buf_wipe(&small);
}

static void test_what_swaps(void **state)
{
  static const struct policy_credential credential = { .name = name, .place = POLICY_PLACE_BODY };
  static const struct {
    const char *fields;
    inject_set swaps;
    enum inject_writing writing;
  } rows[] = {
    { "POST / HTTP/1.1\r\n\r\n", 1, INJECT_WRITE_RAW },
    { "POST / HTTP/1.1\r\nContent-Type: application/JSON; charset=utf-8\r\n\r\n", 1, INJECT_WRITE_JSON },
    { "POST / HTTP/1.1\r\nContent-Type: application/problem+json\r\n\r\n", 1, INJECT_WRITE_JSON },
    { "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n", 1, INJECT_WRITE_FORM },
    { "POST / HTTP/1.1\r\nContent-Encoding: identity\r\n\r\n", 1, INJECT_WRITE_RAW },
    { "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n", 0, INJECT_WRITE_RAW },
    { "POST / HTTP/1.1\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n\r\n", 0, INJECT_WRITE_RAW },
    { "TRACE / HTTP/1.1\r\n\r\n", 0, INJECT_WRITE_RAW },
    { "POST / HTTP/1.1\r\nAuthorization: AWS4-HMAC-SHA256 x\r\n\r\n", 0, INJECT_WRITE_RAW },
  };
  const struct inject_secret secrets[] = { { &credential, SPAN_INIT("p"), SPAN_INIT("v") },
                                           { &scrubbed, SPAN_INIT("p"), SPAN_INIT("v") } };
  struct http_head head;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    assert_int_equal(http_head_parse_request(span_of(rows[i].fields), NULL, &head), 0);
    unit_assert_row(inject_body_swaps(secrets, 2, 3, &head) == rows[i].swaps, rows[i].fields, "swaps");
    unit_assert_row(inject_body_writing(&head) == rows[i].writing, rows[i].fields, "writing");
    assert_int_equal(inject_body_swaps(secrets, 2, 2, &head), 0);
  }
  assert_int_equal(inject_body_scrubs(secrets, 2, 3), 2);
  assert_int_equal(inject_body_scrubs(secrets, 2, 1), 0);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms), cmocka_unit_test(test_base64),       cmocka_unit_test(test_several),
    cmocka_unit_test(test_many),  cmocka_unit_test(test_held),         cmocka_unit_test(test_find),
    cmocka_unit_test(test_swap),  cmocka_unit_test(test_other_search), cmocka_unit_test(test_what_swaps),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
