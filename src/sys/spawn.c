/* Theory of operation
 *
 * The child is a copy of the caller, which goes on meanwhile; it tells over a pipe which step failed, and the pipe's
 * end without a word tells that the program is being executed. What it does, in this order, and why the order matters:
 *
 *   1. PR_SET_PDEATHSIG, then a look whether the caller still lives: whether the pipe still has a reader. A caller that
 *      dies before the first step is seen by the second; one that dies later is seen by the kernel.
 *   2. the cgroup, while the process still may write there
 *   3. the identity maps, without which a program in a new user namespace is nobody
 *   4. a proc of the new pid namespace: bubblewrap looks for its child in /proc by the number that it sees, and that
 *      number is another process, or none, in the proc of the host
 *   5. session, Landlock, directory, descriptors, signals: nothing of the caller's stays
 *   6. execve
 *
 * clone(2) is called bare: the C library's fork(3) cannot be given namespaces. The child must not allocate, take locks,
 * or touch stdio, and asks the kernel, not the library, who it is.
 */
#include "sys/spawn.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child says when it cannot go on. */
struct report {
  int error;
  char step[60];
};

struct child {
  const struct spawn *spawn;
  int report_read;
  int report_write;
  char uid_map[48];
  char gid_map[48];
};

static void fail(const struct child *child, const char *step)
{
  struct report report = { .error = errno ? errno : EIO };

  for (size_t i = 0; step[i] && i + 1 < sizeof report.step; i++)
    report.step[i] = step[i];
  (void)!write(child->report_write, &report, sizeof report);
}

static bool put(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  ssize_t n;

  if (fd < 0)
    return false;
  n = write(fd, text, strlen(text));
  fd_close(&fd);
  return n == (ssize_t)strlen(text);
}

static bool bind_to_caller(struct child *child)
{
  struct pollfd alive = { .fd = child->report_write, .events = 0 };

  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
    return false;
  fd_close(&child->report_read);
  if (poll(&alive, 1, 0) == 0)
    return true;
  errno = ESRCH;
  return false;
}

/* Nothing is blocked; nothing is handled, by execve(2). What the caller itself was told to ignore stays ignored, as
 * nohup(1) wants it; but not SIGCHLD, without which nobody can be waited for. */
