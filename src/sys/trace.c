/* Theory of operation
 *
 * The tracer is sbx itself, from outside: an ancestor of every process inside, of the same user, and the owner of the
 * user namespace above theirs, which is what ptrace(2) and Yama ask for. It attaches to the sandbox's first process
 * before the command exists, and the kernel attaches it to whatever that one starts. A child that keeps the tracer out
 * (CLONE_UNTRACED) finds its traced calls answered with ENOSYS: the filter asks for a tracer, and there is none.
 *
 *   a stop                       what it is                       then
 *   PTRACE_EVENT_SECCOMP         one of trace_calls() begins      note call and arguments; run to its end
 *   SIGTRAP | 0x80               it has ended                     look at the result, and at the path where it failed
 *   PTRACE_EVENT_EXEC            a program was executed           forget the call; go on
 *   PTRACE_EVENT_STOP, SIGSTOP…  the process is stopped           leave it so, but hear of SIGCONT (PTRACE_LISTEN)
 *   another PTRACE_EVENT_*       a child, or a new child itself   go on
 *   any other signal             it is about to be delivered      deliver it
 *
 * Nothing is ever changed: no register, no memory, no signal. What is read may be changed by a thread of the process at
 * the same time; so it is evidence for a proposal and decides nothing. A process may have filters of its own that stop
 * it here with an index of theirs: it is taken for what it says, within the table.
 *
 * A pid namespace ends only when its dead have been reaped, and the dead that are traced are ours to reap: waitpid(2)
 * has to be called with -1 and __WALL until the guard itself is reaped.
 */
#include "sys/trace.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACEES_MAX 65536
#define PATH_BYTES 4096
#define PAGE_BYTES 4096 /* of every architecture at least so much */
#define SYSCALL_STOP (SIGTRAP | 0x80)

struct tracee {
  pid_t pid;
  const struct trace_call *call; /* that has begun, or NULL */
  uint64_t args[6];
};

struct trace {
  void (*failed)(void *data, const char *path, enum trace_want want);
  void *data;
  struct tracee *tracees; /* those that have been in a call */
  size_t count;
  size_t cap;
};

struct trace *trace_new(void (*failed)(void *data, const char *path, enum trace_want want), void *data)
{
  struct trace *trace = mem_calloc(1, sizeof *trace);

  if (trace) {
    trace->failed = failed;
    trace->data = data;
  }
  return trace;
}

void trace_free(struct trace *trace)
{
  if (trace)
    free(trace->tracees);
  free(trace);
}

int trace_attach(struct trace *trace, pid_t pid, struct err *err)
{
  const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                                PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;

  (void)trace;
  if (ptrace(PTRACE_SEIZE, pid, NULL, options) == 0)
    return 0;
  return err_set(err, errno,
                 "the paths that the command asks for cannot be learnt: tracing is refused here (%s); see "
                 "/proc/sys/kernel/yama/ptrace_scope, which has to be 0 or 1, or learn hosts alone with --hosts-only",
                 strerror(errno));
}

static struct tracee *find(const struct trace *trace, pid_t pid)
{
  for (size_t i = 0; i < trace->count; i++) {
    if (trace->tracees[i].pid == pid)
      return &trace->tracees[i];
  }
  return NULL;
}

static struct tracee *find_or_add(struct trace *trace, pid_t pid)
{
  struct tracee *tracee = find(trace, pid);

  if (tracee || mem_grow(&trace->tracees, trace->count, &trace->cap, sizeof *tracee, TRACEES_MAX) < 0)
    return tracee;
  tracee = &trace->tracees[trace->count++];
  *tracee = (struct tracee){ .pid = pid };
  return tracee;
}

static void forget(struct trace *trace, pid_t pid)
{
  struct tracee *tracee = find(trace, pid);

  if (tracee)
    *tracee = trace->tracees[--trace->count];
}

/* Reading what a process has in its memory. */

static ssize_t read_memory(pid_t pid, uint64_t address, void *bytes, size_t size)
{
  struct iovec ours = { .iov_base = bytes, .iov_len = size };
  struct iovec theirs = { .iov_len = size };
  uintptr_t number = (uintptr_t)address;

  memcpy(&theirs.iov_base, &number, sizeof theirs.iov_base);
  return process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
}

/* A path of at most PATH_BYTES with its NUL, page by page: what lies behind its end need not be there. */
static bool read_path(pid_t pid, uint64_t address, char *ret_path)
{
  size_t len = 0;

  while (address && len < PATH_BYTES) {
    size_t left = PAGE_BYTES - (size_t)((address + len) % PAGE_BYTES);
    size_t want = left < PATH_BYTES - len ? left : PATH_BYTES - len;
    ssize_t n = read_memory(pid, address + len, ret_path + len, want);

    if (n <= 0)
      return false;
    if (memchr(ret_path + len, '\0', (size_t)n))
      return true;
    len += (size_t)n;
  }
  return false;
}

