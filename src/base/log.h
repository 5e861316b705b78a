/* log: lines for a person, on standard error, each beginning with the program's name.
 *
 * Only main files, cmd/ and run/ print; lower layers return errors. The level and the name are the one piece of state
 * in this layer.
 */
#ifndef SBX_BASE_LOG_H
#define SBX_BASE_LOG_H

#include "base/span.h"

enum log_level {
  LOG_ERROR, /* what made the program fail */
  LOG_WARNING,
  LOG_NOTICE, /* what a user should know; off with -q */
  LOG_DETAIL, /* on with -v */
};

/* Names the program in front of every line ("sbx") and sets what is printed. name must outlive the program. */
void log_open(const char *name, enum log_level level);
enum log_level log_level(void);
bool log_enabled(enum log_level level);

/* Prints one line, with control bytes escaped so that no text from inside can drive the terminal. One write(2). */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
