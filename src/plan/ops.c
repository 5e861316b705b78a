#include "plan/ops.h"

#include "policy/limits.h"
#include "sys/path.h"

#include <stdlib.h>

bool ops_is_bind(const struct plan_op *op)
{
  return op->kind == PLAN_BIND_RO || op->kind == PLAN_BIND_RW;
}

static char *copy(const char *text)
{
  return mem_strndup(text, strlen(text));
}

struct plan_op *ops_add(struct plan *plan, enum plan_stage stage, enum plan_op_kind kind, const char *source,
                        const char *target, const char *why)
{
  struct plan_ops *ops = &plan->ops;
  struct plan_op *op;

  if (mem_grow(&ops->items, ops->count, &ops->cap, sizeof *ops->items, LIMITS_PLAN_OPS) < 0)
    return NULL;
  op = &ops->items[ops->count];
  *op = (struct plan_op){ .stage = stage, .kind = kind, .mode = 0755, .why = why };
  op->target = copy(target);
  op->source = source ? copy(source) : NULL;
  ops->count++; /* plan_free() releases a half-made one */
  return op->target && (op->source || !source) ? op : NULL;
}

const struct plan_op *ops_covering(const struct plan *plan, const char *path)
{
  const struct plan_op *best = NULL;
  size_t best_len = 0;

  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    size_t len = strlen(op->target);

    if (op->kind != PLAN_SEAL && len >= best_len && path_is_within(path, op->target)) {
      best = op;
      best_len = len;
    }
  }
  return best;
}

bool ops_has_target(const struct plan *plan, const char *target)
{
  for (size_t i = 0; i < plan->ops.count; i++) {
    if (strcmp(plan->ops.items[i].target, target) == 0)
      return true;
  }
  return false;
}

char *ops_source_of(const struct plan_op *cover, const char *path)
{
  return path_join(cover->source, path + strlen(cover->target));
}
