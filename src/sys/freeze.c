/* Theory of operation
 *
 * A child of ours becomes the tracer of every thread (PTRACE_SEIZE, PTRACE_INTERRUPT). Who is in a stop of ptrace(2)
 * runs for nothing but SIGKILL: signals, SIGCONT from a timer of its own among them, wait until it is let go. A shell
 * inside sees none of its jobs stop, and a job that was stopped before is stopped afterwards: the kernel keeps both
 * apart.
 *
 * The tree is gone through again and again, and whoever is found is seized at once, before it is looked at: a process
 * may live for less time than that takes, and have a child that goes on for it. Whom a seized one makes is seized with
 * it (PTRACE_O_TRACEFORK and its like), so who flees in this way is caught when any one of its line is. A pass is quiet
 * if it finds nobody but those that an earlier pass has found held (or dead), and they are so still; after two quiet
 * passes in a row nobody runs. Why two: within one pass, a process that was not seen yet may make a child and end, and
 * the child is then one of the reaper's, which was looked at before. It cannot get further up than that, so the next
 * pass sees it, alive at the end of a list of which no earlier member has changed. A thread's children are read before
 * its state: whose thread was alive afterwards cannot have lost any.
 *
 * Held is also a thread that is seized and waits in the kernel without being interruptible (a parent in vfork(2), a
 * slow disk): it does not return to its program before it has stopped. What is left of its system call it may do: a
 * terminal's read and write look for a signal first, but the terminal's modes it could set.
 *
 * Who is traced by somebody else, or may not be traced (it runs a program that its user may not read), cannot be held:
 * nobody is then.
 *
 * The tracer is a process of its own, for three reasons. When it ends the kernel lets go of everything at once, those
 * included that have not got to their stop yet. ptrace(2) can wait without end for a process that is in execve(2),
 * which waits for the death of a thread that is held: then the tracer is killed after a while, and all goes on. And no
 * status of a stop comes in the way of who waits for the command. Being our child, it is the owner of the sandbox's
 * user namespace, which is what the kernel and Yama ask for.
 *
 * Numbers: top is our child, so its number is its own; a process is taken for what it is by its directory in /proc,
 * which is opened once, and by its parent, whom we hold. What is seized is ours to wait for, so its number is not given
 * to another. Only between its listing and PTRACE_SEIZE may it end and a stranger take its number: the stranger stands
 * still for as long, and goes on.
 */
#include "sys/freeze.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FREEZE_MS 1000 /* for everything to stop */
#define FREEZE_GRACE_MS 200 /* and for the tracer to say so */
#define FREEZE_OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)
#define PASS_NS 1000000
#define REFUSALS_MAX 50 /* passes in a row: who executes a program may be refused for a moment */
#define TASKS_MAX 65536
#define FILE_BYTES (256 * 1024)
#define PATH_BYTES 320

struct process {
  pid_t pid;
  pid_t parent;
};

struct thread {
  pid_t tid;
  bool leader;
  bool held; /* an earlier pass has found it so */
};

struct tracer {
  pid_t top;
  struct process *queue; /* of this pass: whom to look at */
  size_t queued;
  size_t queue_cap;
  bool quiet;
  int refused; /* 0, or the -errno of a seizure */
  struct thread *threads; /* of all passes */
  size_t count;
  size_t cap;
  size_t next; /* where the next one is likely to be found: passes go the same way */
};

/* What the tracer says. */
struct report {
  int error;
  bool has_group;
};

/* proc_pid_status(5). */
struct status {
  char state;
  pid_t parent;
  pid_t tracer;
};

/* Seized or refused may be another than the one that was meant: a thread that executes a program takes the number of
 * its process, and whoever has just ended is refused. The next pass tells. */
static int seize(pid_t tid)
{
  if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)FREEZE_OPTIONS) < 0)
    return -errno;
  (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
  return 0;
}

