#include "cmd/planning.h"

#include "plan/build.h"
#include "plan/check.h"

#include <errno.h>

int planning_begin(struct context *context, char *const *args, struct err *err, struct plan *plan)
{
  int r = facts_read_files(err, &context->facts);

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
  int r = planning_begin(context, no_command, err, plan);

  return r < 0 ? r : planning_finish(context, err, plan, &about_command);
}
