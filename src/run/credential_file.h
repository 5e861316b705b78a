/* credential_file: a file of the host as the sandbox shows it, with placeholders in place of values. */
#ifndef SBX_RUN_CREDENTIAL_FILE_H
#define SBX_RUN_CREDENTIAL_FILE_H

#include "run/run.h"
#include "run/secrets.h"

/* Whether the plan has such a file. Then secrets_gather() comes first. */
bool credential_file_wanted(const struct plan *plan);

/* Appends what stands at a PLAN_LATE_CREDENTIAL operation. The values of all credentials that could be had are
 * replaced; those that name the file must be in it. 0; or -errno with "place: file: cause; mend" in err, after which
 * out may hold values: it has to be wiped in any case. */
int credential_file_make(const struct run_request *request, const struct plan_op *op, const struct secrets *secrets,
                         struct err *err, struct buf *out);

#endif