static int push(struct tracer *tracer, pid_t pid, pid_t parent)
{
  (void)seize(pid); /* look_at_thread() tells what came of it */
  if (mem_grow(&tracer->queue, tracer->queued, &tracer->queue_cap, sizeof *tracer->queue, TASKS_MAX) < 0)
    return -ENOMEM;
  tracer->queue[tracer->queued++] = (struct process){ .pid = pid, .parent = parent };
  return 0;
}

/* The children of one thread: of one that is gone, none. */
static int push_children(struct tracer *tracer, pid_t pid, int tasks, const char *thread)
{
  buf_autofree struct buf text = BUF_INIT(FILE_BYTES);
  char path[PATH_BYTES];
  struct span rest;
  struct span word;
  uint64_t number;
  int r;

  snprintf(path, sizeof path, "%s/children", thread);
  r = fd_read_file(tasks, path, &text);
  if (r < 0)
    tracer->quiet = false;
  if (r < 0)
    return r == -ENOENT || r == -ESRCH ? 0 : r;
  rest = span_trim(buf_span(&text));
  while (r == 0 && span_split(&rest, ' ', &word)) {
    if (num_parse_u64(word, 1, INT32_MAX, &number) == 0)
      r = push(tracer, (pid_t)number, pid);
  }
  return r;
}

static pid_t parse_pid(struct span text)
{
  uint64_t number;

  return num_parse_u64(span_trim(text), 0, INT32_MAX, &number) == 0 ? (pid_t)number : -1;
}

/* The name of a program, which may hold anything, has its newlines escaped there. */
static bool read_status(int tasks, const char *thread, struct status *ret_status)
{
  buf_autofree struct buf text = BUF_INIT(FILE_BYTES);
  struct status status = { .state = 'X', .parent = -1, .tracer = -1 };
  char path[PATH_BYTES];
  struct span rest;
  struct span line;

  snprintf(path, sizeof path, "%s/status", thread);
  if (fd_read_file(tasks, path, &text) < 0)
    return false;
  rest = buf_span(&text);
  while (span_split(&rest, '\n', &line)) {
    size_t colon = span_find(line, ':');
    struct span name = span_sub(line, 0, colon);
    struct span value = span_trim(span_sub(line, colon + 1, line.len));

    if (span_equal(name, SPAN("State")) && value.len)
      status.state = value.ptr[0];
    else if (span_equal(name, SPAN("PPid")))
      status.parent = parse_pid(value);
    else if (span_equal(name, SPAN("TracerPid")))
      status.tracer = parse_pid(value);
  }
  *ret_status = status;
  return status.parent >= 0 && status.tracer >= 0;
}

static bool is_dead(const struct status *status)
{
  return status->state == 'Z' || status->state == 'X';
}

static struct thread *find_or_add(struct tracer *tracer, pid_t tid)
{
  for (size_t i = 0; i < tracer->count; i++) {
    size_t at = (tracer->next + i) % tracer->count;

    if (tracer->threads[at].tid == tid) {
      tracer->next = at + 1;
      return &tracer->threads[at];
    }
  }
  if (mem_grow(&tracer->threads, tracer->count, &tracer->cap, sizeof *tracer->threads, TASKS_MAX) < 0)
    return NULL;
  tracer->threads[tracer->count] = (struct thread){ .tid = tid };
  return &tracer->threads[tracer->count++];
}

