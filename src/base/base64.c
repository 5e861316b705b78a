#include "base/base64.h"

#include <errno.h>

void base64_append(struct span bytes, struct buf *out)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  for (size_t i = 0; i < bytes.len; i += 3) {
    size_t left = bytes.len - i;
    unsigned group = (unsigned)(unsigned char)bytes.ptr[i] << 16;

    if (left > 1)
      group |= (unsigned)(unsigned char)bytes.ptr[i + 1] << 8;
    if (left > 2)
      group |= (unsigned char)bytes.ptr[i + 2];
    buf_append_byte(out, digits[group >> 18]);
    buf_append_byte(out, digits[group >> 12 & 63]);
    buf_append_byte(out, left > 1 ? digits[group >> 6 & 63] : '=');
    buf_append_byte(out, left > 2 ? digits[group & 63] : '=');
  }
}

int base64_digit(char digit)
{
  if (digit >= 'A' && digit <= 'Z')
    return digit - 'A';
  if (digit >= 'a' && digit <= 'z')
    return digit - 'a' + 26;
  if (span_is_digit(digit))
    return digit - '0' + 52;
  if (digit == '+' || digit == '-')
    return 62;
  return digit == '/' || digit == '_' ? 63 : -1;
}

/* Without its padding; an empty span with a NULL pointer where that, or a digit, is wrong. */
static struct span check_digits(struct span text)
{
  struct span digits = text;

  while (digits.len && text.len - digits.len < 2 && digits.ptr[digits.len - 1] == '=')
    digits.len--;
  if ((digits.len != text.len && text.len % 4) || digits.len % 4 == 1)
    return (struct span){ .ptr = NULL, .len = 0 };
  for (size_t i = 0; i < digits.len; i++)
    if (base64_digit(digits.ptr[i]) < 0 || digits.ptr[i] == '-' || digits.ptr[i] == '_')
      return (struct span){ .ptr = NULL, .len = 0 };
  return digits;
}

int base64_decode(struct span text, struct buf *out)
{
  struct span digits = check_digits(text);
  unsigned bits = 0;
  unsigned held = 0;

  if (!digits.ptr)
    return text.len ? -EINVAL : 0;
  if (digits.len % 4 && (unsigned)base64_digit(digits.ptr[digits.len - 1]) & (digits.len % 4 == 2 ? 15u : 3u))
    return -EINVAL;
  for (size_t i = 0; i < digits.len; i++) {
    bits = (bits << 6 | (unsigned)base64_digit(digits.ptr[i])) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      buf_append_byte(out, (char)(bits >> held & 0xff));
    }
  }
  return 0;
}
