/* What was typed for this run and changes nothing in it: a slip that would otherwise pass in silence, and with `--hide`
 * leave a secret readable. Only options are looked at: a policy file is for more than one run and one machine. */
#include "config.h"

#include "plan/build.h"
#include "plan/ops.h"
#include "plan/view.h"
#include "policy/fspath.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define IDLE_MEMORY_BYTES (1024 * 1024) /* a small C program has more in its stack and heap alone */

/* Not what --credential brings along. */
static bool is_typed(const struct policy_origin *origin)
{
  return origin->file && strncmp(origin->file, "--", 2) == 0 && strcmp(origin->file, "--credential") != 0;
}

static bool any_typed(const struct policy_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++) {
    if (is_typed(&rules->items[i].origin))
      return true;
  }
  return false;
}

static int tell_network(const struct policy *policy, struct plan *plan)
{
  bool allow = any_typed(&policy->allow);
  bool credential = false;
  const char *option = allow ? "--allow" : any_typed(&policy->deny) ? "--deny" : NULL;

  for (size_t i = 0; i < policy->credentials.count; i++)
    credential |= policy->credentials.items[i].origin.line == 0;
  if (policy->network == POLICY_NETWORK_NONE && credential &&
      strv_add(&plan->warnings, "--credential: credentials have no effect, since network.mode is \"none\" here; add "
                                "--network proxy, or leave it out") < 0)
    return -ENOMEM;
  if (policy->network == POLICY_NETWORK_NONE && allow)
    return strv_add(&plan->warnings, "--allow: changes nothing, since network.mode is \"none\" here; add "
                                     "--network proxy, or leave it out");
  if (policy->network == POLICY_NETWORK_HOST && option)
    return strv_addf(&plan->warnings,
                     "%s: changes nothing, since network.mode is \"host\" here, which is not confined; leave out one "
                     "of the two",
                     option);
  return 0;
}

static int tell_hide(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  for (size_t i = 0; i < policy->hide.count; i++) {
    const struct policy_path *path = &policy->hide.items[i];
    mem_autofree char *named = fspath_is_pattern(path->text) ? NULL : facts_expand(facts, path->text);
    const struct fact_path *fact = named ? facts_path(facts, named) : NULL;
    int r = 0;

    if (!is_typed(&path->origin))
      continue;
    if (fact && (fact->error == -ENOENT || fact->error == -ENOTDIR))
      r = strv_addf(&plan->warnings, "--hide: %s does not exist, so nothing is hidden", named);
    else if (!named && strv_contains(&facts->hide_idle, path->text))
      r = strv_addf(
          &plan->warnings,
          "--hide: nothing matches %s, so nothing is hidden; a pattern begins at the workspace %s, and **/ in "
          "front of it means at any depth",
          path->text, facts->workspace);
    if (r < 0)
      return r;
  }
  return 0;
}

/* Whether text names something that protection is about. */
static bool names_protected(const char *text, const struct policy *policy, const struct facts *facts)
{
  bool found = false;

  for (const char *const *name = view_protected(); *name && !found; name++) {
    mem_autofree char *path = path_join(facts->workspace, *name);

    found = path && fspath_match(text, facts->home, facts->workspace, path);
  }
  for (size_t i = 0; i < policy->protect.count && !found; i++) {
    mem_autofree char *path = facts_expand(facts, policy->protect.items[i].text);

    found = path && fspath_match(text, facts->home, facts->workspace, path);
  }
  if (!found) {
    mem_autofree char *gitfile = path_join(facts->workspace, ".git");
    const struct fact_path *fact = gitfile ? facts_path(facts, gitfile) : NULL;

    found = fact && !fact->error && S_ISREG(fact->mode) && fspath_match(text, facts->home, facts->workspace, gitfile);
  }
  return found;
}

static int tell_unprotect(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  for (size_t i = 0; i < policy->unprotect.count; i++) {
    const struct policy_path *path = &policy->unprotect.items[i];

    if (is_typed(&path->origin) && !names_protected(path->text, policy, facts) &&
        strv_addf(&plan->warnings,
                  "--unprotect: %s is none of the protected names, so nothing is lifted; " SBX_NAME
                  " why --write PATH tells what protects a path",
                  path->text) < 0)
      return -ENOMEM;
  }
  return 0;
}

static int tell_env(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  for (size_t i = 0; i < policy->env_pass.count; i++) {
    const struct policy_path *name = &policy->env_pass.items[i];

    if (is_typed(&name->origin) && !strchr(name->text, '*') && !facts_getenv(facts, name->text) &&
        strv_addf(&plan->warnings, "--env: %s is not set here, so nothing is passed on; --env %s=VALUE sets it",
                  name->text, name->text) < 0)
      return -ENOMEM;
  }
  return 0;
}

/* Such a program would end in a signal, without a word. */
static int tell_limits(const struct policy *policy, struct plan *plan)
{
  if (!policy->memory_bytes || policy->memory_bytes >= IDLE_MEMORY_BYTES)
    return 0;
  return strv_addf(&plan->warnings, "limits.memory: %llu bytes are less than a program needs to start",
                   (unsigned long long)policy->memory_bytes);
}

/* Not an option, but the same silence: git says only that there is no repository. */
static int tell_git(const struct facts *facts, struct plan *plan)
{
  const struct plan_op *cover = facts->repository ? ops_covering(plan, facts->repository) : NULL;
  const char *at = facts->repository;

  if (!at || (cover && ops_is_bind(cover) && strcmp(cover->source, cover->target) == 0))
    return 0;
  return strv_addf(
      &plan->warnings,
      "git: this work tree's repository is %s, which is not shown, so git does not work here; --read %s lets "
      "it look, --write %s also commit, but then its hooks and configuration can be changed",
      at, at, at);
}

int build_idle(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = tell_network(policy, plan);

  if (r == 0)
    r = tell_hide(policy, facts, plan);
  if (r == 0)
    r = tell_unprotect(policy, facts, plan);
  if (r == 0)
    r = tell_env(policy, facts, plan);
  if (r == 0)
    r = tell_limits(policy, plan);
  if (r == 0)
    r = tell_git(facts, plan);
  return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}
