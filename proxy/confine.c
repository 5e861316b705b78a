/* Theory of operation
 *
 * sbx-proxy parses what hostile code sends and stands outside the sandbox: whoever takes it over must find nothing to
 * take. It confines itself in stages, each of which main.c calls once, in this order:
 *
 *   stage                 then it should                         then it must not
 *   confine_start         read files, open sockets               outlive sbx; be traced or dumped; have a descriptor of
 *                                                                the caller beyond 0-2 and the control socket
 *   confine_descriptors   (after START: its number bounds the connections)
 *   confine_rings         as above                               make an io_uring: libuv from 1.49 on watches by one,
 *                                                                whatever its variable says, and past the filter
 *   confine_privilege     as above                               have a capability; make a process; gain by exec
 *   confine_filter        accept, connect to IPv4 and IPv6,      open, stat or name a file; listen or bind; use a Unix
 *                         read and write what is open, take      or other socket; signal; exec; map code; make a
 *                         memory that cannot be executed, tell   process or thread; look at another process
 *                         the time
 *
 * Landlock says a part of it again (no file at all, no TCP bind, no abstract socket, no signal to the outside), so that
 * neither mechanism stands alone. The filter is an allow-list: a call that is not in the table kills the process. A few
 * harmless calls that libraries are known to try get an error instead.
 */
#include "config.h"

#include "proxy/confine.h"

#include "base/fd.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD 0xffffffffu

/* clang-format off */
#define ALLOW(call, why) \
  { .name = (call), .test = SECCOMP_ALWAYS, .answer = SECCOMP_ALLOW, .reason = (why) }
#define ALLOW_IF(call, index, bits, is, why) \
  { .name = (call), .test = SECCOMP_ARG_EQ, .arg = (index), .mask = (bits), .value = (is), .answer = SECCOMP_ALLOW, \
    .reason = (why) }
#define ALLOW_IF_BOTH(call, index, is, index2, is2, why) \
  { .name = (call), .test = SECCOMP_ARG_EQ, .arg = (index), .mask = UINT64_MAX, .value = (is), \
    .also = SECCOMP_ARG_EQ, .also_arg = (index2), .also_mask = UINT64_MAX, .also_value = (is2), \
    .answer = SECCOMP_ALLOW, .reason = (why) }
#define REFUSE(call, why) \
  { .name = (call), .test = SECCOMP_ALWAYS, .answer = SECCOMP_ERRNO, .error = EACCES, .reason = (why) }

