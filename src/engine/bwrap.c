/* Theory of operation: the plan as a bubblewrap argv.
 *
 * bubblewrap's first process ("outer") is spawned as pid 1 of a pid namespace of its own, in a user namespace of its
 * own: that is the guard of engine.h. As pid 1 it ignores the terminal's signals, which would otherwise end it before
 * the command has had its say, and when it dies the kernel kills everything below. bubblewrap then makes the sandbox's
 * own namespaces; its second process is pid 1 inside, its third the command.
 *
 *   sbx ── guard (bwrap, outer) ── init (bwrap, pid 1 inside) ── command
 *
 * Talk with it:
 *   --args           options as NUL-terminated strings in a memfd: no limit of argv, nothing to read in /proc (F4, F29)
 *   --json-status-fd a line when init exists; at the end a line with "exit-code", which comes only if the command was
 *                    executed: without it the set-up failed
 *   --file           of the marker, from a full pipe ("gate"): when it has room, everything before it is mounted
 *   --block-fd       init waits there, when it has done everything else
 */
#include "config.h"

#include "engine/engine.h"

#include "base/fd.h"
#include "base/num.h"
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
#define BWRAP_ARGS_MAX 8990 /* it refuses 9,000 */
#define BWRAP_FDS_MAX 64
#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

struct launch {
  struct buf args; /* NUL-terminated options */
  size_t count; /* of options and values */
  const char *closed_dir;
  int owned[BWRAP_FDS_MAX]; /* descriptors handed over; ours to close afterwards */
  struct spawn_fd fds[BWRAP_FDS_MAX];
  size_t owned_count;
  size_t fd_count;
};

static void launch_free(struct launch *launch)
{
  for (size_t i = 0; i < launch->owned_count; i++)
    fd_close(&launch->owned[i]);
  buf_free(&launch->args);
}

static void arg_end(struct launch *launch)
{
  buf_append_byte(&launch->args, '\0');
  launch->count++;
}

static void arg(struct launch *launch, const char *text)
{
  buf_append_str(&launch->args, text);
  arg_end(launch);
}

static void args2(struct launch *launch, const char *option, const char *value)
{
  arg(launch, option);
  arg(launch, value);
}

static void args3(struct launch *launch, const char *option, const char *first, const char *second)
{
  args2(launch, option, first);
  arg(launch, second);
}

static void arg_mode(struct launch *launch, mode_t mode)
{
  arg(launch, "--perms");
  buf_printf(&launch->args, "%04o", (unsigned)mode);
  arg_end(launch);
}

static void arg_fd(struct launch *launch, const char *option, int fd)
{
  arg(launch, option);
  buf_printf(&launch->args, "%d", fd);
  arg_end(launch);
}

static int inherit(struct launch *launch, int fd)
{
  if (launch->fd_count == BWRAP_FDS_MAX)
    return -E2BIG;
  launch->fds[launch->fd_count++] = (struct spawn_fd){ .from = fd, .to = fd };
  return 0;
}

/* The program inherits fd under its own number, and we close ours after the start. Takes fd over, also on failure. */
static int hand_over(struct launch *launch, int fd)
{
  int r = launch->owned_count < BWRAP_FDS_MAX ? inherit(launch, fd) : -E2BIG;

  if (r < 0)
    fd_close(&fd);
  else
    launch->owned[launch->owned_count++] = fd;
  return r;
}

static int add_file(struct launch *launch, const struct plan_op *op)
{
  int fd = memfd_sealed("sbx-file", span_of(op->data));
  int r = fd < 0 ? fd : hand_over(launch, fd);

  if (r < 0)
    return r;
  arg_mode(launch, op->mode);
  arg_fd(launch, "--file", fd);
  arg(launch, op->target);
  return 0;
}

