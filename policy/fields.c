#include "policy/fields.h"

/* The words of keys.c stand from the narrowest to the widest; these are their enum values. */
static const enum policy_home fields_home[] = { POLICY_HOME_TMPFS, POLICY_HOME_PRIVATE, POLICY_HOME_HOST };
static const enum policy_network fields_network[] = { POLICY_NETWORK_NONE, POLICY_NETWORK_PROXY, POLICY_NETWORK_HOST };

struct policy_paths *fields_paths(struct policy *policy, enum key_id id)
{
  struct policy_paths *const lists[KEY_COUNT] = {
    [KEY_READ] = &policy->read,           [KEY_WRITE] = &policy->write,
    [KEY_HIDE] = &policy->hide,           [KEY_PROTECT] = &policy->protect,
    [KEY_UNPROTECT] = &policy->unprotect, [KEY_UNIX_SOCKETS] = &policy->unix_sockets,
    [KEY_ENV_PASS] = &policy->env_pass,
  };

  return lists[id];
}

struct policy_rules *fields_rules(struct policy *policy, enum key_id id)
{
  return id == KEY_ALLOW ? &policy->allow : id == KEY_DENY ? &policy->deny : NULL;
}

struct policy_port_maps *fields_port_maps(struct policy *policy, enum key_id id)
{
  return id == KEY_FORWARD ? &policy->forward : id == KEY_PUBLISH ? &policy->publish : NULL;
}

static uint64_t *fields_limit(struct policy *policy, enum key_id id)
{
  uint64_t *const limits[KEY_COUNT] = {
    [KEY_MEMORY] = &policy->memory_bytes,
    [KEY_CPUS] = &policy->cpu_milli,
    [KEY_PIDS] = &policy->pids,
    [KEY_TIMEOUT] = &policy->timeout_ms,
  };

  return limits[id];
}

static bool *fields_bool(struct policy *policy, enum key_id id)
{
  bool *const bools[KEY_COUNT] = {
    [KEY_NESTING] = &policy->nesting,
    [KEY_PTRACE] = &policy->ptrace,
    [KEY_I386] = &policy->foreign,
  };

  return bools[id];
}

uint64_t fields_number(struct policy *policy, enum key_id id)
{
  const uint64_t *limit = fields_limit(policy, id);
  const bool *flag = fields_bool(policy, id);

  if (limit)
    return *limit;
  if (flag)
    return *flag;
  for (uint64_t i = 0; id == KEY_HOME && i < sizeof fields_home / sizeof fields_home[0]; i++)
    if (fields_home[i] == policy->home)
      return i;
  for (uint64_t i = 0; id == KEY_NETWORK_MODE && i < sizeof fields_network / sizeof fields_network[0]; i++)
    if (fields_network[i] == policy->network)
      return i;
  return 0;
}

void fields_set_number(struct policy *policy, enum key_id id, uint64_t number)
{
  uint64_t *limit = fields_limit(policy, id);
  bool *flag = fields_bool(policy, id);

  if (limit)
    *limit = number;
  else if (flag)
    *flag = number != 0;
  else if (id == KEY_HOME && number < sizeof fields_home / sizeof fields_home[0])
    policy->home = fields_home[number];
  else if (id == KEY_NETWORK_MODE && number < sizeof fields_network / sizeof fields_network[0])
    policy->network = fields_network[number];
}
