/* print: a plan for a person, or as JSON. */
#ifndef SBX_PLAN_PRINT_H
#define SBX_PLAN_PRINT_H

#include "base/buf.h"
#include "plan/plan.h"

/* One line per operation, then network, system calls, limits, the names of the variables, and the command. Look at
 * buf_error afterwards. */
void plan_print(const struct plan *plan, struct buf *out);
void plan_print_json(const struct plan *plan, struct buf *out);

#endif
