#include "policy/addr.h"
#include "unit/unit.h"

static char *print_addr(const struct addr *addr)
{
  struct buf out = BUF_INIT(64);

  addr_print(addr, &out);
  return buf_steal(&out);
}

static void test_parse_and_print(void **state)
{
  static const struct {
    const char *text;
    const char *canonical; /* NULL: refused */
  } rows[] = {
    { "0.0.0.0", "0.0.0.0" },
    { "127.0.0.1", "127.0.0.1" },
    { "255.255.255.255", "255.255.255.255" },
    { "192.0.2.10", "192.0.2.10" },
    { "::", "::" },
    { "::1", "::1" },
    { "2001:DB8::A", "2001:db8::a" },
    { "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
    { "0:0:0:0:0:0:0:1", "::1" },
    { "::ffff:192.0.2.1", "::ffff:192.0.2.1" },
    { "64:ff9b::c000:201", "64:ff9b::c000:201" },
    /* F52: other spellings of 127.0.0.1 are no addresses. */
    { "127.1", NULL },
    { "2130706433", NULL },
    { "0x7f000001", NULL },
    { "0x7f.0.0.1", NULL },
    { "0177.0.0.1", NULL },
    { "127.0.0.01", NULL },
    { "127.0.0.1.", NULL },
    { "127.0.0.256", NULL },
    { "127.0.0.-1", NULL },
    { "127.0.0. 1", NULL },
    { " 127.0.0.1", NULL },
    { "127.0.0.1\n", NULL },
    { "1.2.3", NULL },
    { "1.2.3.4.5", NULL },
    { "1..3.4", NULL },
    { "", NULL },
    { ".", NULL },
    { ":", NULL },
    { ":::", NULL },
    { "1::2::3", NULL },
    { "fe80::1%eth0", NULL },
    { "fe80::1%", NULL },
    { "[::1]", NULL },
    { "::1/128", NULL },
    { "12345::", NULL },
    { "1:2:3:4:5:6:7", NULL },
    { "1:2:3:4:5:6:7:8:9", NULL },
    { "::ffff:127.0.0.01", NULL },
    { "::ffff:127.1", NULL },
    { "g::", NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct addr addr;
    int r = addr_parse(span_of(rows[i].text), &addr);
    unit_assert_row((r == 0) == (rows[i].canonical != NULL), rows[i].text, "accepted or refused wrongly");
    if (r < 0)
      continue;
    char *text = print_addr(&addr);
    unit_assert_row(text && strcmp(text, rows[i].canonical) == 0, rows[i].text, text ? text : "(null)");
    free(text);
  }
}

static void test_parse_takes_the_whole_span(void **state)
{
  struct addr addr;

  (void)state;
  assert_int_equal(addr_parse((struct span){ "1.2.3.4\0x", 9 }, &addr), -EINVAL);
  assert_int_equal(addr_parse((struct span){ "::1\0", 4 }, &addr), -EINVAL);
  assert_int_equal(addr_parse((struct span){ "1.2.3.45", 7 }, &addr), 0);
  assert_int_equal(addr.bytes[3], 4);
}

static void test_prefix_parse(void **state)
{
  static const struct {
    const char *text;
    const char *canonical;
  } rows[] = {
    { "10.20.0.0/16", "10.20.0.0/16" },
    { "0.0.0.0/0", "0.0.0.0/0" },
    { "10.0.0.1/32", "10.0.0.1" },
    { "10.0.0.1", "10.0.0.1" },
    { "10.0.0.128/25", "10.0.0.128/25" },
    { "2001:db8::/32", "2001:db8::/32" },
    { "::/0", "::/0" },
    { "fe80::/10", "fe80::/10" },
    { "::1/128", "::1" },
    { "10.20.0.1/16", NULL }, /* bits past the length */
    { "10.0.0.128/24", NULL },
    { "2001:db8::1/64", NULL },
    { "fe90::/9", NULL },
    { "10.0.0.0/33", NULL },
    { "10.0.0.0/", NULL },
    { "10.0.0.0/-1", NULL },
    { "10.0.0.0/+8", NULL },
    { "10.0.0.0/08", NULL },
    { "10.0.0.0/8/8", NULL },
    { "10.0.0.0/8 ", NULL },
    { "10/8", NULL },
    { "::/129", NULL },
    { "/8", NULL },
    { "x/8", NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct addr_prefix prefix;
    struct buf out = BUF_INIT(64);
    int r = addr_prefix_parse(span_of(rows[i].text), &prefix);
    unit_assert_row((r == 0) == (rows[i].canonical != NULL), rows[i].text, "accepted or refused wrongly");
    if (r == 0) {
      addr_prefix_print(&prefix, &out);
      unit_assert_row(strcmp(out.data, rows[i].canonical) == 0, rows[i].text, out.data);
    }
    buf_free(&out);
  }
}

static const struct {
  const char *text;
  enum addr_class class;
} class_rows[] = {
  { "8.8.8.8", ADDR_PUBLIC },
  { "1.1.1.1", ADDR_PUBLIC },
  { "9.255.255.255", ADDR_PUBLIC },
  { "11.0.0.0", ADDR_PUBLIC },
  { "10.0.0.0", ADDR_PRIVATE },
  { "10.255.255.255", ADDR_PRIVATE },
  { "172.15.255.255", ADDR_PUBLIC },
  { "172.16.0.0", ADDR_PRIVATE },
  { "172.31.255.255", ADDR_PRIVATE },
  { "172.32.0.0", ADDR_PUBLIC },
  { "192.167.255.255", ADDR_PUBLIC },
  { "192.168.0.1", ADDR_PRIVATE },
  { "192.169.0.0", ADDR_PUBLIC },
  { "192.0.0.1", ADDR_PRIVATE },
  { "192.0.1.0", ADDR_PUBLIC },
  { "198.17.255.255", ADDR_PUBLIC },
  { "198.18.0.0", ADDR_PRIVATE },
  { "198.19.255.255", ADDR_PRIVATE },
  { "198.20.0.0", ADDR_PUBLIC },
  /* Documentation counts as public. */
  { "192.0.2.1", ADDR_PUBLIC },
  { "198.51.100.1", ADDR_PUBLIC },
  { "203.0.113.1", ADDR_PUBLIC },
  { "2001:db8::1", ADDR_PUBLIC },
  { "3fff::1", ADDR_PUBLIC },
  { "126.255.255.255", ADDR_PUBLIC },
  { "127.0.0.0", ADDR_LOOPBACK },
  { "127.0.0.1", ADDR_LOOPBACK },
  { "127.255.255.255", ADDR_LOOPBACK },
  { "128.0.0.0", ADDR_PUBLIC },
  { "0.0.0.0", ADDR_UNSPECIFIED },
  { "0.1.2.3", ADDR_UNSPECIFIED },
  { "100.63.255.255", ADDR_PUBLIC },
  { "100.64.0.0", ADDR_CGNAT },
  { "100.127.255.255", ADDR_CGNAT },
  { "100.128.0.0", ADDR_PUBLIC },
  { "169.253.255.255", ADDR_PUBLIC },
  { "169.254.0.1", ADDR_LINK_LOCAL },
  { "169.254.169.253", ADDR_LINK_LOCAL },
  { "169.254.169.254", ADDR_METADATA },
  { "169.254.170.2", ADDR_METADATA },
  { "100.100.100.200", ADDR_METADATA },
  { "168.63.129.16", ADDR_METADATA },
  { "223.255.255.255", ADDR_PUBLIC },
  { "224.0.0.1", ADDR_MULTICAST },
  { "239.255.255.255", ADDR_MULTICAST },
  { "240.0.0.1", ADDR_PRIVATE },
  { "255.255.255.254", ADDR_PRIVATE },
  { "255.255.255.255", ADDR_MULTICAST },
  { "::", ADDR_UNSPECIFIED },
  { "::1", ADDR_LOOPBACK },
  { "2606:4700::1111", ADDR_PUBLIC },
  { "fc00::1", ADDR_PRIVATE },
  { "fdff::1", ADDR_PRIVATE },
  { "fd00:ec2::254", ADDR_METADATA },
  { "fd00:ec2::253", ADDR_PRIVATE },
  { "fbff::1", ADDR_PUBLIC },
  { "fe00::1", ADDR_PUBLIC },
  { "fe80::1", ADDR_LINK_LOCAL },
  { "febf::1", ADDR_LINK_LOCAL },
  { "fec0::1", ADDR_PRIVATE },
  { "ff02::1", ADDR_MULTICAST },
  { "100::1", ADDR_PRIVATE },
  { "2001::1", ADDR_PRIVATE },
  { "2001:1ff::1", ADDR_PRIVATE },
  { "2001:200::1", ADDR_PUBLIC },
  /* F52: what an IPv6 address carries inside counts. */
  { "::ffff:8.8.8.8", ADDR_PUBLIC },
  { "::ffff:127.0.0.1", ADDR_LOOPBACK },
  { "::ffff:10.1.2.3", ADDR_PRIVATE },
  { "::ffff:169.254.169.254", ADDR_METADATA },
  { "::ffff:0.0.0.0", ADDR_UNSPECIFIED },
  { "::ffff:0:127.0.0.1", ADDR_LOOPBACK },
  { "::127.0.0.1", ADDR_LOOPBACK },
  { "::10.0.0.1", ADDR_PRIVATE },
  { "64:ff9b::8.8.8.8", ADDR_PUBLIC },
  { "64:ff9b::127.0.0.1", ADDR_LOOPBACK },
  { "64:ff9b::169.254.169.254", ADDR_METADATA },
  { "64:ff9b:1::8.8.8.8", ADDR_PRIVATE },
  { "64:ff9b:1::10.0.0.1", ADDR_PRIVATE },
  { "64:ff9b:1:a:b:c:127.0.0.1", ADDR_LOOPBACK },
  { "2002:808:808::1", ADDR_PUBLIC },
  { "2002:7f00:1::1", ADDR_LOOPBACK },
  { "2002:a9fe:a9fe::", ADDR_METADATA },
  { "2002:c0a8:101::1", ADDR_PRIVATE },
};
static void test_classes(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(class_rows); i++) {
    struct addr addr;
    unit_assert_row(addr_parse(span_of(class_rows[i].text), &addr) == 0, class_rows[i].text, "not parsed");
    if (addr_classify(&addr) != class_rows[i].class)
      fail_msg("%s: class %d, wanted %d", class_rows[i].text, (int)addr_classify(&addr), (int)class_rows[i].class);
  }
}

/* Each way of wrapping an IPv4 address gives it back, and never makes its class less restricted. */
static void test_unwrap_property(void **state)
{
  struct unit_random random = unit_seed("unwrap");

  (void)state;
  for (int i = 0; i < 20000; i++) {
    static const uint8_t heads[][12] = {
      { [10] = 0xff, [11] = 0xff },
      { [8] = 0xff, [9] = 0xff },
      { 0, 0x64, 0xff, 0x9b },
      { 0, 0x64, 0xff, 0x9b, 0, 1 },
    };
    struct addr inner = { .family = ADDR_V4 };
    struct addr outer = { .family = ADDR_V6 };
    uint64_t bits = unit_next(&random);
    memcpy(inner.bytes, &bits, 4);
    memcpy(outer.bytes, heads[unit_below(&random, MEM_COUNT(heads))], 12);
    memcpy(outer.bytes + 12, inner.bytes, 4);
    struct addr unwrapped = addr_unwrap(&outer);
    assert_true(addr_equal(&unwrapped, &inner));
    if (addr_classify(&inner) != ADDR_PUBLIC)
      assert_int_equal(addr_classify(&outer), addr_classify(&inner));
    unwrapped = addr_unwrap(&inner);
    assert_true(addr_equal(&unwrapped, &inner));
  }
}

/* Random addresses: text round trip, masks and prefixes agree bit by bit. */
static void test_prefix_property(void **state)
{
  struct unit_random random = unit_seed("prefix");

  (void)state;
  for (int i = 0; i < 20000; i++) {
    struct addr addr = { .family = unit_below(&random, 2) ? ADDR_V6 : ADDR_V4 };
    unsigned bits = addr.family == ADDR_V4 ? 32 : 128;
    unsigned length = (unsigned)unit_below(&random, bits + 1);
    for (unsigned byte = 0; byte < bits / 8; byte++)
      addr.bytes[byte] = unit_below(&random, 3) ? (uint8_t)unit_next(&random) : 0;
    struct addr parsed;
    char *text = print_addr(&addr);
    assert_int_equal(addr_parse(span_of(text), &parsed), 0);
    assert_true(addr_equal(&parsed, &addr));
    free(text);
    struct addr_prefix prefix = { .addr = addr_mask(&addr, length), .length = length };
    assert_true(addr_in_prefix(&addr, &prefix));
    if (length == 0)
      continue;
    unsigned flip = (unsigned)unit_below(&random, bits);
    addr.bytes[flip / 8] ^= (uint8_t)(0x80u >> flip % 8);
    assert_int_equal(addr_in_prefix(&addr, &prefix), flip >= length);
  }
}

static void test_families_do_not_mix(void **state)
{
  struct addr v4;
  struct addr_prefix all_v6;

  (void)state;
  assert_int_equal(addr_parse(SPAN("1.2.3.4"), &v4), 0);
  assert_int_equal(addr_prefix_parse(SPAN("::/0"), &all_v6), 0);
  assert_false(addr_in_prefix(&v4, &all_v6));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parse_and_print),     cmocka_unit_test(test_parse_takes_the_whole_span),
    cmocka_unit_test(test_prefix_parse),        cmocka_unit_test(test_classes),
    cmocka_unit_test(test_unwrap_property),     cmocka_unit_test(test_prefix_property),
    cmocka_unit_test(test_families_do_not_mix),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
