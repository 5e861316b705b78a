/* build: (policy, facts) → plan. Pure: what it knows of the host stands in facts. */
#ifndef SBX_PLAN_BUILD_H
#define SBX_PLAN_BUILD_H

#include "plan/facts.h"
#include "plan/plan.h"

/* Where the proxy's HTTP front listens inside, unless the policy names that port. */
#define BUILD_HTTP_PORT 3128
/* The same for SOCKS5 (RFC 1928). */
#define BUILD_SOCKS_PORT 1080

/* Fills what follows from the caller and the policy alone, with which an engine can be prepared: the command (argv:
 * NULL-terminated, may be empty), network, session, system calls, limits. No path need have been looked at.
 * 0 or -ENOMEM. */
int plan_begin(const struct policy *policy, const struct facts *facts, char *const *argv, struct err *err,
               struct plan *plan);

/* Fills the rest of a plan that was begun, except for the command's program.
 * 0; -EINVAL or -ENOENT with the place in the policy in err; -ENOMEM. */
int plan_build(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);

/* The proxy that the host has to use, by the policy and the caller's variables. 0; -EINVAL or -E2BIG with the variable
 * that cannot be used in err; -ENOMEM. What *upstream holds is the caller's, also on failure. */
int plan_find_upstream(const struct policy *policy, const struct facts *facts, struct err *err,
                       struct plan_upstream *upstream);

/* PATH as the command will have it; borrowed from policy or facts. */
const char *plan_path_variable(const struct policy *policy, const struct facts *facts);

/* Finds the program that plan->argv[0] names, as execvp(3) would inside, and sets plan->program.
 * 0; -ENOENT (exit status 127): there is none, or none that is visible; -EACCES (126): not executable. */
int plan_resolve_program(const struct facts *facts, struct err *err, struct plan *plan);

#endif
