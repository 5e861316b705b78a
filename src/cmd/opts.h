/* opts: the command line: one table serves the parser, the help texts and the check of the man pages. */
#ifndef SBX_CMD_OPTS_H
#define SBX_CMD_OPTS_H

#include "base/err.h"
#include "base/log.h"
#include "base/strv.h"
#include "policy/load.h"
#include "run/run.h"

/* Commands that an option belongs to, as bits. */
enum opts_command {
  OPTS_FOR_RUN = 1 << 0,
  OPTS_FOR_SHELL = 1 << 1,
  OPTS_FOR_CHECK = 1 << 2,
  OPTS_FOR_SHOW = 1 << 3,
  OPTS_FOR_INIT = 1 << 4,
  OPTS_FOR_TRUST = 1 << 5,
  OPTS_FOR_DOCTOR = 1 << 6,
  OPTS_FOR_WHY = 1 << 7,
  OPTS_FOR_LOG = 1 << 8,
  OPTS_FOR_LEARN = 1 << 9,
  OPTS_FOR_CREDENTIAL = 1 << 10,
};

#define OPTS_FDS_MAX 32

struct opts_setting {
  const char *key; /* "network.allow" */
  char *value;
  char *option; /* "--allow" */
};

struct opts {
  struct opts_setting *settings; /* options that are policy keys, in order */
  size_t setting_count;
  size_t setting_cap;
  struct strv policy_files;
  char *workspace; /* NULL when not given */
  bool hosts_only; /* learn: without paths */
  char *output; /* learn: NULL is standard output */
  int fds[OPTS_FDS_MAX];
  size_t fd_count;
  int audit_fd; /* of --audit fd:N; -1 */
  enum run_summary summary;
  enum ask_channel ask;
  int ask_fd; /* ASK_FD */
  uint64_t ask_ms; /* how long to wait for an answer; 0: not said */
  enum log_level level;
  bool dry_run;
  bool json;
  bool plan;
  bool write; /* why: may it be written? */
  const char *method; /* why: of the request; NULL when not given */
  bool follow; /* log */
  bool help;
  size_t consumed; /* arguments that were options, "--" included: the rest is the command */
};

#define OPTS_INIT { .audit_fd = -1, .ask_fd = -1, .level = LOG_NOTICE }

void opts_free(struct opts *opts);
#define opts_autofree MEM_CLEANUP(opts_free)

/* Parses the arguments of a command (after its name) up to the first that is no option, or past "--". Where that begins
 * no other program's arguments, options may stand after it too, and are moved before the operands, as getopt(3) does.
 * 0; -EINVAL with the fault and the way to the help in err. */
int opts_parse(enum opts_command command, char **args, struct err *err, struct opts *opts);

/* Appends one line for each option of a command, from the table. */
void opts_help(enum opts_command command, struct buf *out);

#endif
