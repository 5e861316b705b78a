/* audit_file: where the audit of a run goes. */
#ifndef SBX_RUN_AUDIT_FILE_H
#define SBX_RUN_AUDIT_FILE_H

#include "run/run.h"

/* Opens the audit for appending: the request's descriptor (a duplicate), else the policy's file, else audit.jsonl in
 * the state directory, which is made where it is absent. A file without room for LIMITS_AUDIT_RUN_BYTES is renamed to
 * NAME.1 first.
 * Descriptor or -errno. */
int audit_file_open(const struct run_request *request, struct err *err);

/* Whether the user asked for an audit by name or descriptor: then it has to be there before anything runs. */
bool audit_is_named(const struct run_request *request);

#endif
