#include "base/err.h"

#include "base/span.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends text, with "..." at the end where it does not fit. Control characters and bytes that are no UTF-8 become
 * \xNN, so that no message can drive a terminal. */
static void append(char *message, struct span text)
{
  static const char hex[] = "0123456789abcdef";
  static const char cut[] = "...";
  size_t used = strlen(message);
  size_t keep = used + sizeof cut <= ERR_MESSAGE_MAX ? used : ERR_MESSAGE_MAX - sizeof cut; /* where a cut may begin */

  while (text.len) {
    size_t printable = span_printable(text);
    size_t need = printable ? printable : 4;
    unsigned char byte = (unsigned char)text.ptr[0];

    if (used + need + 1 > ERR_MESSAGE_MAX) {
      memcpy(message + keep, cut, sizeof cut);
      return;
    }
    if (printable)
      memcpy(message + used, text.ptr, printable);
    else
      memcpy(message + used, (const char[]){ '\\', 'x', hex[byte >> 4], hex[byte & 15] }, 4);
    used += need;
    if (used + sizeof cut <= ERR_MESSAGE_MAX)
      keep = used;
    text = span_sub(text, printable ? printable : 1, text.len);
  }
  message[used] = '\0';
}

__attribute__((format(printf, 3, 0))) static void fill(struct err *err, int code, const char *format, va_list args)
{
  char raw[ERR_MESSAGE_MAX + 1]; /* more than fits, so that what is cut is seen to be cut */

  if (!err)
    return;
  if (vsnprintf(raw, sizeof raw, format, args) < 0)
    raw[0] = '\0';
  err->code = code;
  err->message[0] = '\0';
  append(err->message, span_of(raw));
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

  va_start(args, format);
  fill(err, code, format, args);
  va_end(args);
  if (err) {
    append(err->message, SPAN(": "));
    append(err->message, span_of(strerror(code)));
  }
  return -code;
}

int err_wrap(struct err *err, const char *format, ...)
{
  struct err inner;
  va_list args;

  if (!err)
    return -EIO;
  inner = *err;
  va_start(args, format);
  fill(err, inner.code, format, args);
  va_end(args);
  append(err->message, SPAN(": "));
  append(err->message, span_of(inner.message));
  return -inner.code;
}
