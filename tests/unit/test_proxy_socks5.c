#include "proxy/socks5.h"
#include "unit/unit.h"

#define NAME_255_A "\xff" NAME_50_A NAME_50_A NAME_50_A NAME_50_A NAME_50_A "aaaaa"
#define NAME_50_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."

static struct span part_of(struct span text, size_t len)
{
  return (struct span){ text.ptr, len };
}

/* A copy of exactly the bytes, so that a sanitizer or valgrind sees a read past them. */
static char *copy_of(struct span text)
{
  char *copy = malloc(text.len ? text.len : 1);

  assert_non_null(copy);
  if (text.len)
    memcpy(copy, text.ptr, text.len);
  return copy;
}

static void test_greeting(void **state)
{
  static const struct {
    const char *what;
    struct span text;
    int result;
    bool usable;
    size_t len;
  } rows[] = {
    { "none alone", SPAN_INIT("\x05\x01\x00"), 1, true, 3 },
    { "none among others", SPAN_INIT("\x05\x03\x02\x01\x00"), 1, true, 5 },
    { "password alone", SPAN_INIT("\x05\x01\x02"), 1, false, 3 },
    { "a method 0xff", SPAN_INIT("\x05\x02\x01\xff"), 1, false, 4 },
    { "none once more after the greeting", SPAN_INIT("\x05\x01\x02\x00"), 1, false, 3 },
    { "with the request behind it", SPAN_INIT("\x05\x01\x00\x05\x01\x00\x03"), 1, true, 3 },
    { "no method", SPAN_INIT("\x05\x00"), -EBADMSG, false, 0 },
    { "no method, bytes behind", SPAN_INIT("\x05\x00\x00"), -EBADMSG, false, 0 },
    { "SOCKS 4", SPAN_INIT("\x04\x01\x00\x50\xc0\x00\x02\x01\x00"), -EPROTONOSUPPORT, false, 0 },
    { "SOCKS 4a", SPAN_INIT("\x04\x01\x00\x50\x00\x00\x00\x01\x00x.test\x00"), -EPROTONOSUPPORT, false, 0 },
    { "HTTP", SPAN_INIT("GET / HTTP/1.1\r\n"), -EPROTONOSUPPORT, false, 0 },
    { "TLS", SPAN_INIT("\x16\x03\x01"), -EPROTONOSUPPORT, false, 0 },
    { "version 0", SPAN_INIT("\x00\x01\x00"), -EPROTONOSUPPORT, false, 0 },
    { "nothing yet", SPAN_INIT(""), 0, false, 0 },
    { "version only", SPAN_INIT("\x05"), 0, false, 0 },
    { "a method is missing", SPAN_INIT("\x05\x02\x00"), 0, false, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    bool usable = false;
    size_t len = 0;
    int r = socks5_parse_greeting(rows[i].text, &err, &usable, &len);

    unit_assert_row(r == rows[i].result, rows[i].what, "result");
    unit_assert_row(usable == rows[i].usable && len == rows[i].len, rows[i].what, "method or length");
    unit_assert_row((r < 0) == (err.code != 0), rows[i].what, "cause");
  }
}

static void test_versions_named(void **state)
{
  struct err err = ERR_INIT;
  bool usable;
  size_t len;

  (void)state;
  assert_int_equal(socks5_parse_greeting(SPAN("\x04\x01"), &err, &usable, &len), -EPROTONOSUPPORT);
  assert_non_null(strstr(err.message, "SOCKS 4"));
}

struct request_row {
  const char *what;
  struct span text;
  int result;
  const char *host; /* when accepted */
  uint16_t port;
  const char *cause; /* when refused: part of the message, the same in no other kind of refusal */
};

static const struct request_row request_rows[] = {
  { "name", SPAN_INIT("\x05\x01\x00\x03\x06x.test\x01\xbb"), 1, "x.test", 443, NULL },
  { "name, upper case", SPAN_INIT("\x05\x01\x00\x03\x06X.TEST\x00\x50"), 1, "x.test", 80, NULL },
  { "F53: name with the root's dot", SPAN_INIT("\x05\x01\x00\x03\x07x.test.\x00\x50"), 1, "x.test", 80, NULL },
  { "IPv4", SPAN_INIT("\x05\x01\x00\x01\xc0\x00\x02\x07\xff\xff"), 1, "192.0.2.7", 65535, NULL },
  { "IPv6", SPAN_INIT("\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01"), 1,
    "2001:db8::1", 1, NULL },
  { "IPv4 as a name",
    SPAN_INIT("\x05\x01\x00\x03\x09"
              "192.0.2.7\x00\x50"),
    1, "192.0.2.7", 80, NULL },
  { "IPv6 as a name", SPAN_INIT("\x05\x01\x00\x03\x03::1\x00\x50"), 1, "::1", 80, NULL },
  { "unspecified IPv4", SPAN_INIT("\x05\x01\x00\x01\x00\x00\x00\x00\x00\x50"), 1, "0.0.0.0", 80, NULL },
  { "bytes of the tunnel behind it", SPAN_INIT("\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50GET /"), 1, "192.0.2.7", 80,
    NULL },
  { "SOCKS 4", SPAN_INIT("\x04\x01\x00\x50"), -EPROTONOSUPPORT, NULL, 0, "SOCKS 4" },
  { "version 6", SPAN_INIT("\x06\x01\x00\x01"), -EPROTONOSUPPORT, NULL, 0, "version is 6" },
  { "BIND", SPAN_INIT("\x05\x02\x00\x01\xc0\x00\x02\x07\x00\x50"), -EOPNOTSUPP, NULL, 0, "BIND" },
  { "UDP ASSOCIATE", SPAN_INIT("\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00"), -EOPNOTSUPP, NULL, 0, "UDP ASSOCIATE" },
  { "command 0", SPAN_INIT("\x05\x00\x00\x01"), -EOPNOTSUPP, NULL, 0, "command 0" },
  { "RESOLVE of another project", SPAN_INIT("\x05\xf0\x00\x03"), -EOPNOTSUPP, NULL, 0, "command 240" },
  { "reserved byte", SPAN_INIT("\x05\x01\x01\x01\xc0\x00\x02\x07\x00\x50"), -EBADMSG, NULL, 0, "reserved" },
  { "address type 0", SPAN_INIT("\x05\x01\x00\x00"), -EAFNOSUPPORT, NULL, 0, "address type 0" },
  { "address type 2", SPAN_INIT("\x05\x01\x00\x02\x01x\x00\x50"), -EAFNOSUPPORT, NULL, 0, "address type 2" },
  { "address type 5", SPAN_INIT("\x05\x01\x00\x05"), -EAFNOSUPPORT, NULL, 0, "address type 5" },
  { "empty name", SPAN_INIT("\x05\x01\x00\x03\x00"), -EINVAL, NULL, 0, "is empty" },
  { "F53: NUL in a name", SPAN_INIT("\x05\x01\x00\x03\x0bx.test\0.com\x00\x50"), -EINVAL, NULL, 0, "control byte" },
  { "NUL at the end", SPAN_INIT("\x05\x01\x00\x03\x07x.test\0\x00\x50"), -EINVAL, NULL, 0, "control byte" },
  { "line end in a name", SPAN_INIT("\x05\x01\x00\x03\x07x.test\n\x00\x50"), -EINVAL, NULL, 0, "control byte" },
  { "space", SPAN_INIT("\x05\x01\x00\x03\x07 x.test\x00\x50"), -EINVAL, NULL, 0, "space" },
  { "percent", SPAN_INIT("\x05\x01\x00\x03\x07x%.test\x00\x50"), -EINVAL, NULL, 0, "'%'" },
  { "a port in the name", SPAN_INIT("\x05\x01\x00\x03\x09x.test:80\x00\x50"), -EINVAL, NULL, 0, "neither a host" },
  { "brackets", SPAN_INIT("\x05\x01\x00\x03\x05[::1]\x00\x50"), -EINVAL, NULL, 0, "brackets" },
  { "F52: decimal address",
    SPAN_INIT("\x05\x01\x00\x03\x0a"
              "2130706433\x00\x50"),
    -EINVAL, NULL, 0, "four decimal" },
  { "F52: octal address",
    SPAN_INIT("\x05\x01\x00\x03\x0a"
              "0177.0.0.1\x00\x50"),
    -EINVAL, NULL, 0, "four decimal" },
  { "F52: short address",
    SPAN_INIT("\x05\x01\x00\x03\x05"
              "127.1\x00\x50"),
    -EINVAL, NULL, 0, "four decimal" },
  { "not ASCII", SPAN_INIT("\x05\x01\x00\x03\x08x\xc3\xa9.test\x00\x50"), -EINVAL, NULL, 0, "not ASCII" },
  { "long labels", SPAN_INIT("\x05\x01\x00\x03\x46" NAME_50_A "bbbbbbbbbbbbbbbbbbbb\x00\x50"), 1,
    NAME_50_A "bbbbbbbbbbbbbbbbbbbb", 80, NULL },
  { "name too long", SPAN_INIT("\x05\x01\x00\x03" NAME_255_A "\x00\x50"), -EINVAL, NULL, 0, "at most 253" },
  { "port 0, name", SPAN_INIT("\x05\x01\x00\x03\x06x.test\x00\x00"), -EINVAL, NULL, 0, "port of the request is 0" },
  { "port 0, IPv4", SPAN_INIT("\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x00"), -EINVAL, NULL, 0, "port of the request" },
};

/* Every prefix: more is needed, until the byte that decides; after that the answer does not change. */
static void check_prefixes(const struct request_row *row)
{
  bool decided = false;

  for (size_t len = 0; len <= row->text.len; len++) {
    char *copy = copy_of(part_of(row->text, len));
    struct socks5_request request;
    size_t used = 0;
    int r = socks5_parse_request((struct span){ copy, len }, NULL, &request, &used);

    unit_assert_row(r == row->result || (r == 0 && !decided), row->what, "a prefix gives another answer");
    unit_assert_row(r <= 0 || used <= len, row->what, "longer than its input");
    decided = decided || r != 0;
    free(copy);
  }
  unit_assert_row(decided, row->what, "never decided");
}

static void test_request(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(request_rows); i++) {
    const struct request_row *row = &request_rows[i];
    struct err err = ERR_INIT;
    struct socks5_request request = { 0 };
    size_t len = 0;
    int r = socks5_parse_request(row->text, &err, &request, &len);

    unit_assert_row(r == row->result, row->what, err.message);
    if (r == 1) {
      unit_assert_row(strcmp(request.host.name, row->host) == 0, row->what, request.host.name);
      unit_assert_row(request.port == row->port, row->what, "port");
    } else {
      unit_assert_row(strstr(err.message, row->cause), row->what, err.message);
      unit_assert_row(request.port == 0 && len == 0, row->what, "outputs changed by a failure");
    }
    check_prefixes(row);
  }
}

