/* ops: the list of operations while it grows. Only plan/ uses it. */
#ifndef SBX_PLAN_OPS_H
#define SBX_PLAN_OPS_H

#include "plan/facts.h"
#include "plan/plan.h"

/* Appends an operation; strings are copied (source and data may be NULL). The result is borrowed from the plan until
 * the next call; NULL when memory is short. */
struct plan_op *ops_add(struct plan *plan, enum plan_stage stage, enum plan_op_kind kind, const char *source,
                        const char *target, const char *why);

/* Takes away the operation of the visible stage with this target, where there is one. */
void ops_drop_visible(struct plan *plan, const char *target);

/* Moves the operation that was added last to its place by target among those of its stage: it covers nothing there. */
void ops_place(struct plan *plan);

/* The operation that decides what stands at an absolute path so far: the last one whose target the path lies within,
 * since what is mounted later covers what was mounted there or below before. NULL when there is none. */
const struct plan_op *ops_covering(const struct plan *plan, const char *path);

/* Goes through the places where the sandbox shows the host's real path so far; one object may be shown under more than
 * one name. *at is 0 at first and belongs to the walk; operations may be appended meanwhile, and are walked over too.
 * 1 and a place (caller frees), which ops_covering() finds covered by a bind; 0 at the end; or -ENOMEM. */
int ops_next_shown(const struct plan *plan, const char *real, size_t *at, char **ret_name);

/* The host's path of what stands at path, which lies within the target of a bind. NULL when memory is short. Caller
 * frees. */
char *ops_source_of(const struct plan_op *cover, const char *path);

bool ops_is_bind(const struct plan_op *op);

/* Stages, each appended in this order by plan_build(). 0 or -errno. */
int build_system(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
/* What build_system() adds where TLS is terminated: see build_trust.c. */
int build_trust(const struct facts *facts, struct err *err, struct plan *plan);
/* What build_visible() adds for it, since Java may lie in the home. */
int build_trust_java(const struct facts *facts, struct err *err, struct plan *plan);
/* What build_visible() adds for browsers, when it is known which can be seen. */
#define BUILD_NSS_FILES 3
int build_trust_nss(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
/* What build_visible() adds for the files of credentials. */
int build_copies(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_visible(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_protect(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_hide(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
/* Refuses a plan that shows a directory with a file that has a value: see build_copies.c. To be asked when all is
 * hidden. 0, -EINVAL or -ENOMEM. */
int build_held(const struct policy *policy, const struct facts *facts, struct err *err, const struct plan *plan);
/* Whether the port is one of those of the rule that are listened on inside: its first LIMITS_RULE_PORTS. */
bool build_rule_lists_port(const struct policy_rule *rule, uint16_t port);
int build_network(const struct policy *policy, struct err *err, struct plan *plan);
int build_publish(const struct policy *policy, struct err *err, struct plan *plan);
int build_upstream(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);
int build_env(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);

/* Sets NAME=VALUE in the environment of the command, in place of an earlier value. 0 or -ENOMEM. */
int build_set_variable(struct plan *plan, const char *name, const char *value);

/* Tells git which login to use for the hosts of credentials of the preset github: see build_git.c. 0 or -ENOMEM. */
int build_git(const struct policy *policy, struct plan *plan);
/* What stands at path inside, as far as facts know. NULL: nothing. *ret_outside tells that the host has it. */
const struct fact_path *build_find_inside(const struct plan *plan, const struct facts *facts, const char *path,
                                          bool *ret_outside);
int build_idle(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan);

#endif
