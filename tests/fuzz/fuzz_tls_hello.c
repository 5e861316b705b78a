/* The first bytes of a TLS connection, as the proxy gets them from inside: however they come in pieces the scanner says
 * the same; a hello that is accepted means the same however its records are cut; and its name is one canonical host. */
#include "fuzz/fuzz.h"

#include "base/buf.h"
#include "proxy/tls_hello.h"

#include <string.h>

static int scan_in_pieces(struct span bytes, size_t piece, size_t *ret_len)
{
  struct tls_hello_scan scan = { 0 };
  int r = 0;

  for (size_t seen = piece; r == 0; seen += piece) {
    r = tls_hello_scan(&scan, span_sub(bytes, 0, seen), NULL, ret_len);
    if (seen >= bytes.len)
      break;
  }
  return r;
}

static void check_hello(const struct tls_hello *hello)
{
  struct span rest = hello->alpn;
  struct span protocol;
  struct host again;
  size_t count = 0;

  FUZZ_ASSERT(hello->max_version >= 0x0300 && hello->max_version <= 0x0304);
  FUZZ_ASSERT(hello->random.len == 32 && hello->session_id.len <= 32);
  while (tls_hello_next_protocol(&rest, &protocol)) {
    FUZZ_ASSERT(protocol.len > 0);
    count++;
  }
  FUZZ_ASSERT(rest.len == 0 && hello->has_alpn == (count > 0));
  if (!hello->has_name)
    return;
  FUZZ_ASSERT(hello->host.kind == HOST_NAME && host_parse(span_of(hello->host.name), NULL, &again) == 0);
  FUZZ_ASSERT(again.kind == HOST_NAME && strcmp(again.name, hello->host.name) == 0);
}

/* The same message with each of its records cut into fragments of at most piece bytes. */
static void cut_records(struct span bytes, size_t piece, struct buf *out)
{
  while (bytes.len > 5) {
    size_t len = (size_t)(unsigned char)bytes.ptr[3] << 8 | (unsigned char)bytes.ptr[4];
    struct span fragment = span_sub(bytes, 5, len);

    for (size_t at = 0; at < fragment.len; at += piece) {
      struct span part = span_sub(fragment, at, piece);

      buf_append(out, span_sub(bytes, 0, 3));
      buf_append_byte(out, (char)(part.len >> 8));
      buf_append_byte(out, (char)part.len);
      buf_append(out, part);
    }
    bytes = span_sub(bytes, 5 + len, bytes.len);
  }
}

static void check_cut(struct span bytes, const struct tls_hello *hello)
{
  static char scratch[LIMITS_TLS_HELLO_BYTES];
  buf_autofree struct buf cut = BUF_INIT(8 * LIMITS_TLS_HELLO_BYTES);
  struct tls_hello again;

  cut_records(bytes, 1 + bytes.len % 11, &cut);
  FUZZ_ASSERT(buf_error(&cut) == 0);
  if (cut.len > LIMITS_TLS_HELLO_BYTES)
    return;
  FUZZ_ASSERT(tls_hello_parse(buf_span(&cut), scratch, NULL, &again) == 0);
  FUZZ_ASSERT(again.has_name == hello->has_name && strcmp(again.host.name, hello->host.name) == 0);
  FUZZ_ASSERT(again.has_ech == hello->has_ech && again.has_early_data == hello->has_early_data);
  FUZZ_ASSERT(span_equal(again.alpn, hello->alpn) && again.max_version == hello->max_version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static char scratch[LIMITS_TLS_HELLO_BYTES];
  struct span bytes = { (const char *)data, size };
  struct tls_hello_scan scan = { 0 };
  struct tls_hello hello;
  size_t len = 0;
  size_t len_again = 0;
  int r;

  r = tls_hello_scan(&scan, bytes, NULL, &len);
  FUZZ_ASSERT(r <= 1);
  if (size > 0) {
    FUZZ_ASSERT(scan_in_pieces(bytes, 1, &len_again) == r && len_again == len);
    FUZZ_ASSERT(scan_in_pieces(bytes, 1 + size / 3, &len_again) == r && len_again == len);
  }
  if (r != 1) {
    FUZZ_ASSERT(tls_hello_parse(bytes, scratch, NULL, &hello) < 0);
    return 0;
  }
  FUZZ_ASSERT(len <= size && len <= LIMITS_TLS_HELLO_BYTES);
  if (tls_hello_parse(span_sub(bytes, 0, len), scratch, NULL, &hello) < 0)
    return 0;
  check_hello(&hello);
  check_cut(span_sub(bytes, 0, len), &hello);
  return 0;
}
