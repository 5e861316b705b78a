#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Replaces control bytes by \xNN so that no message can drive a terminal; ends in "..." when it does not fit. */
static void escape_into(char *out, size_t cap, const char *text)
{
  static const char hex[] = "0123456789abcdef";
  size_t used = 0;

  for (; *text; text++) {
    unsigned char byte = (unsigned char)*text;
    size_t need = (byte < 0x20 || byte == 0x7f) ? 4 : 1;

    if (used + need + 4 > cap) {
      memcpy(out + used, "...", 3);
      used += 3;
      break;
    }
    if (need == 1) {
      out[used++] = (char)byte;
      continue;
    }
    out[used++] = '\\';
    out[used++] = 'x';
    out[used++] = hex[byte >> 4];
    out[used++] = hex[byte & 15];
  }
  out[used] = '\0';
}

__attribute__((format(printf, 3, 0))) static void fill(struct err *err, int code, const char *format, va_list args)
{
  char raw[ERR_MESSAGE_MAX];

  if (!err)
    return;
  if (vsnprintf(raw, sizeof raw, format, args) < 0)
    raw[0] = '\0';
  err->code = code;
  escape_into(err->message, sizeof err->message, raw);
}

int err_set(struct err *err, int code, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  fill(err, code, format, args);
  va_end(args);
  return -code;
}

int err_set_errno(struct err *err, int code, const char *format, ...)
{
  va_list args;
  size_t len;

  va_start(args, format);
  fill(err, code, format, args);
  va_end(args);
  if (err) {
    len = strlen(err->message);
    snprintf(err->message + len, sizeof err->message - len, ": %s", strerror(code));
  }
  return -code;
}

int err_wrap(struct err *err, const char *format, ...)
{
  struct err inner;
  va_list args;
  size_t len;

  if (!err)
    return -EIO;
  inner = *err;
  va_start(args, format);
  fill(err, inner.code, format, args);
  va_end(args);
  len = strlen(err->message);
  if (len + 2 < sizeof err->message) {
    memcpy(err->message + len, ": ", 3);
    len += 2;
    memccpy(err->message + len, inner.message, '\0', sizeof err->message - len);
    err->message[sizeof err->message - 1] = '\0';
  }
  return -inner.code;
}
