/* sha1: SHA-1 (FIPS 180-4, 6.1), for file formats that have it as a checksum. Not for security. */
#ifndef SBX_BASE_SHA1_H
#define SBX_BASE_SHA1_H

#include "base/span.h"

#include <stdint.h>

#define SHA1_BYTES 20

struct sha1 {
  uint32_t state[5];
  uint64_t total; /* bytes so far */
  unsigned char block[64]; /* of which total % 64 are there */
};

void sha1_begin(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, struct span bytes);
/* Ends the sum; begin anew afterwards. */
void sha1_end(struct sha1 *sha1, unsigned char ret_digest[SHA1_BYTES]);

#endif
