#include "base/log.h"

#include "base/buf.h"
#include "base/fd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_LINE_MAX 8192

static const char *program = "sbx";
static enum log_level threshold = LOG_NOTICE;

void log_open(const char *name, enum log_level level)
{
  program = name;
  threshold = level;
}

enum log_level log_level(void)
{
  return threshold;
}

bool log_enabled(enum log_level level)
{
  return level <= threshold;
}

/* Keeps UTF-8 as it is, escapes C0 controls and DEL, and the C1 controls that some terminals obey (U+0080..U+009F). */
static void append_line(struct buf *line, struct span text)
{
  for (size_t i = 0; i < text.len; i++) {
    unsigned char byte = (unsigned char)text.ptr[i];
    unsigned char next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;

    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next <= 0x9f))
      buf_printf(line, "\\x%02x", byte);
    else
      buf_append_byte(line, (char)byte);
  }
}

void log_line(enum log_level level, const char *format, ...)
{
  buf_autofree struct buf line = BUF_INIT(LOG_LINE_MAX * 4);
  char text[LOG_LINE_MAX];
  va_list args;

  if (!log_enabled(level))
    return;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0)
    text[0] = '\0';
  va_end(args);
  buf_printf(&line, "%s: ", program);
  append_line(&line, span_of(text));
  buf_append_byte(&line, '\n');
  if (!buf_error(&line))
    (void)fd_write_all(STDERR_FILENO, buf_span(&line));
}
