/* Each forbidden call in a process of its own, after it has confined itself as sbx-proxy does: it must be killed or
 * refused. And what the proxy needs must still work. */
#include "base/fd.h"
#include "proxy/confine.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define REFUSED 10
#define SUCCEEDED 11
#define NOT_CONFINED 12
#define CONTROL 3

static long call_fork(void)
{
  return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static long call_thread(void)
{
  return syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL, NULL, NULL, 0);
}

static long call_clone3(void)
{
  return syscall(SYS_clone3, NULL, 0);
}

static long call_execve(void)
{
  char *const nothing[] = { NULL };

  return execve("/proc/self/exe", nothing, nothing);
}

static long call_execveat(void)
{
  char *const nothing[] = { NULL };

  return syscall(SYS_execveat, STDERR_FILENO, "", nothing, nothing, AT_EMPTY_PATH);
}

static long call_openat(void)
{
  return syscall(SYS_openat, AT_FDCWD, "/etc/hosts", O_RDONLY | O_CLOEXEC);
}

static long call_openat_write(void)
{
  return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC);
}

static long call_stat(void)
{
  struct stat st;

  return fstatat(AT_FDCWD, "/", &st, 0);
}

static long call_unlink(void)
{
  return unlinkat(AT_FDCWD, "/nonexistent", 0);
}

