/* credential_tool: sources that are asked through a program of a known name: the Secret Service, op and pass. Pure. */
#ifndef SBX_POLICY_CREDENTIAL_TOOL_H
#define SBX_POLICY_CREDENTIAL_TOOL_H

#include "base/err.h"
#include "policy/doc.h"
#include "policy/policy.h"

/* Whether a program is run for it. */
bool credential_tool_is_run(const struct policy_source *source);

/* Adds program and arguments to ret_argv, for a source that a program is run for. 0 or -ENOMEM. */
int credential_tool_command(const struct policy_source *source, struct strv *ret_argv);

/* Reads the member secretService, op or pass of a source, or what --credential has after "secret-service:", "op:" and
 * "pass:" (rest is what follows, kind what stands before the colon). 0; -ENOENT for another member or kind; -EINVAL
 * with "cause; mend"; -ENOMEM. */
int credential_tool_read(const struct doc *doc, struct err *err, struct policy_source *source);
int credential_tool_read_option(struct span kind, struct span rest, struct err *err, struct policy_source *source);

/* Appends the member and its value, or for a person "the entry NAME of pass". */
void credential_tool_print(const struct policy_source *source, struct buf *out);
void credential_tool_explain(const struct policy_source *source, struct buf *out);

#endif
