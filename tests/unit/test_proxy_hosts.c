#include "proxy/hosts.h"
#include "unit/unit.h"

static const char text[] = "127.0.0.1\tlocalhost\n"
                           "# 9.9.9.9 commented.test\n"
                           "203.0.113.1 one.test One-Alias.TEST  # 9.9.9.9 comment.test\n"
                           "  203.0.113.2   two.test. \r\n"
                           "2001:db8::1 one.test\n"
                           "203.0.113.1 one.test\n"
                           "203.0.113.999 broken.test\n"
                           "0177.0.0.1 octal.test\n"
                           "fe80::1%lo zone.test\n"
                           "203.0.113.3\n"
                           "\n"
                           "203.0.113.4 many.test\n203.0.113.5 many.test\n203.0.113.6 many.test\n"
                           "203.0.113.7 last.test";

static void check(const char *name, const char *expected)
{
  buf_autofree struct buf out = BUF_INIT(256);
  struct addr addrs[8];
  size_t count = hosts_lookup((struct span){ text, sizeof text - 1 }, span_of(name), addrs, MEM_COUNT(addrs));

  for (size_t i = 0; i < count; i++) {
    buf_append_str(&out, i ? " " : "");
    addr_print(&addrs[i], &out);
  }
  assert_true(span_equal_str(buf_span(&out), expected));
}

static void test_lookup(void **state)
{
  (void)state;
  check("localhost", "127.0.0.1");
  check("one.test", "203.0.113.1 2001:db8::1");
  check("one-alias.test", "203.0.113.1");
  check("two.test", "203.0.113.2");
  check("last.test", "203.0.113.7");
  check("none.test", "");
  check("commented.test", "");
  check("comment.test", "");
  check("broken.test", "");
  check("octal.test", "");
  check("zone.test", "");
  check("test", "");
  check("203.0.113.3", "");
}

static void test_ceiling(void **state)
{
  struct addr addrs[2];

  (void)state;
  assert_int_equal(hosts_lookup((struct span){ text, sizeof text - 1 }, SPAN("many.test"), addrs, 2), 2);
  assert_int_equal(hosts_lookup((struct span){ "", 0 }, SPAN("many.test"), addrs, 2), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_lookup), cmocka_unit_test(test_ceiling) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
