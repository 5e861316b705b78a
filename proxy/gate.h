/* gate: the second step of the judgement: which of a name's addresses may be dialled. Pure.
 *
 * The first step is decide_target(). The addresses come from the resolver once, and only what this function lets
 * through is dialled: nothing is resolved again in between (F52).
 */
#ifndef SBX_PROXY_GATE_H
#define SBX_PROXY_GATE_H

#include "policy/decide.h"
#include "policy/limits.h"

struct gate_addrs {
  struct addr items[LIMITS_ADDRESSES];
  size_t count;
};

/* Judges every address of a target that the verdict target has allowed, and leaves those that pass in the order to
 * dial: IPv6 and IPv4 in turns (RFC 8305, section 4). The verdict allows when at least one passes, and has a
 * request_rule where one of them has; it is the first denial otherwise. found must not be empty. */
struct verdict gate_judge_addrs(const struct policy *policy, const struct verdict *target, const struct host *host,
                                uint16_t port, const struct addr *found, size_t count, struct gate_addrs *ret_addrs);

#endif
