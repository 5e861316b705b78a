#include "base/num.h"

#include <errno.h>

int num_parse_u64(struct span text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
  uint64_t value = 0;

  if (text.len == 0 || (text.len > 1 && text.ptr[0] == '0'))
    return -EINVAL;
  for (size_t i = 0; i < text.len; i++) {
    if (!span_is_digit(text.ptr[i]))
      return -EINVAL;
  }
  for (size_t i = 0; i < text.len; i++) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value))
      return -ERANGE;
  }
  if (value < min || value > max)
    return -ERANGE;
  *ret_value = value;
  return 0;
}

int num_parse_hex(struct span text, uint64_t *ret_value)
{
  uint64_t value = 0;

  if (text.len == 0 || text.len > 16)
    return -EINVAL;
  for (size_t i = 0; i < text.len; i++) {
    char byte = span_lower(text.ptr[i]);

    if (span_is_digit(byte))
      value = value << 4 | (uint64_t)(byte - '0');
    else if (byte >= 'a' && byte <= 'f')
      value = value << 4 | (uint64_t)(byte - 'a' + 10);
    else
      return -EINVAL;
  }
  *ret_value = value;
  return 0;
}

struct unit {
  struct span name;
  uint64_t factor;
};

/* Digits followed by one of the units; the unit with an empty name is what no suffix means. */
static int parse_with_unit(struct span text, const struct unit *units, size_t count, uint64_t *ret_value)
{
  size_t digits = 0;
  uint64_t value;
  struct span suffix;
  int r;

  while (digits < text.len && span_is_digit(text.ptr[digits]))
    digits++;
  r = num_parse_u64(span_sub(text, 0, digits), 0, UINT64_MAX, &value);
  if (r < 0)
    return r;
  suffix = span_sub(text, digits, text.len);
  for (size_t i = 0; i < count; i++) {
    if (!span_equal_nocase(suffix, units[i].name))
      continue;
    return __builtin_mul_overflow(value, units[i].factor, ret_value) ? -ERANGE : 0;
  }
  return -EINVAL;
}

int num_parse_size(struct span text, uint64_t *ret_bytes)
{
  static const struct unit units[] = {
    { SPAN_INIT(""), 1 },
    { SPAN_INIT("k"), UINT64_C(1) << 10 },
    { SPAN_INIT("m"), UINT64_C(1) << 20 },
    { SPAN_INIT("g"), UINT64_C(1) << 30 },
    { SPAN_INIT("t"), UINT64_C(1) << 40 },
  };
  uint64_t value;
  int r = parse_with_unit(text, units, sizeof units / sizeof units[0], &value);

  if (r == 0)
    *ret_bytes = value;
  return r;
}

int num_parse_duration(struct span text, uint64_t *ret_ms)
{
  static const struct unit units[] = {
    { SPAN_INIT(""), 1000 },
    { SPAN_INIT("ms"), 1 },
    { SPAN_INIT("s"), 1000 },
    { SPAN_INIT("m"), 60 * 1000 },
    { SPAN_INIT("h"), 60 * 60 * 1000 },
    { SPAN_INIT("d"), 24 * 60 * 60 * 1000 },
  };
  static const uint64_t max = UINT64_C(3650) * 24 * 60 * 60 * 1000;
  uint64_t value;
  int r = parse_with_unit(text, units, sizeof units / sizeof units[0], &value);

  if (r < 0)
    return r;
  if (value == 0 || value > max)
    return -ERANGE;
  *ret_ms = value;
  return 0;
}

int num_parse_milli(struct span text, uint64_t *ret_thousandths)
{
  size_t point = span_find(text, '.');
  struct span places = span_sub(text, point + 1, text.len);
  uint64_t whole;
  uint64_t value;
  int r = num_parse_u64(span_sub(text, 0, point), 0, 4096, &whole);

  if (r < 0)
    return r;
  if (point < text.len && (places.len == 0 || places.len > 3))
    return -EINVAL;
  value = whole;
  for (size_t i = 0; i < 3; i++) {
    char digit = i < places.len ? places.ptr[i] : '0';

    if (!span_is_digit(digit))
      return -EINVAL;
    value = value * 10 + (uint64_t)(digit - '0');
  }
  if (value == 0 || value > 4096000)
    return -ERANGE;
  *ret_thousandths = value;
  return 0;
}
