/* A chunked body in two readings: the framing that the proxy follows piece by piece, and a plain decoder that is
 * written the other way round, over the whole text. Whatever the proxy lets pass the decoder reads to the same end. */
#include "fuzz/fuzz.h"

#include "base/num.h"
#include "proxy/http_body.h"

/* The bytes of the body and of its trailer, or -1 where it is not whole and well formed. Knows no limits. */
static long decode(struct span text, size_t *ret_trailer)
{
  struct span rest = text;

  for (;;) {
    size_t lf = span_find(rest, '\n');
    struct span line = span_sub(rest, 0, lf);
    uint64_t size;

    if (lf == rest.len || !line.len || line.ptr[line.len - 1] != '\r')
      return -1;
    line = span_sub(line, 0, span_find(span_sub(line, 0, line.len - 1), ';'));
    if (num_parse_hex(line, &size) < 0)
      return -1;
    rest = span_sub(rest, lf + 1, rest.len);
    if (size == 0)
      break;
    if (rest.len < size + 2 || rest.ptr[size] != '\r' || rest.ptr[size + 1] != '\n')
      return -1;
    rest = span_sub(rest, size + 2, rest.len);
  }
  *ret_trailer = rest.len;
  for (;;) {
    size_t lf = span_find(rest, '\n');
    bool last = lf == 1;

    if (lf == rest.len || lf == 0 || rest.ptr[lf - 1] != '\r')
      return -1;
    rest = span_sub(rest, lf + 1, rest.len);
    if (last) {
      *ret_trailer -= rest.len;
      return (long)(text.len - rest.len);
    }
  }
}

/* What the proxy makes of text in pieces: 1 with the lengths of body and trailer, 0 when it is not whole, -EBADMSG. */
static int take(struct span text, size_t piece, size_t *ret_len, size_t *ret_trailer)
{
  struct http_body body = { .kind = HTTP_BODY_CHUNKED };

  *ret_len = *ret_trailer = 0;
  while (text.len && !body.done) {
    struct span part = span_sub(text, 0, piece);
    size_t len = 0;
    int r = http_body_take(&body, part, &len);

    if (r < 0)
      return r;
    FUZZ_ASSERT(len <= part.len && (len == part.len || body.done));
    FUZZ_ASSERT(body.trailer <= len);
    *ret_len += len;
    *ret_trailer += body.trailer;
    text = span_sub(text, part.len, text.len);
  }
  return body.done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size };
  size_t len;
  size_t len_again;
  size_t trailer;
  size_t trailer_again;
  int r;

  if (!size)
    return 0;
  r = take(text, size, &len, &trailer);
  for (size_t piece = 1; piece <= 3; piece += 2) {
    FUZZ_ASSERT(take(text, piece, &len_again, &trailer_again) == r);
    FUZZ_ASSERT(r < 0 || (len == len_again && trailer == trailer_again));
  }
  if (r == 1)
    FUZZ_ASSERT(decode(text, &trailer_again) == (long)len && trailer == trailer_again);
  return 0;
}
