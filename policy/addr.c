#include "policy/addr.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* One row of a registry: the addresses of a prefix are of a class. The first row that covers an address counts. */
struct addr_range {
  uint8_t bytes[16];
  uint8_t length;
  uint8_t class;
};

/* RFC 6890 and the IANA special-purpose registry, with the services that hand out a machine's credentials in front. */
static const struct addr_range addr_ranges_v4[] = {
  { { 169, 254, 169, 254 }, 32, ADDR_METADATA }, /* most clouds */
  { { 169, 254, 170, 2 }, 32, ADDR_METADATA }, /* container tasks */
  { { 169, 254, 170, 23 }, 32, ADDR_METADATA }, /* pod identities */
  { { 169, 254, 42, 42 }, 32, ADDR_METADATA },
  { { 100, 100, 100, 200 }, 32, ADDR_METADATA },
  { { 168, 63, 129, 16 }, 32, ADDR_METADATA }, /* a public address that only the machine's host answers */
  { { 192, 0, 0, 192 }, 32, ADDR_METADATA },
  { { 0 }, 8, ADDR_UNSPECIFIED },
  { { 10 }, 8, ADDR_PRIVATE },
  { { 100, 64 }, 10, ADDR_CGNAT },
  { { 127 }, 8, ADDR_LOOPBACK },
  { { 169, 254 }, 16, ADDR_LINK_LOCAL },
  { { 172, 16 }, 12, ADDR_PRIVATE },
  { { 192, 0, 0 }, 24, ADDR_PRIVATE },
  { { 192, 168 }, 16, ADDR_PRIVATE },
  { { 198, 18 }, 15, ADDR_PRIVATE },
  { { 224 }, 4, ADDR_MULTICAST },
  { { 255, 255, 255, 255 }, 32, ADDR_MULTICAST },
  { { 240 }, 4, ADDR_PRIVATE },
};

