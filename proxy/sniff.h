/* sniff: what a connection speaks, from its first bytes. Pure. */
#ifndef SBX_PROXY_SNIFF_H
#define SBX_PROXY_SNIFF_H

#include "base/span.h"

enum sniff_kind {
  SNIFF_MORE, /* too few bytes to tell */
  SNIFF_HTTP, /* begins as the method of a request does */
  SNIFF_UNKNOWN,
};

enum sniff_kind sniff_first(struct span bytes);

#endif
