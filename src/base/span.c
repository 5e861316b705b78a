#include "base/span.h"

#include <stdint.h>

struct span span_of(const char *string)
{
  return (struct span){ .ptr = string ? string : "", .len = string ? strlen(string) : 0 };
}

bool span_equal(struct span a, struct span b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool span_equal_nocase(struct span a, struct span b)
{
  if (a.len != b.len)
    return false;
  for (size_t i = 0; i < a.len; i++) {
    if (span_lower(a.ptr[i]) != span_lower(b.ptr[i]))
      return false;
  }
  return true;
}

bool span_equal_str(struct span a, const char *b)
{
  return span_equal(a, span_of(b));
}

bool span_starts_with(struct span s, struct span prefix)
{
  return s.len >= prefix.len && span_equal(span_sub(s, 0, prefix.len), prefix);
}

bool span_ends_with(struct span s, struct span suffix)
{
  return s.len >= suffix.len && span_equal(span_sub(s, s.len - suffix.len, suffix.len), suffix);
}

size_t span_find(struct span s, char byte)
{
  const char *at = s.len ? memchr(s.ptr, byte, s.len) : NULL;

  return at ? (size_t)(at - s.ptr) : s.len;
}

size_t span_find_last(struct span s, char byte)
{
  for (size_t i = s.len; i > 0; i--) {
    if (s.ptr[i - 1] == byte)
      return i - 1;
  }
  return s.len;
}

struct span span_sub(struct span s, size_t from, size_t len)
{
  if (from > s.len)
    from = s.len;
  if (len > s.len - from)
    len = s.len - from;
  return (struct span){ .ptr = from ? s.ptr + from : s.ptr, .len = len }; /* a NULL may not even be added 0 to */
}

struct span span_trim(struct span s)
{
  while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
    s = span_sub(s, 1, s.len);
  while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
    s.len--;
  return s;
}

bool span_split(struct span *rest, char sep, struct span *ret_part)
{
  size_t at;

  if (!rest->ptr)
    return false;
  at = span_find(*rest, sep);
  *ret_part = span_sub(*rest, 0, at);
  if (at == rest->len)
    *rest = (struct span){ .ptr = NULL, .len = 0 };
  else
    *rest = span_sub(*rest, at + 1, rest->len);
  return true;
}

size_t span_utf8(struct span s)
{
  const unsigned char *b = (const unsigned char *)s.ptr;
  size_t len;
  uint32_t code;

  if (s.len == 0)
    return 0;
  if (b[0] < 0x80)
    return 1;
  len = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
  if (b[0] < 0xc2 || b[0] > 0xf4 || s.len < len)
    return 0;
  code = b[0] & (0xffu >> (len + 1));
  for (size_t i = 1; i < len; i++) {
    if ((b[i] & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (b[i] & 0x3fu);
  }
  if ((len == 3 && code < 0x800) || (len == 4 && (code < 0x10000 || code > 0x10ffff)))
    return 0;
  return code >= 0xd800 && code <= 0xdfff ? 0 : len;
}

/* The number of the character that a valid sequence of len bytes stands for. */
static uint32_t code_point(const char *bytes, size_t len)
{
  uint32_t code = (unsigned char)bytes[0] & (len == 1 ? 0x7fu : 0xffu >> (len + 1));

  for (size_t i = 1; i < len; i++)
    code = code << 6 | ((unsigned char)bytes[i] & 0x3fu);
  return code;
}

size_t span_printable(struct span s)
{
  /* C0, DEL and C1; then what has no glyph of its own and moves, joins or reverses the text round it
   * (CVE-2021-42574). */
  static const struct {
    uint32_t first;
    uint32_t last;
  } refused[] = {
    { 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },       { 0x61c, 0x61c },
    { 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
    { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
  };
  size_t len = span_utf8(s);
  uint32_t code = len ? code_point(s.ptr, len) : 0;

  for (size_t i = 0; i < sizeof refused / sizeof refused[0] && len; i++) {
    if (code >= refused[i].first && code <= refused[i].last)
      return 0;
  }
  return len;
}

bool span_is_digit(char byte)
{
  return byte >= '0' && byte <= '9';
}

bool span_is_alpha(char byte)
{
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

char span_lower(char byte)
{
  return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

size_t span_distance(struct span a, struct span b)
{
  size_t row[SPAN_DISTANCE_MAX + 1];

  if (a.len > SPAN_DISTANCE_MAX || b.len > SPAN_DISTANCE_MAX)
    return SIZE_MAX;
  for (size_t j = 0; j <= b.len; j++)
    row[j] = j;
  for (size_t i = 1; i <= a.len; i++) {
    size_t diagonal = row[0];

    row[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
      size_t best = diagonal + (span_lower(a.ptr[i - 1]) != span_lower(b.ptr[j - 1]));

      diagonal = row[j];
      if (row[j] + 1 < best)
        best = row[j] + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[b.len];
}

bool span_is_near(struct span s, size_t distance)
{
  return distance <= 2 && distance * 3 <= s.len + 2;
}
