#include "proxy/gate.h"
#include "unit/policy_make.h"
#include "unit/unit.h"

static const char policy_text[] =
    "{\"network\": {\"allow\": [\"a.test\", \"10.0.0.0/8:443\", \"localhost:8080\", \"*\"], "
    "\"deny\": [\"203.0.113.66:*\"]}}";

/* Judges addresses (words) for a host; the ones that pass in their order, or the reason of the denial. */
static void check(const char *name, uint16_t port, const char *found, const char *expected)
{
  policy_autofree struct policy *policy = make_policy(policy_text);
  buf_autofree struct buf out = BUF_INIT(1024);
  struct addr addrs[LIMITS_ADDRESSES];
  struct gate_addrs passed;
  struct verdict target;
  struct verdict verdict;
  struct host host;
  struct span rest = span_of(found);
  struct span part;
  size_t count = 0;

  assert_int_equal(host_parse(span_of(name), NULL, &host), 0);
  while (span_split(&rest, ' ', &part))
    assert_int_equal(addr_parse(part, &addrs[count++]), 0);
  target = decide_target(policy, &host, port);
  verdict = gate_judge_addrs(policy, &target, &host, port, addrs, count, &passed);
  assert_int_equal(verdict.allow, passed.count > 0);
  for (size_t i = 0; i < passed.count; i++) {
    buf_append_str(&out, i ? " " : "");
    addr_print(&passed.items[i], &out);
  }
  if (!verdict.allow)
    buf_append_str(&out, reason_word(verdict.reason));
  assert_string_equal(out.data, expected);
}

/* F52 */
static void test_judgement(void **state)
{
  (void)state;
  check("a.test", 80, "203.0.113.1", "203.0.113.1");
  check("a.test", 80, "127.0.0.1", "address-loopback");
  check("a.test", 80, "10.1.2.3", "address-private");
  check("a.test", 443, "10.1.2.3", "10.1.2.3");
  check("a.test", 80, "10.1.2.3 203.0.113.1 ::1", "203.0.113.1");
  check("a.test", 80, "10.1.2.3 ::1", "address-private");
  check("a.test", 80, "::1 10.1.2.3", "address-loopback");
  check("a.test", 80, "203.0.113.66", "deny-rule");
  check("a.test", 80, "203.0.113.66 203.0.113.1", "203.0.113.1");
  check("a.test", 80, "::ffff:127.0.0.1", "address-loopback");
  check("a.test", 80, "64:ff9b::a9fe:a9fe", "address-metadata");
  check("a.test", 80, "0.0.0.0", "address-unspecified");
  check("other.test", 80, "192.168.1.1 169.254.1.1", "address-private");
  check("localhost", 8080, "127.0.0.1 ::1", "::1 127.0.0.1");
}

/* RFC 8305, section 4 */
static void test_order(void **state)
{
  (void)state;
  check("a.test", 80, "203.0.113.1 203.0.113.2 203.0.113.3 2001:db8::1 2001:db8::2",
        "2001:db8::1 203.0.113.1 2001:db8::2 203.0.113.2 203.0.113.3");
  check("a.test", 80, "2001:db8::1 2001:db8::2 203.0.113.1", "2001:db8::1 203.0.113.1 2001:db8::2");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_judgement), cmocka_unit_test(test_order) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
