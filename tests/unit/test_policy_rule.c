#include "policy/rule.h"
#include "unit/unit.h"

static const struct {
  const char *text;
  const char *canonical; /* NULL: refused */
  enum policy_host_kind kind;
  const char *ports;
} grammar_rows[] = {
  { "api.example.com", "api.example.com", POLICY_HOST_NAME, "80-80 443-443" },
  { "API.Example.COM.", "api.example.com", POLICY_HOST_NAME, "80-80 443-443" },
  { "db.internal:5432", "db.internal:5432", POLICY_HOST_NAME, "5432-5432" },
  { "a.test:8000-8010", "a.test:8000-8010", POLICY_HOST_NAME, "8000-8010" },
  { "a.test:8000-8000", "a.test:8000", POLICY_HOST_NAME, "8000-8000" },
  { "a.test:*", "a.test:*", POLICY_HOST_NAME, "1-65535" },
  { "a.test:1-65535", "a.test:*", POLICY_HOST_NAME, "1-65535" },
  { "a.test:80", "a.test:80", POLICY_HOST_NAME, "80-80" },
  { "intranet", "intranet", POLICY_HOST_NAME, "80-80 443-443" },
  { "*.githubusercontent.com", "*.githubusercontent.com", POLICY_HOST_SUBDOMAINS, "80-80 443-443" },
  { "*.Example.com.:22", "*.example.com:22", POLICY_HOST_SUBDOMAINS, "22-22" },
  { "10.20.0.0/16:443", "10.20.0.0/16:443", POLICY_HOST_PREFIX, "443-443" },
  { "10.20.0.0/16", "10.20.0.0/16", POLICY_HOST_PREFIX, "80-80 443-443" },
  { "10.0.0.1", "10.0.0.1", POLICY_HOST_PREFIX, "80-80 443-443" },
  { "10.0.0.1/32:5", "10.0.0.1:5", POLICY_HOST_PREFIX, "5-5" },
  { "2001:db8::1", "2001:db8::1", POLICY_HOST_PREFIX, "80-80 443-443" },
  { "2001:DB8::/32", "2001:db8::/32", POLICY_HOST_PREFIX, "80-80 443-443" },
  { "[2001:db8::1]", "2001:db8::1", POLICY_HOST_PREFIX, "80-80 443-443" },
  { "[2001:db8::1]:22", "[2001:db8::1]:22", POLICY_HOST_PREFIX, "22-22" },
  { "[2001:db8::/32]:22-23", "[2001:db8::/32]:22-23", POLICY_HOST_PREFIX, "22-23" },
  { "::1:80", "::1:80", POLICY_HOST_PREFIX, "80-80 443-443" }, /* F53: all of it is the address */
  { "localhost", "localhost", POLICY_HOST_LOCALHOST, "80-80 443-443" },
  { "LOCALHOST.:5432", "localhost:5432", POLICY_HOST_LOCALHOST, "5432-5432" },
  { "*", "*", POLICY_HOST_ANY, "80-80 443-443" },
  { "*:*", "*:*", POLICY_HOST_ANY, "1-65535" },
  { "*:25", "*:25", POLICY_HOST_ANY, "25-25" },
  { "", NULL, 0, NULL },
  { ":80", NULL, 0, NULL },
  { "*.com", NULL, 0, NULL },
  { "*.com.", NULL, 0, NULL },
  { "*.localhost", NULL, 0, NULL },
  { "*foo.com", NULL, 0, NULL }, /* F53 */
  { "foo.*", NULL, 0, NULL },
  { "foo.*.com", NULL, 0, NULL },
  { "*.*.com", NULL, 0, NULL },
  { "**.example.com", NULL, 0, NULL },
  { "*.", NULL, 0, NULL },
  { "*..com", NULL, 0, NULL },
  { "*.10.0.0.1", NULL, 0, NULL },
  { "10.0.0.*", NULL, 0, NULL },
  { "**", NULL, 0, NULL },
  { "https://example.com", NULL, 0, NULL },
  { "https://example.com/x", NULL, 0, NULL },
  { "example.com/x", NULL, 0, NULL },
  { "example.com/", NULL, 0, NULL },
  { "/example.com", NULL, 0, NULL },
  { "user@example.com", NULL, 0, NULL },
  { "ex%2eample.com", NULL, 0, NULL },
  { "example.com\n", NULL, 0, NULL },
  { "exam ple.com", NULL, 0, NULL },
  { "example.com ", NULL, 0, NULL },
  { " example.com", NULL, 0, NULL },
  { "example.com:", NULL, 0, NULL },
  { "example.com:0", NULL, 0, NULL },
  { "example.com:65536", NULL, 0, NULL },
  { "example.com:443x", NULL, 0, NULL }, /* F53 */
  { "example.com:80,443", NULL, 0, NULL },
  { "example.com:90-80", NULL, 0, NULL },
  { "example.com:80-", NULL, 0, NULL },
  { "example.com:-80", NULL, 0, NULL },
  { "example.com:80-90-100", NULL, 0, NULL },
  { "example.com:**", NULL, 0, NULL },
  { "example.com:080", NULL, 0, NULL },
  { "example.com:80:90", NULL, 0, NULL },
  { "10.20.0.1/16", NULL, 0, NULL },
  { "10.20.0.0/33", NULL, 0, NULL },
  { "10.20.0.0/:80", NULL, 0, NULL },
  { "10.20.0.0:80/16", NULL, 0, NULL },
  { "0x7f000001", NULL, 0, NULL }, /* F52 */
  { "2130706433", NULL, 0, NULL },
  { "127.1", NULL, 0, NULL },
  { "[::1]/64:80", NULL, 0, NULL },
  { "[::1]x", NULL, 0, NULL },
  { "[::1", NULL, 0, NULL },
  { "[10.0.0.1]:80", NULL, 0, NULL },
  { "[example.com]:80", NULL, 0, NULL },
  { "[", NULL, 0, NULL },
  { "[]", NULL, 0, NULL },
  { "[*]:80", NULL, 0, NULL },
};
static void test_grammar(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(grammar_rows); i++) {
    struct err err = ERR_INIT;
    struct policy_rule rule;
    struct buf ports = BUF_INIT(64);
    int r = rule_parse(span_of(grammar_rows[i].text), RULE_ALLOW, &err, &rule);
    unit_assert_row((r == 0) == (grammar_rows[i].canonical != NULL), grammar_rows[i].text,
                    "accepted or refused wrongly");
    if (r < 0) {
      unit_assert_row(r == -EINVAL && err.message[0], grammar_rows[i].text, "no reason");
      continue;
    }
    unit_assert_row(strcmp(rule.text, grammar_rows[i].canonical) == 0, grammar_rows[i].text, rule.text);
    unit_assert_row(rule.kind == grammar_rows[i].kind, grammar_rows[i].text, "wrong kind");
    for (size_t j = 0; j < rule.port_count; j++)
      buf_printf(&ports, "%s%u-%u", j > 0 ? " " : "", rule.ports[j].first, rule.ports[j].last);
    unit_assert_row(strcmp(ports.data, grammar_rows[i].ports) == 0, grammar_rows[i].text, ports.data);
    buf_free(&ports);
    rule_free(&rule);
  }
}