/* Greeting and request in one segment, and what the tunnel carries behind them. */
static void test_pipelined(void **state)
{
  struct span text = SPAN("\x05\x02\x02\x00\x05\x01\x00\x03\x06x.test\x01\xbbhello");
  struct socks5_request request;
  bool usable;
  size_t len;

  (void)state;
  assert_int_equal(socks5_parse_greeting(text, NULL, &usable, &len), 1);
  assert_true(usable);
  text = span_sub(text, len, text.len);
  assert_int_equal(socks5_parse_request(text, NULL, &request, &len), 1);
  assert_int_equal(request.port, 443);
  assert_true(span_equal_str(span_sub(text, len, text.len), "hello"));
}

static void test_encode(void **state)
{
  struct addr v4 = { .family = ADDR_V4, .bytes = { 192, 0, 2, 7 } };
  struct addr v6 = { .family = ADDR_V6, .bytes = { 0x20, 1, 0x0d, 0xb8, [15] = 9 } };
  char out[SOCKS5_REPLY_MAX_BYTES];

  (void)state;
  socks5_encode_method(true, out);
  assert_memory_equal(out, "\x05\x00", 2);
  socks5_encode_method(false, out);
  assert_memory_equal(out, "\x05\xff", 2);
  assert_int_equal(socks5_encode_reply(SOCKS5_NOT_ALLOWED, NULL, 0, out), 10);
  assert_memory_equal(out, "\x05\x02\x00\x01\0\0\0\0\0\0", 10);
  assert_int_equal(socks5_encode_reply(SOCKS5_SUCCEEDED, &v4, 0x1234, out), 10);
  assert_memory_equal(out, "\x05\x00\x00\x01\xc0\x00\x02\x07\x12\x34", 10);
  assert_int_equal(socks5_encode_reply(SOCKS5_SUCCEEDED, &v6, 443, out), 22);
  assert_memory_equal(out, "\x05\x00\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\x01\xbb", 22);
}

