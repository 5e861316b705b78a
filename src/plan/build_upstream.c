/* The proxy that the host has to use: from the policy or from the caller's variables. Of two spellings the lower case
 * one counts, as with curl; ALL_PROXY stands in for one that is not set. They are judged here, so that a proxy that
 * cannot be used stops the run instead of being passed by.
 */
#include "plan/build.h"
#include "plan/ops.h"
#include "policy/upstream.h"

#include <errno.h>

/* The first of some variables that is set and not empty. */
static const char *first_set(const struct facts *facts, const char *const *names, const char **ret_value)
{
  for (; *names; names++) {
    *ret_value = facts_getenv(facts, *names);
    if (*ret_value && **ret_value)
      return *names;
  }
  *ret_value = NULL;
  return NULL;
}

static int take(const char *name, const char *value, struct err *err, char **ret_url)
{
  struct upstream upstream;

  if (!value)
    return 0;
  if (upstream_parse(span_of(value), true, err, &upstream) < 0) {
    err_wrap(err, "network.upstreamProxy is \"env\", and %s cannot be used", name);
    return -EINVAL;
  }
  mem_wipe(&upstream, sizeof upstream);
  *ret_url = mem_strndup(value, strlen(value));
  return *ret_url ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int take_variables(const struct facts *facts, struct err *err, struct plan_upstream *upstream)
{
  static const char *const for_http[] = { "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", NULL };
  static const char *const for_other[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL };
  const char *value;
  const char *name = first_set(facts, for_http, &value);
  int r = take(name, value, err, &upstream->http);

  if (r == 0) {
    name = first_set(facts, for_other, &value);
    r = take(name, value, err, &upstream->other);
  }
  return r;
}

int plan_find_upstream(const struct policy *policy, const struct facts *facts, struct err *err,
                       struct plan_upstream *upstream)
{
  static const char *const exempt[] = { "no_proxy", "NO_PROXY", NULL };
  const char *value;
  const char *name;
  int r = 0;

  if (policy->network != POLICY_NETWORK_PROXY || policy->upstream == POLICY_UPSTREAM_NONE)
    return 0;
  if (policy->upstream == POLICY_UPSTREAM_ENV) {
    r = take_variables(facts, err, upstream);
  } else {
    upstream->http = mem_strndup(policy->upstream_url, strlen(policy->upstream_url));
    upstream->other = mem_strndup(policy->upstream_url, strlen(policy->upstream_url));
    if (!upstream->http || !upstream->other)
      r = err_set(err, ENOMEM, "out of memory");
  }
  name = first_set(facts, exempt, &value);
  if (r < 0 || !name || (!upstream->http && !upstream->other))
    return r;
  if (strlen(value) >= LIMITS_NO_PROXY_BYTES)
    return err_set(err, E2BIG, "%s: more than %d bytes; shorten it", name, LIMITS_NO_PROXY_BYTES - 1);
  upstream->no_proxy = mem_strndup(value, strlen(value));
  return upstream->no_proxy ? 0 : err_set(err, ENOMEM, "out of memory");
}

int build_upstream(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  return plan_find_upstream(policy, facts, err, &plan->upstream);
}
