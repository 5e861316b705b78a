#include "cmd/planning.h"

#include "plan/build.h"
#include "plan/check.h"
#include "policy/decide.h"
#include "run/fetch_keys.h"
#include "run/outside.h"
#include "run/placeholder.h"
#include "sys/path.h"

#include <errno.h>

static int read_placeholders(struct context *context, bool keep, struct err *err)
{
  struct facts *facts = &context->facts;
  mem_autofree char *dir = path_join(facts->state_dir, "placeholders");
  mem_autofree char *path = dir ? path_join(dir, strrchr(facts->private_home, '/')) : NULL;

  if (!path)
    return err_set(err, ENOMEM, "out of memory");
  if (fetch_keys_check(context->policy, facts, err) < 0)
    return -EINVAL;
  return placeholder_load(context->policy, path, keep, err, &facts->placeholders);
}

/* Without it, or with one that the command could write, browsers go without a database. */
static int find_certutil(struct context *context, struct err *err)
{
  strv_autofree struct strv places = STRV_INIT;
  int r = outside_places(context->policy, &context->facts, &places);

  if (r < 0)
    return err_set(err, ENOMEM, "out of memory");
  r = outside_find_program(&places, &context->facts, "certutil", err, &context->facts.certutil);
  err->code = r == -ENOMEM ? err->code : 0;
  return r == -ENOMEM ? r : 0;
}

int planning_begin(struct context *context, char *const *args, bool keep, struct err *err, struct plan *plan)
{
  int r = facts_read_files(err, &context->facts);

  if (r == 0 && decide_may_terminate(context->policy))
    r = facts_read_roots(err, &context->facts);
  if (r == 0 && decide_may_terminate(context->policy))
    r = facts_read_java(err, &context->facts);
  if (r == 0 && decide_may_terminate(context->policy) && context->policy->home != POLICY_HOME_HOST)
    r = find_certutil(context, err);
  if (r == 0 && context->policy->credentials.count > 0)
    r = read_placeholders(context, keep, err);
  return r < 0 ? r : plan_begin(context->policy, &context->facts, args, err, plan);
}

int planning_finish(struct context *context, struct err *err, struct plan *plan, bool *ret_command)
{
  const char *path = plan_path_variable(context->policy, &context->facts);
  const char *command = plan->argv.count ? plan->argv.items[0] : NULL;
  int r = facts_read_paths(context->policy, path, command, err, &context->facts);

  *ret_command = false;
  if (r == 0)
    r = plan_build(context->policy, &context->facts, err, plan);
  if (r == 0)
    r = plan_check(plan, err);
  if (r < 0 || !command)
    return r;
  *ret_command = true;
  return plan_resolve_program(&context->facts, err, plan);
}

int planning_make(struct context *context, struct err *err, struct plan *plan)
{
  static char *const no_command[] = { NULL };
  bool about_command;
  int r = planning_begin(context, no_command, false, err, plan);

  return r < 0 ? r : planning_finish(context, err, plan, &about_command);
}