static const struct addr_range addr_ranges_v6[] = {
  { { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, 128, ADDR_METADATA }, /* fd00:ec2::254 */
  { { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23 }, 128, ADDR_METADATA }, /* fd00:ec2::23 */
  { { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 }, 128, ADDR_METADATA }, /* fd20:ce::254 */
  { { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 }, 128, ADDR_METADATA }, /* fd00:42::42 */
  { { 0 }, 128, ADDR_UNSPECIFIED },
  { { [15] = 1 }, 128, ADDR_LOOPBACK },
  { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, ADDR_PRIVATE }, /* NAT64 of the local network, RFC 8215 */
  { { 0x01 }, 64, ADDR_PRIVATE }, /* discard, RFC 6666 */
  { { 0x20, 0x01 }, 23, ADDR_PRIVATE }, /* protocol assignments: Teredo, ORCHID, benchmarks */
  { { 0x5f }, 16, ADDR_PRIVATE }, /* segment identifiers, RFC 9602 */
  { { 0xfc }, 7, ADDR_PRIVATE },
  { { 0xfe, 0x80 }, 10, ADDR_LINK_LOCAL },
  { { 0xfe, 0xc0 }, 10, ADDR_PRIVATE },
  { { 0xff }, 8, ADDR_MULTICAST },
};

/* An IPv6 prefix whose addresses carry an IPv4 address from byte offset on. */
struct addr_carrier {
  uint8_t bytes[16];
  uint8_t length;
  uint8_t offset;
};

static const struct addr_carrier addr_carriers[] = {
  { { [10] = 0xff, [11] = 0xff }, 96, 12 }, /* v4-mapped, RFC 4291 */
  { { [8] = 0xff, [9] = 0xff }, 96, 12 }, /* v4-translated, RFC 2765 */
  { { 0x00, 0x64, 0xff, 0x9b }, 96, 12 }, /* NAT64, RFC 6052 */
  { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, 12 }, /* NAT64 of the local network, RFC 8215, as a /96 */
  { { 0x20, 0x02 }, 16, 2 }, /* 6to4, RFC 3056 */
  { { 0 }, 96, 12 }, /* v4-compatible, RFC 4291 */
};

static unsigned addr_bits(enum addr_family family)
{
  return family == ADDR_V4 ? 32 : 128;
}

/* Whether the first length bits of a and b are the same. */
static bool addr_bits_equal(const uint8_t *a, const uint8_t *b, unsigned length)
{
  unsigned whole = length / 8;
  unsigned rest = length % 8;

  if (memcmp(a, b, whole) != 0)
    return false;
  return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

static int addr_parse_v4(struct span text, struct addr *ret_addr)
{
  struct addr addr = { .family = ADDR_V4 };
  struct span part;
  size_t count = 0;

  while (span_split(&text, '.', &part)) {
    uint64_t value;
    if (count == 4 || num_parse_u64(part, 0, 255, &value) < 0)
      return -EINVAL;
    addr.bytes[count++] = (uint8_t)value;
  }
  if (count != 4)
    return -EINVAL;
  *ret_addr = addr;
  return 0;
}

static int addr_parse_v6(struct span text, struct addr *ret_addr)
{
  struct addr addr = { .family = ADDR_V6 };
  char copy[INET6_ADDRSTRLEN];

  if (text.len >= sizeof copy)
    return -EINVAL;
  for (size_t i = 0; i < text.len; i++) {
    char byte = span_lower(text.ptr[i]);
    if (!span_is_digit(byte) && !(byte >= 'a' && byte <= 'f') && byte != ':' && byte != '.')
      return -EINVAL;
    copy[i] = byte;
  }
  copy[text.len] = '\0';
  if (inet_pton(AF_INET6, copy, addr.bytes) != 1)
    return -EINVAL;
  *ret_addr = addr;
  return 0;
}

int addr_parse(struct span text, struct addr *ret_addr)
{
  if (text.len == 0)
    return -EINVAL;
  if (span_find(text, ':') < text.len)
    return addr_parse_v6(text, ret_addr);
  return addr_parse_v4(text, ret_addr);
}

int addr_prefix_parse(struct span text, struct addr_prefix *ret_prefix)
{
  struct addr_prefix prefix;
  size_t slash = span_find(text, '/');
  uint64_t length;

  if (addr_parse(span_sub(text, 0, slash), &prefix.addr) < 0)
    return -EINVAL;
  prefix.length = addr_bits(prefix.addr.family);
  if (slash < text.len) {
    if (num_parse_u64(span_sub(text, slash + 1, text.len), 0, prefix.length, &length) < 0)
      return -EINVAL;
    prefix.length = (unsigned)length;
  }
  struct addr masked = addr_mask(&prefix.addr, prefix.length);
  if (!addr_equal(&masked, &prefix.addr))
    return -EINVAL;
  *ret_prefix = prefix;
  return 0;
}

struct addr addr_mask(const struct addr *addr, unsigned length)
{
  struct addr masked = *addr;

  for (unsigned i = 0; i < sizeof masked.bytes; i++) {
    unsigned kept = length > i * 8 ? length - i * 8 : 0;
    if (kept < 8)
      masked.bytes[i] &= (uint8_t)(0xff00u >> kept);
  }
  return masked;
}

static void addr_print_v4(const uint8_t *bytes, struct buf *out)
{
  buf_printf(out, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* The first of the longest runs of two or more zero groups. */
static void addr_find_zeros(const unsigned *groups, size_t count, size_t *ret_start, size_t *ret_len)
{
  *ret_start = count;
  *ret_len = 1;
  for (size_t i = 0; i < count; i++) {
    size_t end = i;
    while (end < count && groups[end] == 0)
      end++;
    if (end - i > *ret_len) {
      *ret_start = i;
      *ret_len = end - i;
    }
  }
}

/* RFC 5952 to the letter; inet_ntop(3) writes some addresses differently from one libc to the next. */
static void addr_print_v6(const struct addr *addr, struct buf *out)
{
  static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
  unsigned groups[8];
  size_t start;
  size_t len;

  if (memcmp(addr->bytes, mapped, sizeof mapped) == 0) {
    buf_append_str(out, "::ffff:");
    addr_print_v4(addr->bytes + sizeof mapped, out);
    return;
  }
  for (size_t i = 0; i < MEM_COUNT(groups); i++)
    groups[i] = (unsigned)addr->bytes[2 * i] << 8 | addr->bytes[2 * i + 1];
  addr_find_zeros(groups, MEM_COUNT(groups), &start, &len);
  for (size_t i = 0; i < MEM_COUNT(groups);) {
    if (i == start) {
      buf_append_str(out, "::");
      i += len;
      continue;
    }
    buf_printf(out, i > 0 && i != start + len ? ":%x" : "%x", groups[i]);
    i++;
  }
}

void addr_print(const struct addr *addr, struct buf *out)
{
  if (addr->family == ADDR_V4)
    addr_print_v4(addr->bytes, out);
  else
    addr_print_v6(addr, out);
}

void addr_prefix_print(const struct addr_prefix *prefix, struct buf *out)
{
  addr_print(&prefix->addr, out);
  if (!addr_prefix_is_single(prefix))
    buf_printf(out, "/%u", prefix->length);
}

bool addr_prefix_is_single(const struct addr_prefix *prefix)
{
  return prefix->length == addr_bits(prefix->addr.family);
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
  return a->family == b->family && addr_bits_equal(a->bytes, b->bytes, addr_bits(a->family));
}

bool addr_in_prefix(const struct addr *addr, const struct addr_prefix *prefix)
{
  return addr->family == prefix->addr.family && addr_bits_equal(addr->bytes, prefix->addr.bytes, prefix->length);
}

struct addr addr_unwrap(const struct addr *addr)
{
  static const uint8_t zero[16] = { 0 };

  /* :: and ::1 are no v4-compatible addresses. */
  if (addr->family == ADDR_V4 || (addr_bits_equal(addr->bytes, zero, 127)))
    return *addr;
  for (size_t i = 0; i < MEM_COUNT(addr_carriers); i++) {
    if (!addr_bits_equal(addr->bytes, addr_carriers[i].bytes, addr_carriers[i].length))
      continue;
    struct addr inner = { .family = ADDR_V4 };
    memcpy(inner.bytes, addr->bytes + addr_carriers[i].offset, 4);
    return inner;
  }
  return *addr;
}

struct addr addr_unmap(const struct addr *addr)
{
  const struct addr_carrier *mapped = &addr_carriers[0];

  if (addr->family == ADDR_V6 && addr_bits_equal(addr->bytes, mapped->bytes, mapped->length))
    return addr_unwrap(addr);
  return *addr;
}

enum addr_class addr_class_outer(const struct addr *addr)
{
  const struct addr_range *ranges = addr->family == ADDR_V4 ? addr_ranges_v4 : addr_ranges_v6;
  size_t count = addr->family == ADDR_V4 ? MEM_COUNT(addr_ranges_v4) : MEM_COUNT(addr_ranges_v6);

  for (size_t i = 0; i < count; i++)
    if (addr_bits_equal(addr->bytes, ranges[i].bytes, ranges[i].length))
      return (enum addr_class)ranges[i].class;
  return ADDR_PUBLIC;
}

enum addr_class addr_classify(const struct addr *addr)
{
  struct addr inner = addr_unwrap(addr);
  enum addr_class class = addr_class_outer(&inner);

  return class != ADDR_PUBLIC ? class : addr_class_outer(addr);
}
