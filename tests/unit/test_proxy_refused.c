#include "proxy/refused.h"
#include "unit/unit.h"

static const uint8_t SEGMENT[20] = { 0x14, 0x38, 0x90, 0x00 }; /* from port 5176 */

static struct addr addr_of(const char *text)
{
  struct addr addr;

  assert_int_equal(addr_parse(span_of(text), &addr), 0);
  return addr;
}

static struct span packet(const uint8_t *bytes, size_t len)
{
  return (struct span){ .ptr = (const char *)bytes, .len = len };
}

/* With a header of any length. */
static void test_v4(void **state)
{
  struct addr from = addr_of("192.0.2.7");
  struct refused_target target;

  (void)state;
  for (size_t words = 5; words <= 11; words++) {
    uint8_t bytes[64] = { [0] = (uint8_t)(0x40 | words), [12] = 192, [14] = 2, [15] = 7 };

    memcpy(bytes + words * 4, SEGMENT, sizeof SEGMENT);
    assert_true(refused_parse(packet(bytes, words * 4 + 2), NULL, &target));
    assert_true(addr_equal(&target.addr, &from));
    assert_int_equal(target.port, 5176);
    assert_false(refused_parse(packet(bytes, words * 4 + 1), NULL, &target));
  }
}

static void test_v6(void **state)
{
  struct addr from = addr_of("2001:db8::7");
  uint8_t bytes[64] = { [0] = 0x60, [8] = 0x20, [9] = 0x01, [10] = 0x0d, [11] = 0xb8, [23] = 7 };
  struct refused_target target;

  (void)state;
  memcpy(bytes + 40, SEGMENT, sizeof SEGMENT);
  assert_true(refused_parse(packet(bytes, 42), NULL, &target));
  assert_true(addr_equal(&target.addr, &from));
  assert_int_equal(target.port, 5176);
  for (size_t len = 0; len < 42; len++)
    assert_false(refused_parse(packet(bytes, len), NULL, &target));
}

static void test_no_header(void **state)
{
  uint8_t bytes[64];
  struct refused_target target;

  (void)state;
  memset(bytes, 0x14, sizeof bytes);
  for (unsigned first = 0; first < 256; first++) {
    bool sound = first >> 4 == 6 || (first >> 4 == 4 && (first & 15) >= 5);

    bytes[0] = (uint8_t)first;
    assert_int_equal(refused_parse(packet(bytes, first == 0x4f ? 62 : 61), NULL, &target), sound);
  }
  bytes[0] = 0x45;
  for (size_t len = 0; len < 22; len++)
    assert_false(refused_parse(packet(bytes, len), NULL, &target));
}

/* A raw socket of IPv6 gives none. */
static void test_v6_bare(void **state)
{
  struct addr from = addr_of("2001:db8::7");
  struct refused_target target;

  (void)state;
  assert_true(refused_parse(packet(SEGMENT, sizeof SEGMENT), &from, &target));
  assert_true(addr_equal(&target.addr, &from));
  assert_int_equal(target.port, 5176);
  assert_false(refused_parse(packet(SEGMENT, 1), &from, &target));
  assert_false(refused_parse(packet(SEGMENT, 0), &from, &target));
}

static void test_port_zero(void **state)
{
  const uint8_t none[20] = { 0 };
  struct addr from = addr_of("2001:db8::7");
  struct refused_target target;

  (void)state;
  assert_false(refused_parse(packet(none, sizeof none), &from, &target));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_v4),      cmocka_unit_test(test_v6),        cmocka_unit_test(test_no_header),
    cmocka_unit_test(test_v6_bare), cmocka_unit_test(test_port_zero),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
