#include "policy/credentials.h"

#include "policy/credential.h"
#include "policy/limits.h"
#include "policy/rule.h"

#include <errno.h>
#include <stdlib.h>

static int copy_origin(const struct policy_origin *origin, struct policy_origin *ret_origin)
{
  struct policy_origin copy = { .line = origin->line };

  copy.file = mem_strndup(origin->file, strlen(origin->file));
  copy.json_path = mem_strndup(origin->json_path, strlen(origin->json_path));
  if (!copy.file || !copy.json_path) {
    policy_origin_clear(&copy);
    return -ENOMEM;
  }
  *ret_origin = copy;
  return 0;
}

static int allow(const struct policy_rule *bound, const struct policy_origin *origin, struct policy_rules *rules)
{
  struct policy_rule rule = { 0 };
  int r = mem_grow(&rules->items, rules->count, &rules->cap, sizeof *rules->items, LIMITS_POLICY_ITEMS);

  if (r == 0)
    r = rule_parse(span_of(bound->text), RULE_BIND, NULL, &rule);
  if (r < 0)
    return r;
  r = rule_reprint(&rule, RULE_ALLOW);
  if (r == 0)
    r = copy_origin(origin, &rule.origin);
  if (r < 0) {
    rule_free(&rule);
    return r;
  }
  rule.implied = true;
  rules->items[rules->count++] = rule;
  return 0;
}

static int hide(const char *path, const struct policy_origin *origin, struct policy_paths *paths)
{
  struct policy_path item = { .text = NULL };
  int r = mem_grow(&paths->items, paths->count, &paths->cap, sizeof *paths->items, LIMITS_POLICY_ITEMS);

  if (r < 0)
    return r;
  item.text = mem_strndup(path, strlen(path));
  if (!item.text || copy_origin(origin, &item.origin) < 0) {
    policy_path_clear(&item);
    return -ENOMEM;
  }
  paths->items[paths->count++] = item;
  return 0;
}

int credentials_extend(struct policy *policy)
{
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count && r == 0; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];

    for (size_t j = 0; j < credential->bind.count && r == 0; j++)
      r = allow(&credential->bind.items[j], &credential->origin, &policy->allow);
    if (r == 0 && credential->source.kind == POLICY_SOURCE_FILE)
      r = hide(credential->source.words.items[0], &credential->origin, &policy->hide);
    for (size_t j = 0; j < credential->files.count && r == 0; j++)
      r = hide(credential->files.items[j], &credential->origin, &policy->hide);
  }
  return r;
}

int credentials_refuse(const struct policy_credential *credential, struct err *err)
{
  const struct policy_origin *origin = &credential->origin;

  if (origin->line > 0)
    return err_wrap(err, "%s:%u: %s", origin->file, origin->line, origin->json_path);
  return err_wrap(err, "%s %s", origin->file, credential->name);
}

static const char *shared_variable(const struct policy_credential *a, const struct policy_credential *b)
{
  for (size_t i = 0; i < a->env.count; i++)
    if (strv_contains(&b->env, a->env.items[i]))
      return a->env.items[i];
  return NULL;
}

static int check_pair(const struct policy_credential *a, const struct policy_credential *b, struct err *err)
{
  const char *variable = shared_variable(a, b);

  if (variable)
    err_set(err, EINVAL, "\"%s\" sets the variable %s as well; give one of them another \"env\"", a->name, variable);
  else if (credential_clashes(a, b))
    err_set(err, EINVAL, "\"%s\" is set at the same place of the same requests; bind them to different hosts", a->name);
  else
    return 0;
  return credentials_refuse(b, err);
}

static int check_set(const struct policy *policy, const struct policy_credential *credential, struct err *err)
{
  for (size_t i = 0; i < policy->env_set.count; i++) {
    const char *name = policy->env_set.items[i].name;

    if (!strv_contains(&credential->env, name))
      continue;
    err_set(err, EINVAL, "sets the variable %s, and so does env.set; remove it there, or leave it out of \"env\"",
            name);
    return credentials_refuse(credential, err);
  }
  return 0;
}

int credentials_check(const struct policy *policy, struct err *err)
{
  const struct policy_credentials *credentials = &policy->credentials;
  size_t files = 0;
  int r = 0;

  if (credentials->count > LIMITS_CREDENTIALS)
    return err_set(err, EINVAL, "credentials: more than %d; name fewer", LIMITS_CREDENTIALS);
  for (size_t i = 0; i < credentials->count && r == 0; i++) {
    files += credentials->items[i].files.count;
    if (files > LIMITS_CREDENTIAL_FILES_ALL)
      return err_set(err, EINVAL, "credentials: more than %d files; name fewer", LIMITS_CREDENTIAL_FILES_ALL);
    r = check_set(policy, &credentials->items[i], err);
    for (size_t j = 0; j < i && r == 0; j++)
      r = check_pair(&credentials->items[j], &credentials->items[i], err);
  }
  return r;
}

int credentials_note(const struct policy *policy, struct strv *notes)
{
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];

    if (credential->source.kind != POLICY_SOURCE_ENV)
      continue;
    for (size_t j = 0; j < policy->env_pass.count && r == 0; j++)
      if (strv_contains(&credential->source.words, policy->env_pass.items[j].text))
        r = strv_addf(notes, "env.pass: %s is not passed, since it holds the value of the credential \"%s\"",
                      policy->env_pass.items[j].text, credential->name);
  }
  return r;
}
