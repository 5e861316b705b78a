#include "config.h"

#include "policy/decide.h"
#include "policy/rule.h"
#include "unit/policy_make.h"

/* One judgement: the policy's allow and deny lists (JSON, without the brackets), the target, and for a second judgement
 * the address that its name resolved to. */
struct row {
  const char *allow;
  const char *deny;
  const char *target;
  const char *addr; /* NULL: decide_target alone */
  enum reason reason;
};

static struct policy *policy_of(const char *allow, const char *deny, const char *mode)
{
  struct buf text = BUF_INIT(4096);
  struct policy *policy;

  buf_printf(&text, "{\"network\": {\"mode\": \"%s\", \"allow\": [%s], \"deny\": [%s]}}", mode, allow, deny);
  policy = make_policy(text.data);
  buf_free(&text);
  return policy;
}

static void check_rows(const struct row *rows, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    struct policy *policy = policy_of(rows[i].allow, rows[i].deny, "proxy");
    struct verdict verdict;
    struct host host;
    struct addr addr;
    uint16_t port;
    assert_int_equal(host_parse_target(span_of(rows[i].target), 443, NULL, &host, &port), 0);
    if (rows[i].addr) {
      assert_int_equal(addr_parse(span_of(rows[i].addr), &addr), 0);
      verdict = decide_addr(policy, &host, &addr, port);
    } else {
      verdict = decide_target(policy, &host, port);
    }
    if (verdict.reason != rows[i].reason)
      fail_msg("row %zu, %s (%s), allow %s, deny %s: %s, wanted %s", i, rows[i].target,
               rows[i].addr ? rows[i].addr : "-", rows[i].allow, rows[i].deny, reason_word(verdict.reason),
               reason_word(rows[i].reason));
    assert_int_equal(verdict.allow, verdict.reason == REASON_ALLOWED);
    assert_true(!verdict.allow || verdict.rule);
    assert_true(verdict.reason != REASON_DENY_RULE || verdict.rule);
    policy_free(policy);
  }
}

#define NAME_RULE "\"api.test\""

