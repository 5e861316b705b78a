#include "proxy/sniff.h"

#include "proxy/http_head.h"

enum sniff_kind sniff_first(struct span bytes)
{
  if (!bytes.len)
    return SNIFF_MORE;
  /* TLS records begin with 0x14..0x17, SOCKS with 4 or 5, DNS over TCP with a length: none is a token byte. */
  return http_head_is_token((unsigned char)bytes.ptr[0]) ? SNIFF_HTTP : SNIFF_UNKNOWN;
}
