/* ops: the list of operations while it grows. Only plan/ uses it. */
#ifndef SBX_PLAN_OPS_H
#define SBX_PLAN_OPS_H

#include "plan/facts.h"
#include "plan/plan.h"

/* Appends an operation; strings are copied (source and data may be NULL). The result is borrowed from the plan until the
 * next call; NULL when memory is short. */
struct plan_op *ops_add(struct plan *plan, enum plan_stage stage, enum plan_op_kind kind, const char *source,
                        const char *target, const char *why);

/* The operation that decides what stands at an absolute path so far: the last one with the longest target that the path
 * lies within. NULL when nothing was mounted there or above. */
const struct plan_op *ops_covering(const struct plan *plan, const char *path);

/* Whether an operation has exactly this target. */
bool ops_has_target(const struct plan *plan, const char *target);

/* The host's path of what stands at path, which lies within the target of a bind. NULL when memory is short. Caller
 * frees. */
char *ops_source_of(const struct plan_op *cover, const char *path);

bool ops_is_bind(const struct plan_op *op);

/* Stages, each appended in this order by plan_build(). 0 or -errno. */
int build_system(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_visible(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_protect(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_hide(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_env(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);

#endif
