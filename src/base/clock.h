/* clock: the two clocks of clock_gettime(2) that the programs use. */
#ifndef SBX_BASE_CLOCK_H
#define SBX_BASE_CLOCK_H

#include "base/span.h"

#include <stdint.h>

/* Bytes of a formatted time with its NUL. */
#define CLOCK_TEXT_MAX 32

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_ns(void);

/* Milliseconds since the epoch, CLOCK_REALTIME. */
uint64_t clock_real_ms(void);

/* RFC 3339 in UTC with milliseconds: "2026-01-02T03:04:05.678Z". Times past the year 9999 are shown as its end. */
void clock_format(uint64_t real_ms, char ret_text[CLOCK_TEXT_MAX]);

/* A time of RFC 3339, section 5.6, from 1970 on, as milliseconds since the epoch. Of a fraction of a second three
 * digits count, and a leap second is the one before it. 0 or -EINVAL. */
int clock_parse(struct span text, uint64_t *ret_real_ms);

#endif
