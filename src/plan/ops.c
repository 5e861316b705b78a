#include "plan/ops.h"

#include "policy/limits.h"
#include "sys/path.h"

#include <errno.h>
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

void ops_drop_visible(struct plan *plan, const char *target)
{
  struct plan_ops *ops = &plan->ops;

  for (size_t i = 0; i < ops->count; i++) {
    struct plan_op *op = &ops->items[i];

    if (op->stage != PLAN_STAGE_VISIBLE || strcmp(op->target, target) != 0)
      continue;
    free(op->target);
    free(op->source);
    free(op->data);
    memmove(op, op + 1, (--ops->count - i) * sizeof *op);
    return;
  }
}

void ops_place(struct plan *plan)
{
  struct plan_op *items = plan->ops.items;
  size_t at = plan->ops.count - 1;
  struct plan_op moved = items[at];

  for (; at > 0; at--) {
    const struct plan_op *before = &items[at - 1];

    if (before->stage < moved.stage || (before->stage == moved.stage && strcmp(before->target, moved.target) <= 0))
      break;
    items[at] = *before;
  }
  items[at] = moved;
}

const struct plan_op *ops_covering(const struct plan *plan, const char *path)
{
  for (size_t i = plan->ops.count; i > 0; i--) {
    const struct plan_op *op = &plan->ops.items[i - 1];

    if (op->kind != PLAN_SEAL && path_is_within(path, op->target))
      return op;
  }
  return NULL;
}

char *ops_source_of(const struct plan_op *cover, const char *path)
{
  return path_join(cover->source, path + strlen(cover->target));
}

int ops_next_shown(const struct plan *plan, const char *real, size_t *at, char **ret_name)
{
  while (*at < plan->ops.count) {
    const struct plan_op *op = &plan->ops.items[(*at)++];
    mem_autofree char *name = NULL;

    if (!ops_is_bind(op) || !path_is_within(real, op->source))
      continue;
    name = path_join(op->target, real + strlen(op->source));
    if (!name)
      return -ENOMEM;
    if (ops_covering(plan, name) == op) {
      *ret_name = mem_steal(name);
      return 1;
    }
  }
  return 0;
}
