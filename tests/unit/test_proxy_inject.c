#include "base/base64.h"
#include "policy/inject_find.h"
#include "unit/inject_make.h"
#include "unit/unit.h"

#define ONLY(which) ((inject_set)1 << (which))
#define EVERY (((inject_set)1 << MAKE_COUNT) - 1)
#define REPLACED (ONLY(MAKE_TOKEN) | ONLY(MAKE_QUERY) | ONLY(MAKE_OWN))

static char text_of_request[LIMITS_HTTP_HEAD_BYTES + 1];

/* "GET /x" and fields, each in a line of its own, make a whole request. */
static void parse_request(const char *line, const char *fields, struct http_head *head)
{
  struct err err = ERR_INIT;
  int len = snprintf(text_of_request, sizeof text_of_request, "%s HTTP/1.1\r\n%s\r\n", line, fields);

  assert_true(len > 0 && (size_t)len < sizeof text_of_request);
  if (http_head_parse_request(span_of(text_of_request), &err, head) < 0)
    fail_msg("%s: %s", line, err.message);
}

struct row {
  const char *line;
  const char *fields;
  inject_set bound;
  const char *expected_line; /* NULL: as it was */
  const char *expected_fields;
};

static void check_rows(const struct row *rows, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    buf_autofree struct buf text = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    buf_autofree struct buf expected = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    struct err err = ERR_INIT;
    inject_set wanted = 0;
    struct http_head head;
    size_t index;

    parse_request(rows[i].line, rows[i].fields, &head);
    unit_assert_row(make_look(rows[i].bound, &head, &wanted, &index) != INJECT_MISUSE, rows[i].fields, "refused");
    unit_assert_row((wanted & ~rows[i].bound) == 0, rows[i].fields, "wants what is not bound");
    unit_assert_row(inject_fields(make_secrets, MAKE_COUNT, wanted, NULL, &head, &err, &out) == 0, rows[i].fields,
                    err.message);
    make_print_request(&head, &text);
    buf_printf(&expected, "%s HTTP/1.1\r\n%s\r\n", rows[i].expected_line ? rows[i].expected_line : rows[i].line,
               rows[i].expected_fields);
    unit_assert_row(strcmp(text.data, expected.data) == 0, expected.data, text.data);
  }
}