static const struct seccomp_row rows[] = {
  /* Sockets. No bind, no listen; connect reaches only what socket() can make. */
  ALLOW_IF("socket", 0, WORD, AF_INET, "to origins and name servers"),
  ALLOW_IF("socket", 0, WORD, AF_INET6, "the same"),
  ALLOW("connect", "the same"),
  ALLOW("accept4", "from the sandbox"),
  ALLOW("accept", "the same, where libc has no accept4"),
  ALLOW("shutdown", "half-close"),
  ALLOW("getsockopt", "SO_ERROR after connect"),
  ALLOW("setsockopt", "TCP_NODELAY, SO_LINGER"),
  ALLOW("getsockname", "c-ares"),
  ALLOW("getpeername", "c-ares"),
  ALLOW("recvfrom", "relay, c-ares, control"),
  ALLOW("sendto", "relay, c-ares, control"),
  ALLOW("recvmsg", "libc's recv on some machines"),
  ALLOW("sendmsg", "libc's send on some machines"),
  ALLOW("recv", "where it is a call of its own"),
  ALLOW("send", "the same"),

  /* What is open already. */
  ALLOW("read", "the loop's wake-up descriptor"),
  ALLOW("readv", "c-ares over TCP"),
  ALLOW("write", "audit, messages"),
  ALLOW("writev", "c-ares over TCP"),
  ALLOW_IF_BOTH("splice", 1, 0, 3, 0, "long streams, through the one pipe; from no place in a file"),
  ALLOW("close", ""),
  ALLOW_IF("fcntl", 1, WORD, F_GETFL, "c-ares, libuv"),
  ALLOW_IF("fcntl", 1, WORD, F_SETFL, "c-ares, libuv"),
  ALLOW_IF("fcntl", 1, WORD, F_GETFD, "c-ares, libuv"),
  ALLOW_IF("fcntl", 1, WORD, F_SETFD, "c-ares, libuv"),
  ALLOW_IF("fcntl64", 1, WORD, F_GETFL, "32-bit machines"),
  ALLOW_IF("fcntl64", 1, WORD, F_SETFL, "32-bit machines"),
  ALLOW_IF("fcntl64", 1, WORD, F_GETFD, "32-bit machines"),
  ALLOW_IF("fcntl64", 1, WORD, F_SETFD, "32-bit machines"),
  ALLOW_IF("ioctl", 1, WORD, FIONBIO, "libuv makes descriptors non-blocking by it"),
  ALLOW("epoll_ctl", "the loop"),
  ALLOW("epoll_wait", "the loop"),
  ALLOW("epoll_pwait", "the loop"),
  ALLOW("epoll_pwait2", "the loop"),

  /* Memory: never executable. */
  ALLOW("brk", "malloc"),
  ALLOW_IF("mmap", 2, PROT_EXEC, 0, "malloc"),
  ALLOW_IF("mmap2", 2, PROT_EXEC, 0, "malloc, 32-bit machines"),
  ALLOW_IF("mprotect", 2, PROT_EXEC, 0, "malloc"),
  ALLOW("munmap", "malloc"),
  ALLOW("mremap", "malloc"),
  ALLOW("madvise", "malloc; values of credentials, that they are in no dump"),
  ALLOW("mlock", "values of credentials, that they are not swapped out"),

  /* Time and chance. */
  ALLOW("clock_gettime", "where the vDSO cannot answer"),
  ALLOW("clock_gettime64", "32-bit machines"),
  ALLOW("clock_getres", "libuv"),
  ALLOW("gettimeofday", "c-ares"),
  ALLOW("time", "c-ares; OpenSSL: what is valid now"),
  ALLOW("getrandom", "c-ares: query ids and ports; OpenSSL"),

  /* The process itself. */
  ALLOW("futex", "locks of libc and of c-ares"),
  ALLOW("getpid", "libc; OpenSSL, whether it is still in the process that seeded it"),
  ALLOW("gettid", "libc"),
  ALLOW("rt_sigprocmask", "libc, libuv"),
  ALLOW("rt_sigreturn", "return from a stop"),
  ALLOW("restart_syscall", "return from a stop"),
  ALLOW("sched_yield", "libc"),
  ALLOW("exit", ""),
  ALLOW("exit_group", ""),

  /* Tried by libraries, and of no harm when refused. */
  REFUSE("open", "c-ares re-reading its configuration; time zones"),
  REFUSE("openat", "the same"),
  REFUSE("openat2", "the same"),
  REFUSE("access", "the same"),
  REFUSE("faccessat", "the same"),
  REFUSE("faccessat2", "the same"),
  REFUSE("stat", "the same"),
  REFUSE("lstat", "the same"),
  REFUSE("fstat", "the same"),
  REFUSE("stat64", "the same"),
  REFUSE("fstatat64", "the same"),
  REFUSE("newfstatat", "the same"),
  REFUSE("statx", "the same"),
  REFUSE("readlink", "the same"),
  REFUSE("readlinkat", "the same"),
  REFUSE("prctl", "malloc naming its mappings"),
  REFUSE("sysinfo", "sorting in libc"),
  REFUSE("sched_getaffinity", "malloc counting processors"),
  REFUSE("prlimit64", "libc"),
  REFUSE("getrlimit", "libc"),
  REFUSE("uname", "libc"),
};
/* clang-format on */

static int ignore_signal(int number)
{
  struct sigaction action = { .sa_handler = SIG_IGN };

  return sigaction(number, &action, NULL);
}