/* The directory that a relative path begins at. */
static bool read_directory(const struct tracee *tracee, int argument, char *ret_path)
{
  char link[64];
  int fd = argument < 0 ? AT_FDCWD : (int)(uint32_t)tracee->args[argument];
  ssize_t len;

  if (fd == AT_FDCWD)
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)tracee->pid);
  else
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)tracee->pid, fd);
  len = readlink(link, ret_path, PATH_BYTES - 1);
  if (len <= 0 || ret_path[0] != '/')
    return false;
  ret_path[len] = '\0';
  return true;
}

static enum trace_want wanted(const struct tracee *tracee)
{
  const struct trace_call *call = tracee->call;
  uint64_t flags = tracee->args[call->flags_arg];
  struct open_how how = { .flags = 0 };

  switch (call->flags) {
  case TRACE_FLAGS_HOW:
    if (read_memory(tracee->pid, flags, &how, sizeof how) != (ssize_t)sizeof how)
      return call->want;
    flags = how.flags;
    break;
  case TRACE_FLAGS_OPEN:
    break;
  case TRACE_FLAGS_MODE:
    return (flags & W_OK) ? TRACE_WRITE : call->want;
  case TRACE_FLAGS_NONE:
  default:
    return call->want;
  }
  if (flags & O_PATH)
    return TRACE_LOOK;
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) ? TRACE_WRITE : call->want;
}

static void report(const struct trace *trace, const struct tracee *tracee, const struct trace_path *where)
{
  char path[PATH_BYTES];
  char directory[PATH_BYTES];
  mem_autofree char *joined = NULL;

  if (where->path < 0 || !read_path(tracee->pid, tracee->args[where->path], path) || !path[0])
    return;
  if (path[0] == '/') {
    trace->failed(trace->data, path, wanted(tracee));
    return;
  }
  if (!read_directory(tracee, where->dir, directory))
    return;
  joined = path_join(directory, path);
  if (joined)
    trace->failed(trace->data, joined, wanted(tracee));
}

/* Stops. */

static bool is_about_the_path(int64_t error)
{
  return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM || error == -EROFS;
}

static bool get_info(pid_t pid, struct __ptrace_syscall_info *ret_info)
{
  return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof *ret_info, ret_info) > 0;
}

static void take_call(struct trace *trace, pid_t pid)
{
  struct __ptrace_syscall_info info;
  struct tracee *tracee;
  const struct trace_call *calls;
  size_t count;

  calls = trace_calls(&count);
  if (!get_info(pid, &info) || info.op != PTRACE_SYSCALL_INFO_SECCOMP || info.seccomp.ret_data >= count)
    return;
  tracee = find_or_add(trace, pid);
  if (!tracee)
    return;
  tracee->call = &calls[info.seccomp.ret_data];
  for (size_t i = 0; i < MEM_COUNT(tracee->args); i++)
    tracee->args[i] = info.seccomp.args[i];
}

static void take_result(struct trace *trace, pid_t pid)
{
  struct __ptrace_syscall_info info;
  struct tracee *tracee = find(trace, pid);

  if (!tracee || !tracee->call)
    return;
  if (get_info(pid, &info) && info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.is_error &&
      is_about_the_path(info.exit.rval)) {
    for (size_t i = 0; i < MEM_COUNT(tracee->call->paths); i++)
      report(trace, tracee, &tracee->call->paths[i]);
  }
  tracee->call = NULL;
}

static bool is_stop_signal(int signal_number)
{
  return signal_number == SIGSTOP || signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU;
}

/* A thread that executes a program takes its leader's number. */
static void take_exec(struct trace *trace, pid_t pid)
{
  unsigned long former = 0;

  if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &former) == 0)
    forget(trace, (pid_t)former);
  forget(trace, pid);
}

/* A call that has begun is watched to its end, whatever stops come before it. */
static void go_on(const struct trace *trace, pid_t pid, int signal_number)
{
  const struct tracee *tracee = find(trace, pid);

  (void)ptrace(tracee && tracee->call ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (long)signal_number);
}

void trace_take(struct trace *trace, pid_t pid, int status)
{
  int event = status >> 16;
  int number;

  if (!WIFSTOPPED(status)) {
    forget(trace, pid);
    return;
  }
  number = WSTOPSIG(status);
  if (event == PTRACE_EVENT_STOP && is_stop_signal(number)) {
    (void)ptrace(PTRACE_LISTEN, pid, NULL, NULL);
    return;
  }
  if (event == PTRACE_EVENT_SECCOMP)
    take_call(trace, pid);
  else if (event == PTRACE_EVENT_EXEC)
    take_exec(trace, pid);
  else if (number == SYSCALL_STOP)
    take_result(trace, pid);
  go_on(trace, pid, event || number == SYSCALL_STOP ? 0 : number);
}