/* F72, F73: base64 below by base64(1). */
static void test_swapped(void **state)
{
  static const struct row rows[] = {
    { "GET /", "Accept: a\r\n", REPLACED, NULL, "Accept: a\r\n" },
    { "GET /", "Authorization: Bearer ghp_TTTTplaceholder\r\n", REPLACED, NULL,
      "Authorization: Bearer Neal0+/=%0~value\r\n" },
    { "GET /", "A: b\r\nAUTHORIZATION: token ghp_TTTTplaceholder\r\nC: d\r\n", REPLACED, NULL,
      "A: b\r\nAUTHORIZATION: token Neal0+/=%0~value\r\nC: d\r\n" },
    { "GET /", "Authorization: ghp_TTTTplaceholder\r\n", REPLACED, NULL, "Authorization: Neal0+/=%0~value\r\n" },
    { "GET /", "X-Api-Key: ghp_TTTTplaceholder\r\n", REPLACED, NULL, "X-Api-Key: Neal0+/=%0~value\r\n" },
    { "GET /", "Private-Token: ghp_TTTTplaceholder\r\n", REPLACED, NULL, "Private-Token: Neal0+/=%0~value\r\n" },
    { "GET /", "x-own: <own-WWWWplaceholder>\r\n", REPLACED, NULL,
      "x-own: <\xc3\xa9"
      "clair2>\r\n" },
    /* x-access-token:ghp_TTTTplaceholder */
    { "GET /", "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hwX1RUVFRwbGFjZWhvbGRlcg==\r\n", REPLACED, NULL,
      "Authorization: Basic eC1hY2Nlc3MtdG9rZW46TmVhbDArLz0lMH52YWx1ZQ==\r\n" },
    { "GET /", "Authorization: basic  eC1hY2Nlc3MtdG9rZW46Z2hwX1RUVFRwbGFjZWhvbGRlcg\r\n", REPLACED, NULL,
      "Authorization: basic  eC1hY2Nlc3MtdG9rZW46TmVhbDArLz0lMH52YWx1ZQ\r\n" },
    /* ghp_TTTTplaceholder:x-oauth-basic */
    { "GET /", "Authorization: Basic Z2hwX1RUVFRwbGFjZWhvbGRlcjp4LW9hdXRoLWJhc2lj\r\n", REPLACED, NULL,
      "Authorization: Basic TmVhbDArLz0lMH52YWx1ZTp4LW9hdXRoLWJhc2lj\r\n" },
    /* What a variable holds may be the whole token. */
    { "GET /", "Authorization: Basic ghp_TTTTplaceholder\r\n", REPLACED, NULL,
      "Authorization: Basic Neal0+/=%0~value\r\n" },
    /* Two of one, two of different ones, in one field and in two. */
    { "GET /", "Authorization: ghp_TTTTplaceholder,ghp_TTTTplaceholder\r\nX-Own: own-WWWWplaceholder\r\n", REPLACED,
      NULL,
      "Authorization: Neal0+/=%0~value,Neal0+/=%0~value\r\nX-Own: \xc3\xa9"
      "clair2\r\n" },
    { "GET /", "Authorization: ghp_TTTTplaceholder own-WWWWplaceholder\r\n", REPLACED, NULL,
      "Authorization: Neal0+/=%0~value \xc3\xa9"
      "clair2\r\n" },
    { "GET /?a&key=AIzaQQQQplaceholder&b=c", "A: b\r\n", REPLACED, "GET /?a&key=genuine1%26%3D%3F1%20secret&b=c",
      "A: b\r\n" },
    { "GET /?k%65y=%41Iza%51QQQplaceholder", "A: b\r\n", REPLACED, "GET /?k%65y=genuine1%26%3D%3F1%20secret",
      "A: b\r\n" },
    { "GET /?key=<AIzaQQQQplaceholder>&key=AIzaQQQQplaceholder", "X-Api-Key: AIzaQQQQplaceholder\r\n", REPLACED,
      "GET /?key=<genuine1%26%3D%3F1%20secret>&key=genuine1%26%3D%3F1%20secret", "X-Api-Key: genuine1&=?1 secret\r\n" },
    /* Left alone where the credential is bound. */
    { "GET /", "Cookie: a=ghp_TTTTplaceholder\r\nReferer: /?ghp_TTTTplaceholder\r\n", REPLACED, NULL,
      "Cookie: a=ghp_TTTTplaceholder\r\nReferer: /?ghp_TTTTplaceholder\r\n" },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

/* F75 */
static void test_attached(void **state)
{
  const inject_set bearer = ONLY(MAKE_BEARER);
  const inject_set basic = ONLY(MAKE_BASIC);
  const inject_set key = ONLY(MAKE_KEY);
  const inject_set parameter = ONLY(MAKE_PARAMETER);
  const struct row rows[] = {
    { "GET /", "A: b\r\n", bearer, NULL, "A: b\r\nAuthorization: Bearer VALUE-THREE-3\r\n" },
    { "GET /", "authorization: x\r\nA: b\r\nAuthorization: y\r\n", bearer, NULL,
      "authorization: Bearer VALUE-THREE-3\r\nA: b\r\n" },
    { "GET /", "Authorization: Bearer brr.BBBBplaceholder\r\n", bearer, NULL,
      "Authorization: Bearer VALUE-THREE-3\r\n" },
    /* user:pass:four:4 */
    { "GET /", "A: b\r\n", basic, NULL, "A: b\r\nAuthorization: Basic dXNlcjpwYXNzOmZvdXI6NA==\r\n" },
    { "GET /", "Authorization: Bearer own\r\n", basic, NULL, "Authorization: Bearer own\r\n" },
    { "GET /", "Authorization: Bearer bsc~AAAAplaceholder\r\n", basic, NULL, "Authorization: Bearer pass:four:4\r\n" },
    { "GET /", "A: b\r\n", key, NULL, "A: b\r\nX-Api-Key: 5555-truth-5\r\n" },
    { "GET /", "x-api-key:\r\n", key, NULL, "x-api-key: \r\n" },
    { "GET /", "Authorization: Bearer own\r\n", key, NULL, "Authorization: Bearer own\r\n" },
    { "GET /", "Authorization: Bearer sk-ant-KKKKplacehold\r\n", key, NULL, "Authorization: Bearer 5555-truth-5\r\n" },
    { "GET /", "A: b\r\n", key | basic, NULL,
      "A: b\r\nAuthorization: Basic dXNlcjpwYXNzOmZvdXI6NA==\r\nX-Api-Key: 5555-truth-5\r\n" },
    { "GET /x", "A: b\r\n", parameter, "GET /x?sign=six%206%20%22six%22", "A: b\r\n" },
    { "GET /x?", "A: b\r\n", parameter, "GET /x?&sign=six%206%20%22six%22", "A: b\r\n" },
    { "GET /x?a=b&sign&c&SIGN=2", "A: b\r\n", parameter, "GET /x?a=b&sign=six%206%20%22six%22&c", "A: b\r\n" },
    { "GET /x?sign=sgn_PPPPplaceholder", "A: b\r\n", parameter, "GET /x?sign=six%206%20%22six%22", "A: b\r\n" },
    { "OPTIONS *", "A: b\r\n", parameter, "OPTIONS *", "A: b\r\n" },
    { "TRACE /x", "A: b\r\n", bearer | key | parameter, "TRACE /x", "A: b\r\n" },
  };
  static const char *const signed_urls[] = {
    "GET /?X-Amz-Algorithm=a&X-Amz-Signature=1",
    "GET /?x%2damz-signature=1",
    "GET /?X-Goog-Signature=1",
    "GET /?sv=1&se=2&sp=r&sig=3",
    "GET /?Signature=1&AWSAccessKeyId=2",
    "GET /?Signature=1&GoogleAccessId=2&Expires=3",
    "GET /?Key-Pair-Id=2&Signature=1",
  };
  static const char *const unsigned_urls[] = { "GET /?sig=3&sv=1", "GET /?signature=1", "GET /x-amz-signature=1" };
  const inject_set all = bearer | basic | key | parameter;

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
  for (size_t i = 0; i < MEM_COUNT(signed_urls); i++) {
    struct row row = { signed_urls[i], "A: b\r\n", all, NULL, "A: b\r\n" };
    struct row swapped = { signed_urls[i], "Authorization: brr.BBBBplaceholder\r\n", all, NULL,
                           "Authorization: VALUE-THREE-3\r\n" };

    check_rows(&row, 1);
    check_rows(&swapped, 1);
  }
  for (size_t i = 0; i < MEM_COUNT(unsigned_urls); i++) {
    struct row row = { unsigned_urls[i], "A: b\r\n", bearer, NULL, "A: b\r\nAuthorization: Bearer VALUE-THREE-3\r\n" };

    check_rows(&row, 1);
  }
}

static void test_misuse(void **state)
{
  static const struct {
    const char *line;
    const char *fields;
    bool bound; /* to be refused even where it is */
  } rows[] = {
    { "GET /", "Authorization: Bearer ghp_TTTTplaceholder\r\n", false },
    { "GET /", "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hwX1RUVFRwbGFjZWhvbGRlcg==\r\n", false },
    { "GET /", "X-Api-Key: ghp_TTTTplaceholder\r\n", false },
    { "GET /", "Cookie: a=ghp_TTTTplaceholder\r\n", false },
    { "GET /", "Referer: https://a.test/?x=ghp%5fTTTTplaceholder\r\n", false },
    { "GET /", "Accept: ghp_TTTTplaceholder\r\n", true },
    { "GET /", "Host: ghp_TTTTplaceholder\r\n", true },
    { "GET /", "Proxy-Authorization: Bearer ghp_TTTTplaceholder\r\n", true },
    { "GET /", "X-Own: ghp_TTTTplaceholder\r\n", true }, /* another's place */
    { "GET /", "Authorization: Bearer %67hp_TTTTplaceholder\r\n", true },
    { "GET /", "Accept: eC1hY2Nlc3MtdG9rZW46Z2hwX1RUVFRwbGFjZWhvbGRlcg==\r\n", true },
    { "GET /ghp_TTTTplaceholder", "A: b\r\n", true },
    { "GET /ghp%5FTTTTplaceholder/x", "A: b\r\n", true },
    { "GET /gh%70%5fTTTTplaceholde%72", "A: b\r\n", true },
    { "GET /gh%2570%255fTTTTplaceholder", "A: b\r\n", true },
    { "GET /?q=ghp_TTTTplaceholder", "A: b\r\n", true },
    { "GET /?q=%67%68%70%5F%54TTTplaceholder", "A: b\r\n", true },
    { "GET /?ghp_TTTTplaceholder", "A: b\r\n", true },
    { "GET /?q=Z2hwX1RUVFRwbGFjZWhvbGRlcg", "A: b\r\n", true },
    { "GET https://ghp_TTTTplaceholder.test/", "A: b\r\n", true },
    { "TRACE /", "Authorization: Bearer ghp_TTTTplaceholder\r\n", true },
    { "track /", "X-Api-Key: ghp_TTTTplaceholder\r\n", true },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct http_head head;
    inject_set wanted;
    size_t index = 99;
    inject_set bound = EVERY & ~ONLY(MAKE_TOKEN);

    parse_request(rows[i].line, rows[i].fields, &head);
    unit_assert_row(make_look(bound, &head, &wanted, &index) == INJECT_MISUSE && index == 0, rows[i].line,
                    rows[i].fields);
    unit_assert_row((make_look(EVERY, &head, &wanted, &index) == INJECT_MISUSE) == rows[i].bound, rows[i].line,
                    rows[i].fields);
  }
}

static void fill(struct unit_random *random, char *bytes, size_t len, bool any)
{
  static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

  for (size_t i = 0; i < len; i++)
    bytes[i] = any ? (char)unit_next(random) : unreserved[unit_below(random, sizeof unreserved - 1)];
}

/* Writes bytes in one of the forms, at any place in any company. */
static void append_form(struct unit_random *random, struct span bytes, struct buf *out)
{
  static const char *const digits[] = { "0123456789abcdef", "0123456789ABCDEF" };
  buf_autofree struct buf plain = BUF_INIT(4096);
  char beside[5];
  size_t form = unit_below(random, 3);
  size_t depth = 1 + unit_below(random, 3);

  if (form == 0) {
    buf_append(out, bytes);
  } else if (form == 1) {
    for (size_t i = 0; i < bytes.len; i++) {
      unsigned char byte = (unsigned char)bytes.ptr[i];

      if (unit_below(random, 2) || byte == '%') {
        buf_append_str(out, depth == 1 ? "%" : depth == 2 ? "%25" : "%2525");
        buf_append_byte(out, digits[unit_below(random, 2)][byte >> 4]);
        buf_append_byte(out, digits[unit_below(random, 2)][byte & 15]);
      } else {
        buf_append_byte(out, (char)byte);
      }
    }
  } else {
    fill(random, beside, sizeof beside, true);
    buf_append(&plain, (struct span){ beside, unit_below(random, sizeof beside) });
    buf_append(&plain, bytes);
    buf_append(&plain, (struct span){ beside, unit_below(random, sizeof beside) });
    base64_append(buf_span(&plain), out);
    for (size_t i = 0, url = unit_below(random, 2); i < out->len && url; i++)
      out->data[i] = out->data[i] == '+' ? '-' : out->data[i] == '/' ? '_' : out->data[i];
  }
}

/* Whatever the form and the company, it is found. */
static void test_found_in_every_form(void **state)
{
  struct unit_random random = unit_seed(__func__);

  (void)state;
  for (int round = 0; round < 20000; round++) {
    buf_autofree struct buf text = BUF_INIT(8192);
    struct inject_match match;
    char bytes[40];
    char beside[9];
    struct span wanted = { bytes, 8 + unit_below(&random, sizeof bytes - 8) };
    size_t before = unit_below(&random, sizeof beside);

    fill(&random, bytes, sizeof bytes, round % 2);
    fill(&random, beside, sizeof beside, false);
    memset(beside, ' ', before);
    append_form(&random, wanted, &text);
    buf_append(&text, (struct span){ beside, before });
    if (!inject_find(buf_span(&text), 0, wanted, &match))
      fail_msg("round %d: not found in %s", round, text.data);
    assert_true(match.at + match.len <= text.len);
    assert_true(match.form == INJECT_FORM_BASE64 || match.at == 0);
  }
}

static void test_values_that_cannot_be_sent(void **state)
{
  static const struct {
    struct span value;
    int code;
    const char *cause;
  } rows[] = {
    { SPAN_INIT(""), EINVAL, "no value" },
    { SPAN_INIT("SECRET\r\nX: y"), EINVAL, "line end" },
    { SPAN_INIT("SECRET\n"), EINVAL, "line end" },
    { SPAN_INIT("SECRET\0"), EINVAL, "line end" },
    { SPAN_INIT("SECRET\x7f"), EINVAL, "line end" },
    { SPAN_INIT(" SECRET"), EINVAL, "white space" },
    { SPAN_INIT("SECRET\t"), EINVAL, "white space" },
  };

  (void)state;
  for (size_t which = 0; which < MAKE_COUNT; which++) {
    for (size_t i = 0; i < MEM_COUNT(rows); i++) {
      buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
      struct inject_secret secrets[MAKE_COUNT];
      struct err err = ERR_INIT;
      struct http_head head;

      memcpy(secrets, make_secrets, sizeof secrets);
      secrets[which].value = rows[i].value;
      parse_request("GET /", "A: b\r\n", &head);
      assert_int_equal(inject_fields(secrets, MAKE_COUNT, EVERY, NULL, &head, &err, &out), -rows[i].code);
      unit_assert_row(strstr(err.message, rows[i].cause) && strstr(err.message, make_names[which]), rows[i].cause,
                      err.message);
      assert_null(strstr(err.message, "SECRET"));
      assert_int_equal(head.field_count, 1);
    }
  }
}

static void test_ceilings(void **state)
{
  static char big[LIMITS_HTTP_HEAD_BYTES];
  static char fields[LIMITS_HTTP_HEAD_BYTES];
  struct http_head head;
  struct err err = ERR_INIT;
  size_t len = 0;

  (void)state;
  /* The largest head that fits, and one byte more. */
  for (int more = 0; more < 2; more++) {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    struct inject_secret secrets[MAKE_COUNT];
    size_t room = LIMITS_HTTP_HEAD_BYTES - strlen("GET / HTTP/1.1\r\nAuthorization: \r\n\r\n") + (size_t)more;

    memset(big, 'v', sizeof big);
    memcpy(secrets, make_secrets, sizeof secrets);
    secrets[0].value = (struct span){ big, room };
    parse_request("GET /", "Authorization: ghp_TTTTplaceholder\r\n", &head);
    assert_int_equal(inject_fields(secrets, MAKE_COUNT, ONLY(0), NULL, &head, &err, &out), more ? -ENOBUFS : 0);
    assert_int_equal(head.fields[0].value.len, more ? strlen("ghp_TTTTplaceholder") : room);
  }
  for (int i = 0; i < LIMITS_HTTP_FIELDS; i++)
    len += (size_t)snprintf(fields + len, sizeof fields - len, "A: b\r\n");
  parse_request("GET /", fields, &head);
  {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);

    assert_int_equal(inject_fields(make_secrets, MAKE_COUNT, ONLY(MAKE_BEARER), NULL, &head, &err, &out), -ENOBUFS);
    assert_non_null(strstr(err.message, "bearer"));
    assert_int_equal(head.field_count, LIMITS_HTTP_FIELDS);
  }
}

static void test_protected_header(void **state)
{
  static char name[] = "host";
  static char host[] = "Host";
  struct policy_credential credential = {
    .name = name, .inject = POLICY_INJECT_ATTACH, .place = POLICY_PLACE_HEADER, .place_name = host
  };
  struct inject_secret secret = { &credential, SPAN_INIT("placeholder"), SPAN_INIT("value") };
  buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct err err = ERR_INIT;
  struct http_head head;

  (void)state;
  parse_request("GET /", "Host: a\r\n", &head);
  assert_int_equal(inject_fields(&secret, 1, 1, NULL, &head, &err, &out), -EINVAL);
  assert_true(span_equal_str(head.fields[0].value, "a"));
}

static void check_scrubbed(const char *text, const char *expected, size_t count)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  buf_autofree struct buf printed = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct http_head head;
  size_t found;

  assert_int_equal(http_head_parse_response(span_of(text), NULL, &head), 0);
  found = inject_scrub(make_secrets, MAKE_COUNT, &head, &out);
  buf_append(&printed, head.phrase);
  buf_append_str(&printed, "\n");
  for (size_t i = 0; i < head.field_count; i++) {
    buf_append(&printed, head.fields[i].name);
    buf_append_str(&printed, ": ");
    buf_append(&printed, head.fields[i].value);
    buf_append_str(&printed, "\n");
  }
  unit_assert_row(strcmp(printed.data, expected) == 0, text, printed.data);
  assert_int_equal(found, count);
}

