#include "config.h"

#include "base/log.h"

#include "base/buf.h"
#include "base/fd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_LINE_MAX 8192

static const char *program = SBX_NAME;
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

/* Keeps what is valid UTF-8; escapes control characters, and bytes that are no UTF-8: a terminal of 8 bits would take
 * one of those for a control of C1. */
static void append_line(struct buf *line, struct span text)
{
  while (text.len) {
    size_t printable = span_printable(text);

    if (printable)
      buf_append(line, span_sub(text, 0, printable));
    else
      buf_printf(line, "\\x%02x", (unsigned char)text.ptr[0]);
    text = span_sub(text, printable ? printable : 1, text.len);
  }
}

void log_line(enum log_level level, const char *format, ...)
{
  buf_autofree struct buf line = BUF_INIT(LOG_LINE_MAX * 5);
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