static void reset_signals(void)
{
  struct sigaction fresh = { .sa_handler = SIG_DFL };
  sigset_t none;

  (void)sigaction(SIGCHLD, &fresh, NULL);
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Two passes, because one descriptor's new number may be another's old one: first out of the way, beyond every new
 * number, then into place. */
static bool place_fds(const struct spawn *spawn, int *report)
{
  int moved[SPAWN_FDS_MAX];
  int beyond = 3;
  int kept;

  if (spawn->fd_count > MEM_COUNT(moved)) {
    errno = E2BIG;
    return false;
  }
  for (size_t i = 0; i < spawn->fd_count; i++) {
    if (spawn->fds[i].to >= beyond)
      beyond = spawn->fds[i].to + 1;
  }
  kept = fcntl(*report, F_DUPFD_CLOEXEC, beyond);
  if (kept < 0)
    return false; /* which has to be reported */
  *report = kept;
  for (size_t i = 0; i < spawn->fd_count; i++) {
    moved[i] = spawn->fds[i].from;
    if (spawn->fds[i].from == spawn->fds[i].to)
      continue;
    moved[i] = fcntl(spawn->fds[i].from, F_DUPFD_CLOEXEC, beyond);
    if (moved[i] < 0)
      return false;
  }
  for (size_t i = 0; i < spawn->fd_count; i++) {
    if (moved[i] == spawn->fds[i].to) {
      if (fcntl(moved[i], F_SETFD, 0) < 0)
        return false;
    } else if (dup2(moved[i], spawn->fds[i].to) < 0) {
      return false;
    }
  }
  return true;
}

/* Returns the step that failed, with errno; on success it does not return. */
static const char *run_child(struct child *child)
{
  const struct spawn *spawn = child->spawn;

  errno = 0;
  if (!bind_to_caller(child))
    return "bind to caller";
  if (spawn->cgroup_procs >= 0 && write(spawn->cgroup_procs, "0", 1) != 1)
    return "cgroup";
  if (spawn->guard && (!put("/proc/self/setgroups", "deny") || !put("/proc/self/gid_map", child->gid_map) ||
                       !put("/proc/self/uid_map", child->uid_map)))
    return "user namespace map";
  if (spawn->guard && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
    return "proc of the new pid namespace";
  if (spawn->new_session && setsid() < 0)
    return "setsid";
  if (!spawn->may_gain && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return "no_new_privs";
  if (spawn->landlock >= 0 && syscall(SYS_landlock_restrict_self, spawn->landlock, 0) < 0)
    return "Landlock";
  if (spawn->directory && chdir(spawn->directory) < 0)
    return "directory";
  /* Where the call is unknown, what spawn_close_inherited() did has to do. */
  (void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (!place_fds(spawn, &child->report_write))
    return "descriptors";
  reset_signals();
  execve(spawn->program, spawn->argv, spawn->envp);
  return "execve";
}

int spawn_begin(const struct spawn *spawn, struct err *err, struct spawn_child *ret_child)
{
  struct child child = { .spawn = spawn };
  unsigned long flags = SIGCHLD | (spawn->guard ? CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS : 0);
  int report[2];
  sigset_t all;
  sigset_t old;
  long pid;

  snprintf(child.uid_map, sizeof child.uid_map, "%u %u 1\n", geteuid(), geteuid());
  snprintf(child.gid_map, sizeof child.gid_map, "%u %u 1\n", getegid(), getegid());
  if (pipe2(report, O_CLOEXEC) < 0)
    return err_set_errno(err, errno, "%s: pipe", spawn->program);
  child.report_read = report[0];
  child.report_write = report[1];
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old); /* the caller's handlers are not the child's */
#if defined(__s390__) || defined(__CRIS__)
  pid = syscall(SYS_clone, NULL, flags, NULL, NULL, NULL);
#else
  pid = syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
#endif
  if (pid == 0) {
    fail(&child, run_child(&child));
    _exit(1);
  }
  sigprocmask(SIG_SETMASK, &old, NULL);
  fd_close(&report[1]);
  if (pid < 0) {
    fd_close(&report[0]);
    return err_set_errno(err, errno, "%s: %s", spawn->program,
                         spawn->guard ? "new user, pid and mount namespaces" : "clone");
  }
  *ret_child = (struct spawn_child){ .pid = (pid_t)pid, .report = report[0] };
  return 0;
}

int spawn_confirm(struct spawn_child *child, const char *program, struct err *err)
{
  struct report report = { .error = 0 };
  ssize_t n;

  if (child->report < 0)
    return err_set(err, EBADF, "%s: its start has not begun", program);
  do {
    n = read(child->report, &report, sizeof report);
  } while (n < 0 && errno == EINTR);
  fd_close(&child->report);
  if (n == 0)
    return 0;
  (void)kill(child->pid, SIGKILL);
  (void)waitpid(child->pid, NULL, 0);
  child->pid = -1;
  report.step[sizeof report.step - 1] = '\0';
  return n == (ssize_t)sizeof report ? err_set_errno(err, report.error, "%s: %s", program, report.step)
                                     : err_set(err, EIO, "%s: its start cannot be followed", program);
}

int spawn_program(const struct spawn *spawn, struct err *err, pid_t *ret_pid)
{
  struct spawn_child child = SPAWN_CHILD_INIT;
  int r = spawn_begin(spawn, err, &child);

  if (r == 0)
    r = spawn_confirm(&child, spawn->program, err);
  if (r == 0)
    *ret_pid = child.pid;
  return r;
}

/* For kernels, and filters around us, that do not know close_range(2). */
static int close_listed(void)
{
  DIR *dir = opendir("/proc/self/fd");
  struct dirent *entry;

  if (!dir)
    return -errno;
  while ((entry = readdir(dir))) {
    uint64_t fd;

    if (num_parse_u64(span_of(entry->d_name), 3, INT32_MAX, &fd) == 0)
      (void)fd_set_cloexec((int)fd, true);
  }
  closedir(dir);
  return 0;
}

int spawn_close_inherited(const int *keep, size_t count)
{
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
    int r = close_listed();

    if (r < 0)
      return r;
  }
  for (size_t i = 0; i < count; i++) {
    int r = fd_set_cloexec(keep[i], false);

    if (r < 0)
      return r;
  }
  return 0;
}
