#include "plan/check.h"

#include "plan/ops.h"
#include "sys/path.h"

#include <errno.h>

static bool is_canonical(const char *path)
{
  struct span rest = span_of(path);
  struct span part;
  bool first = true;

  if (path[0] != '/')
    return false;
  if (path[1] == '\0')
    return true;
  while (span_split(&rest, '/', &part)) {
    if (first ? part.len != 0 : part.len == 0 || span_equal(part, SPAN(".")) || span_equal(part, SPAN("..")))
      return false;
    first = false;
  }
  return true;
}

static int check_order(const struct plan_op *op, const struct plan_op *before, struct err *err)
{
  if (!before)
    return 0;
  if (op->stage < before->stage)
    return err_set(err, EINVAL, "plan: %s: %s after stage %s", op->target, plan_stage_name(op->stage),
                   plan_stage_name(before->stage));
  if (op->stage == PLAN_STAGE_VISIBLE && before->stage == PLAN_STAGE_VISIBLE && strcmp(op->target, before->target) <= 0)
    return err_set(err, EINVAL, "plan: %s: mounted after %s", op->target, before->target);
  if (op->stage == PLAN_STAGE_PROTECT && op->kind != PLAN_BIND_RO)
    return err_set(err, EINVAL, "plan: %s: protection that is not read-only", op->target);
  return 0;
}

static int check_op(const struct plan_op *op, struct err *err)
{
  bool kernel =
      path_is_within(op->target, "/proc") || path_is_within(op->target, "/sys") || path_is_within(op->target, "/dev");

  if (!is_canonical(op->target))
    return err_set(err, EINVAL, "plan: %s: not a canonical path", op->target);
  if (ops_is_bind(op) && (!op->source || !is_canonical(op->source)))
    return err_set(err, EINVAL, "plan: %s: bind without a canonical source", op->target);
  if (op->kind == PLAN_SYMLINK && !op->source)
    return err_set(err, EINVAL, "plan: %s: link without a text", op->target);
  if ((op->kind == PLAN_FILE || op->kind == PLAN_COVER) && !op->data)
    return err_set(err, EINVAL, "plan: %s: file without contents", op->target);
  if (kernel && op->stage > PLAN_STAGE_KERNEL && op->kind != PLAN_MASK_FILE && op->kind != PLAN_MASK_DIR)
    return err_set(err, EINVAL, "plan: %s: over the kernel's own tree", op->target);
  if (strcmp(op->target, "/") == 0 && op->kind != PLAN_SEAL)
    return err_set(err, EINVAL, "plan: the root itself cannot be a target");
  return 0;
}

int plan_check(const struct plan *plan, struct err *err)
{
  const struct plan_op *cover;
  const struct plan_op *last;

  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    int r = check_op(op, err);

    if (r == 0)
      r = check_order(op, i ? op - 1 : NULL, err);
    if (r < 0)
      return r;
  }
  last = plan->ops.count ? &plan->ops.items[plan->ops.count - 1] : NULL;
  if (!last || last->kind != PLAN_SEAL || strcmp(last->target, "/") != 0)
    return err_set(err, EINVAL, "plan: the root is not sealed");
  cover = ops_covering(plan, plan->cwd);
  if (!cover || !ops_is_bind(cover))
    return err_set(err, EINVAL, "plan: the working directory %s is not visible", plan->cwd);
  return 0;
}