static int add_op(struct launch *launch, const struct plan_op *op)
{
  switch (op->kind) {
  case PLAN_BIND_RO:
    args3(launch, "--ro-bind", op->source, op->target);
    return 0;
  case PLAN_BIND_RW:
    args3(launch, "--bind", op->source, op->target);
    return 0;
  case PLAN_TMPFS:
    arg_mode(launch, op->mode);
    args2(launch, "--tmpfs", op->target);
    return 0;
  case PLAN_DIR:
    arg_mode(launch, op->mode);
    args2(launch, "--dir", op->target);
    return 0;
  case PLAN_SYMLINK:
    args3(launch, "--symlink", op->source, op->target);
    return 0;
  case PLAN_FILE:
    return add_file(launch, op);
  case PLAN_PROC:
    args2(launch, "--proc", op->target);
    return 0;
  case PLAN_DEV:
    args2(launch, "--dev", op->target);
    return 0;
  case PLAN_MASK_FILE:
    /* A device on a mount without devices: open(2) gives EACCES to everybody, connect(2) ECONNREFUSED. */
    args3(launch, "--ro-bind", "/dev/null", op->target);
    return 0;
  case PLAN_MASK_DIR:
    args3(launch, "--ro-bind", launch->closed_dir, op->target);
    return 0;
  case PLAN_SEAL:
    args2(launch, "--remount-ro", op->target);
    return 0;
  }
  return -EINVAL;
}

static void add_env(struct launch *launch, const struct strv *env)
{
  arg(launch, "--clearenv");
  for (size_t i = 0; i < env->count; i++) {
    struct span entry = span_of(env->items[i]);
    size_t equals = span_find(entry, '=');

    arg(launch, "--setenv");
    buf_append(&launch->args, span_sub(entry, 0, equals));
    arg_end(launch);
    buf_append(&launch->args, span_sub(entry, equals + 1, entry.len));
    arg_end(launch);
  }
}

/* The filter's descriptor is an empty memfd for now. bubblewrap reads it after the block descriptor has let it go on,
 * so the filter is compiled while the mounts are being made. */
static int add_filter(struct launch *launch, int *ret_filter)
{
  int fd = memfd_create("sbx-filter", MFD_CLOEXEC);
  int r = fd < 0 ? -errno : hand_over(launch, fd);

  if (r < 0)
    return r;
  arg_fd(launch, "--seccomp", fd);
  *ret_filter = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return *ret_filter < 0 ? -errno : 0;
}

static int fill_filter(const struct plan *plan, int fd, struct err *err)
{
  struct seccomp_row rows[SYSCALLS_ROWS_MAX];
  struct seccomp_filter filter;

  syscalls_build(&plan->syscalls, rows, &filter);
  return seccomp_export(&filter, fd, err);
}

/* The marker comes last before the root is sealed, and from a pipe that is full: when the pipe has room, bubblewrap has
 * done everything before it; and it goes on when we close our end. */
static int add_gate(struct launch *launch, int *ret_gate)
{
  static const char filler[4096] = { '\n' };
  int ends[2];
  int r;

  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
    return -errno;
  (void)fcntl(ends[1], F_SETPIPE_SZ, 1); /* the kernel makes it one page */
  while (write(ends[1], filler, sizeof filler) > 0)
    ;
  r = fd_set_nonblock(ends[0], false);
  if (r == 0)
    r = hand_over(launch, ends[0]);
  else
    fd_close(&ends[0]);
  if (r < 0) {
    fd_close(&ends[1]);
    return r;
  }
  arg_mode(launch, 0444);
  arg_fd(launch, "--file", ends[0]);
  arg(launch, PLAN_MARKER);
  *ret_gate = ends[1];
  return 0;
}

static int add_plan(struct launch *launch, const struct plan *plan, int *ret_gate, struct err *err)
{
  static const char *const namespaces[] = { "--unshare-user", "--unshare-pid",    "--unshare-ipc",
                                            "--unshare-uts",  "--unshare-cgroup", "--cap-drop" };

  for (size_t i = 0; i < MEM_COUNT(namespaces); i++)
    arg(launch, namespaces[i]);
  arg(launch, "ALL");
  if (plan->network != PLAN_NETWORK_HOST)
    arg(launch, "--unshare-net");
  args2(launch, "--hostname", "sbx");
  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    int r = 0;

    if (strcmp(op->target, PLAN_MARKER) == 0)
      continue; /* it is the gate */
    if (i + 1 == plan->ops.count)
      r = add_gate(launch, ret_gate);
    if (r == 0)
      r = add_op(launch, op);
    if (r < 0)
      return err_set_errno(err, -r, "%s", op->target);
  }
  args2(launch, "--chdir", plan->cwd);
  add_env(launch, &plan->env);
  return 0;
}

