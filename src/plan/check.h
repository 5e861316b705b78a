/* check: what must hold of a plan before any engine sees it. */
#ifndef SBX_PLAN_CHECK_H
#define SBX_PLAN_CHECK_H

#include "plan/plan.h"

/* The invariants that an engine relies on: stages in order, parents before children among the visible trees, nothing
 * but read-only binds to protect, absolute and canonical targets, what each kind needs present, no target outside of
 * the tree, nothing mounted on the kernel's trees after their stage, the root sealed last, the working directory
 * visible. 0, or -EINVAL: a fault of the program, not of the user. */
int plan_check(const struct plan *plan, struct err *err);

#endif