static void test_embedded_nul(void **state)
{
  struct policy_rule rule;

  (void)state;
  assert_int_equal(rule_parse((struct span){ "a.test\0.evil.test", 17 }, RULE_ALLOW, NULL, &rule), -EINVAL);
  assert_int_equal(rule_parse((struct span){ "a.test:80\0", 10 }, RULE_ALLOW, NULL, &rule), -EINVAL);
}

/* The message says what to write instead. */
static void test_messages(void **state)
{
  static const struct {
    const char *text;
    const char *part;
  } rows[] = {
    { "10.20.1.0/16", "write 10.20.0.0/16" },
    { "2001:db8::1/32", "write 2001:db8::/32" },
    { "2001:db8::/32:443", "[ADDRESS/LENGTH]:PORTS" },
    { "*.com", "*.example.com" },
    { "*foo.com", "first label" },
    { "https://example.com/", "URL" },
    { "example.com/x", "path" },
    { "example.com:90-80", "write 80-90" },
    { "b\xc3\xbc.example", "xn--" },
    { "0x7f000001", "IPv4" },
    { "a%b.test", "'%'" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct policy_rule rule;
    assert_int_equal(rule_parse(span_of(rows[i].text), RULE_ALLOW, &err, &rule), -EINVAL);
    unit_assert_row(strstr(err.message, rows[i].part), rows[i].text, err.message);
  }
}

static void test_covers(void **state)
{
  static const struct {
    const char *rule;
    const char *host;
    bool covers;
  } rows[] = {
    { "example.com", "example.com", true },
    { "example.com", "EXAMPLE.com.", true }, /* F53 */
    { "example.com", "www.example.com", false },
    { "*.example.com", "www.example.com", true },
    { "*.example.com", "a.b.example.com", true },
    { "*.example.com", "example.com", false },
    { "*.example.com", "badexample.com", false },
    { "*.example.com", "example.com.evil.test", false },
    { "*", "anything.test", true },
    { "*", "1.2.3.4", true },
    { "localhost", "localhost", true },
    { "localhost", "localhost.example.com", false },
    { "10.0.0.0/8", "10.1.2.3", true },
    { "10.0.0.0/8", "11.1.2.3", false },
    { "10.0.0.0/8", "::ffff:10.1.2.3", true },
    { "10.0.0.0/8", "64:ff9b::10.1.2.3", false },
    { "10.0.0.0/8", "::ffff:10.1.2.3", true },
    { "10.0.0.0/8", "2002:a01:203::1", false },
    { "10.0.0.0/8", "::10.1.2.3", false },
    { "10.0.0.0/8", "64:ff9b:1::10.1.2.3", false },
    { "10.0.0.0/8", "ten.example.com", false },
    { "::ffff:0:0/96", "10.1.2.3", false },
    { "2001:db8::/32", "2001:db8:1::", true },
    { "2001:db8::/32", "2001:db9::", false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct policy_rule rule;
    struct host host;
    assert_int_equal(rule_parse(span_of(rows[i].rule), RULE_ALLOW, NULL, &rule), 0);
    assert_int_equal(host_parse(span_of(rows[i].host), NULL, &host), 0);
    unit_assert_row(rule_covers_host(&rule, &host) == rows[i].covers, rows[i].rule, rows[i].host);
    rule_free(&rule);
  }
}

static void test_covers_port(void **state)
{
  struct policy_rule rule;

  (void)state;
  assert_int_equal(rule_parse(SPAN("a.test"), RULE_ALLOW, NULL, &rule), 0);
  for (unsigned port = 0; port <= UINT16_MAX; port++)
    assert_int_equal(rule_covers_port(&rule, (uint16_t)port), port == 80 || port == 443);
  rule_free(&rule);
  assert_int_equal(rule_parse(SPAN("a.test:8000-8010"), RULE_ALLOW, NULL, &rule), 0);
  for (unsigned port = 0; port <= UINT16_MAX; port++)
    assert_int_equal(rule_covers_port(&rule, (uint16_t)port), port >= 8000 && port <= 8010);
  rule_free(&rule);
  assert_int_equal(rule_parse(SPAN("a.test:*"), RULE_ALLOW, NULL, &rule), 0);
  assert_false(rule_covers_port(&rule, 0));
  assert_true(rule_covers_port(&rule, 1));
  assert_true(rule_covers_port(&rule, UINT16_MAX));
  rule_free(&rule);
}

/* Without ports a deny rule is about every port, so both spellings are one rule. */
static void test_deny_ports(void **state)
{
  static const struct {
    const char *text;
    const char *canonical;
    bool all;
  } rows[] = {
    { "evil.test", "evil.test", true },
    { "evil.test:*", "evil.test", true },
    { "evil.test:1-65535", "evil.test", true },
    { "evil.test:80", "evil.test:80", false },
    { "*", "*", true },
    { "[2001:db8::/32]:*", "2001:db8::/32", true },
    { "[2001:db8::1]:22", "[2001:db8::1]:22", false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct policy_rule rule;
    assert_int_equal(rule_parse(span_of(rows[i].text), RULE_DENY, NULL, &rule), 0);
    assert_string_equal(rule.text, rows[i].canonical);
    unit_assert_row(rule_covers_port(&rule, 5432) == rows[i].all, rows[i].text, "wrong ports");
    rule_free(&rule);
  }
}

/* The canonical text parses to the same rule. */
static void test_canonical_property(void **state)
{
  static const char *const hosts[] = { "A.test", "*.b.Example", "10.0.0.0/8", "192.0.2.1", "2001:db8::/32",
                                       "::1",    "localhost",   "*",          "c.",        "xn--a.b." };
  static const char alphabet[] = "a1.*-:[]/~%";
  struct unit_random random = unit_seed("rule");
  size_t accepted = 0;

  (void)state;
  for (int i = 0; i < 50000; i++) {
    struct buf text = BUF_INIT(256);
    const char *host = hosts[unit_below(&random, MEM_COUNT(hosts))];
    bool brackets = unit_below(&random, 2);
    unsigned first = 1 + (unsigned)unit_below(&random, 65535);
    unsigned last = first + (unsigned)unit_below(&random, 65536 - first);
    buf_printf(&text, brackets ? "[%s]" : "%s", host);
    if (unit_below(&random, 2))
      buf_printf(&text, unit_below(&random, 2) ? ":%u" : ":%u-%u", first, last);
    if (unit_below(&random, 8) == 0)
      text.data[unit_below(&random, text.len)] = alphabet[unit_below(&random, sizeof alphabet - 1)];
    struct policy_rule rule;
    struct policy_rule again;
    enum rule_list list = unit_below(&random, 2) ? RULE_DENY : RULE_ALLOW;
    if (rule_parse(buf_span(&text), list, NULL, &rule) == 0) {
      accepted++;
      assert_int_equal(rule_parse(span_of(rule.text), list, NULL, &again), 0);
      assert_string_equal(again.text, rule.text);
      assert_int_equal(again.kind, rule.kind);
      assert_int_equal(again.port_count, rule.port_count);
      assert_memory_equal(again.ports, rule.ports, rule.port_count * sizeof *rule.ports);
      assert_memory_equal(&again.prefix, &rule.prefix, sizeof rule.prefix);
      rule_free(&again);
      rule_free(&rule);
    }
    buf_free(&text);
  }
  assert_true(accepted > 10000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_grammar),
    cmocka_unit_test(test_embedded_nul),
    cmocka_unit_test(test_messages),
    cmocka_unit_test(test_covers),
    cmocka_unit_test(test_covers_port),
    cmocka_unit_test(test_deny_ports),
    cmocka_unit_test(test_canonical_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
