/* Theory of operation
 *
 * clone(CLONE_VM | CLONE_VFORK) suspends the caller until the child has executed its program or exited, so the child
 * may report its fault by writing to the caller's memory. What it does, in this order, and why the order matters:
 *
 *   1. PR_SET_PDEATHSIG, then a look whether the caller still lives: a pipe whose write end only the caller holds. A
 *      caller that dies before the first step is seen by the second; one that dies later is seen by the kernel.
 *   2. the cgroup, while the process still may write there
 *   3. the identity maps, without which a program in a new user namespace is nobody
 *   4. a proc of the new pid namespace: bubblewrap looks for its child in /proc by the number that it sees, and that
 *      number is another process, or none, in the proc of the host
 *   5. session, Landlock, descriptors, signals: nothing of the caller's stays
 *   6. execve
 *
 * The child Mustn't allocate, take locks, or touch stdio: it runs in the caller's memory.
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
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPAWN_STACK_BYTES (64 * 1024)

struct child {
  const struct spawn *spawn;
  int alive_read;
  int alive_write;
  char uid_map[48];
  char gid_map[48];
  const char *volatile step;
  volatile int error;
};

static int fail(struct child *child, const char *step)
{
  child->step = step;
  child->error = errno ? errno : EIO;
  return 1;
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
  struct pollfd alive = { .fd = child->alive_read, .events = 0 };

  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
    return false;
  fd_close(&child->alive_write);
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
static bool place_fds(const struct spawn *spawn)
{
  int moved[64];
  int beyond = 3;

  if (spawn->fd_count > MEM_COUNT(moved)) {
    errno = E2BIG;
    return false;
  }
  for (size_t i = 0; i < spawn->fd_count; i++) {
    if (spawn->fds[i].to >= beyond)
      beyond = spawn->fds[i].to + 1;
  }
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

static int run_child(void *argument)
{
  struct child *child = argument;
  const struct spawn *spawn = child->spawn;

  errno = 0;
  if (!bind_to_caller(child))
    return fail(child, "bind to caller");
  if (spawn->cgroup_procs >= 0 && write(spawn->cgroup_procs, "0", 1) != 1)
    return fail(child, "cgroup");
  if (spawn->guard && (!put("/proc/self/setgroups", "deny") || !put("/proc/self/gid_map", child->gid_map) ||
                       !put("/proc/self/uid_map", child->uid_map)))
    return fail(child, "user namespace map");
  if (spawn->guard && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
    return fail(child, "proc of the new pid namespace");
  if (spawn->new_session && setsid() < 0)
    return fail(child, "setsid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return fail(child, "no_new_privs");
  if (spawn->landlock >= 0 && syscall(SYS_landlock_restrict_self, spawn->landlock, 0) < 0)
    return fail(child, "Landlock");
  /* Where the call is unknown, what spawn_close_inherited() did has to do. */
  (void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (!place_fds(spawn))
    return fail(child, "descriptors");
  reset_signals();
  execve(spawn->program, spawn->argv, spawn->envp);
  return fail(child, "execve");
}

int spawn_program(const struct spawn *spawn, struct err *err, pid_t *ret_pid)
{
  struct child child = { .spawn = spawn, .alive_read = -1, .alive_write = -1 };
  int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (spawn->guard ? CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS : 0);
  int alive[2];
  sigset_t all;
  sigset_t old;
  char *stack;
  pid_t pid;

  snprintf(child.uid_map, sizeof child.uid_map, "%u %u 1\n", geteuid(), geteuid());
  snprintf(child.gid_map, sizeof child.gid_map, "%u %u 1\n", getegid(), getegid());
  if (pipe2(alive, O_CLOEXEC) < 0)
    return err_set_errno(err, errno, "%s: pipe", spawn->program);
  stack = mmap(NULL, SPAWN_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    fd_close(&alive[0]);
    fd_close(&alive[1]);
    return err_set_errno(err, ENOMEM, "%s: stack", spawn->program);
  }
  child.alive_read = alive[0];
  child.alive_write = alive[1];
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  pid = clone(run_child, stack + SPAWN_STACK_BYTES, flags, &child);
  if (pid < 0)
    (void)fail(&child, spawn->guard ? "new user, pid and mount namespaces" : "clone");
  sigprocmask(SIG_SETMASK, &old, NULL);
  munmap(stack, SPAWN_STACK_BYTES);
  fd_close(&alive[0]);
  fd_close(&alive[1]);
  if (child.error && pid > 0)
    (void)waitpid(pid, NULL, 0);
  if (child.error)
    return err_set_errno(err, child.error, "%s: %s", spawn->program, child.step);
  *ret_pid = pid;
  return 0;
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
