#include "policy/upstream.h"
#include "unit/unit.h"

static struct host host_of(const char *text)
{
  struct host host;

  assert_int_equal(host_parse(span_of(text), NULL, &host), 0);
  return host;
}

static void test_parse(void **state)
{
  static const struct {
    const char *url;
    enum upstream_kind kind;
    const char *printed;
    const char *user; /* NULL: no login */
    const char *password;
  } rows[] = {
    { "http://p.test:3128", UPSTREAM_HTTP, "http://p.test:3128", NULL, "" },
    { "HTTP://P.Test.:3128/", UPSTREAM_HTTP, "http://p.test:3128", NULL, "" },
    { "p.test:80", UPSTREAM_HTTP, "http://p.test:80", NULL, "" },
    { "u:p@p.test:80", UPSTREAM_HTTP, "http://p.test:80", "u", "p" },
    { "socks5://[::1]:1080", UPSTREAM_SOCKS5, "socks5://[::1]:1080", NULL, "" },
    { "socks5h://u@127.0.0.1:1080/", UPSTREAM_SOCKS5_NAMES, "socks5h://127.0.0.1:1080", "u", "" },
    { "http://u:@p.test:1", UPSTREAM_HTTP, "http://p.test:1", "u", "" },
    { "http://a%20b:c:d%40e@f%25@p.test:1", UPSTREAM_HTTP, "http://p.test:1", "a b", "c:d@e@f%" },
    { "http://dom%5Cuser:%c3%a9@p.test:1", UPSTREAM_HTTP, "http://p.test:1", "dom\\user", "\xc3\xa9" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf printed = BUF_INIT(1024);
    struct upstream upstream;
    struct err err = ERR_INIT;

    unit_assert_row(upstream_parse(span_of(rows[i].url), true, &err, &upstream) == 0, rows[i].url, err.message);
    upstream_print(&upstream, &printed);
    assert_int_equal(upstream.kind, rows[i].kind);
    assert_string_equal(printed.data, rows[i].printed);
    assert_int_equal(upstream.has_login, rows[i].user != NULL);
    assert_string_equal(upstream.user, rows[i].user ? rows[i].user : "");
    assert_string_equal(upstream.password, rows[i].password);
  }
}

static void test_refused(void **state)
{
  static const char *const urls[] = { "",
                                      "p.test",
                                      "http://",
                                      "http://p.test",
                                      "http://p.test:",
                                      "http://p.test:0",
                                      "http://p.test:65536",
                                      "http://p.test:1/x",
                                      "http://p.test:1?x",
                                      "http://p.test:1//",
                                      "https://p.test:1",
                                      "socks://p.test:1",
                                      "socks4a://p.test:1",
                                      "://p.test:1",
                                      "http://[::1:1",
                                      "http://::1:1",
                                      "http://u secretword@p.test:1",
                                      "http://u:secretword\r\nX: y@p.test:1",
                                      "http://u:secretword%0d%0aX@p.test:1",
                                      "http://u:secretword%00@p.test:1",
                                      "http://u:secretword%@p.test:1",
                                      "http://u:secretword%4@p.test:1",
                                      "http://u:secretword%g0@p.test:1",
                                      "http://@p.test:1",
                                      "http://:secretword@p.test:1",
                                      "http://a%3ab:secretword@p.test:1",
                                      "http://***@p.test:1",
                                      "http://u:secretword\xc3\xa9@p.test:1" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(urls); i++) {
    struct upstream upstream = { .kind = UPSTREAM_NONE };
    struct err err = ERR_INIT;

    unit_assert_row(upstream_parse(span_of(urls[i]), true, &err, &upstream) == -EINVAL, urls[i], "taken");
    assert_int_equal(upstream.kind, UPSTREAM_NONE);
    assert_int_equal(err.code, EINVAL);
    unit_assert_row(!strstr(err.message, "secretword"), urls[i], err.message);
  }
  assert_int_equal(upstream_parse(SPAN("p.test:1"), false, NULL, &(struct upstream){ .port = 0 }), -EINVAL);
}

static void test_long_words(void **state)
{
  (void)state;
  for (int length = 254; length <= 257; length++) {
    buf_autofree struct buf url = BUF_INIT(4096);
    struct upstream upstream;

    buf_append_str(&url, "http://u:");
    for (int i = 0; i < length; i++)
      buf_append_byte(&url, 'x');
    buf_append_str(&url, "@p.test:1");
    assert_int_equal(upstream_parse(buf_span(&url), false, NULL, &upstream), length <= 255 ? 0 : -EINVAL);
  }
}

static void test_exempt(void **state)
{
  static const struct {
    const char *list;
    const char *host;
    unsigned port;
    bool exempt;
  } rows[] = {
    { "", "a.test", 443, false },
    { ",, ,", "a.test", 443, false },
    { "*", "a.test", 443, true },
    { "*", "192.0.2.1", 1, true },
    { "a.test", "a.test", 443, true },
    { "A.Test.", "a.test", 443, true },
    { "a.test", "b.a.test", 443, true },
    { ".a.test", "a.test", 443, true },
    { ".a.test", "b.a.test", 443, true },
    { "*.a.test", "c.b.a.test", 443, true },
    { "a.test", "ba.test", 443, false },
    { "b.a.test", "a.test", 443, false },
    { "a.test:443", "a.test", 443, true },
    { "a.test:443", "a.test", 80, false },
    { "a.test:443x", "a.test", 443, false },
    { "x, a.test ,y", "a.test", 443, true },
    { "x a.test", "a.test", 443, true },
    { "192.0.2.1", "192.0.2.1", 443, true },
    { "192.0.2.1:80", "192.0.2.1", 443, false },
    { "192.0.2.1:80", "192.0.2.1", 80, true },
    { "192.0.2.0/24", "192.0.2.9", 443, true },
    { "192.0.2.0/24", "192.0.3.9", 443, false },
    { "192.0.2.9/24", "192.0.2.9", 443, false },
    { "10.0.0.0/8,2001:db8::/32", "2001:db8::7", 443, true },
    { "2001:db8::7", "2001:db8::7", 7, true },
    { "2001:db8::", "2001:db8::7", 7, false },
    { "[2001:db8::7]:80", "2001:db8::7", 80, true },
    { "[2001:db8::7]:80", "2001:db8::7", 81, false },
    { "[2001:db8::7]", "2001:db8::7", 81, true },
    { "192.0.2.0/24", "a.test", 443, false },
    { "<local>,10.*", "10.1.1.1", 443, false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct host host = host_of(rows[i].host);

    unit_assert_row(upstream_is_exempt(span_of(rows[i].list), &host, (uint16_t)rows[i].port) == rows[i].exempt,
                    rows[i].list, rows[i].host);
  }
}

static void test_find(void **state)
{
  struct upstreams upstreams = { .no_proxy = "b.test" };
  struct host a = host_of("a.test");
  struct host b = host_of("b.test");
  static const char *const loopback[] = { "localhost", "x.localhost", "127.9.9.9", "::1", "::ffff:127.0.0.1" };

  (void)state;
  assert_null(upstream_find(&upstreams, &a, 443, false));
  assert_int_equal(upstream_parse(SPAN("http://h.test:1"), false, NULL, &upstreams.http), 0);
  assert_ptr_equal(upstream_find(&upstreams, &a, 80, false), &upstreams.http);
  assert_ptr_equal(upstream_find(&upstreams, &a, 8080, true), &upstreams.http);
  assert_null(upstream_find(&upstreams, &a, 8080, false));
  assert_int_equal(upstream_parse(SPAN("socks5://o.test:1"), false, NULL, &upstreams.other), 0);
  assert_ptr_equal(upstream_find(&upstreams, &a, 8080, false), &upstreams.other);
  assert_null(upstream_find(&upstreams, &b, 443, false));
  assert_null(upstream_find(&upstreams, &b, 80, true));
  for (size_t i = 0; i < MEM_COUNT(loopback); i++) {
    struct host host = host_of(loopback[i]);

    assert_null(upstream_find(&upstreams, &host, 80, true));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse), cmocka_unit_test(test_refused),
                                      cmocka_unit_test(test_long_words), cmocka_unit_test(test_exempt),
                                      cmocka_unit_test(test_find) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
