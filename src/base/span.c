#include "base/span.h"

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
  return (struct span){ .ptr = s.ptr + from, .len = len };
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
