/* veil: places that are secret by themselves, of which the policy names a part. Only plan/ uses it. */
#ifndef SBX_PLAN_VEIL_H
#define SBX_PLAN_VEIL_H

#include "plan/facts.h"
#include "plan/plan.h"

/* What the user asked for of a place, by its name, and not by something larger that holds it. */
enum veil_asked {
  VEIL_NOTHING,
  VEIL_PART, /* something in it */
  VEIL_WHOLE, /* the very place */
};

enum veil_asked veil_asked(const struct policy *policy, const struct facts *facts, const char *path);

/* Puts a veil over each secret directory of which a part was asked for, wherever it is shown so far: an empty directory
 * of the sandbox's own, in which what was asked for appears. The operations are of the visible stage, and come last;
 * they have to be sorted in. 0 or -errno. */
int veil_secrets(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);

bool veil_is_one(const struct plan_op *op);

#endif
