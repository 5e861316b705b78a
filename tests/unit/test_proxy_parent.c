#include "proxy/parent_reply.h"
#include "unit/unit.h"

typedef int (*parser)(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len);

static int parse_method(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  return parent_parse_method(bytes, false, ret_answer, ret_len);
}

static int parse_method_with_login(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  return parent_parse_method(bytes, true, ret_answer, ret_len);
}

struct row {
  parser parse;
  struct span bytes;
  int result;
  enum reason reason;
  unsigned code;
  size_t len;
};

#define OK "HTTP/1.1 200 OK\r\n\r\n"
#define GOOD(parse, bytes, reason, code, len) { (parse), SPAN_INIT(bytes), 1, (reason), (code), (len) }
#define BAD(parse, bytes) { (parse), SPAN_INIT(bytes), -EBADMSG, REASON_ALLOWED, 0, 0 }
#define MORE(parse, bytes) { (parse), SPAN_INIT(bytes), 0, REASON_ALLOWED, 0, 0 }

static const struct row rows[] = {
  GOOD(parent_parse_connect, OK, REASON_ALLOWED, 200, sizeof OK - 1),
  GOOD(parent_parse_connect, OK "220 mail", REASON_ALLOWED, 200, sizeof OK - 1),
  GOOD(parent_parse_connect, "HTTP/1.0 299 \r\nVia: x\r\n\r\n", REASON_ALLOWED, 299, 25),
  GOOD(parent_parse_connect, "HTTP/1.1 100 Continue\r\n\r\n" OK, REASON_ALLOWED, 200, 25 + sizeof OK - 1),
  GOOD(parent_parse_connect, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REASON_ALLOWED, 200, 38),
  GOOD(parent_parse_connect, "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", REASON_PARENT_AUTH, 407, 46),
  GOOD(parent_parse_connect, "HTTP/1.1 403 No\r\n\r\n", REASON_PARENT_REFUSED, 403, 19),
  GOOD(parent_parse_connect, "HTTP/1.1 302 Go\r\n\r\n", REASON_PARENT_REFUSED, 302, 19),
  GOOD(parent_parse_connect, "HTTP/1.1 504 No\r\n\r\n", REASON_CONNECT_TIMEOUT, 504, 19),
  BAD(parent_parse_connect, "HTTP/1.1 101 Switching\r\n\r\n"),
  BAD(parent_parse_connect, "HTTP/2 200 OK\r\n\r\n"),
  BAD(parent_parse_connect, "HTTP/1.1 2000 OK\r\n\r\n"),
  BAD(parent_parse_connect, "HTTP/1.1 200 OK\n\n"),
  BAD(parent_parse_connect, "HTTP/1.1 200 OK\r\nX : y\r\n\r\n"),
  BAD(parent_parse_connect, "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"),
  BAD(parent_parse_connect, "HTTP/1.1 100 Continue\r\n\r\nSSH"),
  BAD(parent_parse_connect, "SSH-2.0"),
  MORE(parent_parse_connect, "HTTP/1.1 200 OK\r\n"),
  GOOD(parse_method, "\x05\x00", REASON_ALLOWED, 0, 2),
  GOOD(parse_method, "\x05\xff", REASON_PARENT_AUTH, 255, 2),
  BAD(parse_method, "\x05\x02"),
  BAD(parse_method, "\x04"),
  BAD(parse_method, "HT"),
  GOOD(parse_method_with_login, "\x05\x02", REASON_ALLOWED, 2, 2),
  GOOD(parse_method_with_login, "\x05\x00rest", REASON_ALLOWED, 0, 2),
  BAD(parse_method_with_login, "\x05\x01"),
  GOOD(parent_parse_login, "\x01\x00", REASON_ALLOWED, 0, 2),
  GOOD(parent_parse_login, "\x01\x05", REASON_PARENT_AUTH, 5, 2),
  BAD(parent_parse_login, "\x05\x00"),
  GOOD(parent_parse_reply, "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50rest", REASON_ALLOWED, 0, 10),
  GOOD(parent_parse_reply, "\x05\x00\x00\x03\x00\x00\x50", REASON_ALLOWED, 0, 7),
  GOOD(parent_parse_reply, "\x05\x00\x00\x03\x02zz\x00\x50", REASON_ALLOWED, 0, 9),
  GOOD(parent_parse_reply,
       "\x05\x00\x00\x04"
       "0123456789abcdef\x00\x50",
       REASON_ALLOWED, 0, 22),
  MORE(parent_parse_reply, "\x05\x00\x00\x03\x02zz\x00"),
  GOOD(parent_parse_reply, "\x05\x02", REASON_PARENT_REFUSED, 2, 2),
  GOOD(parent_parse_reply, "\x05\x05", REASON_CONNECT_REFUSED, 5, 2),
  GOOD(parent_parse_reply, "\x05\x04\x3f\x09", REASON_CONNECT_FAILED, 4, 2),
  GOOD(parent_parse_reply, "\x05\x06", REASON_CONNECT_TIMEOUT, 6, 2),
  BAD(parent_parse_reply, "\x05\x00\x01"),
  BAD(parent_parse_reply, "\x05\x00\x00\x02"),
  BAD(parent_parse_reply, "\x00"),
};