/* A pipe of which the program gets one end (end: 0 read, 1 write) and we keep the other. */
static int add_pipe(struct launch *launch, const char *option, int end, int *ret_ours)
{
  int ends[2];
  int r;

  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  r = hand_over(launch, ends[end]);
  if (r < 0) {
    fd_close(&ends[1 - end]);
    return r;
  }
  arg_fd(launch, option, ends[end]);
  *ret_ours = ends[1 - end];
  return 0;
}

static int explain_spawn(struct err *err, int code)
{
  struct err why = ERR_INIT;

  if (probe_userns_settings(&why) < 0)
    return err_set(err, code, "isolation: %s", why.message);
  if (code == EPERM || code == EACCES || code == ENOSPC || code == EUSERS)
    return err_wrap(err, "isolation: user namespaces are refused here (a container's filter, or a limit); run "
                         "`sbx doctor`");
  return -code;
}

static int spawn_bwrap(struct launch *launch, const struct plan *plan, const struct engine_inputs *inputs,
                       struct err *err, pid_t *ret_pid)
{
  static char *const no_environment[] = { NULL };
  strv_autofree struct strv argv = STRV_INIT;
  mem_autofree char *program = NULL;
  struct spawn spawn = { .envp = no_environment,
                         .guard = true,
                         .new_session = plan->new_session,
                         .landlock = -1,
                         .cgroup_procs = inputs->cgroup_procs };
  fd_autoclose int landlock = -1;
  int fd;
  int r = probe_program(SBX_BWRAP, &program);

  if (r < 0)
    return err_set(err, ENOENT,
                   "engine: bubblewrap (bwrap) is not installed; install it, for example with "
                   "`sudo apt-get install bubblewrap`");
  if (launch->count + plan->argv.count > BWRAP_ARGS_MAX)
    return err_set(
        err, E2BIG,
        "engine: %zu arguments of the command and %zu for the view of files; bubblewrap accepts %d in all: hide "
        "or protect directories instead of the files in them, or pass the command's arguments in a file",
        plan->argv.count, launch->count, BWRAP_ARGS_MAX);
  fd = buf_error(&launch->args) ? buf_error(&launch->args) : memfd_sealed("sbx-args", buf_span(&launch->args));
  r = fd < 0 ? fd : hand_over(launch, fd);
  if (r < 0)
    return err_set_errno(err, -r, "engine: arguments");
  r = strv_add(&argv, "bwrap");
  if (r == 0)
    r = strv_add(&argv, "--args");
  if (r == 0)
    r = strv_addf(&argv, "%d", fd);
  if (r == 0)
    r = strv_add(&argv, "--");
  for (size_t i = 0; i < plan->argv.count && r == 0; i++)
    r = strv_add(&argv, plan->argv.items[i]);
  if (r < 0)
    return OUT_OF_MEMORY(err);
  if (plan->scope_abstract)
    r = landlock_create(&(struct landlock_rights){ .scope = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET }, err, NULL,
                        &landlock);
  if (r < 0)
    return r;
  spawn.landlock = landlock;
  spawn.program = program;
  spawn.argv = argv.items;
  spawn.fds = launch->fds;
  spawn.fd_count = launch->fd_count;
  r = spawn_program(&spawn, err, ret_pid);
  return r < 0 ? explain_spawn(err, -r) : 0;
}

