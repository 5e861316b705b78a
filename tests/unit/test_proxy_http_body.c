#include "base/buf.h"
#include "proxy/http_body.h"
#include "unit/unit.h"

/* The framing of a request with these fields. */
static int of_request(const char *fields, struct http_body *body)
{
  buf_autofree struct buf text = BUF_INIT(4096);
  struct err err = ERR_INIT;
  struct http_head head;

  buf_printf(&text, "POST / HTTP/1.1\r\n%s\r\n", fields);
  assert_int_equal(http_head_parse_request(buf_span(&text), NULL, &head), 0);
  return http_body_of_request(&head, &err, body);
}

static int of_response(unsigned status, const char *fields, bool to_head, struct http_body *body)
{
  buf_autofree struct buf text = BUF_INIT(4096);
  struct http_head head;

  buf_printf(&text, "HTTP/1.1 %u x\r\n%s\r\n", status, fields);
  assert_int_equal(http_head_parse_response(buf_span(&text), NULL, &head), 0);
  return http_body_of_response(&head, to_head, NULL, body);
}

static void test_request_framing(void **state)
{
  static const struct {
    const char *fields;
    int result;
    enum http_body_kind kind;
    uint64_t length;
  } rows[] = {
    { "", 0, HTTP_BODY_NONE, 0 },
    { "Content-Length: 0\r\n", 0, HTTP_BODY_LENGTH, 0 },
    { "content-length: 17\r\n", 0, HTTP_BODY_LENGTH, 17 },
    { "Content-Length: 9223372036854775807\r\n", 0, HTTP_BODY_LENGTH, INT64_MAX },
    { "Transfer-Encoding: chunked\r\n", 0, HTTP_BODY_CHUNKED, 0 },
    { "transfer-encoding: \tCHUNKED \r\n", 0, HTTP_BODY_CHUNKED, 0 }, /* F56 */
    { "Content-Length: 9223372036854775808\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 1, 1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: -1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: +1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 1 1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 0x1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 01\r\n", -EBADMSG, 0, 0 },
    { "Content-Length:\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 1\r\nContent-Length: 1\r\n", -EBADMSG, 0, 0 },
    { "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: identity\r\nContent-Length: 1\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: chunked, chunked\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: gzip, chunked\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: chunked;q=1\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: xchunked\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding: chunked,\r\n", -EBADMSG, 0, 0 },
    { "Transfer-Encoding:\r\n", -EBADMSG, 0, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct http_body body;
    int r = of_request(rows[i].fields, &body);

    if (r != rows[i].result)
      fail_msg("%d: %s", r, rows[i].fields);
    if (r < 0)
      continue;
    assert_int_equal(body.kind, rows[i].kind);
    assert_int_equal(body.left, rows[i].length);
    assert_int_equal(body.done, rows[i].kind != HTTP_BODY_CHUNKED && rows[i].length == 0);
  }
}

static void test_response_framing(void **state)
{
  static const struct {
    unsigned status;
    bool to_head;
    const char *fields;
    enum http_body_kind kind;
  } rows[] = {
    { 200, false, "", HTTP_BODY_CLOSE },
    { 200, false, "Content-Length: 5\r\n", HTTP_BODY_LENGTH },
    { 200, false, "Transfer-Encoding: chunked\r\n", HTTP_BODY_CHUNKED },
    { 200, true, "Content-Length: 5\r\n", HTTP_BODY_NONE },
    { 200, true, "Transfer-Encoding: chunked\r\n", HTTP_BODY_NONE },
    { 200, true, "", HTTP_BODY_NONE },
    { 100, false, "", HTTP_BODY_NONE },
    { 101, false, "Content-Length: 5\r\n", HTTP_BODY_NONE },
    { 204, false, "Content-Length: 5\r\n", HTTP_BODY_NONE },
    { 304, false, "Content-Length: 5\r\n", HTTP_BODY_NONE },
    { 404, false, "", HTTP_BODY_CLOSE },
  };
  struct http_body body;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    assert_int_equal(of_response(rows[i].status, rows[i].fields, rows[i].to_head, &body), 0);
    assert_int_equal(body.kind, rows[i].kind);
    assert_int_equal(body.done, rows[i].kind == HTTP_BODY_NONE);
  }
  assert_int_equal(of_response(200, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", false, &body), -EBADMSG);
  assert_int_equal(of_response(304, "Content-Length: 5\r\nContent-Length: 5\r\n", false, &body), -EBADMSG);
}

/* Feeds text in pieces; returns what http_body_take said last, and the sum of what belonged to the body. */
static int feed(struct http_body *body, struct span text, size_t piece, size_t *ret_sum)
{
  *ret_sum = 0;
  while (text.len && !body->done) {
    struct span part = span_sub(text, 0, piece);
    size_t len = 0;
    int r = http_body_take(body, part, &len);

    if (r < 0)
      return r;
    *ret_sum += len;
    if (len < part.len)
      assert_true(body->done);
    text = span_sub(text, part.len, text.len);
  }
  return 0;
}

static void test_chunked(void **state)
{
  static const struct {
    struct span text;
    int result;
    size_t len; /* of the body; its end is not in the text where this is 0 */
  } rows[] = {
    { SPAN_INIT("0\r\n\r\n"), 0, 5 },
    { SPAN_INIT("0\r\n\r\nGET / HTTP/1.1\r\n"), 0, 5 },
    { SPAN_INIT("5\r\nhello\r\n0\r\n\r\n"), 0, 15 },
    { SPAN_INIT("a\r\n0123456789\r\n0\r\n\r\n"), 0, 20 },
    { SPAN_INIT("A\r\n01234\r\n789\r\n0\r\n\r\n"), 0, 20 },
    { SPAN_INIT("000000000000001\r\nx\r\n000\r\n\r\n"), 0, 27 },
    { SPAN_INIT("1;name=\"va lue\";x\r\nx\r\n0;y\r\nA: b\r\nC:\r\n\r\n"), 0, 39 },
    { SPAN_INIT("5\r\nhel"), 0, 0 },
    { SPAN_INIT("0\r\n"), 0, 0 },
    { SPAN_INIT("0\r\nA: b\r\n"), 0, 0 },
    { SPAN_INIT("\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("g\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("-1\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("+1\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("0x1\r\n"), -EBADMSG, 0 },
    { SPAN_INIT(" 1\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("1 \r\n"), -EBADMSG, 0 },
    { SPAN_INIT("1 ;x\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("1\n"), -EBADMSG, 0 },
    { SPAN_INIT("1\rx"), -EBADMSG, 0 },
    { SPAN_INIT("0000000000000001\r\n"), -EBADMSG, 0 }, /* 16 digits */
    { SPAN_INIT("ffffffffffffffff\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("10000000000000000\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("1\r\nxy"), -EBADMSG, 0 },
    { SPAN_INIT("1\r\nx\n"), -EBADMSG, 0 },
    { SPAN_INIT("1\r\nx\r1"), -EBADMSG, 0 },
    { SPAN_INIT("1;a\nb"), -EBADMSG, 0 },
    { SPAN_INIT("1;a\x7f"), -EBADMSG, 0 },
    { SPAN_INIT("1;a\0"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\n: b\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nA b"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nA: b\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nA: b\r\n c"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\n\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\n\r\r"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nContent-Length: 1\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nTRANSFER-ENCODING: x\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nX: y\r\nhost: x\r\n"), -EBADMSG, 0 },
    { SPAN_INIT("0\r\nhostess-with-a-long-name: x\r\n\r\n"), 0, 34 },
    { SPAN_INIT("0\r\ntransfer-encodings-x: y\r\n\r\n"), 0, 30 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    for (size_t piece = 1; piece <= rows[i].text.len; piece++) {
      struct http_body body;
      size_t sum;
      int r;

      assert_int_equal(of_request("Transfer-Encoding: chunked\r\n", &body), 0);
      r = feed(&body, rows[i].text, piece, &sum);
      if (r != rows[i].result || body.done != (rows[i].len > 0) || (body.done && sum != rows[i].len))
        fail_msg("%d, %zu bytes in pieces of %zu: %s", r, sum, piece, rows[i].text.ptr);
    }
  }
}

static void test_bounds(void **state)
{
  static const struct {
    const char *start;
    const char *filler;
    size_t most;
  } rows[] = {
    { "1;", "a", HTTP_BODY_EXTENSION_MAX },
    { "0\r\n", "A: b\r\n", HTTP_BODY_TRAILER_MAX },
    { "0\r\n", "a", HTTP_BODY_TRAILER_MAX },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct http_body body;
    size_t sum = 0;
    size_t total = 0;
    int r;

    assert_int_equal(of_request("Transfer-Encoding: chunked\r\n", &body), 0);
    r = feed(&body, span_of(rows[i].start), 16, &sum);
    while (r == 0 && total < 100000) {
      r = feed(&body, span_of(rows[i].filler), 16, &sum);
      total += sum;
    }
    assert_int_equal(r, -EBADMSG);
    assert_true(total <= rows[i].most * 2);
  }
}

static void test_length_and_close(void **state)
{
  struct http_body body;
  size_t sum;

  (void)state;
  for (size_t piece = 1; piece < 12; piece++) {
    assert_int_equal(of_request("Content-Length: 5\r\n", &body), 0);
    assert_int_equal(feed(&body, SPAN("hello, you"), piece, &sum), 0);
    assert_true(body.done);
    assert_int_equal(sum, 5);
  }
  assert_int_equal(of_response(200, "", false, &body), 0);
  assert_int_equal(feed(&body, SPAN("hello"), 2, &sum), 0);
  assert_false(body.done);
  assert_int_equal(sum, 5);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_request_framing), cmocka_unit_test(test_response_framing), cmocka_unit_test(test_chunked),
    cmocka_unit_test(test_bounds),          cmocka_unit_test(test_length_and_close),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
