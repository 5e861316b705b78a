/* tls_make: hellos put together for the tests of proxy/tls_hello.h. */
#ifndef SBX_TESTS_UNIT_TLS_MAKE_H
#define SBX_TESTS_UNIT_TLS_MAKE_H

#include "base/buf.h"
#include "proxy/tls_hello.h"

#define SNI(length) "\x00\x00\x00" length
#define SNI_X SNI("\x0b") "\x00\x09\x00\x00\x06x.test"

/* Where the lengths stand in a message of tls_make_message(). */
#define AT_SESSION_ID (4 + 2 + 32)
#define AT_SUITES (AT_SESSION_ID + 1)
#define AT_COMPRESSIONS (AT_SUITES + 2 + 2)
#define AT_EXTENSIONS (AT_COMPRESSIONS + 1 + 1)

static inline void tls_put_number(struct buf *out, size_t size, size_t value)
{
  while (size-- > 0)
    buf_append_byte(out, (char)(value >> 8 * size));
}

/* A message with one cipher suite and no session, its header in front. */
static inline void tls_make_message(struct span extensions, struct buf *out)
{
  size_t body = 2 + 32 + 1 + 4 + 2 + (extensions.ptr ? 2 + extensions.len : 0);

  buf_append_byte(out, 1);
  tls_put_number(out, 3, body);
  tls_put_number(out, 2, 0x0303);
  for (int i = 0; i < 32; i++)
    buf_append_byte(out, (char)i);
  buf_append(out, SPAN("\x00\x00\x02\x13\x01\x01\x00"));
  if (extensions.ptr) {
    tls_put_number(out, 2, extensions.len);
    buf_append(out, extensions);
  }
}

static inline void tls_put_record(struct span fragment, struct buf *out)
{
  buf_append(out, SPAN("\x16\x03\x01"));
  tls_put_number(out, 2, fragment.len);
  buf_append(out, fragment);
}

/* The records of a message that is cut into pieces of that size. */
static inline void tls_make_records(struct span message, size_t piece, struct buf *out)
{
  for (size_t at = 0; at < message.len; at += piece)
    tls_put_record(span_sub(message, at, piece), out);
}

static inline int tls_scan_whole(struct span bytes, struct err *err, size_t *ret_len)
{
  struct tls_hello_scan scan = { 0 };

  return tls_hello_scan(&scan, bytes, err, ret_len);
}

#endif
