#include "proxy/gate.h"

/* Index of the next address of that family from index from on; count when there is none. */
static size_t next_of(const struct addr *addrs, size_t count, size_t from, enum addr_family family)
{
  while (from < count && addrs[from].family != family)
    from++;
  return from;
}

static void interleave(const struct addr *addrs, size_t count, struct gate_addrs *out)
{
  size_t v6 = next_of(addrs, count, 0, ADDR_V6);
  size_t v4 = next_of(addrs, count, 0, ADDR_V4);

  out->count = 0;
  while (v6 < count || v4 < count) {
    if (v6 < count) {
      out->items[out->count++] = addrs[v6];
      v6 = next_of(addrs, count, v6 + 1, ADDR_V6);
    }
    if (v4 < count) {
      out->items[out->count++] = addrs[v4];
      v4 = next_of(addrs, count, v4 + 1, ADDR_V4);
    }
  }
}

struct verdict gate_judge_addrs(const struct policy *policy, const struct verdict *target, const struct host *host,
                                uint16_t port, const struct addr *found, size_t count, struct gate_addrs *ret_addrs)
{
  struct verdict first_allow = { 0 };
  struct verdict first_deny = { .allow = false, .reason = REASON_RESOLVE_FAILED };
  struct addr passed[LIMITS_ADDRESSES] = { 0 };
  size_t passed_count = 0;
  bool denied = false;

  for (size_t i = 0; i < count && passed_count < LIMITS_ADDRESSES; i++) {
    struct verdict verdict = decide_addr_of(policy, target, host, &found[i], port);

    if (verdict.allow) {
      if (passed_count == 0)
        first_allow = verdict;
      else if (!first_allow.request_rule)
        first_allow.request_rule = verdict.request_rule;
      passed[passed_count++] = found[i];
    } else if (!denied) {
      denied = true;
      first_deny = verdict;
    }
  }
  interleave(passed, passed_count, ret_addrs);
  return passed_count ? first_allow : first_deny;
}
