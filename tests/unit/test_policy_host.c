#include "policy/host.h"
#include "unit/unit.h"

static void test_names(void **state)
{
  static const struct {
    const char *text;
    const char *canonical; /* NULL: refused */
    enum host_kind kind;
  } rows[] = {
    { "example.com", "example.com", HOST_NAME },
    { "EXAMPLE.Com", "example.com", HOST_NAME },
    { "example.com.", "example.com", HOST_NAME }, /* F53 */
    { "localhost", "localhost", HOST_NAME },
    { "a", "a", HOST_NAME },
    { "_dmarc.example.com", "_dmarc.example.com", HOST_NAME },
    { "xn--bcher-kva.example", "xn--bcher-kva.example", HOST_NAME },
    { "r1---sn-x.example.com", "r1---sn-x.example.com", HOST_NAME },
    { "3com.com", "3com.com", HOST_NAME },
    { "1.2.3.4", "1.2.3.4", HOST_ADDR },
    { "::1", "::1", HOST_ADDR },
    { "[::1]", "::1", HOST_ADDR },
    { "[2001:DB8::1]", "2001:db8::1", HOST_ADDR },
    { "", NULL, 0 },
    { ".", NULL, 0 },
    { "..", NULL, 0 },
    { ".example.com", NULL, 0 },
    { "example..com", NULL, 0 },
    { "example.com..", NULL, 0 },
    { "-a.example.com", NULL, 0 },
    { "a-.example.com", NULL, 0 },
    { "exam ple.com", NULL, 0 },
    { " example.com", NULL, 0 },
    { "example.com\t", NULL, 0 },
    { "example.com\r\n", NULL, 0 },
    { "ex%61mple.com", NULL, 0 },
    { "example.com/", NULL, 0 },
    { "http://example.com", NULL, 0 },
    { "user@example.com", NULL, 0 },
    { "example.com:80", NULL, 0 },
    { "*.example.com", NULL, 0 },
    { "b\xc3\xbc"
      "cher.example",
      NULL, 0 },
    { "exa\xe3\x80\x82mple.com", NULL, 0 }, /* an ideographic full stop, which some resolvers take as a dot */
    { "example.com\x7f", NULL, 0 },
    { "a\\b.com", NULL, 0 },
    { "[1.2.3.4]", NULL, 0 },
    { "[::1", NULL, 0 },
    { "::1]", NULL, 0 },
    { "[]", NULL, 0 },
    { "[", NULL, 0 },
    { "[example.com]", NULL, 0 },
    { "fe80::1%lo", NULL, 0 },
    /* F52: decimal, octal, hexadecimal and short forms that resolvers take for addresses. */
    { "2130706433", NULL, 0 },
    { "017700000001", NULL, 0 },
    { "0x7f000001", NULL, 0 },
    { "0X7F000001", NULL, 0 },
    { "0x", NULL, 0 },
    { "127.1", NULL, 0 },
    { "127.0.0.1.", NULL, 0 },
    { "127.0.0.0x1", NULL, 0 },
    { "example.0x1f", NULL, 0 },
    { "1.2.3.4.5", NULL, 0 },
    { "example.1", NULL, 0 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct host host;
    int r = host_parse(span_of(rows[i].text), &err, &host);
    unit_assert_row((r == 0) == (rows[i].canonical != NULL), rows[i].text, "accepted or refused wrongly");
    if (r < 0) {
      unit_assert_row(r == -EINVAL && err.code == EINVAL && err.message[0], rows[i].text, "no reason");
      continue;
    }
    unit_assert_row(strcmp(host.name, rows[i].canonical) == 0, rows[i].text, host.name);
    unit_assert_row(host.kind == rows[i].kind, rows[i].text, "wrong kind");
  }
}

static void test_name_with_nul(void **state)
{
  struct host host;

  (void)state;
  assert_int_equal(host_parse((struct span){ "example.com\0.evil.test", 22 }, NULL, &host), -EINVAL);
  assert_int_equal(host_parse((struct span){ "127.0.0.1\0", 10 }, NULL, &host), -EINVAL);
}

static void test_lengths(void **state)
{
  char label[65];
  char name[300];
  struct host host;

  (void)state;
  memset(label, 'a', sizeof label);
  assert_int_equal(host_parse((struct span){ label, 63 }, NULL, &host), 0);
  assert_int_equal(host_parse((struct span){ label, 64 }, NULL, &host), -EINVAL);
  for (size_t i = 0; i < sizeof name; i++)
    name[i] = i % 2 ? '.' : 'a';
  assert_int_equal(host_parse((struct span){ name, 253 }, NULL, &host), 0);
  assert_int_equal(strlen(host.name), 253);
  assert_int_equal(host_parse((struct span){ name, 254 }, NULL, &host), 0); /* with a trailing dot */
  assert_int_equal(strlen(host.name), 253);
  assert_int_equal(host_parse((struct span){ name, 255 }, NULL, &host), -EINVAL);
}

static void test_targets(void **state)
{
  static const struct {
    const char *text;
    const char *printed; /* NULL: refused */
    uint16_t default_port;
  } rows[] = {
    { "example.com:443", "example.com:443", 0 },
    { "Example.com.:443", "example.com:443", 0 },
    { "example.com", "example.com:80", 80 },
    { "example.com", NULL, 0 },
    { "1.2.3.4:1", "1.2.3.4:1", 0 },
    { "[::1]:65535", "[::1]:65535", 0 },
    { "[::1]", "[::1]:443", 443 },
    { "::1", "[::1]:443", 443 },
    { "::1:80", "[::1:80]:443", 443 }, /* F53: never split at a ':' of the address */
    { "::1:80", NULL, 0 },
    { "example.com:0", NULL, 80 },
    { "example.com:65536", NULL, 80 },
    { "example.com:", NULL, 80 },
    { "example.com:443x", NULL, 80 },
    { "example.com:x443", NULL, 80 },
    { "example.com:+443", NULL, 80 },
    { "example.com:-1", NULL, 80 },
    { "example.com: 443", NULL, 80 },
    { "example.com:443 ", NULL, 80 },
    { "example.com:0443", NULL, 80 },
    { "example.com:4294967739", NULL, 80 },
    { "example.com:18446744073709552059", NULL, 80 },
    { "example.com:80:80", NULL, 80 },
    { "[::1]80", NULL, 80 },
    { "[::1]x:80", NULL, 80 },
    { "[::1]:", NULL, 80 },
    { "[::1]:80:80", NULL, 80 },
    { "[]:80", NULL, 80 },
    { ":80", NULL, 80 },
    { "", NULL, 80 },
    { "user@example.com:80", NULL, 80 },
    { "example.com/x:80", NULL, 80 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct buf out = BUF_INIT(512);
    struct host host;
    uint16_t port = 0;
    int r = host_parse_target(span_of(rows[i].text), rows[i].default_port, NULL, &host, &port);
    unit_assert_row((r == 0) == (rows[i].printed != NULL), rows[i].text, "accepted or refused wrongly");
    if (r == 0) {
      host_print_target(&host, port, &out);
      unit_assert_row(strcmp(out.data, rows[i].printed) == 0, rows[i].text, out.data);
    }
    buf_free(&out);
  }
}

static void test_subdomains(void **state)
{
  (void)state;
  assert_true(host_is_subdomain(SPAN("a.github.com"), SPAN("github.com")));
  assert_true(host_is_subdomain(SPAN("a.b.github.com"), SPAN("github.com")));
  assert_false(host_is_subdomain(SPAN("github.com"), SPAN("github.com")));
  assert_false(host_is_subdomain(SPAN("malicious-github.com"), SPAN("github.com"))); /* F53 */
  assert_false(host_is_subdomain(SPAN(".github.com"), SPAN("github.com")));
  assert_false(host_is_subdomain(SPAN("com"), SPAN("github.com")));
  assert_false(host_is_subdomain(SPAN("github.com.evil.test"), SPAN("github.com")));
}

/* Whatever is accepted is canonical: it parses to itself, also behind HOST:PORT. */
static void test_canonical_property(void **state)
{
  static const char alphabet[] = "aZ09-_..:[]xX%/* \x7f\xc3";
  struct unit_random random = unit_seed("host");
  size_t accepted = 0;

  (void)state;
  for (int i = 0; i < 200000; i++) {
    char text[12];
    size_t len = unit_below(&random, sizeof text);
    for (size_t j = 0; j < len; j++)
      text[j] = alphabet[unit_below(&random, sizeof alphabet)]; /* the NUL included */
    struct host host;
    struct host again;
    if (host_parse((struct span){ text, len }, NULL, &host) < 0)
      continue;
    accepted++;
    assert_int_equal(host_parse(span_of(host.name), NULL, &again), 0);
    assert_string_equal(again.name, host.name);
    assert_int_equal(again.kind, host.kind);
    struct buf out = BUF_INIT(512);
    uint16_t port;
    host_print_target(&host, 8443, &out);
    assert_int_equal(host_parse_target(buf_span(&out), 0, NULL, &again, &port), 0);
    assert_string_equal(again.name, host.name);
    assert_int_equal(port, 8443);
    buf_free(&out);
  }
  assert_true(accepted > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),   cmocka_unit_test(test_name_with_nul), cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_targets), cmocka_unit_test(test_subdomains),    cmocka_unit_test(test_canonical_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
