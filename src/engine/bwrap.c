/* Theory of operation: a run by bubblewrap.
 *
 * bubblewrap's first process ("outer") is spawned as pid 1 of a pid namespace of its own, in a user namespace of its
 * own: that is the guard of engine.h. As pid 1 it ignores the terminal's signals, which would otherwise end it before
 * the command has had its say, and when it dies the kernel kills everything below. bubblewrap then makes the sandbox's
 * own namespaces; its second process is pid 1 inside, its third the command.
 *
 *   sbx ── guard (bwrap, outer) ── init (bwrap, pid 1 inside) ── command
 *
 * It is started before the plan is known, and loads while the plan is being made: it waits for its options. If they
 * never come it is killed; it has done nothing yet.
 *
 * Talk with it:
 *   --args           options as NUL-terminated strings from a pipe: no limit of argv, nothing to read in /proc (F4,
 *                    F29)
 *   --file           from memfds that are filled when the plan is known; --seccomp the same, while the mounts are made
 *   --file           of what is late, such as the certificate of the run's CA, from pipes: bubblewrap waits there for
 *                    their ends, since the proxy that makes it needs the listeners, and they need init
 *   --json-status-fd a line when init exists; at the end a line with "exit-code", which comes only if the command was
 *                    executed: without it the set-up failed
 *   --file           of the marker, from a full pipe ("gate"): when it has room, everything before it is mounted
 *   --block-fd       init waits there, when it has done everything else
 */
#include "config.h"

#include "engine/engine.h"

#include "base/fd.h"
#include "base/num.h"
#include "engine/bwrap_args.h"
#include "sys/landlock.h"
#include "sys/memfd.h"
#include "sys/path.h"
#include "sys/probe.h"
#include "sys/proc.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BWRAP_ARGS_BYTES (64 * 1024 * 1024)
#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

struct engine_own {
  struct spawn_child child;
  int args_fd; /* our ends of the pipes */
  int status_fd;
  int release_fd;
  int gate_fd;
  int filter_fd; /* shared memory files; empty at first */
  int files[ENGINE_FILES_MAX];
  int late[ENGINE_LATE_MAX]; /* our ends of pipes */
  int late_theirs[ENGINE_LATE_MAX];
  struct bwrap_fds theirs; /* what bubblewrap has: numbers there, not here */
};

/* What bubblewrap inherits. */
struct launch {
  struct spawn_fd fds[SPAWN_FDS_MAX];
  size_t count;
  int ends[4 + ENGINE_LATE_MAX]; /* of pipes; ours to close when it has them */
  size_t end_count;
};

static void launch_free(struct launch *launch)
{
  for (size_t i = 0; i < launch->end_count; i++)
    fd_close(&launch->ends[i]);
}

static int inherit(struct launch *launch, int fd)
{
  if (launch->count == SPAWN_FDS_MAX)
    return -E2BIG;
  launch->fds[launch->count++] = (struct spawn_fd){ .from = fd, .to = fd };
  return 0;
}

/* A pipe of which bubblewrap gets one end (end: 0 read, 1 write), under the number that it has here. */
static int add_pipe(struct launch *launch, int end, int *ret_theirs, int *ret_ours)
{
  int ends[2];

  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  launch->ends[launch->end_count++] = ends[end];
  *ret_theirs = ends[end];
  *ret_ours = ends[1 - end];
  return inherit(launch, ends[end]);
}

static int add_memory(struct launch *launch, const char *name, int *ret_fd)
{
  int fd = memfd_empty(name);

  if (fd < 0)
    return fd;
  *ret_fd = fd;
  return inherit(launch, fd);
}

/* A pipe that is full: when it has room, bubblewrap has done everything before it reads from it; and it goes on when we
 * close our end. */
static int fill_gate(int fd)
{
  static const char filler[4096] = { '\n' };
  int r = fd_set_nonblock(fd, true);

  if (r < 0)
    return r;
  (void)fcntl(fd, F_SETPIPE_SZ, 1); /* the kernel makes it one page */
  while (write(fd, filler, sizeof filler) > 0)
    ;
  return errno == EAGAIN ? 0 : -errno;
}

