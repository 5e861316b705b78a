/* base64: RFC 4648, section 4, in one reading only. */
#ifndef SBX_BASE_BASE64_H
#define SBX_BASE_BASE64_H

#include "base/buf.h"

/* Appends bytes as base64, with padding. */
void base64_append(struct span bytes, struct buf *out);

/* Appends what text stands for. 0; or -EINVAL, with out unchanged, where text is not what an encoder makes: bytes
 * beside the alphabet, a length that none has, bits set that are no byte's (section 3.5). The padding is whole or not
 * there. */
int base64_decode(struct span text, struct buf *out);

/* The six bits that a digit stands for, in the alphabet of section 4 or in that of section 5 (URLs); -1 for another. */
int base64_digit(char digit);

#endif
