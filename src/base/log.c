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
  buf_append_printable(&line, span_of(text));
  buf_append_byte(&line, '\n');
  if (!buf_error(&line))
    (void)fd_write_all(STDERR_FILENO, buf_span(&line));
}
