/* bytes: binary fields in network order off the front of a span. Pure.
 *
 * Each function takes its field off *rest and moves on, or, when *rest is too short, returns false and changes nothing:
 * a parser that is made of these alone cannot read past its input.
 */
#ifndef SBX_PROXY_BYTES_H
#define SBX_PROXY_BYTES_H

#include "base/span.h"

#include <stdint.h>

bool bytes_take_u8(struct span *rest, unsigned *ret_value);
bool bytes_take_u16(struct span *rest, unsigned *ret_value);
bool bytes_take_u24(struct span *rest, uint32_t *ret_value);
bool bytes_take_u32(struct span *rest, uint32_t *ret_value);

/* The next len bytes. */
bool bytes_take(struct span *rest, size_t len, struct span *ret_part);

/* A vector of TLS (RFC 8446, 3.4): a length of one or of two bytes, and so many bytes. */
bool bytes_take_vector8(struct span *rest, struct span *ret_part);
bool bytes_take_vector16(struct span *rest, struct span *ret_part);

#endif
