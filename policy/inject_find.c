#include "policy/inject_find.h"

#include "base/base64.h"

#define ENCODED_MAX 3 /* how often a byte was percent-encoded: a URL in a query of a URL in a query */
#define BASE64_WANTED_MIN 4

static int hex(char digit)
{
  if (span_is_digit(digit))
    return digit - '0';
  digit = span_lower(digit);
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The byte that two hex digits at text[at] stand for; -1 where there are none. */
static int hex_pair(struct span text, size_t at)
{
  int high = at + 1 < text.len ? hex(text.ptr[at]) : -1;
  int low = high < 0 ? -1 : hex(text.ptr[at + 1]);

  return low < 0 ? -1 : high * 16 + low;
}

size_t inject_unescape(struct span text, size_t at, char *ret_byte)
{
  int byte = text.ptr[at] == '%' ? hex_pair(text, at + 1) : -1;

  *ret_byte = byte < 0 ? text.ptr[at] : (char)byte;
  return byte < 0 ? 1 : 3;
}

size_t inject_find_raw(struct span text, size_t from, struct span wanted)
{
  struct span rest = span_sub(text, from, text.len);
  const char *found = wanted.len && rest.len ? memmem(rest.ptr, rest.len, wanted.ptr, wanted.len) : NULL;

  return found ? (size_t)(found - text.ptr) : text.len;
}

/* How many bytes at text[at] are byte, escaped or not, in a text that was percent-encoded depth times; 0 where they are
 * not. */
static size_t escaped_byte(struct span text, size_t at, char byte, int depth)
{
  char first = text.ptr[at];
  size_t end = at + 1;

  if (first == '%') {
    for (; depth > 1; depth--, end += 2)
      if (hex_pair(text, end) != '%')
        return 0;
    return hex_pair(text, end) == (unsigned char)byte ? end + 2 - at : 0;
  }
  if (first == '\\' && end < text.len && text.ptr[end] == byte)
    return 2;
  return first == byte || (first == '+' && byte == ' ');
}

static size_t escaped_len_at(struct span text, size_t at, struct span wanted, int depth)
{
  size_t end = at;

  for (size_t i = 0; i < wanted.len; i++) {
    size_t step = end < text.len ? escaped_byte(text, end, wanted.ptr[i], depth) : 0;

    if (!step)
      return 0;
    end += step;
  }
  return end - at;
}

/* The length of wanted, escaped, at text[at]; 0 where it does not stand there. */
static size_t escaped_len(struct span text, size_t at, struct span wanted)
{
  size_t len = 0;

  for (int depth = 1; depth <= ENCODED_MAX && !len; depth++)
    len = escaped_len_at(text, at, wanted, depth);
  return len;
}

static bool has_escapes(struct span text)
{
  for (size_t i = 0; i < text.len; i++)
    if (text.ptr[i] == '%' || text.ptr[i] == '\\' || text.ptr[i] == '+')
      return true;
  return false;
}

/* Six bits of bytes from a bit on, as base64 cuts them. */
static int sextet(struct span bytes, size_t bit)
{
  size_t at = bit / 8;
  unsigned pair = (unsigned)(unsigned char)bytes.ptr[at] << 8;

  if (at + 1 < bytes.len)
    pair |= (unsigned char)bytes.ptr[at + 1];
  return (int)(pair >> (10 - bit % 8) & 63);
}

/* The length of the digits at text[at] that stand for wanted from a bit on, all of them whole; 0 where they do not. */
static size_t base64_len(struct span text, size_t at, struct span wanted, size_t bit)
{
  size_t end = at;
  char digit;

  for (; bit + 6 <= wanted.len * 8; bit += 6) {
    if (end == text.len)
      return 0;
    end += inject_unescape(text, end, &digit);
    if (base64_digit(digit) != sextet(wanted, bit))
      return 0;
  }
  return end - at;
}

/* Looks at text[at] for wanted in base64: behind a whole number of groups, or behind one or two bytes of one. */
static bool base64_match(struct span text, size_t at, struct span wanted, struct inject_match *ret_match)
{
  for (size_t bit = 0; bit < 6; bit += 2) {
    size_t len = base64_len(text, at, wanted, bit);
    size_t begin = at;
    char digit;

    if (!len)
      continue;
    if (bit && begin > 0 && base64_digit(text.ptr[begin - 1]) >= 0)
      begin--;
    len += at - begin;
    if ((wanted.len * 8 - bit) % 6 && begin + len < text.len) {
      size_t step = inject_unescape(text, begin + len, &digit);

      len += base64_digit(digit) >= 0 ? step : 0;
    }
    *ret_match = (struct inject_match){ .at = begin, .len = len, .form = INJECT_FORM_BASE64 };
    return true;
  }
  return false;
}

bool inject_find(struct span text, size_t from, struct span wanted, struct inject_match *ret_match)
{
  size_t raw = inject_find_raw(text, from, wanted);
  bool escapes = has_escapes(text);
  bool base64 = wanted.len >= BASE64_WANTED_MIN && text.len >= (wanted.len * 8 - 4) / 6;
  struct span found = span_sub(text, 0, raw);

  for (size_t at = from; wanted.len && (escapes || base64) && at < found.len; at++) {
    size_t len = escapes ? escaped_len(text, at, wanted) : 0;

    if (len) {
      *ret_match = (struct inject_match){ .at = at, .len = len, .form = INJECT_FORM_ESCAPED };
      return true;
    }
    if (base64 && base64_match(text, at, wanted, ret_match)) {
      if (ret_match->at < from) {
        ret_match->len -= from - ret_match->at;
        ret_match->at = from;
      }
      return true;
    }
  }
  if (raw == text.len)
    return false;
  *ret_match = (struct inject_match){ .at = raw, .len = wanted.len, .form = INJECT_FORM_RAW };
  return true;
}

bool inject_find_escaped(struct span text, size_t from, struct span wanted, struct inject_match *ret_match)
{
  struct inject_match match;

  while (inject_find(text, from, wanted, &match)) {
    if (match.form != INJECT_FORM_BASE64) {
      *ret_match = match;
      return true;
    }
    from = match.at + match.len;
  }
  return false;
}