static int add_descriptors(struct launch *launch, const struct engine_inputs *inputs, struct engine_own *own,
                           int *ret_args)
{
  int r = add_pipe(launch, 0, ret_args, &own->args_fd);

  if (r == 0)
    r = add_pipe(launch, 1, &own->theirs.status, &own->status_fd);
  if (r == 0)
    r = add_pipe(launch, 0, &own->theirs.release, &own->release_fd);
  if (r == 0)
    r = add_pipe(launch, 0, &own->theirs.gate, &own->gate_fd);
  if (r == 0)
    r = fill_gate(own->gate_fd);
  if (r == 0)
    r = add_memory(launch, "sbx-filter", &own->filter_fd);
  own->theirs.filter = own->filter_fd;
  own->theirs.files = own->files;
  while (r == 0 && own->theirs.file_count < inputs->file_count) {
    if (own->theirs.file_count == ENGINE_FILES_MAX)
      return -E2BIG;
    r = add_memory(launch, "sbx-file", &own->files[own->theirs.file_count]);
    own->theirs.file_count += r == 0;
  }
  own->theirs.late = own->late_theirs;
  while (r == 0 && own->theirs.late_count < inputs->late_count) {
    size_t next = own->theirs.late_count;

    if (next == ENGINE_LATE_MAX)
      return -E2BIG;
    r = add_pipe(launch, 0, &own->late_theirs[next], &own->late[next]);
    own->theirs.late_count += r == 0;
  }
  for (size_t i = 0; i < inputs->keep_count && r == 0; i++)
    r = inherit(launch, inputs->keep_fds[i]);
  return r;
}

static int explain_spawn(struct err *err, int code)
{
  struct err why = ERR_INIT;

  if (probe_userns_settings(&why) < 0)
    return err_set(err, code, "isolation: %s", why.message);
  if (code == EPERM || code == EACCES || code == ENOSPC || code == EUSERS)
    return err_wrap(err, "isolation: user namespaces are refused here (a container's filter, or a limit); run "
                         "`" SBX_NAME " doctor`");
  return -code;
}

static int make_argv(const struct plan *plan, int args, struct strv *argv)
{
  int r = strv_add(argv, "bwrap");

  if (r == 0)
    r = strv_add(argv, "--args");
  if (r == 0)
    r = strv_addf(argv, "%d", args);
  if (r == 0)
    r = strv_add(argv, "--");
  for (size_t i = 0; i < plan->argv.count && r == 0; i++)
    r = strv_add(argv, plan->argv.items[i]);
  return r;
}

static int begin(const struct plan *plan, const struct engine_inputs *inputs, struct err *err, struct engine_own *own)
{
  static char *const no_environment[] = { NULL };
  MEM_CLEANUP(launch_free) struct launch launch = { .count = 0 };
  strv_autofree struct strv argv = STRV_INIT;
  mem_autofree char *program = NULL;
  fd_autoclose int landlock = -1;
  int args = -1;
  int r = probe_program(SBX_BWRAP, &program);

  if (r < 0)
    return err_set(err, ENOENT,
                   "engine: bubblewrap (bwrap) is not installed; install it, for example with "
                   "`sudo apt-get install bubblewrap`");
  r = bwrap_args_fit(0, plan->argv.count, err);
  if (r < 0)
    return r;
  r = add_descriptors(&launch, inputs, own, &args);
  if (r < 0)
    return err_set_errno(err, -r, "engine: descriptors");
  if (make_argv(plan, args, &argv) < 0)
    return OUT_OF_MEMORY(err);
  if (plan->scope_abstract)
    r = landlock_create(&(struct landlock_rights){ .scope = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET }, err, NULL,
                        &landlock);
  if (r < 0)
    return r;
  r = spawn_begin(&(struct spawn){ .program = program,
                                   .argv = argv.items,
                                   .envp = no_environment,
                                   .fds = launch.fds,
                                   .fd_count = launch.count,
                                   .guard = true,
                                   .new_session = plan->new_session,
                                   .landlock = landlock,
                                   .cgroup_procs = inputs->cgroup_procs },
                  err, &own->child);
  return r < 0 ? explain_spawn(err, -r) : 0;
}

int engine_prepare(const struct plan *plan, const struct engine_inputs *inputs, struct err *err,
                   struct engine_run *ret_run)
{
  struct engine_run run = ENGINE_RUN_INIT;
  int r;

  run.own = mem_calloc(1, sizeof *run.own);
  if (!run.own)
    return OUT_OF_MEMORY(err);
  *run.own = (struct engine_own){
    .child = SPAWN_CHILD_INIT, .args_fd = -1, .status_fd = -1, .release_fd = -1, .gate_fd = -1, .filter_fd = -1
  };
  r = begin(plan, inputs, err, run.own);
  run.guard = run.own->child.pid;
  if (r < 0) {
    engine_abort(&run);
    return r;
  }
  *ret_run = run;
  return 0;
}

static int fill_files(const struct plan *plan, struct engine_own *own, struct err *err)
{
  size_t next = 0;

  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    int r;

    if (!op->data || op->late || strcmp(op->target, PLAN_MARKER) == 0)
      continue;
    if (next == own->theirs.file_count)
      return err_set(err, E2BIG, "engine: %s: was not prepared for", op->target);
    r = memfd_fill(own->files[next++], span_of(op->data));
    if (r < 0)
      return err_set_errno(err, -r, "engine: %s", op->target);
  }
  return 0;
}

