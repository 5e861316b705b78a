/* num: numbers from text, strictly: the whole span must be the number, no sign, no space, no overflow. */
#ifndef SBX_BASE_NUM_H
#define SBX_BASE_NUM_H

#include "base/span.h"

#include <stdint.h>

/* Decimal digits, min <= value <= max. 0, -EINVAL (not a number) or -ERANGE. "007" is -EINVAL: no leading zeros. */
int num_parse_u64(struct span text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* Hexadecimal digits of either case, at most 16 of them, no prefix. 0 or -EINVAL. */
int num_parse_hex(struct span text, uint64_t *ret_value);

/* A size in bytes: digits and an optional k, m, g or t (powers of 1024, either case). 0, -EINVAL or -ERANGE. */
int num_parse_size(struct span text, uint64_t *ret_bytes);

/* A duration: digits and one of ms, s, m, h, d ("s" may be left out). 0, -EINVAL or -ERANGE (over 10 years, or
 * zero). */
int num_parse_duration(struct span text, uint64_t *ret_ms);

/* A positive decimal with up to three places, such as "1.5", as thousandths. 0, -EINVAL or -ERANGE (zero, over
 * 4096). */
int num_parse_milli(struct span text, uint64_t *ret_thousandths);

#endif
