#include "proxy/http_rewrite.h"
#include "unit/unit.h"

static void parse(const char *text, struct http_head *head)
{
  int r = strncmp(text, "HTTP/", 5) == 0 ? http_head_parse_response(span_of(text), NULL, head)
                                         : http_head_parse_request(span_of(text), NULL, head);

  assert_int_equal(r, 0);
}

static void check_request(const char *text, const char *expected)
{
  buf_autofree struct buf out = BUF_INIT(65536);
  struct http_target target;
  struct http_head head;

  parse(text, &head);
  assert_int_equal(http_target_parse_absolute(head.target, false, NULL, &target), 0);
  http_rewrite_request(&head, &target, NULL, &out);
  assert_int_equal(buf_error(&out), 0);
  assert_string_equal(out.data, expected);
}

static void test_request(void **state)
{
  (void)state;
  check_request("GET http://A.test/x?y=z HTTP/1.1\r\nHost: b.test\r\nAccept: */*\r\n\r\n",
                "GET /x?y=z HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n");
  check_request("GET http://a.test:8080 HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: a.test:8080\r\n\r\n");
  check_request("GET http://a.test:80?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET /?q HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("GET http://[::1]/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n");
  check_request("GET http://[::1]:81/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:81\r\n\r\n");
  check_request("OPTIONS http://a.test HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("OPTIONS http://a.test/ HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

static bool is_reflected(const char *text)
{
  struct http_head head;

  parse(text, &head);
  return http_rewrite_is_reflected(&head);
}

static void test_reflected(void **state)
{
  (void)state;
  assert_true(is_reflected("TRACE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  assert_true(is_reflected("trace http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  assert_true(is_reflected("TRACK http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  assert_true(is_reflected("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMAX-FORWARDS: 0\r\n\r\n"));
  assert_true(is_reflected("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards:\r\n\r\n"));
  assert_false(is_reflected("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  assert_false(is_reflected("TRACER http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"));
}

/* Inside TLS the port that a URL leaves out is another one. */
static void test_tls(void **state)
{
  static const struct {
    const char *text, *expected;
  } rows[] = {
    { "GET https://a.test/x HTTP/1.1\r\nHost: x\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n" },
    { "GET https://a.test:443/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" },
    { "GET https://a.test:80/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.test:80\r\n\r\n" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf out = BUF_INIT(1024);
    struct http_target target;
    struct http_head head;

    parse(rows[i].text, &head);
    assert_int_equal(http_target_parse_absolute(head.target, true, NULL, &target), 0);
    http_rewrite_request(&head, &target, NULL, &out);
    assert_string_equal(out.data, rows[i].expected);
  }
}

/* F61 */
static void test_hop_by_hop(void **state)
{
  (void)state;
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: X-Private , close\r\nProxy-Authorization: s\r\n"
                "PROXY-Other: s\r\nKeep-Alive: 1\r\nx-private: 1\r\nTE: gzip, trailers;q=1\r\nTrailer: x\r\n"
                "Upgrade: websocket\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: TE\r\nTE: gzip, trailers\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: TE\r\nTE: trailers\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: TLS/1.2\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket, foo\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("POST http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: foo, H2C\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  check_request("GET http://a.test/ HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
}

static void test_checks(void **state)
{
  static const struct {
    const char *fields;
    bool good;
  } rows[] = {
    { "Host: a\r\n", true },
    { "Host:\r\n", true },
    { "Host: a.test:8080\r\n", true },
    { "", false },
    { "Host: a\r\nHost: a\r\n", false },
    { "Host: a b\r\n", false },
    { "Host: a, b\r\n", false },
    { "Host: a:x\r\n", false },
    { "Host: http://a\r\n", false },
    { "Host: a\r\nConnection: x,y\r\n", true },
    { "Host: a\r\nConnection: Content-Length\r\n", false },
    { "Host: a\r\nConnection: x, transfer-encoding\r\n", false },
    { "Host: a\r\nConnection: x\r\nConnection: host\r\n", false },
    { "Host: a\r\nConnection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\n", false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf text = BUF_INIT(4096);
    struct err err = ERR_INIT;
    struct http_head head;

    buf_printf(&text, "GET / HTTP/1.1\r\n%s\r\n", rows[i].fields);
    parse(text.data, &head);
    if (http_rewrite_check_request(&head, &err) != (rows[i].good ? 0 : -EBADMSG))
      fail_msg("%s", rows[i].fields);
  }
}

static void check_response(const char *text, bool close, bool upgrade, const char *expected)
{
  buf_autofree struct buf out = BUF_INIT(65536);
  struct http_head head;

  parse(text, &head);
  http_rewrite_response(&head, close, upgrade, &out);
  assert_string_equal(out.data, expected);
}

static void test_response(void **state)
{
  (void)state;
  check_response(
      "HTTP/1.0 200 Fine\r\nContent-Length: 3\r\nConnection: close\r\nKeep-Alive: 1\r\nProxy-Authenticate: x\r\n"
      "Set-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
      false, false, "HTTP/1.1 200 Fine\r\nContent-Length: 3\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n");
  check_response("HTTP/1.1 200 OK\r\n\r\n", true, false, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
  check_response("HTTP/1.1 103 Hints\r\nLink: x\r\nContent-Length: 3\r\n\r\n", true, false,
                 "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n");
  check_response("HTTP/1.1 204 x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false, false,
                 "HTTP/1.1 204 x\r\n\r\n");
  check_response("HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", false, false,
                 "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n");
  check_response("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nA: b\r\n\r\n", false, true,
                 "HTTP/1.1 101 x\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

static void test_targets(void **state)
{
  static const struct {
    const char *text;
    int absolute; /* what each parser says */
    int authority;
    const char *path; /* for the audit */
  } rows[] = {
    { "http://a.test", 0, -EINVAL, "/" },
    { "HTTP://a.test/", 0, -EINVAL, "/" },
    { "http://a.test/b/c?d/e", 0, -EINVAL, "/b/c" },
    { "http://a.test?d", 0, -EINVAL, "/" },
    { "http://a.test/@b:c", 0, -EINVAL, "/@b:c" },
    { "a.test:80", -EBADMSG, 0, NULL },
    { "[::1]:443", -EBADMSG, 0, NULL },
    { "::1:443", -EBADMSG, -EINVAL, NULL }, /* F53: IPv6 split at ':' */
    { "http://::1:443/", -EINVAL, -EINVAL, NULL },
    { "a.test", -EBADMSG, -EINVAL, NULL },
    { "a.test:0", -EBADMSG, -EINVAL, NULL },
    { "a.test:443x", -EBADMSG, -EINVAL, NULL },
    { "/path", -EBADMSG, -EINVAL, NULL },
    { "*", -EBADMSG, -EINVAL, NULL },
    { "https://a.test/", -EBADMSG, -EINVAL, NULL },
    { "ftp://a.test/", -EBADMSG, -EINVAL, NULL },
    { "http:/a.test/", -EBADMSG, -EINVAL, NULL },
    { "http:a.test", -EBADMSG, -EINVAL, NULL },
    { "://a.test", -EBADMSG, -EINVAL, NULL },
    { "http://user@a.test/", -EBADMSG, -EINVAL, NULL },
    { "http://a.test@b.test/", -EBADMSG, -EINVAL, NULL },
    { "http://a.test/#f", -EBADMSG, -EINVAL, NULL },
    { "http://a.test#f", -EBADMSG, -EINVAL, NULL },
    { "http://", -EINVAL, -EINVAL, NULL },
    { "http:///x", -EINVAL, -EINVAL, NULL },
    { "http://a.test\\@b.test/", -EBADMSG, -EINVAL, NULL },
    { "http://a.test\\.b.test/", -EINVAL, -EINVAL, NULL },
    { "http://a.test:65536/", -EINVAL, -EINVAL, NULL },
    { "http://0x7f.1/", -EINVAL, -EINVAL, NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct http_target target;
    struct err err = ERR_INIT;
    int absolute = http_target_parse_absolute(span_of(rows[i].text), false, &err, &target);

    if (absolute != rows[i].absolute)
      fail_msg("%d: %s", absolute, rows[i].text);
    if (absolute == 0)
      assert_true(span_equal_str(http_target_path(&target), rows[i].path));
    if (http_target_parse_authority(span_of(rows[i].text), &err, &target) != rows[i].authority)
      fail_msg("as an authority: %s", rows[i].text);
  }
  assert_true(span_equal_str(http_target_authority(SPAN("http://a b:1/x")), "a b:1"));
  assert_true(span_equal_str(http_target_authority(SPAN("a:1")), "a:1"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_request),    cmocka_unit_test(test_reflected), cmocka_unit_test(test_tls),
    cmocka_unit_test(test_hop_by_hop), cmocka_unit_test(test_checks),    cmocka_unit_test(test_response),
    cmocka_unit_test(test_targets),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