static int fill_filter(const struct plan *plan, int fd, struct err *err)
{
  struct seccomp_row rows[SYSCALLS_ROWS_MAX];
  struct seccomp_filter filter;

  syscalls_build(&plan->syscalls, rows, &filter);
  return seccomp_export(&filter, fd, err);
}

/* Tells bubblewrap its options. It reads on while we write, however many they are; when it is gone the write fails. */
static int hand_over(const struct plan *plan, const char *closed_dir, struct engine_own *own, struct err *err)
{
  buf_autofree struct buf args = BUF_INIT(BWRAP_ARGS_BYTES);
  int r = bwrap_args_write(plan, &own->theirs, closed_dir, err, &args);

  if (r == 0)
    r = fill_files(plan, own, err);
  if (r < 0)
    return r;
  r = fd_write_all(own->args_fd, buf_span(&args));
  fd_close(&own->args_fd);
  return r < 0 ? err_set_errno(err, -r, "engine: bubblewrap died before it had read its options") : 0;
}

/* Reads the status line that tells that init exists. The next one comes when the command has ended. */
static int await_init(struct engine_run *run, struct err *err)
{
  char line[512];
  ssize_t n;

  do {
    n = read(run->own->status_fd, line, sizeof line);
  } while ((n < 0 && errno == EINTR) || (n > 0 && line[n - 1] != '\n'));
  if (n <= 0)
    return err_set(err, EIO, "isolation: bubblewrap could not make the namespaces; `" SBX_NAME " doctor` tells more");
  run->init = proc_first_child(run->guard);
  if (run->init < 0)
    return err_set_errno(err, (int)-run->init, "isolation: bubblewrap's process inside");
  return 0;
}

static struct netns_socket socket_of(const struct plan_listener *listener)
{
  struct netns_socket made = { .type = listener->udp ? SOCK_DGRAM : SOCK_STREAM, .fd = -1 };

  if (listener->front == CONTROL_FRONT_REFUSED) {
    made.refusals = true;
    made.address.any.sa_family = listener->family == ADDR_V6 ? AF_INET6 : AF_INET;
    return made;
  }

  if (listener->family == ADDR_V6) {
    made.both = listener->any && !listener->udp;
    made.optional = !made.both;
    made.address.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(listener->port) };
    if (!listener->any)
      memcpy(&made.address.v6.sin6_addr, listener->addr.bytes, sizeof made.address.v6.sin6_addr);
  } else {
    made.address.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(listener->port) };
    if (!listener->any)
      memcpy(&made.address.v4.sin_addr, listener->addr.bytes, sizeof made.address.v4.sin_addr);
  }
  return made;
}

static int make_listeners(const struct plan *plan, struct engine_run *run, struct err *err)
{
  struct netns_socket sockets[CONTROL_FRONTS_MAX];
  int r = netns_open(run->init, err, &run->netns);

  for (size_t i = 0; i < plan->listeners.count; i++)
    sockets[i] = socket_of(&plan->listeners.items[i]);
  if (r == 0)
    r = netns_set_up(&run->netns, run->own->status_fd, sockets, plan->listeners.count, err, &run->has_v6);
  if (r < 0)
    return r;
  for (size_t i = 0; i < plan->listeners.count; i++)
    run->listeners[i] = sockets[i].fd;
  run->listener_count = plan->listeners.count;
  return 0;
}

int engine_start(const struct plan *plan, const char *closed_dir, struct err *err, struct engine_run *run)
{
  int r = spawn_confirm(&run->own->child, SBX_BWRAP, err);

  run->guard = run->own->child.pid;
  if (r < 0)
    return explain_spawn(err, -r);
  r = hand_over(plan, closed_dir, run->own, err);
  if (r == 0)
    r = await_init(run, err);
  if (r == 0)
    r = fill_filter(plan, run->own->filter_fd, err);
  if (r == 0 && plan->network == PLAN_NETWORK_PROXY)
    r = make_listeners(plan, run, err);
  return r;
}

int engine_complete(const struct plan *plan, const struct span *texts, struct err *err, struct engine_run *run)
{
  struct engine_own *own = run->own;
  size_t next = 0;

  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    int r;

    if (!op->late)
      continue;
    r = fd_write_all(own->late[next], texts[next]);
    fd_close(&own->late[next++]);
    if (r < 0)
      return err_set_errno(err, -r, "isolation: bubblewrap died before it had read %s", op->target);
  }
  for (; next < own->theirs.late_count; next++)
    fd_close(&own->late[next]); /* prepared for, and not needed */
  return 0;
}

