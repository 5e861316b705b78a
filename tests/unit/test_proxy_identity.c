#include "proxy/http_fixed.h"
#include "proxy/identity.h"
#include "unit/policy_make.h"
#include "unit/tls_make.h"
#include "unit/unit.h"

static const char policy_text[] = "{\"network\": {\"allow\": [\"x.test:*\", \"other.test\", \"192.0.2.1:*\", "
                                  "\"localhost:80\"], \"deny\": [\"denied.test\"]}}";

/* Nobody's port. */
#define PORT 2525

struct row {
  const char *what;
  const char *host;
  struct span bytes;
  enum identity_answer answer;
};

static enum identity_answer look_at(const char *host_text, uint16_t port, bool spoken, struct span bytes, bool end)
{
  policy_autofree struct policy *policy = make_policy(policy_text);
  struct identity identity = { .spoken = spoken };
  struct err err = ERR_INIT;
  struct host host;
  enum identity_answer answer;

  assert_int_equal(host_parse(span_of(host_text), NULL, &host), 0);
  answer = identity_look(&identity, policy, &host, port, bytes, end, &err);
  if (answer == IDENTITY_REFUSE)
    assert_true(err.message[0] != '\0');
  return answer;
}

static enum identity_answer look(const char *host_text, struct span bytes, bool end)
{
  return look_at(host_text, PORT, false, bytes, end);
}

/* As one piece, and as it would be asked for after each byte: MORE until it is decided, and decided once only. */
static void check_at(const struct row *row, uint16_t port, bool spoken)
{
  policy_autofree struct policy *policy = make_policy(policy_text);
  struct identity identity = { .spoken = spoken };
  struct host host;
  enum identity_answer answer = IDENTITY_MORE;

  unit_assert_row(look_at(row->host, port, spoken, row->bytes, false) == row->answer, row->what, "in one piece");
  assert_int_equal(host_parse(span_of(row->host), NULL, &host), 0);
  for (size_t len = 0; len <= row->bytes.len && (answer == IDENTITY_MORE || answer == IDENTITY_STREAM); len++) {
    struct err err = ERR_INIT;

    answer = identity_look(&identity, policy, &host, port, span_sub(row->bytes, 0, len), false, &err);
  }
  unit_assert_row(answer == row->answer, row->what, "byte by byte");
}

static void check(const struct row *row)
{
  check_at(row, PORT, false);
}

