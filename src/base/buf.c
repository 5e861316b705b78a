#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_free(struct buf *buf)
{
  free(buf->data);
  *buf = (struct buf)BUF_INIT(buf->max);
}

/* Makes room for more bytes and the NUL, for no more or, where more is to come, for twice what there was; marks the
 * buffer and returns false where it cannot. */
static bool reserve(struct buf *buf, size_t more, bool exactly)
{
  size_t need;
  size_t cap;
  char *grown;

  if (buf->error)
    return false;
  if (more > buf->max - buf->len) {
    buf->error = -E2BIG;
    return false;
  }
  need = buf->len + more + 1;
  if (need <= buf->cap)
    return true;
  cap = exactly ? need : buf->cap ? buf->cap : 64;
  while (cap < need)
    cap *= 2;
  grown = realloc(buf->data, cap);
  if (!grown) {
    buf->error = -ENOMEM;
    return false;
  }
  buf->data = grown;
  buf->cap = cap;
  return true;
}

void buf_reserve(struct buf *buf, size_t count)
{
  (void)reserve(buf, count, true);
}

void buf_wipe(struct buf *buf)
{
  if (buf->data)
    mem_wipe(buf->data, buf->cap);
  buf_free(buf);
}

void buf_append(struct buf *buf, struct span bytes)
{
  if (!reserve(buf, bytes.len, false))
    return;
  if (bytes.len)
    memcpy(buf->data + buf->len, bytes.ptr, bytes.len);
  buf->len += bytes.len;
  buf->data[buf->len] = '\0';
}

void buf_append_str(struct buf *buf, const char *string)
{
  buf_append(buf, span_of(string));
}

void buf_append_byte(struct buf *buf, char byte)
{
  buf_append(buf, (struct span){ .ptr = &byte, .len = 1 });
}

void buf_printf(struct buf *buf, const char *format, ...)
{
  va_list args;
  int len;

  va_start(args, format);
  len = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (len < 0 && !buf->error)
    buf->error = -E2BIG; /* longer than INT_MAX, which no ceiling here is */
  if (len < 0 || !reserve(buf, (size_t)len, false))
    return;
  va_start(args, format);
  vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
  va_end(args);
  buf->len += (size_t)len;
}

void buf_append_escaped(struct buf *buf, struct span bytes)
{
  for (size_t i = 0; i < bytes.len; i++) {
    unsigned char byte = (unsigned char)bytes.ptr[i];

    if (byte < 0x20 || byte > 0x7e || byte == '\\')
      buf_printf(buf, "\\x%02x", byte);
    else
      buf_append_byte(buf, (char)byte);
  }
}

void buf_append_printable(struct buf *buf, struct span bytes)
{
  while (bytes.len) {
    size_t printable = span_printable(bytes);

    if (printable)
      buf_append(buf, span_sub(bytes, 0, printable));
    else
      buf_printf(buf, "\\x%02x", (unsigned char)bytes.ptr[0]);
    bytes = span_sub(bytes, printable ? printable : 1, bytes.len);
  }
}

void buf_append_json(struct buf *buf, struct span bytes)
{
  buf_append_byte(buf, '"');
  for (size_t i = 0; i < bytes.len; i++) {
    unsigned char byte = (unsigned char)bytes.ptr[i];
    size_t sequence = byte >= 0x80 ? span_utf8(span_sub(bytes, i, bytes.len)) : 0;

    if (sequence) {
      buf_append(buf, span_sub(bytes, i, sequence));
      i += sequence - 1;
    } else if (byte == '"' || byte == '\\') {
      buf_append_byte(buf, '\\');
      buf_append_byte(buf, (char)byte);
    } else if (byte == '\n') {
      buf_append_str(buf, "\\n");
    } else if (byte == '\t') {
      buf_append_str(buf, "\\t");
    } else if (byte < 0x20 || byte >= 0x7f) {
      buf_printf(buf, "\\u%04x", byte);
    } else {
      buf_append_byte(buf, (char)byte);
    }
  }
  buf_append_byte(buf, '"');
}

void buf_consume(struct buf *buf, size_t count)
{
  if (count > buf->len)
    count = buf->len;
  if (!count)
    return;
  memmove(buf->data, buf->data + count, buf->len - count);
  buf->len -= count;
  buf->data[buf->len] = '\0';
}

int buf_error(const struct buf *buf)
{
  return buf->error;
}

char *buf_steal(struct buf *buf)
{
  char *text;

  buf_append(buf, SPAN(""));
  if (buf->error)
    return NULL;
  text = buf->data;
  *buf = (struct buf)BUF_INIT(buf->max);
  return text;
}

struct span buf_span(const struct buf *buf)
{
  return (struct span){ .ptr = buf->data ? buf->data : "", .len = buf->len };
}