/* Reads the status line that tells that init exists. The next one comes when the command has ended. */
static int await_init(struct engine_run *run, struct err *err)
{
  char line[512];
  ssize_t n;

  do {
    n = read(run->status_fd, line, sizeof line);
  } while ((n < 0 && errno == EINTR) || (n > 0 && line[n - 1] != '\n'));
  if (n <= 0)
    return err_set(err, EIO, "isolation: bubblewrap could not make the namespaces; `sbx doctor` tells more");
  run->init = proc_first_child(run->guard);
  if (run->init < 0)
    return err_set_errno(err, (int)-run->init, "isolation: bubblewrap's process inside");
  return 0;
}

static struct netns_socket socket_of(const struct plan_listener *listener)
{
  struct netns_socket made = { .type = listener->udp ? SOCK_DGRAM : SOCK_STREAM, .fd = -1 };

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
    r = netns_set_up(&run->netns, run->status_fd, sockets, plan->listeners.count, err, &run->has_v6);
  if (r < 0)
    return r;
  for (size_t i = 0; i < plan->listeners.count; i++)
    run->listeners[i] = sockets[i].fd;
  run->listener_count = plan->listeners.count;
  return 0;
}

int engine_start(const struct plan *plan, const struct engine_inputs *inputs, struct err *err,
                 struct engine_run *ret_run)
{
  MEM_CLEANUP(launch_free)
  struct launch launch = { .args = BUF_INIT(BWRAP_ARGS_BYTES), .closed_dir = inputs->closed_dir };
  struct engine_run run = ENGINE_RUN_INIT;
  fd_autoclose int filter = -1;
  int r = add_plan(&launch, plan, &run.gate_fd, err);

  if (r < 0)
    return r;
  r = add_filter(&launch, &filter);
  if (r == 0)
    r = add_pipe(&launch, "--json-status-fd", 1, &run.status_fd);
  if (r == 0)
    r = add_pipe(&launch, "--block-fd", 0, &run.release_fd);
  for (size_t i = 0; i < inputs->keep_count && r == 0; i++)
    r = inherit(&launch, inputs->keep_fds[i]);
  if (r < 0)
    err_set_errno(err, -r, "engine: descriptors");
  else
    r = spawn_bwrap(&launch, plan, inputs, err, &run.guard);
  launch_free(&launch); /* so that the end of the status pipe is seen */
  if (r == 0)
    r = fill_filter(plan, filter, err);
  if (r == 0)
    r = await_init(&run, err);
  if (r == 0 && plan->network == PLAN_NETWORK_PROXY)
    r = make_listeners(plan, &run, err);
  if (r < 0) {
    engine_abort(&run);
    return r;
  }
  *ret_run = run;
  return 0;
}

static int verify(int root, const struct plan_op *op, struct err *err)
{
  struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
  bool masked = op->kind == PLAN_MASK_FILE || op->kind == PLAN_MASK_DIR;
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
  struct pollfd fds[] = { { .fd = run->gate_fd, .events = POLLOUT }, { .fd = run->status_fd, .events = POLLIN } };
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
  int r = fd_write_all(run->release_fd, SPAN("x"));

  fd_close(&run->gate_fd);
  fd_close(&run->release_fd);
  return r < 0 ? err_set_errno(err, -r, "isolation: bubblewrap died before the start") : 0;
}

void engine_abort(struct engine_run *run)
{
  if (run->guard > 0) {
    (void)kill(run->guard, SIGKILL);
    (void)waitpid(run->guard, NULL, 0);
    run->guard = -1;
  }
  fd_close(&run->gate_fd);
  fd_close(&run->release_fd);
  fd_close(&run->status_fd);
  for (size_t i = 0; i < run->listener_count; i++)
    fd_close(&run->listeners[i]);
  netns_close(&run->netns);
}

bool engine_finish(struct engine_run *run, int status, int *ret_exit_status)
{
  buf_autofree struct buf text = BUF_INIT(64 * 1024);
  bool executed;

  fd_close(&run->release_fd);
  (void)fd_set_nonblock(run->status_fd, true);
  (void)fd_read_all(run->status_fd, &text);
  fd_close(&run->status_fd);
  netns_close(&run->netns);
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
