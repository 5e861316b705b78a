#include "policy/policy.h"

#include "policy/credential.h"
#include "policy/rule.h"

#include <stdlib.h>

void policy_origin_clear(struct policy_origin *origin)
{
  free(origin->file);
  free(origin->json_path);
  *origin = (struct policy_origin){ 0 };
}

void policy_path_clear(struct policy_path *path)
{
  free(path->text);
  policy_origin_clear(&path->origin);
}

void policy_port_map_clear(struct policy_port_map *map)
{
  policy_origin_clear(&map->origin);
}

void policy_env_set_clear(struct policy_env_set *set)
{
  free(set->name);
  free(set->value);
  policy_origin_clear(&set->origin);
}

static void policy_paths_free(struct policy_paths *paths)
{
  for (size_t i = 0; i < paths->count; i++)
    policy_path_clear(&paths->items[i]);
  free(paths->items);
}

static void policy_rules_free(struct policy_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++)
    rule_free(&rules->items[i]);
  free(rules->items);
}

static void policy_port_maps_free(struct policy_port_maps *maps)
{
  for (size_t i = 0; i < maps->count; i++)
    policy_port_map_clear(&maps->items[i]);
  free(maps->items);
}

static void policy_env_sets_free(struct policy_env_sets *sets)
{
  for (size_t i = 0; i < sets->count; i++)
    policy_env_set_clear(&sets->items[i]);
  free(sets->items);
}

static void policy_credentials_free(struct policy_credentials *credentials)
{
  for (size_t i = 0; i < credentials->count; i++)
    credential_clear(&credentials->items[i]);
  free(credentials->items);
}

void policy_free(struct policy *policy)
{
  if (!policy)
    return;
  policy_paths_free(&policy->read);
  policy_paths_free(&policy->write);
  policy_paths_free(&policy->hide);
  policy_paths_free(&policy->protect);
  policy_paths_free(&policy->unprotect);
  policy_rules_free(&policy->allow);
  policy_rules_free(&policy->deny);
  policy_port_maps_free(&policy->forward);
  policy_port_maps_free(&policy->publish);
  policy_paths_free(&policy->unix_sockets);
  free(policy->upstream_url);
  policy_credentials_free(&policy->credentials);
  policy_paths_free(&policy->env_pass);
  policy_env_sets_free(&policy->env_set);
  free(policy->audit_file);
  free(policy);
}

void policy_free_indirect(struct policy **policy)
{
  policy_free(*policy);
}