int confine_start(unsigned first_free, struct err *err)
{
  struct rlimit none = { .rlim_cur = 0, .rlim_max = 0 };
  struct pollfd control = { .fd = (int)first_free - 1, .events = POLLIN };

  if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) || setrlimit(RLIMIT_CORE, &none))
    return err_set_errno(err, errno, "confine: cannot tie the process to its parent");
  /* sbx may have died before the death signal was set: then its end of the socket is closed. */
  if (poll(&control, 1, 0) == 1 && (control.revents & (POLLHUP | POLLERR | POLLNVAL)) && !(control.revents & POLLIN))
    return err_set(err, EPIPE, "confine: there is no " SBX_NAME " at the control socket");
  /* The terminal's signals are for the command; the proxy ends with sbx. */
  if (ignore_signal(SIGPIPE) || ignore_signal(SIGINT) || ignore_signal(SIGQUIT) || ignore_signal(SIGHUP) ||
      ignore_signal(SIGTSTP))
    return err_set_errno(err, errno, "confine: cannot ignore signals");
  if (syscall(SYS_close_range, first_free, ~0u, 0) && errno != ENOSYS)
    return err_set_errno(err, errno, "confine: cannot close inherited descriptors");
  return 0;
}

size_t confine_descriptors(size_t want)
{
  struct rlimit limit = { .rlim_cur = want, .rlim_max = want };

  if (getrlimit(RLIMIT_NOFILE, &limit))
    return 256;
  if (limit.rlim_max < want) {
    /* Only root may raise the hard limit. */
    struct rlimit higher = { .rlim_cur = want, .rlim_max = want };

    if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
      return want;
  }
  limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

int confine_rings(struct err *err)
{
  static const struct seccomp_row ring[] = {
    { .name = "io_uring_setup",
      .test = SECCOMP_ALWAYS,
      .answer = SECCOMP_ERRNO,
      .error = ENOSYS,
      .reason = "libuv falls back to epoll_ctl" },
  };
  static const struct seccomp_filter filter = { .rows = ring, .count = 1, .otherwise = SECCOMP_ALLOW };

  return seccomp_apply(&filter, err);
}

static int drop_capabilities(struct err *err)
{
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

  /* Needs CAP_SETPCAP: a plain user keeps the bounding set, and has no way to use it under no_new_privs. */
  for (unsigned long capability = 0; capability < 64; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) && (errno == EINVAL || errno == EPERM))
      break;
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
    return err_set_errno(err, errno, "confine: cannot clear ambient capabilities");
  if (syscall(SYS_capset, &header, data))
    return err_set_errno(err, errno, "confine: cannot drop capabilities");
  return 0;
}

int confine_privilege(struct err *err)
{
  struct rlimit none = { .rlim_cur = 0, .rlim_max = 0 };
  int r = drop_capabilities(err);

  if (r < 0)
    return r;
  /* Does not bind root; the filter says the same to all. */
  if (setrlimit(RLIMIT_NPROC, &none))
    return err_set_errno(err, errno, "confine: cannot forbid new processes");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return err_set_errno(err, errno, "confine: cannot set no_new_privs");
  return 0;
}

#ifndef SBX_NO_SELF_CONFINE
static int restrict_objects(struct err *err)
{
  struct landlock_rights want = landlock_rights_known(landlock_abi());
  fd_autoclose int ruleset = -1;
  int r;

  /* Origins stand on any port: connecting stays free. */
  want.net &= ~(uint64_t)LANDLOCK_ACCESS_NET_CONNECT_TCP;
  r = landlock_create(&want, err, NULL, &ruleset);
  if (r == -EOPNOTSUPP)
    return 0;
  return r < 0 ? r : landlock_enforce(ruleset, err);
}
#endif

int confine_filter(struct err *err)
{
  struct seccomp_filter filter = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .otherwise = SECCOMP_KILL,
  };
#ifdef SBX_NO_SELF_CONFINE
  (void)filter;
  (void)err;
  return 0;
#else
  int r = restrict_objects(err);

  return r < 0 ? r : seccomp_apply(&filter, err);
#endif
}
