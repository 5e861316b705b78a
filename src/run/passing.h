/* passing: mount points in the private home for what a policy shows there (`--read ~/x`), gone with the run. */
#ifndef SBX_RUN_PASSING_H
#define SBX_RUN_PASSING_H

#include "plan/facts.h"
#include "plan/plan.h"

/* Makes plan->passing_mounts. *ret_lock is for passing_remove(); untouched where there are none. 0 or -errno. */
int passing_make(const struct plan *plan, const struct facts *facts, struct err *err, int *ret_lock);

/* Removes them after the run, unless another run of the project may use them or something was put there. Closes the
 * lock, which may be -1: nothing was made. */
void passing_remove(const struct plan *plan, int *lock);

#endif
