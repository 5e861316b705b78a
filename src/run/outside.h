/* outside: what a program that runs for a run outside of its sandbox, with the rights of the user, may be, and what it
 * is given: nothing that the command inside may write decides what it does (see outside.c). */
#ifndef SBX_RUN_OUTSIDE_H
#define SBX_RUN_OUTSIDE_H

#include "base/err.h"
#include "base/strv.h"
#include "plan/facts.h"
#include "policy/policy.h"

#include <stdbool.h>

/* The places where the command inside may write, each by its name and by its real path. 0 or -ENOMEM. */
int outside_places(const struct policy *policy, const struct facts *facts, struct strv *ret_places);

/* Whether the command inside may decide what an absolute path leads to: the path, or a symbolic link on the way, lies
 * in one of the places. 1, 0 or -ENOMEM. */
int outside_is_writable(const struct strv *places, const char *path);

/* Finds a program by its name in PATH, or by an absolute path, and judges it and what its "#!" names: one that the
 * command may write is passed by in PATH. 0 and its path, which the caller frees; -ENOENT, -EPERM or -EINVAL "cause;
 * mend"; -ENOMEM. */
int outside_find_program(const struct strv *places, const struct facts *facts, const char *name, struct err *err,
                         char **ret_path);

/* The same, and judges the words that the program is to be given. */
int outside_program(const struct strv *places, const struct facts *facts, const struct strv *argv, struct err *err,
                    char **ret_path);

/* The caller's environment without what leads into the places or has a program load code. 0; or -errno "cause; mend":
 * -EPERM where the home itself is in one of them. */
int outside_environment(const struct strv *places, const struct facts *facts, struct err *err,
                        struct strv *ret_environment);

#endif