/* One line per reason: a reason that is added later has none and fails here. */
static void test_reasons(void **state)
{
  static const struct {
    const char *word;
    int reply;
  } rows[] = {
    { "allowed", 0 },
    { "deny-rule", 2 },
    { "not-allowed", 2 },
    { "port-not-allowed", 2 },
    { "method-not-allowed", 2 },
    { "path-not-allowed", 2 },
    { "ambiguous-request", 2 },
    { "not-http", 2 },
    { "address-loopback", 2 },
    { "address-unspecified", 2 },
    { "address-private", 2 },
    { "address-cgnat", 2 },
    { "address-link-local", 2 },
    { "address-metadata", 2 },
    { "address-multicast", 2 },
    { "bad-target", 1 },
    { "bad-request", 1 },
    { "identity-mismatch", 2 },
    { "not-terminated", 2 },
    { "credential-misuse", 2 },
    { "credential-signature", 2 },
    { "resolve-failed", 4 },
    { "connect-refused", 5 },
    { "connect-timeout", 6 },
    { "connect-failed", 3 },
    { "parent-unreachable", 1 },
    { "parent-auth", 1 },
    { "parent-refused", 1 },
    { "parent-bad-reply", 1 },
    { "upstream-tls", 1 },
    { "client-tls", 1 },
    { "credential-unavailable", 1 },
    { "upstream-closed", 1 },
    { "bad-response", 1 },
    { "limit", 1 },
    { "limit-connections", 1 },
    { "limit-dials", 1 },
    { "limit-head", 1 },
    { "limit-body", 1 },
    { "limit-time", 1 },
    { "limit-lookups", 1 },
    { "limit-names", 1 },
    { "limit-ports", 1 },
    { "network-none", 2 },
  };

  (void)state;
  assert_int_equal(MEM_COUNT(rows), REASON_COUNT);
  for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
    assert_string_equal(reason_word((enum reason)reason), rows[reason].word);
    if ((int)socks5_reply_of_reason((enum reason)reason) != rows[reason].reply)
      fail_msg("%s: reply %u", rows[reason].word, socks5_reply_of_reason((enum reason)reason));
  }
  assert_int_equal(socks5_reply_of_reason(REASON_COUNT), SOCKS5_GENERAL_FAILURE);
  assert_int_equal(socks5_reply_of_error(-EOPNOTSUPP), 7);
  assert_int_equal(socks5_reply_of_error(-EAFNOSUPPORT), 8);
  assert_int_equal(socks5_reply_of_error(-EBADMSG), 1);
  assert_int_equal(socks5_reply_of_error(-EINVAL), 1);
  assert_int_equal(socks5_reply_of_error(0), 1);
}

