/* Theory of operation: attempts at breaking out.
 *
 * Each way is a handful of acts. An act that the machine lets us do is a breach; whatever refuses it, and with which
 * error, holds. The same program stands for itself: run outside of a sandbox the acts succeed and are told as breaches,
 * which is how the tests know that the attempts can tell (and how a user can try a policy of his own).
 *
 *   files FILE       a file that must be out of reach: read, write, put another beside it, rename
 *   protected FILE   a file that may be seen: write, rename it or its directory away, exchange it for another
 *   hidden FILE      a file in a directory of ours: read, write, rename, exchange
 *   network PORT     a listener on the host's loopback (TCP, and the abstract socket sbx-doctor-PORT): directly, and
 *                    through the proxy; and a host that no policy allows, through the proxy
 *   kernel PID       namespaces, mounts, terminal input, sysctls; signals to and ptrace of a process of the host
 *   survive          outlive the one who started us
 *
 * What an act has changed it changes back at once: rename there and back, exchange twice. Nothing is written to a file.
 * Where good arguments would do harm, the call is made with ones that the kernel proper rejects with another error (a
 * descriptor of -1, a path that does not exist): an error that only a filter gives shows who refused.
 */
#include "config.h"

#include "cmd/doctor.h"

#include "base/fd.h"
#include "base/num.h"
#include "cmd/cmd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT_TEXT_BYTES (64 * 1024)
#define ATTEMPT_ANSWER_BYTES 4096
#define ATTEMPT_ANSWER_SECONDS 10
#define ATTEMPT_SURVIVE_SECONDS 30
#define ATTEMPT_RENAME_EXCHANGE 2U /* RENAME_EXCHANGE: linux/fs.h and sys/mount.h exclude each other */
#define ATTEMPT_SUFFIX ".sbx-doctor"

struct attempt {
  const char *target;
  struct buf lines;
  bool breach;
};

/* error: 0 or a negative errno. */
static void tell(struct attempt *attempt, int error, const char *act)
{
  buf_append_str(&attempt->lines, error ? "held   " : "BREACH ");
  buf_append_escaped(&attempt->lines, span_of(act));
  if (error)
    buf_printf(&attempt->lines, ": %s", strerror(-error));
  buf_append_byte(&attempt->lines, '\n');
  attempt->breach |= error == 0;
}

static int result(long r)
{
  return r < 0 ? -errno : 0;
}

/* For calls that the kernel proper would reject as well, with another error. */
static int result_of_filter(long r)
{
  return r < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS) ? -errno : 0;
}

static int try_open(const char *path, int flags)
{
  fd_autoclose int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

  return result(fd);
}

/* What was read is told, so that whoever started us can look for what must not come out. */
static void attempt_read(struct attempt *attempt)
{
  buf_autofree struct buf act = BUF_INIT(ATTEMPT_ANSWER_BYTES);
  char bytes[64];
  fd_autoclose int fd = open(attempt->target, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
  int error = result(n);

  buf_printf(&act, "read %s", attempt->target);
  if (n > 0) {
    buf_append_str(&act, ": ");
    buf_append(&act, (struct span){ .ptr = bytes, .len = (size_t)n });
  }
  tell(attempt, error, act.data ? act.data : "read");
}

static int rename_and_back(const char *path)
{
  mem_autofree char *away = NULL;
  int r;

  if (asprintf(&away, "%s" ATTEMPT_SUFFIX, path) < 0)
    return 0;
  r = result(rename(path, away));
  if (r == 0)
    (void)rename(away, path);
  return r;
}

static int create(const char *path)
{
  fd_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

  return result(fd);
}

static int create_beside(const char *path)
{
  mem_autofree char *name = NULL;
  int r;

  if (asprintf(&name, "%s" ATTEMPT_SUFFIX, path) < 0) {
    name = NULL;
    return 0;
  }
  r = create(name);
  if (r == 0)
    (void)unlink(name);
  return r;
}

/* Makes a file of ours as near to path as we may: beside it, or in a directory above. Its name, or NULL. */
static char *create_near(const char *path)
{
  mem_autofree char *dir = mem_strndup(path, strlen(path));
  char *slash;

  while (dir && (slash = strrchr(dir, '/'))) {
    mem_autofree char *name = NULL;

    *slash = '\0';
    if (asprintf(&name, "%s/exchange" ATTEMPT_SUFFIX, dir) < 0) {
      name = NULL;
      break;
    }
    if (create(name) == 0)
      return mem_steal(name);
  }
  return NULL;
}

static int exchange(const char *a, const char *b)
{
  return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, ATTEMPT_RENAME_EXCHANGE);
}

/* Puts another file in the place of this one. */
static int exchange_and_back(const char *path)
{
  mem_autofree char *name = create_near(path);
  int r;

  if (!name)
    return -EROFS;
  r = result(exchange(name, path));
  if (r == 0)
    (void)exchange(name, path);
  (void)unlink(name);
  return r;
}

