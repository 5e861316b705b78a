#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_mono_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t clock_real_ms(void)
{
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void clock_format(uint64_t real_ms, char ret_text[CLOCK_TEXT_MAX])
{
  static const uint64_t last_ms = UINT64_C(253402300799999); /* RFC 3339 ends with the year 9999 */
  uint64_t shown_ms = real_ms < last_ms ? real_ms : last_ms;
  time_t seconds = (time_t)(shown_ms / 1000);
  struct tm utc;
  char day[24];

  gmtime_r(&seconds, &utc);
  strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(ret_text, CLOCK_TEXT_MAX, "%s.%03uZ", day, (unsigned)(shown_ms % 1000));
}
