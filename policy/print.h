/* print: the canonical text of a policy. */
#ifndef SBX_POLICY_PRINT_H
#define SBX_POLICY_PRINT_H

#include "base/buf.h"
#include "policy/policy.h"

/* Canonical JSON of the whole policy; for the proxy (with origins, see policy_parse) or for a person (`sbx show`, valid
 * policy language that can be saved as a policy file). Look at buf_error afterwards. */
void policy_print(const struct policy *policy, bool with_origins, struct buf *out);

#endif
