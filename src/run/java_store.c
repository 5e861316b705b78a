/* Theory of operation: JKS, version 2.
 *
 * All numbers are big-endian; a string is its length in two bytes and its bytes. The store is
 *
 *   u32 0xfeedfeed    u32 2    u32 number of entries
 *   entries           a trusted certificate: u32 2, string alias, u64 milliseconds since 1970, string "X.509",
 *                     u32 length, DER
 *   20 bytes          SHA-1 over the password in UTF-16, "Mighty Aphrodite" and everything before
 *
 * So another certificate is added to a store without reading its entries: they stand as they were, the number goes up,
 * the sum is made anew. The password protects nothing, since certificates are public; "changeit" is the one that
 * programs expect of this store. Java tells the form by the first bytes, whatever the file is called and whatever its
 * version prefers. JDK 18 and later come with PKCS #12; those are not read.
 */
#include "run/java_store.h"

#include "base/base64.h"
#include "base/sha1.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define HEAD_BYTES 12
#define CERTIFICATE_BYTES (64 * 1024) /* one, in base64 */
#define ENTRIES_MAX 65536

static const char magic[] = "\xfe\xed\xfe\xed\x00\x00\x00\x02";

static void append_number(uint64_t number, size_t size, struct buf *out)
{
  while (size-- > 0)
    buf_append_byte(out, (char)(number >> 8 * size & 0xff));
}

static void append_string(const char *text, struct buf *out)
{
  append_number(strlen(text), 2, out);
  buf_append_str(out, text);
}

static uint32_t count_of(struct span store)
{
  uint32_t count = 0;

  for (size_t i = 8; i < HEAD_BYTES; i++)
    count = count << 8 | (unsigned char)store.ptr[i];
  return count;
}

bool java_store_is_read(struct span host)
{
  return host.len >= HEAD_BYTES + SHA1_BYTES && memcmp(host.ptr, magic, sizeof magic - 1) == 0 &&
         count_of(host) < ENTRIES_MAX;
}

/* The next certificate of a text in PEM (RFC 7468) as base64 without white space. False: no more. */
static bool next_certificate(struct span *text, struct buf *digits)
{
  static const char begin[] = "-----BEGIN CERTIFICATE-----";
  static const char end[] = "-----END CERTIFICATE-----";
  const char *from = text->len ? memmem(text->ptr, text->len, begin, sizeof begin - 1) : NULL;
  struct span rest = from ? span_sub(*text, (size_t)(from - text->ptr) + sizeof begin - 1, text->len) : SPAN("");
  const char *to = rest.len ? memmem(rest.ptr, rest.len, end, sizeof end - 1) : NULL;

  if (!to)
    return false;
  *text = span_sub(rest, (size_t)(to - rest.ptr), rest.len);
  for (; rest.ptr < to; rest.ptr++)
    if (!strchr(" \t\r\n", *rest.ptr))
      buf_append_byte(digits, *rest.ptr);
  return true;
}

/* Appends an entry for each certificate of a text; those that are none are passed by. Returns how many. */
static uint32_t append_certificates(struct span text, const char *name, struct buf *out)
{
  uint32_t count = 0;

  for (;;) {
    buf_autofree struct buf digits = BUF_INIT(CERTIFICATE_BYTES);
    buf_autofree struct buf der = BUF_INIT(CERTIFICATE_BYTES);
    char alias[32];

    if (count == ENTRIES_MAX || !next_certificate(&text, &digits))
      return count;
    if (buf_error(&digits) || base64_decode(buf_span(&digits), &der) < 0 || buf_error(&der) || der.len == 0)
      continue;
    snprintf(alias, sizeof alias, "%s-%u", name, (unsigned)count++);
    append_number(2, 4, out);
    append_string(alias, out);
    append_number(0, 8, out);
    append_string("X.509", out);
    append_number(der.len, 4, out);
    buf_append(out, buf_span(&der));
  }
}

static void append_sum(size_t from, struct buf *out)
{
  unsigned char digest[SHA1_BYTES];
  struct sha1 sha1;

  if (buf_error(out))
    return;
  sha1_begin(&sha1);
  sha1_add(&sha1, SPAN("\0c\0h\0a\0n\0g\0e\0i\0t"));
  sha1_add(&sha1, SPAN("Mighty Aphrodite"));
  sha1_add(&sha1, span_sub(buf_span(out), from, out->len));
  sha1_end(&sha1, digest);
  buf_append(out, (struct span){ .ptr = (const char *)digest, .len = sizeof digest });
}

int java_store_make(struct span host, struct span bundle, struct span ca, struct buf *out)
{
  buf_autofree struct buf entries = BUF_INIT(out->max);
  size_t from = out->len;
  uint32_t count = append_certificates(ca, "sbx-run-ca", &entries);

  if (count != 1)
    return buf_error(&entries) ? buf_error(&entries) : -EINVAL;
  if (java_store_is_read(host)) {
    buf_append(&entries, span_sub(host, HEAD_BYTES, host.len - HEAD_BYTES - SHA1_BYTES));
    count += count_of(host);
  } else {
    count += append_certificates(bundle, "host", &entries);
  }
  if (buf_error(&entries))
    return buf_error(&entries);
  buf_append(out, (struct span){ .ptr = magic, .len = sizeof magic - 1 });
  append_number(count, 4, out);
  buf_append(out, buf_span(&entries));
  append_sum(from, out);
  return buf_error(out);
}
