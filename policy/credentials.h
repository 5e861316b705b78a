/* credentials: what the credentials of a policy mean for the rest of it. */
#ifndef SBX_POLICY_CREDENTIALS_H
#define SBX_POLICY_CREDENTIALS_H

#include "base/err.h"
#include "policy/policy.h"

/* Adds what a credential implies, with its origin, to the ends of the lists: a host that is bound is allowed there, and
 * a file with a value is hidden, one that is shown with its placeholder too. Equal items are the caller's to drop. 0,
 * -E2BIG or -ENOMEM. */
int credentials_extend(struct policy *policy);

/* Checks the credentials of a whole policy against each other and against env.set. 0 or -EINVAL "place: cause; fix". */
int credentials_check(const struct policy *policy, struct err *err);

/* Puts the place of a credential in front of a message. Returns the code in err. */
int credentials_refuse(const struct policy_credential *credential, struct err *err);

/* Adds a line for each variable of env.pass that does not pass, since it holds a value. 0 or -ENOMEM. */
int credentials_note(const struct policy *policy, struct strv *notes);

#endif