static void attempt_files(struct attempt *attempt)
{
  attempt_read(attempt);
  tell(attempt, try_open(attempt->target, O_WRONLY | O_APPEND), "open it for writing");
  tell(attempt, create_beside(attempt->target), "create a file beside it");
  tell(attempt, rename_and_back(attempt->target), "rename it");
}

static void attempt_hidden(struct attempt *attempt)
{
  attempt_read(attempt);
  tell(attempt, try_open(attempt->target, O_WRONLY | O_APPEND), "open it for writing");
  tell(attempt, rename_and_back(attempt->target), "rename it");
  tell(attempt, exchange_and_back(attempt->target), "replace it");
}

static void attempt_protected(struct attempt *attempt)
{
  mem_autofree char *dir = mem_strndup(attempt->target, strlen(attempt->target));
  char *slash = dir ? strrchr(dir, '/') : NULL;

  tell(attempt, try_open(attempt->target, O_WRONLY | O_APPEND), "open it for writing");
  tell(attempt, rename_and_back(attempt->target), "rename it");
  tell(attempt, exchange_and_back(attempt->target), "replace it");
  if (slash && slash != dir) {
    *slash = '\0';
    tell(attempt, rename_and_back(dir), "rename its directory");
  }
}

static int connect_to(int family, uint16_t port)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  const struct sockaddr *to = family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
  fd_autoclose int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd < 0)
    return -errno;
  return result(connect(fd, to, family == AF_INET ? sizeof v4 : sizeof v6));
}

static int connect_abstract(const char *port)
{
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  int len = snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "sbx-doctor-%s", port);
  fd_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd < 0)
    return -errno;
  return result(
      connect(fd, (const struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)));
}

/* The proxy that the environment names, as sbx sets it: http://127.0.0.1:PORT. */
static int proxy_port(uint16_t *ret_port)
{
  struct span value = span_of(getenv("http_proxy"));
  size_t colon = span_find_last(value, ':');
  struct span digits;
  uint64_t port;

  if (!span_starts_with(value, SPAN("http://127.0.0.1:")))
    return -ENOENT;
  digits = span_sub(value, colon + 1, value.len);
  if (digits.len && digits.ptr[digits.len - 1] == '/')
    digits.len--;
  if (num_parse_u64(digits, 1, UINT16_MAX, &port) < 0)
    return -ENOENT;
  *ret_port = (uint16_t)port;
  return 0;
}

/* The first line of the answer to a request for host through the proxy. 0 or -errno. */
static int ask_proxy(uint16_t port, const char *host, struct buf *answer)
{
  const struct timeval patience = { .tv_sec = ATTEMPT_ANSWER_SECONDS };
  const struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  buf_autofree struct buf request = BUF_INIT(ATTEMPT_ANSWER_BYTES);
  fd_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  char bytes[ATTEMPT_ANSWER_BYTES];
  ssize_t n;
  int r;

  buf_printf(&request, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host, host);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
      connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
    return -errno;
  r = fd_write_all(fd, buf_span(&request));
  n = r == 0 ? read(fd, bytes, sizeof bytes) : -1;
  if (n > 0)
    buf_append(answer, span_sub((struct span){ .ptr = bytes, .len = (size_t)n }, 0,
                                span_find((struct span){ .ptr = bytes, .len = (size_t)n }, '\r')));
  return r < 0 ? r : result(n);
}

/* Only the proxy's refusal holds. Any other answer, and none, is a breach: it does not stand where it should. */
static void attempt_proxy(struct attempt *attempt, const char *host)
{
  buf_autofree struct buf answer = BUF_INIT(ATTEMPT_ANSWER_BYTES);
  buf_autofree struct buf act = BUF_INIT(ATTEMPT_ANSWER_BYTES * 2);
  uint16_t port = 0;
  int r = proxy_port(&port);
  bool held;

  if (r == 0)
    r = ask_proxy(port, host, &answer);
  held = r == 0 && span_starts_with(buf_span(&answer), SPAN("HTTP/1.1 403 "));
  buf_printf(&act, "request to %s through the proxy: %s", host,
             answer.data ? answer.data
             : port      ? "no answer"
                         : "no proxy of " SBX_NAME " stands between here and the network");
  tell(attempt, held ? -EACCES : 0, act.data ? act.data : host);
}

static void attempt_network(struct attempt *attempt)
{
  mem_autofree char *loopback = NULL;
  uint64_t port;

  if (num_parse_u64(span_of(attempt->target), 1, UINT16_MAX, &port) < 0 ||
      asprintf(&loopback, "127.0.0.1:%u", (unsigned)port) < 0) {
    loopback = NULL;
    tell(attempt, 0, "PORT is no port");
    return;
  }
  tell(attempt, connect_to(AF_INET, (uint16_t)port), "connect to 127.0.0.1");
  tell(attempt, connect_to(AF_INET6, (uint16_t)port), "connect to ::1");
  tell(attempt, connect_abstract(attempt->target), "connect to an abstract socket");
  attempt_proxy(attempt, loopback);
  attempt_proxy(attempt, "sbx-doctor.invalid");
}