static long call_ptrace(void)
{
  return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long call_vm_readv(void)
{
  char byte = 0;
  struct iovec iov = { &byte, 1 };

  return process_vm_readv(getpid(), &iov, 1, &iov, 1, 0);
}

static long call_kill(void)
{
  return syscall(SYS_kill, getppid(), 0);
}

static long call_socket_unix(void)
{
  return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long call_socket_netlink(void)
{
  return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long call_socketpair(void)
{
  int fds[2];

  return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

static long call_bind(void)
{
  struct sockaddr_in any = { .sin_family = AF_INET };

  return bind(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&any, sizeof any);
}

static long call_listen(void)
{
  return listen(socket(AF_INET, SOCK_STREAM, 0), 1);
}

static long call_io_uring(void)
{
  struct io_uring_params params = { 0 };

  return syscall(SYS_io_uring_setup, 1, &params);
}

static long call_bpf(void)
{
  union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };

  return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static long call_keyctl(void)
{
  return syscall(SYS_keyctl, 0, -3, 1);
}

static long call_mmap_exec(void)
{
  return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static long call_mprotect_exec(void)
{
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  return page == MAP_FAILED ? 0 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long call_set_dumpable(void)
{
  return prctl(PR_SET_DUMPABLE, 1);
}

static long call_fcntl_owner(void)
{
  return fcntl(CONTROL, F_SETOWN, getppid());
}

static long call_ioctl(void)
{
  char byte = 'x';

  return ioctl(STDERR_FILENO, 0x5412 /* TIOCSTI */, &byte);
}

/* One end of the control socket to the other: a file's place could be read or written past its descriptor's. */
static long call_splice_from_place(void)
{
  loff_t place = 0;

  return splice(CONTROL, &place, CONTROL, NULL, 1, SPLICE_F_NONBLOCK);
}

static long call_splice_to_place(void)
{
  loff_t place = 0;

  return splice(CONTROL, NULL, CONTROL, &place, 1, SPLICE_F_NONBLOCK);
}

static long call_pipe(void)
{
  int fds[2];

  return pipe2(fds, O_CLOEXEC);
}

static long call_pipe_size(void)
{
  return fcntl(CONTROL, F_SETPIPE_SZ, 1 << 20);
}

static long call_tee(void)
{
  return tee(CONTROL, CONTROL, 1, SPLICE_F_NONBLOCK);
}

static long call_vmsplice(void)
{
  char byte = 0;
  struct iovec iov = { &byte, 1 };

  return vmsplice(CONTROL, &iov, 1, SPLICE_F_NONBLOCK);
}

static long call_sendfile(void)
{
  return sendfile(CONTROL, STDERR_FILENO, NULL, 1);
}

static long call_unshare(void)
{
  return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long call_memfd(void)
{
  return syscall(SYS_memfd_create, "x", 0);
}

static long call_userfaultfd(void)
{
  return syscall(SYS_userfaultfd, 0);
}

static long call_pidfd_open(void)
{
  return syscall(SYS_pidfd_open, getppid(), 0);
}

static long call_raise_limit(void)
{
  struct rlimit limit = { 1, 1 };

  return syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, NULL);
}

static const struct {
  const char *name;
  long (*call)(void);
} forbidden[] = {
  { "fork", call_fork },
  { "thread", call_thread },
  { "clone3", call_clone3 },
  { "execve", call_execve },
  { "execveat", call_execveat },
  { "openat", call_openat },
  { "openat for writing", call_openat_write },
  { "stat", call_stat },
  { "unlinkat", call_unlink },
  { "ptrace", call_ptrace },
  { "process_vm_readv", call_vm_readv },
  { "kill", call_kill },
  { "socket(AF_UNIX)", call_socket_unix },
  { "socket(AF_NETLINK)", call_socket_netlink },
  { "socketpair", call_socketpair },
  { "bind", call_bind },
  { "listen", call_listen },
  { "io_uring_setup", call_io_uring },
  { "bpf", call_bpf },
  { "keyctl", call_keyctl },
  { "mmap(PROT_EXEC)", call_mmap_exec },
  { "mprotect(PROT_EXEC)", call_mprotect_exec },
  { "prctl(PR_SET_DUMPABLE)", call_set_dumpable },
  { "fcntl(F_SETOWN)", call_fcntl_owner },
  { "ioctl(TIOCSTI)", call_ioctl },
  { "splice from a place", call_splice_from_place },
  { "splice to a place", call_splice_to_place },
  { "pipe2", call_pipe },
  { "fcntl(F_SETPIPE_SZ)", call_pipe_size },
  { "tee", call_tee },
  { "vmsplice", call_vmsplice },
  { "sendfile", call_sendfile },
  { "unshare", call_unshare },
  { "memfd_create", call_memfd },
  { "userfaultfd", call_userfaultfd },
  { "pidfd_open", call_pidfd_open },
  { "prlimit64", call_raise_limit },
};

/* In the child: what main.c does before it reads from the sandbox. */
static void confine_here(void)
{
  int pair[2];
  struct err err = ERR_INIT;

  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || dup2(pair[0], CONTROL) != CONTROL)
    _exit(NOT_CONFINED);
  if (confine_start(CONTROL + 1, &err) < 0 || confine_privilege(&err) < 0 || confine_filter(&err) < 0) {
    fprintf(stderr, "%s\n", err.message);
    _exit(NOT_CONFINED);
  }
}

/* Status of a child that confines itself and then makes the call. */
static int run_confined(long (*call)(void))
{
  pid_t child = fork();
  int status = 0;

  assert_true(child >= 0);
  if (child == 0) {
    confine_here();
    _exit(call() == -1 ? REFUSED : SUCCEEDED);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void test_forbidden(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(forbidden); i++) {
    int status = run_confined(forbidden[i].call);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
    bool refused = WIFEXITED(status) && WEXITSTATUS(status) == REFUSED;

    print_message("%s: %s\n", forbidden[i].name, killed ? "killed" : refused ? "refused" : "allowed");
    if (!killed && !refused)
      fail_msg("%s passed (status %#x)", forbidden[i].name, (unsigned)status);
  }
}

/* -1 where something that the proxy needs does not work. */
static long call_needed(void)
{
  struct sockaddr_in target = { .sin_family = AF_INET, .sin_port = htons(1), .sin_addr = { htonl(INADDR_LOOPBACK) } };
  int stream = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int datagram = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int on = 1;
  char *memory = malloc(64 * 1024 * 1024);

  if (stream < 0 || (datagram < 0 && errno != EAFNOSUPPORT) || !memory)
    return -1;
  memset(memory, 1, 64 * 1024 * 1024);
  memory = realloc(memory, 128 * 1024 * 1024);
  free(memory);
  if (setsockopt(stream, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on))
    return -1;
  if (connect(stream, (const struct sockaddr *)&target, sizeof target) && errno != EINPROGRESS &&
      errno != ECONNREFUSED && errno != ENETUNREACH)
    return -1;
  if (send(CONTROL, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 && errno != EPIPE && errno != ECONNREFUSED)
    return -1;
  return memory ? close(stream) : -1;
}

static void test_needed(void **state)
{
  int status = run_confined(call_needed);

  (void)state;
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), SUCCEEDED);
}

/* Started when sbx has gone already. */
static void test_no_parent(void **state)
{
  pid_t child = fork();
  int status = 0;

  (void)state;
  assert_true(child >= 0);
  if (child == 0) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || dup2(pair[0], CONTROL) != CONTROL)
      _exit(NOT_CONFINED);
    close(pair[0]);
    close(pair[1]);
    _exit(confine_start(CONTROL + 1, NULL) == -EPIPE ? REFUSED : SUCCEEDED);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), REFUSED);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forbidden),
    cmocka_unit_test(test_needed),
    cmocka_unit_test(test_no_parent),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
