/* program: why the kernel would not execute the command's program. Looked at only after a start that failed. */
#ifndef SBX_RUN_PROGRAM_H
#define SBX_RUN_PROGRAM_H

#include "plan/plan.h"

/* Whether plan->program is a script or an ELF file whose interpreter is not there inside, or cannot be executed.
 * Appends the fault to ret_why as a sentence. */
bool program_is_broken(const struct plan *plan, struct buf *ret_why);

#endif
