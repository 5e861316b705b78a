/* h2_mem: the memory of nghttp2's sessions of one connection: bounded, charged to the budget, and wiped when it is
 * freed, since requests with values of credentials have lain in it. */
#ifndef SBX_PROXY_H2_MEM_H
#define SBX_PROXY_H2_MEM_H

#include "proxy/sock.h"

#include <nghttp2/nghttp2.h>

struct h2_mem {
  struct budget *budget;
  size_t used;
  size_t max;
  nghttp2_mem calls; /* what nghttp2 is given; an allocation past max, or past the budget, fails */
};

/* *mem must stay where it is until everything has been freed. */
void h2_mem_init(struct h2_mem *mem, struct budget *budget, size_t max);

#endif