/* F54 */
static void test_text(void **state)
{
  static const struct row rows[] = {
    { "nothing", "x.test", SPAN_INIT(""), IDENTITY_MORE },
    { "a word", "x.test", SPAN_INIT("hello"), IDENTITY_MORE },
    { "a line of one word", "x.test", SPAN_INIT("PING\r\n"), IDENTITY_PASS },
    { "a line", "x.test", SPAN_INIT("NICK x\r\n"), IDENTITY_PASS },
    { "part of a line", "x.test", SPAN_INIT("NICK x"), IDENTITY_MORE },
    { "ssh", "x.test", SPAN_INIT("SSH-2.0-OpenSSH_9.2 Debian\r\n"), IDENTITY_PASS },
    { "git", "x.test", SPAN_INIT("0032git-upload-pack /p.git\0host=x"), IDENTITY_PASS },
    { "binary", "x.test", SPAN_INIT("\0\0\0\x08\x04\xd2\x16\x2f"), IDENTITY_STREAM },
    { "binary with the end of a line in it", "x.test", SPAN_INIT("\0\0\0\x2f\0\3\0\0\n"), IDENTITY_STREAM },
    { "the same, with a space", "x.test", SPAN_INIT("\0\0\0\x2f\0\3\0 \0\n"), IDENTITY_PASS },
    { "a line that ends in LF", "x.test", SPAN_INIT("hello\n"), IDENTITY_STREAM },
    { "lines that end in LF", "x.test", SPAN_INIT("a:1|c\nb:2|c\n"), IDENTITY_STREAM },
    { "the same, with words", "x.test", SPAN_INIT("hello\nput a 1\n"), IDENTITY_PASS },
    { "a path in the second line", "x.test", SPAN_INIT("hello\nput /a 1\n"), IDENTITY_STREAM },
    { "the end of Java's line", "x.test", SPAN_INIT("hello\r\nput /a 1\r\n"), IDENTITY_PASS },
    { "high bytes", "x.test", SPAN_INIT("\xff\xfe GET / HTTP/1.1\r\n"), IDENTITY_PASS },
    { "sip", "x.test", SPAN_INIT("REGISTER sip:x.test SIP/2.0\r\n"), IDENTITY_PASS },
    { "rtsp", "x.test", SPAN_INIT("OPTIONS rtsp://x.test/ RTSP/1.0\r\n"), IDENTITY_HTTP },
    { "a request", "x.test", SPAN_INIT("GET / HTTP/1.1\r\n"), IDENTITY_HTTP },
    { "lower case", "x.test", SPAN_INIT("get / http/1.1\r\n"), IDENTITY_HTTP },
    { "a strange method", "x.test", SPAN_INIT("M-SEARCH * HTTP/1.1\r\n"), IDENTITY_HTTP },
    { "bare LF", "x.test", SPAN_INIT("GET / HTTP/1.1\n"), IDENTITY_HTTP },
    { "tabs", "x.test", SPAN_INIT("GET\t/\tHTTP/1.1\r\n"), IDENTITY_HTTP },
    { "vertical tab", "x.test", SPAN_INIT("GET\v/\vHTTP/1.1\r\n"), IDENTITY_HTTP },
    { "empty lines first", "x.test", SPAN_INIT("\r\n\n\r\nGET / HTTP/1.1\r\n"), IDENTITY_HTTP },
    { "space first", "x.test", SPAN_INIT("  GET / HTTP/1.1\r\n"), IDENTITY_HTTP },
    { "bytes behind the version", "x.test", SPAN_INIT("GET / HTTP/1.1 x\r\n"), IDENTITY_HTTP },
    { "HTTP/0.9 of the server itself", "x.test", SPAN_INIT("GET /\r\n"), IDENTITY_HTTP },
    { "HTTP/0.9 of another host", "x.test", SPAN_INIT("GET http://y.test/\r\n"), IDENTITY_HTTP },
    { "no end yet", "x.test", SPAN_INIT("GET / HTTP/1.1"), IDENTITY_MORE },
    { "for an address", "192.0.2.1", SPAN_INIT("GET / HTTP/1.1\r\n"), IDENTITY_HTTP },
    { "HTTP/2", "x.test", SPAN_INIT("PRI * HTTP/2.0\r\n"), IDENTITY_REFUSE },
    { "HTTP/2 to an address", "192.0.2.1", SPAN_INIT("PRI * HTTP/2.0\r\n"), IDENTITY_PASS },
    { "PROXY", "x.test", SPAN_INIT("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n"), IDENTITY_REFUSE },
    { "PROXY 2", "x.test", SPAN_INIT("\r\n\r\n\0\r\nQUIT\n"), IDENTITY_REFUSE },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    check(&rows[i]);
}

/* F54: what one server or another takes for a request. The last column of each is IDENTITY_HTTP. */
static void test_lenient(void **state)
{
  static const struct span lines[] = {
    SPAN_INIT("GET /s\r\n"),
    SPAN_INIT("GET /s \r\n"),
    SPAN_INIT("GET s\r\n"),
    SPAN_INIT("GET\x85/s HTTP/1.1\r\n"),
    SPAN_INIT("GET\xa0/s\n"),
    SPAN_INIT("\x1fGET /s HTTP/1.1\r\n"),
    SPAN_INIT("\x1c\x1dGET\x1e/s\n"),
    SPAN_INIT("\x85POST /s HTTP/1.1\r\n"),
    SPAN_INIT("GET /s\0HTTP/1.1\r\n"),
    SPAN_INIT("GET\r/s HTTP/1.1\r\n"),
    SPAN_INIT("GET /s\rHost"),
    SPAN_INIT("GET /s XTTP/1.1\r\n"),
    SPAN_INIT("GET /s HTTP?1.1\r\n"),
    SPAN_INIT("GET /s HTTP/1.1\0\r\n"),
    SPAN_INIT("get /s x\r\n"),
    SPAN_INIT("G(T /s x\r\n"),
    SPAN_INIT("(GET /s x\r\n"),
    SPAN_INIT("\x01GET /s x\r\n"),
    SPAN_INIT("\xffGET /s x\r\n"),
    SPAN_INIT("A\x85"
              "B /s x\r\n"),
    SPAN_INIT(" /s x\r\n"),
    SPAN_INIT("\x01 /s x\r\n"),
    SPAN_INIT("\0 /s x\r\n"),
    SPAN_INIT("X\n /s x\r\n"),
    SPAN_INIT("\n\n /s x\r\n"),
    SPAN_INIT("X\r\r\n /s x\r\n"),
    SPAN_INIT("X\ry\n /s x\n\r\r\nx\r\n"),
    SPAN_INIT("(\tx /s x\r\n"),
    SPAN_INIT("X /s\xe9 x\r\n"),
    SPAN_INIT("\x01 /\xe9 x\r\n"),
    SPAN_INIT("0032git-x\t/s\0\n /s y\r\n"),
    SPAN_INIT("GET %2fs x\r\n"),
    SPAN_INIT("GET a:/s x\r\n"),
    SPAN_INIT("X http://y.test/\r\n"),
    SPAN_INIT("OPTIONS *\r\n"),
    SPAN_INIT("CONNECT y.test:443\r\n"),
    SPAN_INIT("POST s HTTP/1.1\r\n"),
    SPAN_INIT("POST /s RTSP/1.0\r\n"),
    SPAN_INIT("SOURCE /s ICE/1.0\r\n"),
    SPAN_INIT("\n\t\n GET /s\n"),
    SPAN_INIT("SSH-2.0-a /b c\r\n"),
    SPAN_INIT("0032git-x /s y\r\n"),
    SPAN_INIT("0032git-x /s\r\n\0"),
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(lines); i++)
    check(&(struct row){ lines[i].ptr, "x.test", lines[i], IDENTITY_HTTP });
}

/* What protocols that are not HTTP begin with, each at its own port. */
static void test_others(void **state)
{
  static const struct {
    uint16_t port;
    struct row row;
  } rows[] = {
    { 22, { "SSH", "x.test", SPAN_INIT("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), IDENTITY_PASS } },
    { 554, { "RTSP", "x.test", SPAN_INIT("OPTIONS rtsp://x.test/ RTSP/1.0\r\n"), IDENTITY_PASS } },
    { 1433, { "TDS", "x.test", SPAN_INIT("\x12\1\0\x2f\0\0\1\0"), IDENTITY_STREAM } },
    { 1883, { "MQTT", "x.test", SPAN_INIT("\x10\x0c\0\4MQTT\4\2\0\x3c\0\0"), IDENTITY_STREAM } },
    { 1,
      { "random bytes", "x.test",
        SPAN_INIT("\x8f\x0e\x4a\xd1\x20\x77\x9c\x0a\x5d\xe1\x00\x2b\xc8\x3f\x20\x6e\x2f\xb4\x20\x0d\x0a"),
        IDENTITY_PASS } },
    { 25, { "SMTP", "x.test", SPAN_INIT("EHLO x.test\r\n"), IDENTITY_PASS } },
    { 80, { "a path with a control byte", "x.test", SPAN_INIT("\1 /\x85 x\r\n"), IDENTITY_PASS } },
    { 8125, { "statsd", "x.test", SPAN_INIT("a.b:1|c\n"), IDENTITY_STREAM } },
    { 2003, { "carbon", "x.test", SPAN_INIT("a.b/c 4 1700000000\n"), IDENTITY_PASS } },
    { 3690, { "svn", "x.test", SPAN_INIT("( 2 ( edit-pipeline ) 17:svn://x.test/repo "), IDENTITY_PASS } },
    { 4222, { "NATS", "x.test", SPAN_INIT("CONNECT {\"verbose\":false}\r\n"), IDENTITY_PASS } },
    { 5222,
      { "XMPP", "x.test", SPAN_INIT("<?xml version='1.0'?><stream:stream xmlns:s='http://a/b'>"), IDENTITY_PASS } },
    { 5432, { "PostgreSQL", "x.test", SPAN_INIT("\0\0\0\x08\x04\xd2\x16\x2f"), IDENTITY_STREAM } },
    { 5672, { "AMQP", "x.test", SPAN_INIT("AMQP\0\0\x09\1"), IDENTITY_STREAM } },
    { 6379, { "Redis", "x.test", SPAN_INIT("*1\r\n$4\r\nPING\r\n"), IDENTITY_PASS } },
    { 6379, { "Redis, a command", "x.test", SPAN_INIT("PING\r\n"), IDENTITY_PASS } },
    { 6379, { "Redis, GET", "x.test", SPAN_INIT("GET /key\r\n"), IDENTITY_PASS } },
    { 6379, { "HTTP at Redis's", "x.test", SPAN_INIT("GET /key HTTP/1.1\r\n"), IDENTITY_HTTP } },
    { 6380, { "Redis elsewhere", "x.test", SPAN_INIT("PING\r\n"), IDENTITY_PASS } },
    { 6667, { "IRC", "x.test", SPAN_INIT("NICK x\r\nUSER x 0 * :x\r\n"), IDENTITY_PASS } },
    { 9092, { "Kafka", "x.test", SPAN_INIT("\0\0\0\x2f\0\x12\0\3\0\0\0\1\0\7librdka"), IDENTITY_STREAM } },
    { 9418, { "git", "x.test", SPAN_INIT("002egit-upload-pack /p.git\0host=x.test\0"), IDENTITY_PASS } },
    { 11211, { "memcached", "x.test", SPAN_INIT("get /x y\r\n"), IDENTITY_PASS } },
    { 11212, { "memcached elsewhere", "x.test", SPAN_INIT("get x y\r\n"), IDENTITY_PASS } },
    { 11211, { "memcached, binary", "x.test", SPAN_INIT("\x80\x0b\0\0\0\0\0\0"), IDENTITY_PASS } },
    { 27017, { "MongoDB", "x.test", SPAN_INIT("\x3a\0\0\0\1\0\0\0\0\0\0\0\xd4\7\0\0"), IDENTITY_STREAM } },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    check_at(&rows[i].row, rows[i].port, false);
}

/* When no more will come, there is an answer. */
static void test_end(void **state)
{
  (void)state;
  assert_int_equal(look("x.test", SPAN(""), true), IDENTITY_PASS);
  assert_int_equal(look("x.test", SPAN("hello"), true), IDENTITY_PASS);
  assert_int_equal(look("x.test", SPAN("hello world"), true), IDENTITY_PASS);
  assert_int_equal(look("x.test", SPAN("GET / HTTP/1.1"), true), IDENTITY_HTTP);
  assert_int_equal(look("x.test", SPAN("\x16\x03\x01\x02"), true), IDENTITY_REFUSE);
  assert_int_equal(look("x.test", SPAN("GET /"), true), IDENTITY_HTTP);
  assert_int_equal(look("x.test", SPAN("\0\0"), true), IDENTITY_PASS);
  assert_int_equal(look_at("x.test", 443, true, SPAN("USER x\r\n"), false), IDENTITY_PASS);
  assert_int_equal(look_at("x.test", PORT, true, SPAN("CWD /pub\r\n"), false), IDENTITY_PASS);
}

/* Nor is a line waited for for ever. */
static void test_ceiling(void **state)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);

  (void)state;
  while (text.len < LIMITS_HTTP_HEAD_BYTES - 1)
    buf_append_byte(&text, text.len == 3 ? ' ' : 'A');
  assert_int_equal(look("x.test", buf_span(&text), false), IDENTITY_MORE);
  buf_append_byte(&text, 'A');
  assert_int_equal(look("x.test", buf_span(&text), false), IDENTITY_REFUSE);
}

static void check_hello(const char *what, const char *host, struct span extensions, size_t piece,
                        enum identity_answer answer)
{
  buf_autofree struct buf message = BUF_INIT(65536);
  buf_autofree struct buf records = BUF_INIT(65536);
  struct row row = { .what = what, .host = host, .answer = answer };

  tls_make_message(extensions, &message);
  tls_make_records(buf_span(&message), piece, &records);
  row.bytes = buf_span(&records);
  check(&row);
}

/* F54, F55: x.test is what SNI_X names. */
static void test_tls(void **state)
{
  static const struct span none = SPAN_INIT("");
  static const struct span x = SPAN_INIT(SNI_X);

  (void)state;
  for (size_t piece = 1; piece < 200; piece += 66) {
    check_hello("the target", "x.test", x, piece, IDENTITY_PASS);
    check_hello("another host", "other.test", x, piece, IDENTITY_REFUSE);
    check_hello("its parent", "test", x, piece, IDENTITY_REFUSE);
    check_hello("no name for a name", "x.test", none, piece, IDENTITY_REFUSE);
    check_hello("no name for an address", "192.0.2.1", none, piece, IDENTITY_PASS);
    check_hello("no name for localhost", "localhost", none, piece, IDENTITY_PASS);
    check_hello("an allowed name for an address", "192.0.2.1", x, piece, IDENTITY_PASS);
    check_hello("another name for localhost", "localhost", x, piece, IDENTITY_REFUSE);
  }
  check(&(struct row){ "not a hello", "x.test", SPAN_INIT("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), IDENTITY_REFUSE });
}

/* A name that comes along with an address: it has to be allowed by itself, on this port. */
static void test_name_of_an_address(void **state)
{
  static const char *const policies[] = {
    "{\"network\": {\"allow\": [\"192.0.2.1:2525\", \"x.test:2525\"], "
    "\"deny\": [{\"host\": \"x.test:2525\", \"methods\": [\"DELETE\"]}]}}",
    "{\"network\": {\"allow\": [\"192.0.2.1:2525\", {\"host\": \"x.test:2525\", \"paths\": [\"/a\"]}]}}",
  };
  buf_autofree struct buf message = BUF_INIT(65536);
  buf_autofree struct buf records = BUF_INIT(65536);
  struct host host;

  (void)state;
  tls_make_message(SPAN(SNI_X), &message);
  tls_make_records(buf_span(&message), 500, &records);
  assert_int_equal(host_parse(SPAN("192.0.2.1"), NULL, &host), 0);
  for (size_t i = 0; i < MEM_COUNT(policies); i++) {
    policy_autofree struct policy *policy = make_policy(policies[i]);
    struct identity identity = { .spoken = false };
    struct err err = ERR_INIT;

    assert_int_equal(identity_look(&identity, policy, &host, PORT, buf_span(&records), false, &err), IDENTITY_PASS);
    identity = (struct identity){ .spoken = false };
    assert_int_equal(identity_look(&identity, policy, &host, 443, buf_span(&records), false, &err), IDENTITY_REFUSE);
  }
}

/* F54: what servers skip in front of a hello, or take for one. */
static void test_records(void **state)
{
  static const struct row rows[] = {
    { "an empty change of ciphers", "x.test", SPAN_INIT("\x14\3\1\0\0\x16\3\1"), IDENTITY_REFUSE },
    { "a warning", "x.test", SPAN_INIT("\x15\3\1\0\2\1\x5a"), IDENTITY_REFUSE },
    { "a warning of another version", "x.test", SPAN_INIT("\x15\0\0\0\2\1\x5a"), IDENTITY_REFUSE },
    { "a warning of the highest that Go reads", "x.test", SPAN_INIT("\x15\x0f\xff\0\2\1\x5a"), IDENTITY_REFUSE },
    { "data", "x.test", SPAN_INIT("\x17\3\3\0\1a"), IDENTITY_REFUSE },
    { "a heartbeat", "x.test", SPAN_INIT("\x18\3\3\0\0"), IDENTITY_REFUSE },
    { "a hello in the form of SSL 2", "x.test", SPAN_INIT("\x80\x2e\1\3\1\0\x15"), IDENTITY_REFUSE },
    { "the same, long", "x.test", SPAN_INIT("\xff\xff\1\3\3"), IDENTITY_REFUSE },
    { "for an address", "192.0.2.1", SPAN_INIT("\x14\3\1\0\0"), IDENTITY_REFUSE },
    { "the first byte of a record", "x.test", SPAN_INIT("\x14"), IDENTITY_MORE },
    { "two bytes of what may be SSL 2", "x.test", SPAN_INIT("\x80\x2e"), IDENTITY_MORE },
    { "another version", "x.test", SPAN_INIT("\x14\2\0\0"), IDENTITY_STREAM },
    { "no version of a hello", "x.test", SPAN_INIT("\x16\x10\0\0"), IDENTITY_STREAM },
    { "no version of SSL", "x.test", SPAN_INIT("\x80\x2e\1\1"), IDENTITY_STREAM },
    { "another type", "x.test", SPAN_INIT("\x13\3\1\0"), IDENTITY_STREAM },
    { "memcached's packets", "x.test", SPAN_INIT("\x80\x0b\0\0\0\0\0\0"), IDENTITY_STREAM },
  };
  static const struct row spoken[] = {
    { "MySQL, a length of 0x114", "x.test", SPAN_INIT("\x14\1\0\1"), IDENTITY_PASS },
    { "MySQL, a length of 0x116", "x.test", SPAN_INIT("\x16\1\0\1"), IDENTITY_PASS },
    { "what could still be a hello", "x.test", SPAN_INIT("\x16"), IDENTITY_MORE },
    { "no hello of another host", "x.test", SPAN_INIT("\x16\3\1\0\4\2\0\0\0"), IDENTITY_REFUSE },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    check(&rows[i]);
  for (size_t i = 0; i < MEM_COUNT(spoken); i++)
    check_at(&spoken[i], PORT, true);
  assert_int_equal(look("x.test", SPAN("\x14"), true), IDENTITY_PASS);
}

/* What an origin answers tells what it took the client's bytes for. */
static void test_answers(void **state)
{
  (void)state;
  assert_true(identity_is_answer(SPAN("HTTP/1.1 200 OK\r\n")));
  assert_true(identity_is_answer(SPAN("HTTP/")));
  assert_true(identity_is_answer(SPAN("\x16\3\3\0\x7a\2")));
  assert_true(identity_is_answer(SPAN("\x15\3\1\0\2\2\x28")));
  assert_false(identity_is_answer(SPAN("")));
  assert_false(identity_is_answer(SPAN("\x16")));
  assert_false(identity_is_answer(SPAN("+PONG\r\n")));
  assert_false(identity_is_answer(SPAN("RTSP/1.0 200 OK\r\n")));
  assert_false(identity_is_answer(SPAN("S")));
  assert_false(identity_is_answer(SPAN("\x16\0\0\0\x0a5.7\0")));
}

/* Requests on a connection whose target stands. */
static void check_fixed_tls(const char *target, uint16_t port, const char *name, const char *text, int expected,
                            const char *expected_host)
{
  policy_autofree struct policy *policy = make_policy(policy_text);
  struct http_fixed fixed = { .port = port, .tls = name };
  struct http_target found;
  struct http_head head;
  struct err err = ERR_INIT;
  int r;

  assert_int_equal(host_parse(span_of(target), NULL, &fixed.host), 0);
  if (name)
    assert_int_equal(host_parse(span_of(name), NULL, &fixed.name), 0);
  assert_int_equal(http_head_parse_request(span_of(text), NULL, &head), 0);
  r = http_fixed_check(&fixed, policy, &head, &err, &found);
  if (r != expected)
    fail_msg("%s: %d, not %d (%s)", text, r, expected, err.message);
  if (r < 0)
    return;
  assert_string_equal(found.host.name, expected_host);
  assert_int_equal(found.port, port);
  assert_int_equal(found.tls, fixed.tls);
}

static void check_fixed(const char *target, uint16_t port, const char *text, int expected, const char *expected_host)
{
  check_fixed_tls(target, port, NULL, text, expected, expected_host);
}

/* The same inside TLS, where the certificates have named one host. */
static void test_requests_in_tls(void **state)
{
  static const char *const x = "x.test";

  (void)state;
  check_fixed_tls(x, 443, x, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, x);
  check_fixed_tls(x, 443, x, "GET / HTTP/1.1\r\nHost: X.test:443\r\n\r\n", 0, x);
  check_fixed_tls(x, 443, x, "GET https://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, x);
  check_fixed_tls(x, 443, x, "GET / HTTP/1.0\r\n\r\n", 0, x);
  check_fixed_tls(x, 443, x, "GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", -EBADMSG, NULL);
  check_fixed_tls(x, 443, x, "GET https://y.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
  check_fixed_tls(x, 443, x, "GET https://x.test:444/ HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
  check_fixed_tls(x, 443, x, "GET / HTTP/1.1\r\nHost: y.test\r\n\r\n", -EACCES, NULL);
  check_fixed_tls(x, 443, x, "GET / HTTP/1.1\r\nHost: x.test:80\r\n\r\n", -EACCES, NULL);
  check_fixed_tls(x, 443, x, "CONNECT x.test:443 HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
  check_fixed_tls("192.0.2.1", 443, x, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, x);
  check_fixed_tls("192.0.2.1", 443, x, "GET / HTTP/1.0\r\n\r\n", 0, x);
  check_fixed_tls("192.0.2.1", 443, x, "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", -EACCES, NULL);
  check_fixed_tls("192.0.2.1", 443, "192.0.2.1", "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", 0, "192.0.2.1");
  check_fixed_tls("192.0.2.1", 443, "192.0.2.1", "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
}

static void test_requests(void **state)
{
  (void)state;
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: X.test.:80\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 80, "GET / HTTP/1.0\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 8080, "GET / HTTP/1.1\r\nHost: x.test:8080\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 8080, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 80, "OPTIONS * HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 80, "GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, "x.test");
  check_fixed("x.test", 80, "GET * HTTP/1.1\r\nHost: x.test\r\n\r\n", -EBADMSG, NULL);
  check_fixed("x.test", 80, "GET /#f HTTP/1.1\r\nHost: x.test\r\n\r\n", -EBADMSG, NULL);
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: a@x.test\r\n\r\n", -EBADMSG, NULL);
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost:\r\n\r\n", -EBADMSG, NULL);
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", -EACCES, NULL);
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: x.test:81\r\n\r\n", -EACCES, NULL);
  check_fixed("x.test", 80, "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", -EACCES, NULL);
  check_fixed("x.test", 80, "GET http://y.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
  check_fixed("x.test", 80, "GET http://x.test/ HTTP/1.1\r\nHost: y.test\r\n\r\n", -EACCES, NULL);
  check_fixed("x.test", 80, "GET https://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", -EBADMSG, NULL);
  check_fixed("x.test", 80, "CONNECT x.test:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
  check_fixed("192.0.2.1", 80, "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", 0, "192.0.2.1");
  check_fixed("192.0.2.1", 80, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", 0, "x.test");
  check_fixed("192.0.2.1", 80, "GET / HTTP/1.1\r\nHost: y.test\r\n\r\n", -EACCES, NULL);
  check_fixed("192.0.2.1", 80, "GET / HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n", -EACCES, NULL);
  check_fixed("localhost", 80, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 0, "localhost");
  check_fixed("localhost", 80, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", -EACCES, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lenient),
    cmocka_unit_test(test_others),
    cmocka_unit_test(test_text),
    cmocka_unit_test(test_end),
    cmocka_unit_test(test_ceiling),
    cmocka_unit_test(test_tls),
    cmocka_unit_test(test_records),
    cmocka_unit_test(test_answers),
    cmocka_unit_test(test_requests),
    cmocka_unit_test(test_name_of_an_address),
    cmocka_unit_test(test_requests_in_tls),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
