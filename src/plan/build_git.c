/* git asks without a login first and takes one from a credential helper when the host wants it; GITHUB_TOKEN means
 * nothing to it. So each host of a credential of the preset github gets a helper that answers with the placeholder, by
 * the variables that git reads as configuration (git-config(1), GIT_CONFIG_COUNT). An empty helper before it drops what
 * the user's own configuration names for all hosts: programs that ask for logins that are not in the sandbox. */
#include "base/num.h"
#include "plan/ops.h"
#include "policy/host.h"
#include "policy/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define COUNT "GIT_CONFIG_COUNT="

/* How many entries there are already: of env.pass. */
static uint64_t count_of(const struct plan *plan)
{
  uint64_t count = 0;

  for (size_t i = 0; i < plan->env.count; i++)
    if (strncmp(plan->env.items[i], COUNT, strlen(COUNT)) == 0)
      (void)num_parse_u64(span_of(plan->env.items[i] + strlen(COUNT)), 0, LIMITS_POLICY_ITEMS, &count);
  return count;
}

static int add_entry(const char *key, const char *value, uint64_t *count, struct plan *plan)
{
  int r = strv_addf(&plan->env, "GIT_CONFIG_KEY_%" PRIu64 "=%s", *count, key);

  if (r == 0)
    r = strv_addf(&plan->env, "GIT_CONFIG_VALUE_%" PRIu64 "=%s", *count, value);
  *count += 1;
  return r;
}

/* The helper of one host and port. */
static int add_helper(const struct policy_rule *rule, uint16_t port, const char *variable, uint64_t *count,
                      struct plan *plan)
{
  buf_autofree struct buf key = BUF_INIT(512);
  buf_autofree struct buf helper = BUF_INIT(512);
  int r;

  buf_printf(&key, "credential.https://%s%s", rule->kind == POLICY_HOST_SUBDOMAINS ? "*." : "", rule->name);
  if (port != 443)
    buf_printf(&key, ":%u", port);
  buf_append_str(&key, ".helper");
  buf_printf(&helper, "!f() { test \"$1\" != get || printf 'username=x-access-token\\npassword=%%s\\n' \"$%s\"; }; f",
             variable);
  r = buf_error(&key) ? buf_error(&key) : buf_error(&helper);
  if (r == 0)
    r = add_entry(key.data, "", count, plan);
  return r < 0 ? r : add_entry(key.data, helper.data, count, plan);
}

static int add_credential(const struct policy_credential *credential, uint64_t *count, struct plan *plan)
{
  int r = 0;

  for (size_t i = 0; i < credential->bind.count && r == 0; i++) {
    const struct policy_rule *rule = &credential->bind.items[i];

    for (size_t j = 0; j < rule->port_count && rule->name && r == 0; j++)
      if (rule->ports[j].first == rule->ports[j].last)
        r = add_helper(rule, rule->ports[j].first, credential->env.items[0], count, plan);
  }
  return r;
}

int build_git(const struct policy *policy, struct plan *plan)
{
  char text[24];
  uint64_t before = count_of(plan);
  uint64_t count = before;
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count && r == 0; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];

    if (credential->preset && strcmp(credential->preset, "github") == 0 && credential->env.count > 0)
      r = add_credential(credential, &count, plan);
  }
  if (r < 0 || count == before)
    return r;
  snprintf(text, sizeof text, "%" PRIu64, count);
  return build_set_variable(plan, "GIT_CONFIG_COUNT", text);
}