static int verify(int root, const struct plan_op *op, struct err *err)
{
  struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
  bool masked = op->kind != PLAN_BIND_RO && op->kind != PLAN_BIND_RW;
  fd_autoclose int fd = (int)syscall(SYS_openat2, root, op->target, &how, sizeof how);
  path_object_autofree struct path_object now = { .real = NULL };
  int r = fd < 0 ? -errno : path_examine(fd, &now);

  if (r < 0)
    return err_set_errno(err, -r, "isolation: %s (%s) cannot be verified", op->target, op->why);
  if ((now.inode == op->inode && now.device == op->device) == masked)
    return err_set(err, ESTALE,
                   "isolation: %s (%s) was exchanged for something else while the sandbox was being made; "
                   "if no hostile program did that, try again",
                   op->target, op->why);
  return 0;
}

static bool is_covered_later(const struct plan *plan, size_t index)
{
  for (size_t i = index + 1; i < plan->ops.count; i++) {
    if (plan->ops.items[i].kind != PLAN_SEAL &&
        path_is_within(plan->ops.items[index].target, plan->ops.items[i].target))
      return true;
  }
  return false;
}

/* Waits until bubblewrap reads from the gate. The end of the status pipe tells that it gave up. */
static int await_mounts(struct engine_run *run, struct err *err)
{
  struct pollfd fds[] = { { .fd = run->own->gate_fd, .events = POLLOUT },
                          { .fd = run->own->status_fd, .events = POLLIN } };
  int n;

  do {
    n = poll(fds, MEM_COUNT(fds), -1);
  } while (n < 0 && errno == EINTR);
  if (n < 0 || fds[1].revents || !(fds[0].revents & POLLOUT) || (fds[0].revents & POLLERR))
    return err_set(err, EIO, "isolation: bubblewrap could not make the view of files (its message stands above)");
  return 0;
}

int engine_settle(const struct plan *plan, struct engine_run *run, struct err *err)
{
  fd_autoclose int root = -1;
  char path[64];
  int r = await_mounts(run, err);

  if (r < 0)
    return r;
  /* bubblewrap has not changed its root yet: what will be the root lies below its own. */
  snprintf(path, sizeof path, "/proc/%d/root/newroot", (int)run->init);
  root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return err_set_errno(err, errno, "isolation: %s", path);
  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];

    r = op->inode && !is_covered_later(plan, i) ? verify(root, op, err) : 0;
    if (r < 0)
      return r;
  }
  return 0;
}

int engine_release(struct engine_run *run, struct err *err)
{
  int r = fd_write_all(run->own->release_fd, SPAN("x"));

  fd_close(&run->own->gate_fd);
  fd_close(&run->own->release_fd);
  return r < 0 ? err_set_errno(err, -r, "isolation: bubblewrap died before the start") : 0;
}

static void own_free(struct engine_run *run)
{
  struct engine_own *own = run->own;

  if (!own)
    return;
  fd_close(&own->child.report);
  fd_close(&own->args_fd);
  fd_close(&own->status_fd);
  fd_close(&own->release_fd);
  fd_close(&own->gate_fd);
  fd_close(&own->filter_fd);
  for (size_t i = 0; i < own->theirs.file_count; i++)
    fd_close(&own->files[i]);
  for (size_t i = 0; i < own->theirs.late_count; i++)
    fd_close(&own->late[i]);
  free(own);
  run->own = NULL;
}

void engine_abort(struct engine_run *run)
{
  if (run->guard > 0) {
    pid_t pid;

    (void)kill(run->guard, SIGKILL);
    /* Its pid namespace does not end before the dead in it that we trace are reaped. */
    do {
      pid = waitpid(-1, NULL, __WALL);
    } while (pid > 0 && pid != run->guard);
    run->guard = -1;
  }
  for (size_t i = 0; i < run->listener_count; i++)
    fd_close(&run->listeners[i]);
  netns_close(&run->netns);
  own_free(run);
}

bool engine_finish(struct engine_run *run, int status, int *ret_exit_status)
{
  buf_autofree struct buf text = BUF_INIT(64 * 1024);
  bool executed;

  (void)fd_set_nonblock(run->own->status_fd, true);
  (void)fd_read_all(run->own->status_fd, &text);
  netns_close(&run->netns);
  own_free(run);
  run->guard = -1;
  executed = text.data && strstr(text.data, "\"exit-code\"");
  if (WIFSIGNALED(status)) {
    /* Somebody killed the guard, and the kernel the command with it. */
    *ret_exit_status = 128 + WTERMSIG(status);
    return true;
  }
  *ret_exit_status = WEXITSTATUS(status);
  return executed;
}

pid_t engine_command(const struct engine_run *run)
{
  pid_t pid = run->init > 0 ? proc_first_child(run->init) : -ESRCH;

  return pid == -ENOENT ? -ESRCH : pid;
}
