#include "base/sha1.h"

static uint32_t rotate(uint32_t word, unsigned bits)
{
  return word << bits | word >> (32 - bits);
}

/* The function and the constant of a round (4.1.1, 4.2.1), added up. */
static uint32_t mix(size_t round, const uint32_t *v)
{
  if (round < 20)
    return ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999;
  if (round < 40)
    return (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1;
  if (round < 60)
    return ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc;
  return (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;
}

/* One block (6.1.2). */
static void process(uint32_t *state, const unsigned char *block)
{
  uint32_t words[80];
  uint32_t v[5];

  for (size_t i = 0; i < 16; i++)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
  for (size_t i = 16; i < 80; i++)
    words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  memcpy(v, state, sizeof v);
  for (size_t i = 0; i < 80; i++) {
    uint32_t next = rotate(v[0], 5) + mix(i, v) + v[4] + words[i];

    v[4] = v[3];
    v[3] = v[2];
    v[2] = rotate(v[1], 30);
    v[1] = v[0];
    v[0] = next;
  }
  for (size_t i = 0; i < 5; i++)
    state[i] += v[i];
}

void sha1_begin(struct sha1 *sha1)
{
  *sha1 = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void sha1_add(struct sha1 *sha1, struct span bytes)
{
  while (bytes.len > 0) {
    size_t held = sha1->total % sizeof sha1->block;
    size_t room = sizeof sha1->block - held;
    size_t taken = bytes.len < room ? bytes.len : room;

    memcpy(sha1->block + held, bytes.ptr, taken);
    sha1->total += taken;
    if (taken == room)
      process(sha1->state, sha1->block);
    bytes = span_sub(bytes, taken, bytes.len);
  }
}

void sha1_end(struct sha1 *sha1, unsigned char ret_digest[SHA1_BYTES])
{
  static const char pad[64] = { '\x80' };
  uint64_t bits = sha1->total * 8;
  char length[8];

  for (size_t i = 0; i < sizeof length; i++)
    length[i] = (char)(bits >> (56 - 8 * i) & 0xff);
  sha1_add(sha1, (struct span){ .ptr = pad, .len = 1 + (119 - sha1->total % 64) % 64 });
  sha1_add(sha1, (struct span){ .ptr = length, .len = sizeof length });
  for (size_t i = 0; i < SHA1_BYTES; i++)
    ret_digest[i] = (unsigned char)(sha1->state[i / 4] >> (24 - 8 * (i % 4)));
}
