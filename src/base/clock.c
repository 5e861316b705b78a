#include "base/clock.h"

#include <errno.h>
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

/* Takes count digits off text. */
static bool take_digits(struct span *text, size_t count, int *ret_number)
{
  *ret_number = 0;
  if (text->len < count)
    return false;
  for (size_t i = 0; i < count; i++) {
    if (!span_is_digit(text->ptr[i]))
      return false;
    *ret_number = *ret_number * 10 + (text->ptr[i] - '0');
  }
  *text = span_sub(*text, count, text->len);
  return true;
}

static bool take_byte(struct span *text, const char *bytes)
{
  if (text->len == 0 || !strchr(bytes, text->ptr[0]) || text->ptr[0] == '\0')
    return false;
  *text = span_sub(*text, 1, text->len);
  return true;
}

/* "Z" or "+01:00", as minutes. */
static bool take_offset(struct span *text, int *ret_minutes)
{
  bool west = text->len > 0 && text->ptr[0] == '-';
  int hours;
  int minutes;

  *ret_minutes = 0;
  if (take_byte(text, "Zz"))
    return true;
  if (!take_byte(text, "+-") || !take_digits(text, 2, &hours) || !take_byte(text, ":") ||
      !take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
    return false;
  *ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
  return true;
}

static bool take_fraction(struct span *text, int *ret_ms)
{
  int scale = 100;

  *ret_ms = 0;
  if (!take_byte(text, "."))
    return true;
  if (text->len == 0 || !span_is_digit(text->ptr[0]))
    return false;
  for (; text->len > 0 && span_is_digit(text->ptr[0]); scale /= 10) {
    *ret_ms += (text->ptr[0] - '0') * scale;
    *text = span_sub(*text, 1, text->len);
  }
  return true;
}

int clock_parse(struct span text, uint64_t *ret_real_ms)
{
  struct tm utc = { .tm_sec = 0 };
  struct tm same;
  int minutes;
  int ms;
  time_t seconds;
  int64_t result;

  if (!take_digits(&text, 4, &utc.tm_year) || !take_byte(&text, "-") || !take_digits(&text, 2, &utc.tm_mon) ||
      !take_byte(&text, "-") || !take_digits(&text, 2, &utc.tm_mday) || !take_byte(&text, "Tt ") ||
      !take_digits(&text, 2, &utc.tm_hour) || !take_byte(&text, ":") || !take_digits(&text, 2, &utc.tm_min) ||
      !take_byte(&text, ":") || !take_digits(&text, 2, &utc.tm_sec) || !take_fraction(&text, &ms) ||
      !take_offset(&text, &minutes) || text.len > 0)
    return -EINVAL;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  if (utc.tm_sec == 60)
    utc.tm_sec = 59;
  same = utc;
  seconds = timegm(&same);
  /* What timegm(3) has put right was no time. */
  if (same.tm_mon != utc.tm_mon || same.tm_mday != utc.tm_mday || same.tm_hour != utc.tm_hour ||
      same.tm_min != utc.tm_min || same.tm_sec != utc.tm_sec)
    return -EINVAL;
  result = ((int64_t)seconds - minutes * 60) * 1000 + ms;
  if (result < 0)
    return -EINVAL;
  *ret_real_ms = (uint64_t)result;
  return 0;
}
