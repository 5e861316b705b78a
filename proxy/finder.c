/* Theory of operation
 *
 * A place is looked at only where two bytes stand that some form of some pattern may begin with, which is one in a
 * hundred or less. There each pattern is compared in each form, byte by byte of the pattern, until one differs, which
 * is the first or the second as a rule. Where the text ends while nothing differs the place is open: what is there may
 * be an occurrence, or a longer one than was found, and only the next piece tells.
 *
 * Each place is judged by itself, also inside of an occurrence, so that what is found is the same wherever the text is
 * cut, and no occurrence hides another.
 */
#include "proxy/finder.h"

#include <string.h>

#define BASE64_LEAST 4
#define ENCODED_MAX 3 /* how often a byte was percent-encoded: a URL in a query of a URL in a query */
#define OPEN SIZE_MAX /* in place of a length: the text ends before it is known */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int hex(char digit)
{
  if (span_is_digit(digit))
    return digit - '0';
  digit = span_lower(digit);
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* How many bytes of text, two at most, are the two hexadecimal digits of byte: 2, 0 or OPEN. */
static size_t take_hex(struct span text, size_t at, char byte)
{
  int high = (unsigned char)byte >> 4;
  int low = (unsigned char)byte & 15;

  if (at < text.len && hex(text.ptr[at]) != high)
    return 0;
  if (at + 1 < text.len && hex(text.ptr[at + 1]) != low)
    return 0;
  return at + 1 < text.len ? 2 : OPEN;
}

/* word, and then two digits. */
static size_t take_word_hex(struct span text, size_t at, const char *word, char byte)
{
  size_t len = strlen(word);
  size_t rest;

  for (size_t i = 0; i < len; i++) {
    if (at + i == text.len)
      return OPEN;
    if (text.ptr[at + i] != word[i])
      return 0;
  }
  rest = take_hex(text, at + len, byte);
  return rest == 0 || rest == OPEN ? rest : len + rest;
}

/* Digits come first: the u of "\u0075" is no escaped u. */
static size_t take_backslash(struct span text, size_t at, char byte)
{
  static const char *const words[] = { "\\u00", "\\x" };
  bool open = false;

  for (size_t i = 0; i < 2; i++) {
    size_t len = take_word_hex(text, at, words[i], byte);

    if (len && len != OPEN)
      return len;
    open = open || len == OPEN;
  }
  if (open)
    return OPEN;
  return at + 1 < text.len && text.ptr[at + 1] == byte ? 2 : 0;
}

/* How many bytes at text[at] stand for byte, in a text that was percent-encoded depth times; 0, or OPEN. */
static size_t take(struct span text, size_t at, char byte, unsigned depth)
{
  static const char *const words[ENCODED_MAX] = { "%", "%25", "%2525" };
  size_t len = 0;

  if (at == text.len)
    return OPEN;
  if (text.ptr[at] == '%')
    len = take_word_hex(text, at, words[depth - 1], byte);
  else if (text.ptr[at] == '\\')
    len = take_backslash(text, at, byte);
  if (len)
    return len;
  return text.ptr[at] == byte || (text.ptr[at] == '+' && byte == ' ');
}

static size_t match_raw(struct span text, size_t at, struct span wanted)
{
  size_t len = text.len - at < wanted.len ? text.len - at : wanted.len;

  if (memcmp(text.ptr + at, wanted.ptr, len) != 0)
    return 0;
  return len < wanted.len ? OPEN : len;
}

static size_t match_escaped(struct span text, size_t at, struct span wanted, unsigned depth)
{
  size_t end = at;

  for (size_t i = 0; i < wanted.len; i++) {
    size_t len = take(text, end, wanted.ptr[i], depth);

    if (len == 0 || len == OPEN)
      return len;
    end += len;
  }
  return end - at;
}

/* Six bits of bytes from a bit on, as base64 cuts them. */
static unsigned sextet(struct span bytes, size_t bit)
{
  size_t at = bit / 8;
  unsigned pair = (unsigned)(unsigned char)bytes.ptr[at] << 8;

  if (at + 1 < bytes.len)
    pair |= (unsigned char)bytes.ptr[at + 1];
  return pair >> (10 - bit % 8) & 63;
}

static size_t take_digit(struct span text, size_t at, unsigned value)
{
  size_t len = take(text, at, digits[value], 1);

  return len || value < 62 ? len : take(text, at, value == 62 ? '-' : '_', 1);
}

/* The digits that stand for wanted from a bit on, all of them whole. */
static size_t match_base64(struct span text, size_t at, struct span wanted, size_t bit)
{
  size_t end = at;

  for (; bit + 6 <= wanted.len * 8; bit += 6) {
    size_t len = take_digit(text, end, sextet(wanted, bit));

    if (len == 0 || len == OPEN)
      return len;
    end += len;
  }
  return end - at;
}

void finder_clear(struct finder *finder)
{
  finder->count = 0;
  memset(finder->leads, 0, sizeof finder->leads);
  memset(finder->pairs, 0, sizeof finder->pairs);
}

static size_t pair_of(char first, char second)
{
  return (size_t)(unsigned char)first << 8 | (unsigned char)second;
}

static bool has_pair(const struct finder *finder, char first, char second)
{
  size_t pair = pair_of(first, second);

  return finder->pairs[pair / 64] >> pair % 64 & 1;
}

static void lead(struct finder *finder, char first, char second)
{
  size_t pair = pair_of(first, second);

  finder->leads[(unsigned char)first] = true;
  finder->pairs[pair / 64] |= (uint64_t)1 << pair % 64;
}

/* The escapes of a first byte. */
static void lead_escaped(struct finder *finder, char byte)
{
  unsigned high = (unsigned char)byte >> 4;

  lead(finder, '%', "0123456789abcdef"[high]);
  lead(finder, '%', "0123456789ABCDEF"[high]);
  lead(finder, '%', '2'); /* %25 */
  lead(finder, '\\', byte);
  lead(finder, '\\', 'u');
  lead(finder, '\\', 'x');
}

/* What may begin with one of the bytes of first and go on with one of those of second, as they are or escaped. */
static void lead_all(struct finder *finder, const char first[2], const char second[2])
{
  for (size_t i = 0; i < 2; i++) {
    lead_escaped(finder, first[i]);
    lead(finder, first[i], second[0]);
    lead(finder, first[i], second[1]);
    lead(finder, first[i], '%');
    lead(finder, first[i], '\\');
  }
}

/* The two ways to write a byte, and a digit of base64; equal where there is one. */
static void write_byte(char byte, char ret_ways[2])
{
  ret_ways[0] = byte;
  ret_ways[1] = byte == ' ' ? '+' : byte;
}

static void write_digit(unsigned value, char ret_ways[2])
{
  ret_ways[0] = digits[value];
  ret_ways[1] = value < 62 ? digits[value] : value == 62 ? '-' : '_';
}

bool finder_add(struct finder *finder, struct span bytes, size_t which)
{
  char first[2];
  char second[2];

  if (bytes.len == 0)
    return true;
  if (finder->count == FINDER_PATTERNS_MAX)
    return false;
  finder->patterns[finder->count].bytes = bytes;
  finder->patterns[finder->count++].which = which;
  write_byte(bytes.ptr[0], first);
  for (size_t next = 0; bytes.len == 1 && next < 256; next++) {
    lead(finder, first[0], (char)next);
    lead(finder, first[1], (char)next);
  }
  write_byte(bytes.ptr[bytes.len > 1], second);
  lead_all(finder, first, second);
  for (size_t bit = 0; bit < 6 && bytes.len >= BASE64_LEAST; bit += 2) {
    write_digit(sextet(bytes, bit), first);
    write_digit(sextet(bytes, bit + 6), second);
    lead_all(finder, first, second);
  }
  return true;
}

/* The longest form of wanted at text[at], 0, or OPEN where a form may be longer than the text. */
static size_t match(struct span text, size_t at, struct span wanted, bool end)
{
  size_t best = 0;

  for (unsigned form = 0; form < 1 + ENCODED_MAX + 3; form++) {
    size_t len;

    if (form == 0)
      len = match_raw(text, at, wanted);
    else if (form <= ENCODED_MAX)
      len = match_escaped(text, at, wanted, form);
    else if (wanted.len >= BASE64_LEAST)
      len = match_base64(text, at, wanted, 2 * (size_t)(form - ENCODED_MAX - 1));
    else
      break;
    if (len == OPEN && !end)
      return OPEN;
    if (len != OPEN && len > best)
      best = len;
  }
  return best;
}

/* The longest of all patterns at text[at]; len is 0 where there is none, or OPEN. */
static struct finder_hit look(const struct finder *finder, struct span text, size_t at, bool end)
{
  struct finder_hit hit = { .at = at };

  for (size_t i = 0; i < finder->count && hit.len != OPEN; i++) {
    size_t len = match(text, at, finder->patterns[i].bytes, end);

    if (len > hit.len) { /* OPEN is larger than any length */
      hit.len = len;
      hit.which = finder->patterns[i].which;
    }
  }
  return hit;
}

bool finder_next(const struct finder *finder, struct span text, size_t from, bool end, struct finder_hit *ret_hit,
                 size_t *ret_open)
{
  for (size_t at = from; finder->count && at < text.len; at++) {
    struct finder_hit hit;

    if (at + 1 < text.len ? !has_pair(finder, text.ptr[at], text.ptr[at + 1])
                          : !finder->leads[(unsigned char)text.ptr[at]])
      continue;
    hit = look(finder, text, at, end);
    if (hit.len == OPEN) {
      *ret_open = at;
      return false;
    }
    if (hit.len) {
      *ret_hit = hit;
      return true;
    }
  }
  *ret_open = text.len;
  return false;
}