static int look_at_thread(struct tracer *tracer, const struct process *process, int tasks, const char *name)
{
  const size_t before = tracer->queued;
  const pid_t tid = parse_pid(span_of(name));
  const int seized = seize(tid);
  int r = push_children(tracer, process->pid, tasks, name);
  struct status status;
  struct thread *thread;
  bool held;

  if (r < 0)
    return r;
  if (!read_status(tasks, name, &status) || status.parent != process->parent) {
    tracer->queued = before; /* gone, or never meant */
    tracer->quiet = false;
    return 0;
  }
  thread = find_or_add(tracer, tid);
  if (!thread)
    return -ENOMEM;
  thread->leader = tid == process->pid;
  held = is_dead(&status) || (status.tracer == getpid() && (status.state == 't' || status.state == 'D'));
  tracer->quiet &= held && thread->held;
  thread->held = held;
  if (held)
    return 0;
  if (status.tracer && status.tracer != getpid())
    return -EBUSY;
  if (status.tracer)
    (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
  else if (seized < 0 && seized != -ESRCH)
    tracer->refused = seized;
  return 0;
}

static int look_at_process(struct tracer *tracer, const struct process *process)
{
  char path[PATH_BYTES];
  struct dirent *entry;
  DIR *tasks;
  int r = 0;

  snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
  tasks = opendir(path);
  if (!tasks) {
    tracer->quiet = false;
    return 0;
  }
  while (r == 0 && (entry = readdir(tasks))) {
    if (entry->d_name[0] != '.')
      r = look_at_thread(tracer, process, dirfd(tasks), entry->d_name);
  }
  closedir(tasks);
  return r;
}

/* The children of top, and theirs. */
static int run_pass(struct tracer *tracer)
{
  char name[16];
  char path[PATH_BYTES];
  fd_autoclose int tasks = -1;
  int r;

  tracer->queued = 0;
  tracer->next = 0;
  tracer->quiet = true;
  tracer->refused = 0;
  snprintf(path, sizeof path, "/proc/%d/task", (int)tracer->top);
  snprintf(name, sizeof name, "%d", (int)tracer->top);
  tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0)
    return -errno;
  r = push_children(tracer, tracer->top, tasks, name);
  for (size_t i = 0; i < tracer->queued && r == 0; i++) {
    const struct process process = tracer->queue[i]; /* the queue may move */

    r = look_at_process(tracer, &process);
  }
  return r;
}

static int stop_all(struct tracer *tracer)
{
  static const struct timespec pause = { .tv_nsec = PASS_NS };
  const uint64_t deadline = clock_mono_ns() + UINT64_C(1000000) * FREEZE_MS;
  unsigned refusals = 0;
  unsigned quiet = 0;

  while (quiet < 2) {
    int r = run_pass(tracer);

    if (r < 0)
      return r;
    quiet = tracer->quiet ? quiet + 1 : 0;
    refusals = tracer->refused ? refusals + 1 : 0;
    if (refusals == REFUSALS_MAX)
      return tracer->refused;
    if (clock_mono_ns() > deadline)
      return -EAGAIN;
    if (!quiet)
      nanosleep(&pause, NULL);
  }
  return 0;
}

static bool has_group(const struct tracer *tracer, pid_t group)
{
  for (size_t i = 0; i < tracer->count && group > 0; i++) {
    if (tracer->threads[i].leader && getpgid(tracer->threads[i].tid) == group)
      return true;
  }
  return false;
}

/* Until we are told to end. What dies meanwhile is ours to wait for before its parent can. */
static void hold(int link)
{
  struct signalfd_siginfo info;
  sigset_t all;
  struct pollfd fds[2] = { { .fd = link, .events = POLLIN }, { .fd = -1, .events = POLLIN } };

  sigfillset(&all);
  fds[1].fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  do {
    while (read(fds[1].fd, &info, sizeof info) > 0 || waitpid(-1, NULL, WNOHANG | __WALL) > 0)
      ;
  } while (poll(fds, 2, -1) < 0 || !fds[0].revents);
}

