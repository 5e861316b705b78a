/* facts: every read of the host, once.
 *
 * The rest of plan/ is pure; what it wants to know of the host it finds here. A path that was not looked at is unknown,
 * and asking for it is a fault of the program (facts_path returns NULL and build fails).
 */
#ifndef SBX_PLAN_FACTS_H
#define SBX_PLAN_FACTS_H

#include "base/err.h"
#include "base/strv.h"
#include "policy/policy.h"

#include <sys/types.h>

struct fact_path {
  char *asked; /* absolute path as it was asked for */
  int error; /* 0, or the negative errno of looking; then nothing below is set */
  bool link; /* the path itself is a symbolic link */
  char *real; /* where it leads, without links */
  mode_t mode;
  uid_t uid;
  uint64_t device;
  uint64_t inode;
};

struct fact_file {
  char *path;
  char *text;
  mode_t mode;
};

/* A file with the certificates that programs of the host trust. */
struct fact_roots {
  char *real; /* where the name leads that programs know it by */
  char *text;
};

#define FACTS_ROOTS_MAX 4

/* A store of certificates that Java trusts. */
struct fact_java {
  char *real;
  char *bytes;
  size_t len;
};

#define FACTS_JAVA_MAX 16

struct facts {
  uid_t uid;
  gid_t gid;
  char *home; /* real path */
  char *cwd; /* real path */
  char *workspace; /* real path */
  char *state_dir; /* $XDG_STATE_HOME/sbx */
  char *config_dir; /* $XDG_CONFIG_HOME/sbx */
  char *repository; /* where .git of the workspace leads when it is a file (linked worktree, submodule); else NULL */
  char *private_home; /* the directory that is this workspace's home inside, whether it exists or not */
  int landlock_abi; /* landlock.h */
  bool terminal; /* there is a controlling terminal */
  struct strv environment; /* the caller's */
  struct strv sockets; /* real paths of the sockets that servers of the host listen on */
  struct strv hidden; /* what the patterns of policy->hide match, absolute */
  struct strv hide_idle; /* those of the patterns that match nothing, as they stand there */
  struct fact_path *paths;
  size_t path_count;
  size_t path_cap;
  struct fact_roots roots[FACTS_ROOTS_MAX];
  size_t root_count;
  char *extra_roots; /* what the caller's NODE_EXTRA_CA_CERTS names, or NULL: roots beside those of Node.js itself */
  struct fact_java java[FACTS_JAVA_MAX];
  size_t java_count;
  char *certutil; /* the host's certutil(1), where a database for browsers is to be made with it; else NULL */
  struct strv browsers; /* names of programs and directories, as inside, that stand for a browser; only with certutil */
  struct strv placeholders; /* of the policy's credentials, in their order (run/placeholder.h) */
  char *hosts; /* the host's /etc/hosts, or NULL */
  struct fact_file *files; /* copies of small files that must belong to the user inside (F32) */
  size_t file_count;
  size_t file_cap;
};

#define FACTS_INIT { .home = NULL }

void facts_free(struct facts *facts);
#define facts_autofree MEM_CLEANUP(facts_free)

/* What is known of the caller before any policy is read: user, home, directories, environment, working directory,
 * workspace. workspace_option is the argument of --workspace or NULL.
 * -EINVAL where the working directory, the home, an ancestor of it or / would be the workspace. */
int facts_read_caller(const char *workspace_option, struct err *err, struct facts *facts);

/* Copies the small files that must belong to the user inside, and reads /etc/hosts. 0 or -errno. */
int facts_read_files(struct err *err, struct facts *facts);

/* Reads the files of trusted certificates that are there, each once, and what Node.js trusts beside its own; nothing of
 * the workspace. 0 or -ENOMEM. */
int facts_read_roots(struct err *err, struct facts *facts);

/* Reads the stores of the Java installations that are there, each once, but none in the workspace. 0 or -ENOMEM. */
int facts_read_java(struct err *err, struct facts *facts);

/* Looks at every path that the plan for this policy and this command may ask for.
 * path_variable  PATH as the command will have it
 * command        the program as the user wrote it, or NULL */
int facts_read_paths(const struct policy *policy, const char *path_variable, const char *command, struct err *err,
                     struct facts *facts);

/* What was found at an absolute path; NULL where nobody looked. */
const struct fact_path *facts_path(const struct facts *facts, const char *path);

/* $VIRTUAL_ENV where it is a Python environment below the home, and neither holds the workspace nor lies in it; else
 * NULL. */
const struct fact_path *facts_venv(const struct facts *facts);

/* The value of a variable of the caller's environment, or NULL. */
const char *facts_getenv(const struct facts *facts, const char *name);

/* A policy path as an absolute one: "~/x" below home, "x" below the workspace. NULL when memory is short. Caller
 * frees. */
char *facts_expand(const struct facts *facts, const char *policy_path);

#endif
