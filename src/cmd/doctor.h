/* doctor: what this machine lets sbx do, and a proof that its sandboxes hold.
 *
 *   doctor.c            the report: the order of the checks, printing, exit status
 *   doctor_kernel.c     system calls, seccomp, Landlock, namespaces
 *   doctor_host.c       limits, PATH, sbx-proxy, directories, policy
 *   doctor_bwrap.c      bubblewrap
 *   doctor_selftest.c   runs attempts in real sandboxes and looks from outside what became of them
 *   doctor_attempt.c    the attempts: what runs inside (`sbx doctor attempt`)
 *   doctor_exec.c       runs a program for a check, bounded in time
 *   doctor_mend.c       commands that mend, for this distribution and user
 */
#ifndef SBX_CMD_DOCTOR_H
#define SBX_CMD_DOCTOR_H

#include "base/buf.h"
#include "base/err.h"
#include "plan/facts.h"

#include <stdbool.h>
#include <sys/types.h>

enum doctor_status {
  DOCTOR_OK,
  DOCTOR_WARN, /* sandboxes run, but not with all that they could have */
  DOCTOR_FAIL, /* sandboxes cannot run, or do not hold */
};

struct doctor_check {
  enum doctor_status status;
  const char *name;
  char *text;
  char *mend; /* a command line, or NULL */
};

struct doctor {
  struct facts facts; /* of the caller; the workspace in it means nothing */
  char *self; /* our own program, a real path */
  int signals; /* signalfd(2) of what would end us; -1: not set up */
  int signal; /* that came meanwhile: everything still to do is left out; 0 */
  int error; /* doctor's own fault: -ENOMEM; 0 */
  struct doctor_check *checks;
  size_t count;
  size_t cap;
};

/* Adds a check's result. mend is copied; NULL where no command can mend it. */
void doctor_say(struct doctor *doctor, enum doctor_status status, const char *name, const char *mend,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Whether some check so far failed. */
bool doctor_has_failed(const struct doctor *doctor);

/* The checks. Each says one line or more. */
void doctor_check_kernel(struct doctor *doctor);
void doctor_check_namespaces(struct doctor *doctor);
void doctor_check_bwrap(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);
void doctor_check_name(struct doctor *doctor);
void doctor_check_proxy(struct doctor *doctor);
void doctor_check_directories(struct doctor *doctor);
void doctor_check_policy(struct doctor *doctor);
void doctor_check_enforcement(struct doctor *doctor);

/* `sbx doctor attempt WAY [TARGET]`: tries to break out of where it stands and says on each line what was tried and
 * whether it was refused ("held") or worked ("BREACH"). It changes nothing that it does not put back.
 * Exit status: 0 all was refused, 1 something worked, 125. */
int doctor_attempt(char *const *args);

struct doctor_exec {
  const char *program;
  char *const *argv;
  char *const *envp;
  bool guard; /* as pid 1 of its own pid namespace, as an engine starts its program */
  int cgroup_procs; /* -1: none */
  const char *kill_after; /* SIGKILL for the program once its output holds this; NULL: never */
};

/* Runs a program with standard input from /dev/null until it and everything that holds its output has ended.
 * out, messages    standard output and error, as far as they fit
 * 0 and the waitpid(2) status; -ETIME where that took too long (it is killed then); -EINTR after a signal for us (it is
 * killed, doctor->signal is set); or -errno of the start. */
int doctor_exec(struct doctor *doctor, const struct doctor_exec *exec, struct err *err, struct buf *out,
                struct buf *messages, int *ret_status);

/* The last line of a text that is not empty, for a person; "no message" where there is none. */
struct span doctor_last_line(const struct buf *text);

/* Appends the command that installs a package here; an advice in words for a distribution that is not known. */
void doctor_mend_install(const char *package, struct buf *out);

/* "sudo ", or "" for root. */
const char *doctor_mend_sudo(void);

/* Appends a path as one word of a shell: in single quotes, with ? outside of them for what cannot be shown. */
void doctor_mend_quote(const char *path, struct buf *out);

/* Appends the commands that install the AppArmor profile for our program. */
void doctor_mend_apparmor(const struct doctor *doctor, struct buf *out);

/* The kind of container that we run in ("docker", "podman", ...), or NULL. Static. */
const char *doctor_container(void);

#endif