static bool is_stop_signal(int number)
{
  return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* Who stands in a stop of ours has its number for certain. One that was stopped before, or is about to stop, stands
 * there with that signal. */
static void tell_all(const struct tracer *tracer)
{
  siginfo_t info;

  for (size_t i = 0; i < tracer->count; i++) {
    const struct thread *thread = &tracer->threads[i];

    if (thread->leader && ptrace(PTRACE_GETSIGINFO, thread->tid, NULL, &info) == 0 && !is_stop_signal(info.si_signo))
      (void)kill(thread->tid, SIGCONT);
  }
}

/* Our child. Nothing that is sent to our process group is meant for it. */
static void run_tracer(pid_t parent, pid_t top, pid_t group, int link)
{
  struct tracer tracer = { .top = top };
  struct report report = { .error = 0 };
  sigset_t all;

  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
    return;
  (void)prctl(PR_SET_NAME, "sbx-freeze");
  if (dup2(link, 3) == 3)
    (void)syscall(SYS_close_range, 4U, ~0U, 0U); /* sockets of ours whose end somebody waits for */
  report.error = stop_all(&tracer);
  report.has_group = report.error == 0 && has_group(&tracer, group);
  if (write(3, &report, sizeof report) != (ssize_t)sizeof report || report.error)
    return;
  hold(3);
  tell_all(&tracer);
}

static int begin(struct freeze *freeze, pid_t top, pid_t group)
{
  int ends[2];
  pid_t parent = getpid();
  pid_t pid;

  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
    return -errno;
  pid = fork();
  if (pid == 0) {
    fd_close(&ends[0]);
    run_tracer(parent, top, group, ends[1]);
    _exit(0);
  }
  fd_close(&ends[1]);
  if (pid < 0) {
    fd_close(&ends[0]);
    return -EAGAIN;
  }
  *freeze = (struct freeze){ .tracer = pid, .link = ends[0] };
  return 0;
}

static int await_report(const struct freeze *freeze, struct report *ret_report)
{
  struct pollfd poller = { .fd = freeze->link, .events = POLLIN };
  const uint64_t deadline = clock_mono_ns() + UINT64_C(1000000) * (FREEZE_MS + FREEZE_GRACE_MS);
  uint64_t now;
  int n = 0;

  while (n <= 0 && (now = clock_mono_ns()) < deadline)
    n = poll(&poller, 1, (int)((deadline - now) / 1000000) + 1);
  if (n <= 0 || read(freeze->link, ret_report, sizeof *ret_report) != (ssize_t)sizeof *ret_report)
    return -EAGAIN;
  return ret_report->error;
}

static int explain(int error, struct err *err)
{
  if (error == -EBUSY)
    return err_set(err, EBUSY,
                   "the command cannot be stopped for the question, since a process inside is traced by another");
  if (error == -EAGAIN || error == -ENOMEM || error == -E2BIG)
    return err_set(err, EAGAIN, "the command cannot be stopped for the question");
  return err_set(err, EPERM,
                 "the command cannot be stopped for the question, since tracing is refused here (ptrace(2): %s); see "
                 "/proc/sys/kernel/yama/ptrace_scope, or ask over --ask fd:N",
                 strerror(-error));
}

int freeze_below(struct freeze *freeze, pid_t top, pid_t group, struct err *err, bool *ret_has_group)
{
  struct report report = { .error = 0 };
  int r = begin(freeze, top, group);

  if (r == 0)
    r = await_report(freeze, &report);
  if (r == 0) {
    *ret_has_group = report.has_group;
    return 0;
  }
  freeze_thaw(freeze, false);
  return explain(r, err);
}

bool freeze_holds(const struct freeze *freeze)
{
  struct pollfd poller = { .fd = freeze->link, .events = POLLIN };

  return freeze->tracer >= 0 && poll(&poller, 1, 0) == 0;
}

bool freeze_reaped(struct freeze *freeze, pid_t pid)
{
  if (freeze->tracer < 0 || pid != freeze->tracer)
    return false;
  fd_close(&freeze->link);
  *freeze = (struct freeze)FREEZE_INIT;
  return true;
}

void freeze_thaw(struct freeze *freeze, bool tell)
{
  if (freeze->tracer < 0)
    return;
  (void)kill(freeze->tracer, tell ? SIGCONT : SIGKILL); /* it may have been stopped with us */
  fd_close(&freeze->link);
  (void)waitpid(freeze->tracer, NULL, 0);
  *freeze = (struct freeze)FREEZE_INIT;
}
