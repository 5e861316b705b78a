#include "base/buf.h"
#include "proxy/http_head.h"
#include "unit/unit.h"

static int scan_whole(struct span text, size_t *ret_len)
{
  struct http_scan scan = { 0 };

  return http_head_scan(&scan, text, ret_len);
}

/* The same text in pieces of every size must give the same answer, and never later than its last byte. */
static void check_scan(const char *text, size_t size, int expected, size_t expected_len)
{
  for (size_t piece = 1; piece <= size; piece++) {
    struct http_scan scan = { 0 };
    size_t len = 0;
    int r = 0;

    for (size_t seen = piece; r == 0; seen += piece) {
      r = http_head_scan(&scan, (struct span){ text, seen < size ? seen : size }, &len);
      if (seen >= size)
        break;
    }
    assert_int_equal(r, expected);
    if (r == 1)
      assert_int_equal(len, expected_len);
  }
}

static void test_scan(void **state)
{
  static const struct {
    struct span text;
    int result;
    size_t len;
  } rows[] = {
    { SPAN_INIT("GET / HTTP/1.1\r\n\r\n"), 1, 18 },
    { SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n\r\nrest"), 1, 24 },
    { SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n\r"), 0, 0 },
    { SPAN_INIT("GET / HTTP/1.1\r"), 0, 0 },
    { SPAN_INIT("G"), 0, 0 },
    { SPAN_INIT("GET / HTTP/1.1\n\n"), -EBADMSG, 0 }, /* F56: bare LF */
    { SPAN_INIT("GET / HTTP/1.1\r\nA: b\n\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n\n"), -EBADMSG, 0 },
    { SPAN_INIT("GET / HTTP/1.1\rA: b\r\n\r\n"), -EBADMSG, 0 }, /* F56: bare CR */
    { SPAN_INIT("GET / HTTP/1.1\r\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("GET /\r "), -EBADMSG, 0 }, /* without waiting for the end of the line */
    { SPAN_INIT("GET /\0"), -EBADMSG, 0 }, /* F53: NUL */
    { SPAN_INIT("GET / HTTP/1.1\r\nA: \0b\r\n\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("\r\nGET / HTTP/1.1\r\n\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("\nGET"), -EBADMSG, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    check_scan(rows[i].text.ptr, rows[i].text.len, rows[i].result, rows[i].len);
}

static void test_request(void **state)
{
  struct span text =
      SPAN("POST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nX-Empty:\r\nx-b: \t c d\t \r\nX-B:e\r\n\r\n");
  struct http_head head;
  size_t count;

  (void)state;
  assert_int_equal(http_head_parse_request(text, NULL, &head), 0);
  assert_true(span_equal_str(head.method, "POST"));
  assert_true(span_equal_str(head.target, "http://a.test/x?y"));
  assert_int_equal(head.minor, 1);
  assert_int_equal(head.field_count, 4);
  assert_int_equal(http_head_find(&head, "x-empty", &count)->value.len, 0);
  assert_int_equal(count, 1);
  assert_true(span_equal_str(http_head_find(&head, "X-b", &count)->value, "c d"));
  assert_int_equal(count, 2);
  assert_null(http_head_find(&head, "none", &count));
  assert_int_equal(count, 0);
}

static void test_request_refused(void **state)
{
  static const struct span rows[] = {
    SPAN_INIT(""),
    SPAN_INIT("\r\n"),
    SPAN_INIT("GET\r\n\r\n"),
    SPAN_INIT("GET /\r\n\r\n"),
    SPAN_INIT("GET / \r\n\r\n"),
    SPAN_INIT(" GET / HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET  / HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET /  HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET\t/ HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET /\tx HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET /\x7f HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1 \r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.10\r\n\r\n"),
    SPAN_INIT("GET / HTTP/2.0\r\n\r\n"),
    SPAN_INIT("GET / HTTP/0.9\r\n\r\n"),
    SPAN_INIT("GET / HTTP/+1.1\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1x\r\n\r\n"),
    SPAN_INIT("GET / FTP/1.1\r\n\r\n"),
    SPAN_INIT("G@T / HTTP/1.1\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA : b\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\n: b\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\n A: b\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA: b\x01\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA\x80: b\r\n\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n"),
    SPAN_INIT("GET / HTTP/1.1\r\nA: b\r\n\r\nx"),
  };
  struct http_head head;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;

    if (http_head_parse_request(rows[i], &err, &head) != -EBADMSG || !err.message[0])
      fail_msg("accepted: %.*s", (int)rows[i].len, rows[i].ptr);
  }
}

static void test_field_ceiling(void **state)
{
  struct http_head head;

  (void)state;
  for (int count = LIMITS_HTTP_FIELDS; count <= LIMITS_HTTP_FIELDS + 1; count++) {
    buf_autofree struct buf text = BUF_INIT(65536);

    buf_append_str(&text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < count; i++)
      buf_append_str(&text, "a:\r\n");
    buf_append_str(&text, "\r\n");
    assert_int_equal(http_head_parse_request(buf_span(&text), NULL, &head), count > LIMITS_HTTP_FIELDS ? -E2BIG : 0);
  }
}

static void test_response(void **state)
{
  static const struct {
    const char *text;
    unsigned status; /* 0: refused */
    const char *phrase;
  } rows[] = {
    { "HTTP/1.1 200 OK\r\n\r\n", 200, "OK" },
    { "HTTP/1.0 404 Not Found at all\r\n\r\n", 404, "Not Found at all" },
    { "HTTP/1.1 599 \r\n\r\n", 599, "" },
    { "HTTP/1.1 100\r\n\r\n", 100, "" },
    { "HTTP/1.1 200 caf\xc3\xa9\r\n\r\n", 200, "caf\xc3\xa9" },
    { "HTTP/1.1 099 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1 600 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1 20 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1 2000 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1 +20 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1  200 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1\t200 x\r\n\r\n", 0, NULL },
    { "HTTP/1.1 200 a\x01\r\n\r\n", 0, NULL },
    { "HTTP/2 200\r\n\r\n", 0, NULL },
    { "ICY 200 OK\r\n\r\n", 0, NULL },
    { "HTTP/1.1\r\n\r\n", 0, NULL },
    { "HTTP/1.1 200 OK\r\nA b\r\n\r\n", 0, NULL },
  };
  struct http_head head;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    int r = http_head_parse_response(span_of(rows[i].text), NULL, &head);

    if (r != (rows[i].status ? 0 : -EBADMSG))
      fail_msg("%d: %s", r, rows[i].text);
    if (r == 0) {
      assert_int_equal(head.status, rows[i].status);
      assert_true(span_equal_str(head.phrase, rows[i].phrase));
    }
  }
}

static void test_lists(void **state)
{
  struct span text = SPAN("GET / HTTP/1.1\r\nConnection: close , X-a,,\tUpgrade\r\nconnection: TE\r\n\r\n");
  struct http_head head;

  (void)state;
  assert_int_equal(http_head_parse_request(text, NULL, &head), 0);
  assert_true(http_head_lists(&head, "connection", SPAN("CLOSE")));
  assert_true(http_head_lists(&head, "connection", SPAN("upgrade")));
  assert_true(http_head_lists(&head, "connection", SPAN("te")));
  assert_true(http_head_lists(&head, "connection", SPAN("x-a")));
  assert_false(http_head_lists(&head, "connection", SPAN("x")));
  assert_false(http_head_lists(&head, "te", SPAN("close")));
}

/* Whatever the scanner calls a whole head, cut anywhere, the parser must not read past. */
static void test_random(void **state)
{
  static const char alphabet[] = "GET /:HTP1.0\r\n\t a";
  struct unit_random random = unit_seed("http_head");
  struct http_head head;

  (void)state;
  for (int round = 0; round < 20000; round++) {
    char text[48];
    size_t size = unit_next(&random) % sizeof text;
    size_t len;

    for (size_t i = 0; i < size; i++)
      text[i] = alphabet[unit_next(&random) % (sizeof alphabet - 1)];
    if (scan_whole((struct span){ text, size }, &len) == 1)
      assert_true(len <= size && len >= 4);
    if (http_head_parse_request((struct span){ text, size }, NULL, &head) == 0)
      assert_int_equal(scan_whole((struct span){ text, size }, &len), 1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scan),          cmocka_unit_test(test_request),  cmocka_unit_test(test_request_refused),
    cmocka_unit_test(test_field_ceiling), cmocka_unit_test(test_response), cmocka_unit_test(test_lists),
    cmocka_unit_test(test_random),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