/* F70 */
static void test_scrub(void **state)
{
  (void)state;
  check_scrubbed("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "OK\nA: b\n", 0);
  check_scrubbed("HTTP/1.1 200 VALUE-THREE-3!\r\nA: b\r\n\r\n", "brr.BBBBplaceholder!\nA: b\n", 1);
  check_scrubbed(
      "HTTP/1.1 200 OK\r\nSet-Cookie: t=Neal0+/=%0~value; Path=/\r\nX: VALUE-THREE-3Neal0+/=%0~value\r\n\r\n",
      "OK\nSet-Cookie: t=ghp_TTTTplaceholder; Path=/\nX: brr.BBBBplaceholderghp_TTTTplaceholder\n", 3);
  check_scrubbed("HTTP/1.1 302 OK\r\nLocation: /?t=Neal0%2B%2f%3D%250~value&u=%4eeal0%2B%2f%3D%25%30~value\r\n\r\n",
                 "OK\nLocation: /?t=ghp_TTTTplaceholder&u=ghp_TTTTplaceholder\n", 2);
  check_scrubbed("HTTP/1.1 302 OK\r\nLocation: /?r=%2F%3Ft%3DNeal0%252B%252F%253D%25250~value\r\n\r\n",
                 "OK\nLocation: /?r=%2F%3Ft%3Dghp_TTTTplaceholder\n", 1);
  check_scrubbed("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"six 6 \\\"six\\\"\", q=six+6+%22six%22\r\n\r\n",
                 "No\nWWW-Authenticate: Basic realm=\"sgn_PPPPplaceholder\", q=sgn_PPPPplaceholder\n", 2);
  /* x-access-token:Neal0+/=%0~value */
  check_scrubbed("HTTP/1.1 200 OK\r\nX: Basic eC1hY2Nlc3MtdG9rZW46TmVhbDArLz0lMH52YWx1ZQ==\r\n\r\n",
                 "OK\nX: Basic eC1hY2Nlc3MtdG9rZW46ghp_TTTTplaceholder==\n", 1);
  check_scrubbed("HTTP/1.1 200 OK\r\nX-VALUE-THREE-3: a\r\nx-value-three-3-b: a\r\nA: b\r\n\r\n", "OK\nA: b\n", 2);
}

static void test_scrub_leaves_framing(void **state)
{
  struct inject_secret secret = { &make_credentials[0], SPAN_INIT("placeholder"), SPAN_INIT("1234") };
  buf_autofree struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct http_head head;

  (void)state;
  assert_int_equal(
      http_head_parse_response(SPAN("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: 1234\r\n\r\n"), NULL, &head), 0);
  assert_int_equal(inject_scrub(&secret, 1, &head, &out), 1);
  assert_true(span_equal_str(head.fields[0].value, "1234"));
  assert_true(span_equal_str(head.fields[1].value, "placeholder"));
}

/* More of a value than there is room for placeholders: nothing of it gets through. */
static void test_scrub_without_room(void **state)
{
  struct inject_secret secret = { &make_credentials[0], SPAN_INIT("a-long-placeholder"), SPAN_INIT("v") };
  buf_autofree struct buf out = BUF_INIT(64);
  struct http_head head;

  (void)state;
  assert_int_equal(http_head_parse_response(SPAN("HTTP/1.1 200 v\r\nA: vv\r\nB: vvvv\r\nC: d\r\n\r\n"), NULL, &head),
                   0);
  assert_int_equal(inject_scrub(&secret, 1, &head, &out), 7);
  assert_int_equal(head.field_count, 2);
  assert_true(span_equal_str(head.phrase, "a-long-placeholder"));
  assert_true(span_equal_str(head.fields[0].value, "a-long-placeholdera-long-placeholder"));
  assert_true(span_equal_str(head.fields[1].value, "d"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_swapped),
    cmocka_unit_test(test_attached),
    cmocka_unit_test(test_misuse),
    cmocka_unit_test(test_found_in_every_form),
    cmocka_unit_test(test_values_that_cannot_be_sent),
    cmocka_unit_test(test_ceilings),
    cmocka_unit_test(test_protected_header),
    cmocka_unit_test(test_scrub),
    cmocka_unit_test(test_scrub_leaves_framing),
    cmocka_unit_test(test_scrub_without_room),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