/* In a child, so that what it gets is gone with it. */
static int unshare_in_child(int flags)
{
  pid_t pid = fork();
  int status;

  if (pid == 0)
    _exit(unshare(flags) < 0 ? errno : 0);
  if (pid < 0 || waitpid(pid, &status, 0) < 0)
    return 0;
  return WIFEXITED(status) ? -WEXITSTATUS(status) : 0;
}

static int clone_in_namespace(int flags)
{
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

  if (pid == 0)
    _exit(0);
  if (pid > 0)
    (void)waitpid((pid_t)pid, NULL, 0);
  return result(pid);
}

static int clone3_in_namespace(void)
{
  struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
  long pid = syscall(SYS_clone3, &args, sizeof args);

  if (pid == 0)
    _exit(0);
  if (pid > 0)
    (void)waitpid((pid_t)pid, NULL, 0);
  return result(pid);
}

static int trace(pid_t pid)
{
  int r = result(ptrace(PTRACE_SEIZE, pid, NULL, NULL));

  if (r == 0)
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
  return r;
}

static int send_signal(pid_t pid)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };

  sigaction(SIGUSR1, &ignore, NULL); /* the number may be our own here */
  return result(kill(pid, SIGUSR1));
}

static void attempt_kernel(struct attempt *attempt)
{
  static const char nowhere[] = "/nonexistent-sbx-doctor";
  uint64_t pid;

  if (num_parse_u64(span_of(attempt->target), 2, INT32_MAX, &pid) < 0) {
    tell(attempt, 0, "PID is no process");
    return;
  }
  tell(attempt, unshare_in_child(CLONE_NEWUSER), "unshare the user namespace");
  tell(attempt, unshare_in_child(CLONE_NEWNS), "unshare the mount namespace");
  tell(attempt, clone_in_namespace(CLONE_NEWUSER), "clone into a user namespace");
  tell(attempt, clone3_in_namespace(), "clone3 into a user namespace");
  tell(attempt, result_of_filter(mount("none", nowhere, "tmpfs", 0, NULL)), "reach mount");
  tell(attempt, result_of_filter(syscall(SYS_open_tree, -1, "x", 0U)), "reach open_tree");
  tell(attempt, result_of_filter(ioctl(-1, TIOCSTI, "x")), "reach TIOCSTI");
  /* CVE-2019-10063: a filter that compares 64 bits lets this one pass, and the kernel takes the lower 32. */
  tell(attempt, result_of_filter(syscall(SYS_ioctl, -1, (unsigned long)(TIOCSTI | (1ULL << 32)), "x")),
       "reach TIOCSTI with upper bits");
  tell(attempt, try_open("/proc/sys/kernel/core_pattern", O_WRONLY), "open kernel.core_pattern for writing");
  tell(attempt, trace((pid_t)pid), "trace the process");
  tell(attempt, send_signal((pid_t)pid), "send a signal to the process");
}

static void stay(void)
{
  (void)alarm(ATTEMPT_SURVIVE_SECONDS); /* nobody's for ever */
  for (;;)
    pause();
}

/* A child in a session of its own and an orphaned grandchild, which hold our output open as long as they live. */
static void attempt_survive(struct attempt *attempt)
{
  static const int deaf[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE };
  const struct sigaction ignore = { .sa_handler = SIG_IGN };

  for (size_t i = 0; i < MEM_COUNT(deaf); i++)
    sigaction(deaf[i], &ignore, NULL);
  if (fork() == 0) {
    (void)setsid();
    if (fork() == 0)
      stay();
    (void)fd_write_all(STDOUT_FILENO, SPAN("ready\n"));
    stay();
  }
  stay();
  tell(attempt, 0, "unreachable");
}

static const struct {
  const char *name;
  bool has_target;
  void (*run)(struct attempt *);
} ways[] = {
  { "files", true, attempt_files },   { "protected", true, attempt_protected }, { "network", true, attempt_network },
  { "hidden", true, attempt_hidden }, { "kernel", true, attempt_kernel },       { "survive", false, attempt_survive },
};

int doctor_attempt(char *const *args)
{
  struct err err = ERR_INIT;

  for (size_t i = 0; i < MEM_COUNT(ways) && args[0]; i++) {
    struct attempt attempt = { .target = args[1], .lines = BUF_INIT(ATTEMPT_TEXT_BYTES) };
    int r;

    if (strcmp(args[0], ways[i].name) != 0)
      continue;
    if (ways[i].has_target != !!args[1] || (args[1] && args[2]))
      break;
    ways[i].run(&attempt);
    r = cmd_print(&attempt.lines);
    buf_free(&attempt.lines);
    return r ? r : attempt.breach ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  err_set(&err, EINVAL,
          "doctor: attempt takes files FILE, protected FILE, hidden FILE, network PORT, kernel PID or survive; "
          "see " SBX_DOCTOR_PAGE "(1)");
  return cmd_fail(&err);
}
