/* A greeting and a request, as the proxy gets them from inside: each prefix is undecided or has the answer of the
 * whole, and an accepted target is one canonical host with a port. */
#include "fuzz/fuzz.h"

#include "proxy/socks5.h"

#include <string.h>

static void check_request(struct span bytes)
{
  struct socks5_request request;
  struct socks5_request early;
  struct host again;
  size_t len = 0;
  size_t early_len = 0;
  int r = socks5_parse_request(bytes, NULL, &request, &len);

  for (size_t seen = 0; seen < bytes.len; seen++) {
    int early_r = socks5_parse_request(span_sub(bytes, 0, seen), NULL, &early, &early_len);

    FUZZ_ASSERT(early_r == 0 || early_r == r);
    FUZZ_ASSERT(early_r != 1 || (early_len == len && early_len <= seen && early.port == request.port));
  }
  if (r != 1)
    return;
  FUZZ_ASSERT(len >= 8 && len <= bytes.len && request.port != 0);
  FUZZ_ASSERT(host_parse(span_of(request.host.name), NULL, &again) == 0);
  FUZZ_ASSERT(again.kind == request.host.kind && strcmp(again.name, request.host.name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span bytes = { (const char *)data, size < 1024 ? size : 1024 };
  bool usable = false;
  size_t len = 0;
  int r = socks5_parse_greeting(bytes, NULL, &usable, &len);

  if (r == 1) {
    FUZZ_ASSERT(len >= 3 && len <= bytes.len);
    check_request(span_sub(bytes, len, bytes.len));
  }
  check_request(bytes);
  return 0;
}