/* Each answer; and of each beginning of it the parser wants more, or says the same. */
static void test_answers(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    const struct row *row = &rows[i];
    struct parent_answer answer = { .reason = REASON_ALLOWED };
    size_t len = 0;
    int r = row->parse(row->bytes, &answer, &len);

    unit_assert_row(r == row->result, row->bytes.ptr, "result");
    if (r != 1)
      continue;
    unit_assert_row(answer.reason == row->reason && answer.code == row->code && len == row->len, row->bytes.ptr,
                    "answer");
    for (size_t seen = 0; seen < row->len; seen++) {
      r = row->parse(span_sub(row->bytes, 0, seen), &answer, &len);
      unit_assert_row(r == 0 || (r == 1 && answer.reason == row->reason && len <= seen), row->bytes.ptr,
                      "a part of it");
    }
  }
}

/* An answer has a ceiling, interim ones included. */
static void test_ceiling(void **state)
{
  buf_autofree struct buf head = BUF_INIT(2 * LIMITS_PARENT_BYTES);
  buf_autofree struct buf interim = BUF_INIT(2 * LIMITS_PARENT_BYTES);
  struct parent_answer answer;
  size_t len;

  (void)state;
  buf_append_str(&head, "HTTP/1.1 200 OK\r\nX: ");
  while (head.len < LIMITS_PARENT_BYTES)
    buf_append_byte(&head, 'x');
  assert_int_equal(parent_parse_connect(span_sub(buf_span(&head), 0, head.len - 1), &answer, &len), 0);
  assert_int_equal(parent_parse_connect(buf_span(&head), &answer, &len), -EBADMSG);
  while (interim.len < LIMITS_PARENT_BYTES + 100)
    buf_append_str(&interim, "HTTP/1.1 102 Wait\r\n\r\n");
  assert_int_equal(parent_parse_connect(buf_span(&interim), &answer, &len), -EBADMSG);
}

static struct upstream upstream_of(const char *url)
{
  struct upstream upstream;

  assert_int_equal(upstream_parse(span_of(url), false, NULL, &upstream), 0);
  return upstream;
}

static void test_messages(void **state)
{
  struct upstream bare = upstream_of("http://p.test:1");
  struct upstream login = upstream_of("socks5://Aladdin:open%20sesame@p.test:1");
  struct host name;
  struct host six;
  buf_autofree struct buf out = BUF_INIT(4096);

  (void)state;
  assert_int_equal(host_parse(SPAN("a.test"), NULL, &name), 0);
  assert_int_equal(host_parse(SPAN("2001:db8::1"), NULL, &six), 0);
  parent_append_connect(&bare, &six, 443, &out);
  assert_string_equal(out.data, "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n");
  buf_free(&out);
  parent_append_connect(&login, &name, 80, &out); /* the example of RFC 7617 */
  assert_string_equal(out.data, "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n"
                                "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
  buf_free(&out);
  parent_append_methods(&bare, &out);
  parent_append_methods(&login, &out);
  parent_append_login(&login, &out);
  parent_append_request(&name, 0x1234, &out);
  parent_append_request(&six, 1, &out);
  assert_true(span_equal(buf_span(&out),
                         SPAN("\x05\x01\x00\x05\x02\x00\x02\x01\x07"
                              "Aladdin\x0bopen sesame\x05\x01\x00\x03\x06"
                              "a.test\x12\x34\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01")));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers), cmocka_unit_test(test_ceiling),
                                      cmocka_unit_test(test_messages) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