/* What a host and port encode to is read back as the same. */
static void test_round_trip(void **state)
{
  static const char alphabet[] = "abz09-_.AZ:[]%";
  struct unit_random random = unit_seed("socks5");
  size_t accepted = 0;

  (void)state;
  for (int round = 0; round < 50000; round++) {
    char text[4 + 1 + 32 + 2] = { 5, 1, 0, 3 };
    size_t name = 1 + unit_below(&random, 12);
    struct socks5_request request;
    struct host host;
    size_t len;
    int r;

    text[4] = (char)name;
    for (size_t i = 0; i < name; i++)
      text[5 + i] = alphabet[unit_below(&random, sizeof alphabet - 1)];
    text[5 + name] = (char)unit_below(&random, 3);
    text[6 + name] = (char)unit_below(&random, 3);
    r = socks5_parse_request((struct span){ text, sizeof text }, NULL, &request, &len);
    if (text[5] == '[' || host_parse((struct span){ text + 5, name }, NULL, &host) < 0 ||
        (text[5 + name] == 0 && text[6 + name] == 0)) {
      assert_int_equal(r, -EINVAL);
      continue;
    }
    assert_int_equal(r, 1);
    assert_int_equal(len, 7 + name);
    assert_string_equal(request.host.name, host.name);
    assert_int_equal(request.port, text[5 + name] << 8 | text[6 + name]);
    accepted++;
  }
  assert_true(accepted > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_greeting),   cmocka_unit_test(test_versions_named), cmocka_unit_test(test_request),
    cmocka_unit_test(test_pipelined),  cmocka_unit_test(test_encode),         cmocka_unit_test(test_reasons),
    cmocka_unit_test(test_round_trip),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