static void test_names(void **state)
{
  static const struct row rows[] = {
    { "", "", "api.test", NULL, REASON_NOT_ALLOWED }, /* F59: an empty list allows nothing */
    { NAME_RULE, "", "api.test", NULL, REASON_ALLOWED },
    { NAME_RULE, "", "api.test:80", NULL, REASON_ALLOWED },
    { NAME_RULE, "", "API.test.", NULL, REASON_ALLOWED },
    { NAME_RULE, "", "api.test:22", NULL, REASON_PORT_NOT_ALLOWED },
    { NAME_RULE, "", "www.api.test", NULL, REASON_NOT_ALLOWED },
    { NAME_RULE, "", "other.test", NULL, REASON_NOT_ALLOWED },
    { NAME_RULE ", \"api.test:22\"", "", "api.test:22", NULL, REASON_ALLOWED },
    { "\"*.example.test\"", "", "a.example.test", NULL, REASON_ALLOWED },
    { "\"*.example.test\"", "", "a.b.example.test", NULL, REASON_ALLOWED },
    { "\"*.example.test\"", "", "example.test", NULL, REASON_NOT_ALLOWED },
    { "\"*.example.test\"", "", "evil-example.test", NULL, REASON_NOT_ALLOWED }, /* F53 */
    { "\"*\"", "", "any.test", NULL, REASON_ALLOWED },
    { "\"*\"", "", "any.test:22", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"*:*\"", "", "any.test:22", NULL, REASON_ALLOWED },
    { "\"*:*\"", "", "localhost:22", NULL, REASON_NOT_ALLOWED },
    { "\"*:*\", \"localhost:22\"", "", "localhost:22", NULL, REASON_ALLOWED },
    { "\"localhost:22\"", "", "localhost:23", NULL, REASON_PORT_NOT_ALLOWED },
    /* Deny wins, wherever it stands. */
    { NAME_RULE, NAME_RULE, "api.test", NULL, REASON_DENY_RULE },
    { NAME_RULE, NAME_RULE, "api.test.", NULL, REASON_DENY_RULE }, /* F53 */
    { NAME_RULE, NAME_RULE, "API.TEST", NULL, REASON_DENY_RULE },
    { "\"*.example.test\"", "\"a.example.test\"", "a.example.test", NULL, REASON_DENY_RULE },
    { "\"*.example.test\"", "\"a.example.test\"", "b.example.test", NULL, REASON_ALLOWED },
    { "\"*.example.test\"", "\"a.example.test\"", "x.a.example.test", NULL, REASON_ALLOWED },
    { "\"*.example.test\"", "\"*.a.example.test\"", "x.a.example.test", NULL, REASON_DENY_RULE },
    { "\"*.example.test\"", "\"*.a.example.test\"", "a.example.test", NULL, REASON_ALLOWED },
    { "\"api.test:*\"", "\"api.test:22\"", "api.test:22", NULL, REASON_DENY_RULE },
    { "\"api.test:*\"", "\"api.test:22\"", "api.test:23", NULL, REASON_ALLOWED },
    { NAME_RULE, "\"*\"", "api.test", NULL, REASON_DENY_RULE },
    { "\"localhost\"", "\"*\"", "localhost", NULL, REASON_DENY_RULE },
    { "", NAME_RULE, "api.test", NULL, REASON_DENY_RULE },
    /* Without ports, on every one. */
    { "\"*:*\"", NAME_RULE, "api.test:5432", NULL, REASON_DENY_RULE },
    { "\"*:*\"", "\"*\"", "api.test:22", NULL, REASON_DENY_RULE },
    { "\"*:*\"", "\"api.test:80\"", "api.test:81", NULL, REASON_ALLOWED },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

static void test_literals(void **state)
{
  static const struct row rows[] = {
    { "", "", "192.0.2.1", NULL, REASON_NOT_ALLOWED },
    { "\"192.0.2.1\"", "", "192.0.2.1", NULL, REASON_ALLOWED },
    { "\"192.0.2.1\"", "", "192.0.2.1:22", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"192.0.2.0/24:22\"", "", "192.0.2.77:22", NULL, REASON_ALLOWED }, /* F59: ip:port rules */
    { "\"*\"", "", "192.0.2.1", NULL, REASON_ALLOWED },
    { "\"*\"", "", "192.0.2.1:22", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"*\"", "", "[2001:db8::1]", NULL, REASON_ALLOWED },
    { "\"*\"", "", "10.0.0.1", NULL, REASON_ADDRESS_PRIVATE },
    { "\"*\"", "", "127.0.0.1", NULL, REASON_ADDRESS_LOOPBACK },
    { "\"*\"", "", "[::1]", NULL, REASON_ADDRESS_LOOPBACK },
    { "\"*\"", "", "0.0.0.0", NULL, REASON_ADDRESS_UNSPECIFIED },
    { "\"*\"", "", "[::]", NULL, REASON_ADDRESS_UNSPECIFIED },
    { "\"*\"", "", "169.254.1.1", NULL, REASON_ADDRESS_LINK_LOCAL },
    { "\"*\"", "", "169.254.169.254", NULL, REASON_ADDRESS_METADATA },
    { "\"*\"", "", "100.64.0.1", NULL, REASON_ADDRESS_CGNAT },
    { "\"*\"", "", "224.0.0.1", NULL, REASON_ADDRESS_MULTICAST },
    { "\"*\"", "", "[::ffff:127.0.0.1]", NULL, REASON_ADDRESS_LOOPBACK }, /* F52 */
    { "\"*\"", "", "[64:ff9b::10.0.0.1]", NULL, REASON_ADDRESS_PRIVATE },
    { "\"192.0.2.1\"", "", "[64:ff9b::192.0.2.1]", NULL, REASON_NOT_ALLOWED },
    { "\"192.0.2.1\"", "", "[2002:c000:201:9::bad]", NULL, REASON_NOT_ALLOWED },
    { "\"127.0.0.1\"", "", "[::127.0.0.1]", NULL, REASON_NOT_ALLOWED },
    { "\"10.0.0.0/8\"", "", "[64:ff9b:1::10.0.0.1]", NULL, REASON_NOT_ALLOWED },
    { "\"192.0.2.1\"", "", "[::ffff:192.0.2.1]", NULL, REASON_ALLOWED },
    { "\"10.0.0.0/8\"", "", "10.1.2.3", NULL, REASON_ALLOWED },
    { "\"10.0.0.0/8\"", "", "[::ffff:10.1.2.3]", NULL, REASON_ALLOWED },
    { "\"10.0.0.0/8\"", "", "10.1.2.3:22", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"10.0.0.0/8\"", "", "11.0.0.0", NULL, REASON_NOT_ALLOWED },
    { "\"*\", \"10.0.0.0/8\"", "", "10.1.2.3", NULL, REASON_ALLOWED },
    /* A wide prefix names public addresses; it opens no place that it does not itself begin in. */
    { "\"0.0.0.0/0\"", "", "192.0.2.1", NULL, REASON_ALLOWED },
    { "\"0.0.0.0/0\"", "", "10.1.2.3", NULL, REASON_ADDRESS_PRIVATE },
    { "\"0.0.0.0/0\"", "", "127.0.0.1", NULL, REASON_ADDRESS_LOOPBACK },
    { "\"0.0.0.0/0\"", "", "0.0.0.0", NULL, REASON_ADDRESS_UNSPECIFIED },
    { "\"::/0\"", "", "[::1]", NULL, REASON_ADDRESS_LOOPBACK },
    { "\"::/0\"", "", "[fd00::1]", NULL, REASON_ADDRESS_PRIVATE },
    { "\"::/0\"", "", "[2001:db8::1]", NULL, REASON_ALLOWED },
    { "\"127.0.0.0/8\"", "", "127.0.0.5", NULL, REASON_ALLOWED },
    { "\"64:ff9b::/96\"", "", "[64:ff9b::192.0.2.1]", NULL, REASON_ALLOWED },
    { "\"64:ff9b::/96\"", "", "[64:ff9b::10.0.0.1]", NULL, REASON_ADDRESS_PRIVATE },
    { "\"::ffff:0:0/96\"", "", "[::ffff:127.0.0.1]", NULL, REASON_ADDRESS_LOOPBACK },
    /* Metadata: the one address and nothing wider. */
    { "\"169.254.0.0/16\"", "", "169.254.169.254", NULL, REASON_ADDRESS_METADATA },
    { "\"169.254.0.0/16\"", "", "169.254.1.1", NULL, REASON_ALLOWED },
    { "\"169.254.169.254\"", "", "169.254.169.254:80", NULL, REASON_ALLOWED },
    { "\"169.254.169.254:80\"", "", "169.254.169.254:443", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"localhost\"", "", "127.0.0.1", NULL, REASON_ALLOWED },
    { "\"localhost\"", "", "[::1]", NULL, REASON_ALLOWED },
    { "\"localhost\"", "", "127.0.0.2", NULL, REASON_NOT_ALLOWED },
    { "\"localhost:22\"", "", "127.0.0.1:23", NULL, REASON_PORT_NOT_ALLOWED },
    { "\"*\"", "\"192.0.2.0/24\"", "192.0.2.1", NULL, REASON_DENY_RULE },
    { "\"*\"", "\"192.0.2.0/24\"", "[::ffff:192.0.2.1]", NULL, REASON_DENY_RULE },
    { "\"127.0.0.0/8:*\"", "\"localhost:*\"", "127.0.0.9:22", NULL, REASON_DENY_RULE },
    { "\"192.0.2.1\"", "\"*\"", "192.0.2.1", NULL, REASON_DENY_RULE },
    { "\"10.0.0.1\"", "\"*\"", "10.0.0.1", NULL, REASON_DENY_RULE },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

/* F52: what an allowed name resolves to is judged again. */
static void test_resolved_addresses(void **state)
{
  static const struct row rows[] = {
    { NAME_RULE, "", "api.test", "192.0.2.1", REASON_ALLOWED },
    { NAME_RULE, "", "api.test", "2001:db8::1", REASON_ALLOWED },
    { NAME_RULE, "", "api.test", "127.0.0.1", REASON_ADDRESS_LOOPBACK },
    { NAME_RULE, "", "api.test", "127.9.9.9", REASON_ADDRESS_LOOPBACK },
    { NAME_RULE, "", "api.test", "::1", REASON_ADDRESS_LOOPBACK },
    { NAME_RULE, "", "api.test", "10.0.0.1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE, "", "api.test", "172.16.0.1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE, "", "api.test", "192.168.1.1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE, "", "api.test", "fd00::1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE, "", "api.test", "100.64.0.1", REASON_ADDRESS_CGNAT },
    { NAME_RULE, "", "api.test", "169.254.169.254", REASON_ADDRESS_METADATA },
    { NAME_RULE, "", "api.test", "fe80::1", REASON_ADDRESS_LINK_LOCAL },
    { NAME_RULE, "", "api.test", "0.0.0.0", REASON_ADDRESS_UNSPECIFIED },
    { NAME_RULE, "", "api.test", "::", REASON_ADDRESS_UNSPECIFIED },
    { NAME_RULE, "", "api.test", "224.0.0.1", REASON_ADDRESS_MULTICAST },
    { NAME_RULE, "", "api.test", "255.255.255.255", REASON_ADDRESS_MULTICAST },
    { NAME_RULE, "", "api.test", "::ffff:127.0.0.1", REASON_ADDRESS_LOOPBACK },
    { NAME_RULE, "", "api.test", "::ffff:10.0.0.1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE, "", "api.test", "64:ff9b::169.254.169.254", REASON_ADDRESS_METADATA },
    { NAME_RULE, "", "api.test", "2002:7f00:1::", REASON_ADDRESS_LOOPBACK },
    { "\"*\"", "", "api.test", "10.0.0.1", REASON_ADDRESS_PRIVATE },
    /* An address rule beside the name lets it pass, on its own ports. */
    { NAME_RULE ", \"10.0.0.0/8\"", "", "api.test", "10.0.0.1", REASON_ALLOWED },
    { NAME_RULE ", \"10.0.0.0/8:22\"", "", "api.test", "10.0.0.1", REASON_ADDRESS_PRIVATE },
    { "\"api.test:22\", \"10.0.0.0/8:22\"", "", "api.test:22", "10.0.0.1", REASON_ALLOWED },
    { NAME_RULE ", \"0.0.0.0/0\"", "", "api.test", "10.0.0.1", REASON_ADDRESS_PRIVATE },
    { NAME_RULE ", \"169.254.0.0/16\"", "", "api.test", "169.254.169.254", REASON_ADDRESS_METADATA },
    { NAME_RULE ", \"169.254.169.254\"", "", "api.test", "169.254.169.254", REASON_ALLOWED },
    { NAME_RULE ", \"localhost\"", "", "api.test", "127.0.0.1", REASON_ADDRESS_LOOPBACK },
    { NAME_RULE ", \"127.0.0.1\"", "", "api.test", "127.0.0.1", REASON_ALLOWED },
    /* An address rule alone is no rule for the name. */
    { "\"192.0.2.0/24\"", "", "api.test", "192.0.2.1", REASON_NOT_ALLOWED },
    /* A deny rule on the address refuses an allowed name that leads there. */
    { NAME_RULE, "\"192.0.2.0/24\"", "api.test", "192.0.2.1", REASON_DENY_RULE },
    { NAME_RULE, "\"192.0.2.0/24\"", "api.test", "::ffff:192.0.2.1", REASON_DENY_RULE },
    { NAME_RULE, "\"192.0.2.0/24\"", "api.test", "192.0.3.1", REASON_ALLOWED },
    { NAME_RULE, "\"192.0.2.0/24:22\"", "api.test", "192.0.2.1", REASON_ALLOWED },
    { NAME_RULE ", \"127.0.0.1\"", "\"localhost\"", "api.test", "127.0.0.1", REASON_DENY_RULE },
    { NAME_RULE, NAME_RULE, "api.test", "192.0.2.1", REASON_DENY_RULE },
    { "", "", "api.test", "192.0.2.1", REASON_NOT_ALLOWED },
    /* localhost leads to the loopback and nowhere else. */
    { "\"localhost\"", "", "localhost", "127.0.0.1", REASON_ALLOWED },
    { "\"localhost\"", "", "localhost", "::1", REASON_ALLOWED },
    { "\"localhost\"", "", "localhost", "192.0.2.1", REASON_NOT_ALLOWED },
    { "\"localhost\"", "", "localhost", "10.0.0.1", REASON_ADDRESS_PRIVATE },
    { "\"localhost\"", "\"127.0.0.0/8\"", "localhost", "127.0.0.1", REASON_DENY_RULE },
    /* An address target is its own address. */
    { "\"192.0.2.1\"", "", "192.0.2.1", "192.0.2.1", REASON_ALLOWED },
    { "\"10.0.0.1\"", "", "10.0.0.1", "10.0.0.1", REASON_ALLOWED },
    { "\"192.0.2.1\"", "", "192.0.2.1", "10.0.0.1", REASON_ADDRESS_PRIVATE },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

/* Only the want of a rule for a public target is a question to the user. */
static void test_what_may_be_asked(void **state)
{
  static const struct {
    const char *allow;
    const char *deny;
    const char *target;
    const char *rule; /* that would let it pass; NULL: not asked about */
  } rows[] = {
    { "", "", "api.test", "api.test" },
    { "", "", "api.test:80", "api.test" },
    { "", "", "api.test:5432", "api.test:5432" },
    { NAME_RULE, "", "api.test:5432", "api.test:5432" },
    { "", "", "192.0.2.1", "192.0.2.1" },
    { "", "", "[2001:db8::1]:22", "[2001:db8::1]:22" },
    { NAME_RULE, "", "api.test", NULL },
    { "", NAME_RULE, "api.test", NULL },
    { "", "\"*:*\"", "192.0.2.1:22", NULL },
    { "", "", "localhost", NULL },
    { "", "", "a.localhost:8080", NULL },
    { "", "", "127.0.0.1", NULL },
    { "", "", "[::1]:80", NULL },
    { "", "", "10.0.0.1", NULL },
    { "\"10.0.0.1:80\"", "", "10.0.0.1:81", NULL },
    { "", "", "169.254.169.254", NULL },
    { "", "", "[::ffff:10.0.0.1]", NULL },
    { "", "", "0.0.0.0:80", NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    policy_autofree struct policy *policy = policy_of(rows[i].allow, rows[i].deny, "proxy");
    policy_autofree struct policy *grown = NULL;
    buf_autofree struct buf rule = BUF_INIT(512);
    struct verdict verdict;
    struct host host;
    uint16_t port;

    assert_int_equal(host_parse_target(span_of(rows[i].target), 443, NULL, &host, &port), 0);
    verdict = decide_target(policy, &host, port);
    if (decide_may_ask(&verdict, &host) != (rows[i].rule != NULL))
      fail_msg("row %zu, %s", i, rows[i].target);
    if (!rows[i].rule)
      continue;
    decide_rule(&host, port, &rule);
    assert_string_equal(rule.data, rows[i].rule);
    assert_int_equal(policy_extend(policy, rule.data, "--ask", NULL, &grown), 0);
    assert_int_equal(grown->allow.count, policy->allow.count + 1);
    verdict = decide_target(grown, &host, port);
    assert_true(verdict.allow);
    assert_string_equal(verdict.rule->origin.file, "--ask");
  }
}

/* The user's word about a name is none about the places that it leads to. */
static void test_addresses_of_what_was_asked(void **state)
{
  policy_autofree struct policy *policy = policy_of("", "\"198.51.100.0/24\"", "proxy");
  const struct verdict once = { .allow = true, .reason = REASON_ALLOWED, .asked = DECIDE_ASKED_ONCE };
  static const struct {
    const char *addr;
    enum reason reason;
  } rows[] = {
    { "192.0.2.1", REASON_ALLOWED },          { "10.0.0.1", REASON_ADDRESS_PRIVATE },
    { "127.0.0.1", REASON_ADDRESS_LOOPBACK }, { "169.254.169.254", REASON_ADDRESS_METADATA },
    { "198.51.100.1", REASON_DENY_RULE },
  };
  struct host host;

  (void)state;
  assert_int_equal(host_parse(SPAN("api.test"), NULL, &host), 0);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct addr addr;

    assert_int_equal(addr_parse(span_of(rows[i].addr), &addr), 0);
    assert_int_equal(decide_addr_of(policy, &once, &host, &addr, 443).reason, rows[i].reason);
  }
}

static void test_modes(void **state)
{
  struct policy *none = policy_of(NAME_RULE, "", "none");
  struct policy *host_mode = policy_of("", "\"api.test\"", "host");
  struct host host;
  struct addr addr;

  (void)state;
  assert_int_equal(host_parse(SPAN("api.test"), NULL, &host), 0);
  assert_int_equal(addr_parse(SPAN("192.0.2.1"), &addr), 0);
  assert_int_equal(decide_target(none, &host, 443).reason, REASON_NETWORK_NONE);
  assert_int_equal(decide_addr(none, &host, &addr, 443).reason, REASON_NETWORK_NONE);
  assert_int_equal(decide_target(host_mode, &host, 443).reason, REASON_ALLOWED);
  assert_int_equal(decide_addr(host_mode, &host, &addr, 443).reason, REASON_ALLOWED);
  assert_int_equal(decide_target(host_mode, &host, 0).reason, REASON_BAD_TARGET);
  policy_free(none);
  policy_free(host_mode);
}

static void test_reason_words(void **state)
{
  (void)state;
  for (unsigned i = 0; i < REASON_COUNT; i++) {
    assert_non_null(reason_word(i));
    assert_non_null(reason_text(i));
    for (const char *at = reason_word(i); *at; at++)
      assert_true((*at >= 'a' && *at <= 'z') || *at == '-');
    for (unsigned j = 0; j < i; j++)
      assert_string_not_equal(reason_word(i), reason_word(j));
  }
  assert_string_equal(reason_word(REASON_NOT_ALLOWED), "not-allowed");
  assert_string_equal(reason_word(REASON_ADDRESS_METADATA), "address-metadata");
  assert_string_equal(reason_word(REASON_COUNT), "unknown");
}

static void test_fix(void **state)
{
  static const struct {
    const char *allow;
    const char *deny;
    const char *target;
    const char *addr;
    const char *fix;
  } rows[] = {
    { "", "", "api.test", NULL, SBX_NAME " run --allow api.test ..." },
    { "", "", "api.test:80", NULL, SBX_NAME " run --allow api.test ..." },
    { NAME_RULE, "", "api.test:22", NULL, SBX_NAME " run --allow api.test:22 ..." },
    { "", "", "[2001:db8::1]:22", NULL, SBX_NAME " run --allow [2001:db8::1]:22 ..." },
    { "", "", "[2001:db8::1]:443", NULL, SBX_NAME " run --allow 2001:db8::1 ..." },
    { NAME_RULE, "", "api.test", "10.0.0.1", SBX_NAME " run --allow api.test --allow 10.0.0.1 ..." },
    { NAME_RULE, "", "api.test", "192.0.2.1", "" },
    { NAME_RULE, "\"*.x.test\", \"api.test\"", "api.test", NULL,
      "remove the deny rule \"api.test\" in /test.json:1 (network.deny[1])" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct policy *policy = policy_of(rows[i].allow, rows[i].deny, "proxy");
    struct buf out = BUF_INIT(1024);
    struct verdict verdict;
    struct host host;
    struct addr addr;
    uint16_t port;
    assert_int_equal(host_parse_target(span_of(rows[i].target), 443, NULL, &host, &port), 0);
    if (rows[i].addr)
      assert_int_equal(addr_parse(span_of(rows[i].addr), &addr), 0);
    verdict = rows[i].addr ? decide_addr(policy, &host, &addr, port) : decide_target(policy, &host, port);
    decide_fix(&verdict, &host, port, &out);
    unit_assert_row(strcmp(out.data ? out.data : "", rows[i].fix) == 0, rows[i].target, out.data ? out.data : "");
    buf_free(&out);
    policy_free(policy);
  }
}

static void test_fix_of_an_option(void **state)
{
  layers_autofree struct layers *layers = layers_new();
  struct strv notes = STRV_INIT;
  struct policy *policy = NULL;
  struct buf out = BUF_INIT(1024);
  struct host host;
  struct verdict verdict;

  (void)state;
  assert_int_equal(layers_add_option(layers, "network.deny", "api.test", "--deny", NULL), 0);
  assert_int_equal(policy_validate(layers, NULL, &notes, &policy), 0);
  assert_int_equal(host_parse(SPAN("api.test"), NULL, &host), 0);
  verdict = decide_target(policy, &host, 443);
  decide_fix(&verdict, &host, 443, &out);
  assert_string_equal(out.data, "leave out the deny rule \"api.test\" of --deny");
  buf_free(&out);
  policy_free(policy);
}

/* The rules of a fix to type, as a list of JSON strings. */
static void fix_rules(struct span fix, struct buf *lists)
{
  static const struct span between = SPAN_INIT(" --allow ");
  struct span rest = span_sub(fix, strlen(SBX_NAME " run"), fix.len);

  rest.len -= strlen(" ...");
  while (span_starts_with(rest, between)) {
    size_t end = 0;

    rest = span_sub(rest, between.len, rest.len);
    end = span_find(rest, ' ');
    buf_printf(lists, "%s\"%.*s\"", lists->len > 0 ? ", " : "", (int)end, rest.ptr);
    rest = span_sub(rest, end, rest.len);
  }
  assert_int_equal(rest.len, 0);
}

/* What is to be typed because of an address is whole: it does without the option that allowed the name before. */
static void assert_whole(const struct verdict *verdict, const struct host *host, const struct addr *addr, uint16_t port,
                         struct span fix)
{
  struct buf lists = BUF_INIT(1024);
  struct policy *policy;

  if (!verdict->has_addr)
    return;
  fix_rules(fix, &lists);
  policy = policy_of(lists.data, "", "proxy");
  if (!decide_addr(policy, host, addr, port).allow)
    fail_msg("%s on %u is refused with %s alone", host->name, port, lists.data);
  policy_free(policy);
  buf_free(&lists);
}

/* Whatever is refused and has a fix to type passes once that was typed. */
static void test_fix_helps_property(void **state)
{
  static const char *const targets[] = { "api.test", "localhost", "192.0.2.1",          "10.0.0.1", "127.0.0.1",
                                         "[::1]",    "0.0.0.0",   "[::ffff:127.0.0.1]", "[ff02::1]" };
  static const char *const addrs[] = {
    "192.0.2.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "169.254.169.254", "fd00::1"
  };
  static const char *const allows[] = { "",         "\"*\"",        "\"api.test\"",  "\"10.0.0.0/8\"",
                                        "\"*:22\"", "\"[::/0]:*\"", "\"localhost\"", "\"0.0.0.0/0\"" };
  static const unsigned ports[] = { 80, 443, 22 };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(targets) * MEM_COUNT(addrs) * MEM_COUNT(allows) * MEM_COUNT(ports); i++) {
    const char *target = targets[i % MEM_COUNT(targets)];
    const char *allow = allows[i / MEM_COUNT(targets) % MEM_COUNT(allows)];
    uint16_t port = (uint16_t)ports[i / MEM_COUNT(targets) / MEM_COUNT(allows) % MEM_COUNT(ports)];
    struct addr addr;
    struct host host;
    struct buf lists = BUF_INIT(1024);
    assert_int_equal(host_parse(span_of(target), NULL, &host), 0);
    assert_int_equal(addr_parse(span_of(addrs[i % MEM_COUNT(addrs)]), &addr), 0);
    if (strcmp(target, "localhost") == 0)
      assert_int_equal(addr_parse(SPAN("127.0.0.1"), &addr), 0);
    buf_append_str(&lists, allow);
    for (int step = 0;; step++) {
      struct policy *policy = policy_of(lists.data ? lists.data : "", "", "proxy");
      struct verdict verdict = decide_addr(policy, &host, host.kind == HOST_ADDR ? &host.addr : &addr, port);
      struct buf fix = BUF_INIT(1024);
      decide_fix(&verdict, &host, port, &fix);
      bool allowed = verdict.allow;
      policy_free(policy);
      if (allowed) {
        buf_free(&fix);
        break;
      }
      if (step == 2)
        fail_msg("%s on %u with %s: refused after %s", target, port, allow, lists.data);
      assert_whole(&verdict, &host, host.kind == HOST_ADDR ? &host.addr : &addr, port, buf_span(&fix));
      fix_rules(buf_span(&fix), &lists);
      buf_free(&fix);
    }
    buf_free(&lists);
  }
}

/* Adding a deny rule never allows more, adding an allow rule never less, and no rule for a name opens a private
 * place. */
static void test_monotone_property(void **state)
{
  static const char *const rules[] = { "\"a.test\"",       "\"*.a.test\"",       "\"*\"",
                                       "\"*:*\"",          "\"10.0.0.0/8\"",     "\"localhost\"",
                                       "\"127.0.0.1:22\"", "\"192.0.2.0/24:*\"", "\"0.0.0.0/0\"",
                                       "\"a.test:22\"",    "\"::/0\"",           "\"b.a.test:1-100\"" };
  static const char *const names[] = {
    "a.test", "b.a.test", "localhost", "c.test", "10.1.1.1", "127.0.0.1", "192.0.2.9"
  };
  static const char *const addrs[] = { "10.1.1.1", "127.0.0.1", "192.0.2.9", "::1", "fd00::1", "169.254.169.254" };
  struct unit_random random = unit_seed("monotone");

  (void)state;
  for (int i = 0; i < 4000; i++) {
    struct buf lists[2] = { BUF_INIT(1024), BUF_INIT(1024) };
    struct host host;
    struct addr addr;
    uint16_t port = unit_below(&random, 2) ? 443 : 22;
    bool before = false;
    bool private = false;
    size_t extra = unit_below(&random, 2);
    assert_int_equal(host_parse(span_of(names[unit_below(&random, MEM_COUNT(names))]), NULL, &host), 0);
    assert_int_equal(addr_parse(span_of(addrs[unit_below(&random, MEM_COUNT(addrs))]), &addr), 0);
    for (size_t j = 0; j < 2; j++)
      for (size_t k = unit_below(&random, 4); k > 0; k--)
        buf_printf(&lists[j], "%s%s", lists[j].len ? ", " : "", rules[unit_below(&random, MEM_COUNT(rules))]);
    for (int step = 0; step < 2; step++) {
      struct policy *policy =
          policy_of(lists[0].data ? lists[0].data : "", lists[1].data ? lists[1].data : "", "proxy");
      struct verdict verdict = decide_addr(policy, &host, &addr, port);
      private = addr_classify(&addr) != ADDR_PUBLIC;
      if (verdict.allow && private && !(host.kind == HOST_NAME && strcmp(host.name, "localhost") == 0))
        assert_true(verdict.rule->kind == POLICY_HOST_PREFIX || verdict.rule->kind == POLICY_HOST_LOCALHOST);
      if (step == 1)
        assert_true(extra == 0 ? verdict.allow || !before : before || !verdict.allow);
      before = verdict.allow;
      policy_free(policy);
      buf_printf(&lists[extra], "%s%s", lists[extra].len ? ", " : "", rules[unit_below(&random, MEM_COUNT(rules))]);
    }
    buf_free(&lists[0]);
    buf_free(&lists[1]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_literals),
    cmocka_unit_test(test_resolved_addresses),
    cmocka_unit_test(test_what_may_be_asked),
    cmocka_unit_test(test_addresses_of_what_was_asked),
    cmocka_unit_test(test_modes),
    cmocka_unit_test(test_reason_words),
    cmocka_unit_test(test_fix),
    cmocka_unit_test(test_fix_of_an_option),
    cmocka_unit_test(test_fix_helps_property),
    cmocka_unit_test(test_monotone_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
