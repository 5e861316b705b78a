/* The filter that the command gets, judged call by call (DESIGN 7; F3, F5, F6, F12). */
#include "plan/syscalls.h"
#include "sys/trace.h"
#include "unit/bpf.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define OPTIONS 64 /* every combination of struct syscalls_options */
#define HIGH (UINT64_C(1) << 32)

static struct bpf filters[OPTIONS];

static struct syscalls_options options_of(unsigned bits)
{
  return (struct syscalls_options){ .nesting = bits & 1,
                                    .ptrace = bits & 2,
                                    .foreign = bits & 4,
                                    .pin_cpus = bits & 8,
                                    .shared_session = bits & 16,
                                    .trace_paths = bits & 32 };
}

static int compile_all(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    struct syscalls_options options = options_of(bits);
    struct seccomp_row rows[SYSCALLS_ROWS_MAX];
    struct seccomp_filter filter;

    syscalls_build(&options, rows, &filter);
    assert_true(filter.count > 0 && filter.count < SYSCALLS_ROWS_MAX);
    for (size_t i = 0; i < filter.count; i++)
      assert_true(filter.rows[i].name && filter.rows[i].reason); /* a row explains itself */
    bpf_compile(&filter, &filters[bits]);
  }
  return 0;
}

struct call {
  const char *name;
  uint64_t args[6];
};

/* A negative number where the architecture has no such call. Debian 12's libseccomp does not know them all. */
static int number_of(uint32_t arch, const char *name)
{
  int number = seccomp_syscall_resolve_name_arch(arch, name);

  if (arch == AUDIT_ARCH_I386 && strcmp(name, "socket") == 0)
    return 359; /* the library thinks of socketcall(2) alone */
  if (arch == AUDIT_ARCH_I386 && strcmp(name, "socketpair") == 0)
    return 360;
  return number < 0 && arch == BPF_NATIVE && strcmp(name, "open_tree_attr") == 0 ? 467 : number;
}

static int judge_as(unsigned bits, uint32_t arch, const struct call *call)
{
  struct seccomp_data data = { .nr = number_of(arch, call->name), .arch = arch };

  memcpy(data.args, call->args, sizeof data.args);
  if (data.nr < 0)
    fail_msg("%s has no number on this architecture", call->name);
  return bpf_run(&filters[bits], &data);
}

static void expect_as(unsigned bits, uint32_t arch, const struct call *call, int verdict)
{
  int got = judge_as(bits, arch, call);

  /* A call that its tracer is told of goes on as if it was allowed. */
  if (options_of(bits).trace_paths && verdict == 0 && got <= BPF_TRACED(0))
    return;
  if (got != verdict)
    fail_msg("%s(%#llx, %#llx, %#llx, %#llx), options %u: %d, not %d", call->name, (unsigned long long)call->args[0],
             (unsigned long long)call->args[1], (unsigned long long)call->args[2], (unsigned long long)call->args[3],
             bits, got, verdict);
}

static void expect(unsigned bits, struct call call, int verdict)
{
  expect_as(bits, BPF_NATIVE, &call, verdict);
}

/* Calls that are refused whatever their arguments and whatever the options. */
static const struct {
  const char *name;
  int error;
} always[] = {
  { "mount", EPERM },
  { "umount2", EPERM },
  { "pivot_root", EPERM },
  { "open_tree", EPERM },
  { "open_tree_attr", EPERM },
  { "move_mount", EPERM },
  { "fsopen", EPERM },
  { "fsconfig", EPERM },
  { "fsmount", EPERM },
  { "fspick", EPERM },
  { "mount_setattr", EPERM },
  { "setns", EPERM },
  { "clone3", ENOSYS },
  { "add_key", EPERM },
  { "request_key", EPERM },
  { "keyctl", EPERM },
  { "bpf", EPERM },
  { "perf_event_open", EPERM },
  { "userfaultfd", EPERM },
  { "io_uring_setup", ENOSYS },
  { "io_uring_enter", ENOSYS },
  { "io_uring_register", ENOSYS },
  { "open_by_handle_at", EPERM },
  { "pidfd_getfd", EPERM },
  { "init_module", EPERM },
  { "finit_module", EPERM },
  { "delete_module", EPERM },
  { "kexec_load", EPERM },
  { "kexec_file_load", EPERM },
  { "reboot", EPERM },
  { "swapon", EPERM },
  { "swapoff", EPERM },
  { "acct", EPERM },
  { "quotactl", EPERM },
  { "quotactl_fd", EPERM },
  { "syslog", EPERM },
  { "settimeofday", EPERM },
  { "clock_settime", EPERM },
  { "vhangup", EPERM },
#ifdef __x86_64__
  { "modify_ldt", EPERM },
  { "iopl", EPERM },
  { "ioperm", EPERM },
  { "uselib", EPERM },
  { "_sysctl", ENOSYS },
#endif
};

static void test_always_refused(void **state)
{
  struct unit_random random = unit_seed(__func__);

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    for (size_t i = 0; i < MEM_COUNT(always); i++) {
      struct call call = { .name = always[i].name };

      expect(bits, call, always[i].error);
      for (size_t k = 0; k < 6; k++)
        call.args[k] = unit_next(&random);
      expect(bits, call, always[i].error);
    }
  }
}

static const uint64_t namespaces[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                       CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

/* Every set of namespace flags, alone and among other flags. nesting lets user namespaces through, with the kinds that
 * a browser makes along with one; never a mount or cgroup namespace. */
static void test_namespaces(void **state)
{
  static const uint64_t never = CLONE_NEWNS | CLONE_NEWCGROUP;
  static const uint64_t others[] = {
    0, SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_PARENT | CLONE_FS, HIGH, UINT64_C(0xffffffff00000000)
  };

  (void)state;
  for (unsigned set = 0; set < 1u << MEM_COUNT(namespaces); set++) {
    uint64_t flags = 0;

    for (size_t i = 0; i < MEM_COUNT(namespaces); i++)
      flags |= set & 1u << i ? namespaces[i] : 0;
    for (size_t i = 0; i < MEM_COUNT(others); i++) {
      for (unsigned bits = 0; bits < OPTIONS; bits++) {
        bool refused = options_of(bits).nesting ? flags & never : flags != 0;

        expect(bits, (struct call){ "clone", { flags | others[i] } }, refused ? EPERM : 0);
        expect(bits, (struct call){ "unshare", { flags | others[i] } }, refused ? EPERM : 0);
      }
    }
  }
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    expect(bits, (struct call){ "unshare", { CLONE_NEWTIME } }, EPERM);
    expect(bits, (struct call){ "unshare", { CLONE_FILES | CLONE_FS | CLONE_SYSVSEM } }, 0);
    expect(bits, (struct call){ "clone", { CLONE_NEWTIME } }, 0); /* clone(2) reads these bits as the signal at exit */
  }
}

static void test_terminal(void **state)
{
  static const uint64_t refused[] = { TIOCSTI, 0x541c /* TIOCLINUX */, TIOCSETD };
  static const uint64_t allowed[] = { TCGETS, TCSETS, TIOCGWINSZ, TIOCSWINSZ, TIOCSPGRP, TIOCGPGRP, FIONREAD, FIONBIO };

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    for (size_t i = 0; i < MEM_COUNT(refused); i++) {
      for (uint64_t high = 0; high < 3; high++) /* F5: the kernel reads 32 bits */
        expect(bits, (struct call){ "ioctl", { 0, refused[i] | high << 32 } }, EPERM);
      expect(bits, (struct call){ "ioctl", { 0, refused[i] | UINT64_C(0xffffffff00000000) } }, EPERM);
      expect(bits, (struct call){ "ioctl", { refused[i], 0 } }, 0);
    }
    for (size_t i = 0; i < MEM_COUNT(allowed); i++)
      expect(bits, (struct call){ "ioctl", { 0, allowed[i] } }, 0);
  }
}

static void test_socket_families(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    for (uint64_t family = 0; family < 64; family++) {
      bool passes = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

      for (uint64_t high = 0; high < 2; high++) {
        uint64_t argument = family | high << 32;

        expect(bits, (struct call){ "socket", { argument, SOCK_DGRAM, 0 } }, passes ? 0 : EAFNOSUPPORT);
        expect(bits, (struct call){ "socket", { argument, SOCK_RAW | SOCK_CLOEXEC, 0 } }, passes ? 0 : EAFNOSUPPORT);
        expect(bits, (struct call){ "socketpair", { argument, SOCK_STREAM, 0 } }, passes ? 0 : EAFNOSUPPORT);
      }
    }
    for (uint64_t protocol = 1; protocol < 32; protocol++) {
      expect(bits, (struct call){ "socket", { AF_NETLINK, SOCK_RAW, protocol } }, EAFNOSUPPORT);
      expect(bits, (struct call){ "socket", { AF_NETLINK | HIGH, SOCK_RAW, protocol } }, EAFNOSUPPORT);
      expect(bits, (struct call){ "socket", { AF_INET, SOCK_STREAM, protocol } }, 0);
    }
  }
}

/* In a session shared with the caller, process group 0 reaches processes outside; job control passes. */
static void test_shared_session(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    bool shared = options_of(bits).shared_session;

    for (uint64_t number = 0; number <= 64; number++) {
      bool job = number == 0 || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU || number == SIGCONT ||
                 number == SIGWINCH;

      expect(bits, (struct call){ "kill", { 0, number } }, shared && !job ? EPERM : 0);
      expect(bits, (struct call){ "kill", { HIGH, number | HIGH } }, shared && !job ? EPERM : 0);
      expect(bits, (struct call){ "kill", { 1, number } }, 0);
      expect(bits, (struct call){ "kill", { (uint64_t)-1, number } }, 0);
      expect(bits, (struct call){ "tgkill", { 0, 1, number } }, 0);
    }
    expect(bits, (struct call){ "pidfd_send_signal", { 3, SIGTERM, 0, 0 } }, 0);
    expect(bits, (struct call){ "pidfd_send_signal", { 3, SIGTERM, 0, 4 } }, shared ? EINVAL : 0);
    expect(bits, (struct call){ "pidfd_send_signal", { 3, SIGTERM, 0, 6 } }, shared ? EINVAL : 0);
    expect(bits, (struct call){ "setpriority", { 0, 0, 5 } }, 0);
    expect(bits, (struct call){ "setpriority", { 1, 0, 5 } }, shared ? EPERM : 0);
    expect(bits, (struct call){ "setpriority", { 1 | HIGH, 0, 5 } }, shared ? EPERM : 0);
    expect(bits, (struct call){ "ioprio_set", { 1, 0, 5 } }, 0);
    expect(bits, (struct call){ "ioprio_set", { 2, 0, 5 } }, shared ? EPERM : 0);
  }
}

static void test_options(void **state)
{
  static const char *const tracing[] = { "ptrace", "process_vm_readv", "process_vm_writev" };

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    struct syscalls_options options = options_of(bits);

    for (size_t i = 0; i < MEM_COUNT(tracing); i++)
      expect(bits, (struct call){ tracing[i], { 16, 1 } }, options.ptrace ? 0 : EPERM);
    expect(bits, (struct call){ "sched_setaffinity", { 0, 8 } }, options.pin_cpus ? EPERM : 0);
    expect(bits, (struct call){ "sched_getaffinity", { 0, 8 } }, 0);
    expect(bits, (struct call){ "personality", { 0xffffffff } }, 0);
    expect(bits, (struct call){ "personality", { 0x0040000 } }, EPERM);
    expect(bits, (struct call){ "personality", { 0 } }, EPERM);
    expect(bits, (struct call){ "personality", { 0xffffffff | HIGH } }, EPERM);
  }
}

/* What ordinary programs live on. */
/* The tracer is told which call it is; without it, nobody is told of anything. */
static void test_traced_calls(void **state)
{
  size_t count;
  const struct trace_call *calls = trace_calls(&count);

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    size_t seen = 0;

    for (size_t i = 0; i < count; i++) {
      struct call call = { .name = calls[i].name };
      int number = number_of(BPF_NATIVE, call.name);

      if (number < 0)
        continue;
      seen++;
      assert_int_equal(judge_as(bits, BPF_NATIVE, &call), options_of(bits).trace_paths ? BPF_TRACED(i) : 0);
    }
    assert_true(seen >= 20);
  }
}

static void test_ordinary_calls_pass(void **state)
{
  static const struct call calls[] = {
    { "read", { 0 } },
    { "write", { 1 } },
    { "openat", { (uint64_t)-100 } },
    { "openat2", { (uint64_t)-100 } },
    { "mmap", { 0, 4096, 7, 0x22 } },
    { "mprotect", { 0, 4096, 7 } },
    { "execve", { 1 } },
    { "execveat", { 1 } },
    { "clone", { 0x3d0f00 } }, /* a thread */
    { "clone", { SIGCHLD | 0x01200000 } }, /* fork of glibc */
    { "clone", { CLONE_VM | CLONE_VFORK | SIGCHLD } },
    { "wait4", { 0 } },
    { "kill", { 4711, SIGTERM } },
    { "memfd_create", { 0 } },
    { "pidfd_open", { 1 } },
    { "epoll_wait", { 3 } },
    { "futex", { 0 } },
    { "prctl", { 38, 1 } },
    { "seccomp", { 1 } },
    { "socket", { AF_UNIX, SOCK_STREAM } },
    { "socket", { AF_INET, SOCK_STREAM } },
    { "socket", { AF_INET6, SOCK_DGRAM } },
    { "socket", { AF_NETLINK, SOCK_RAW, 0 } },
    { "socketpair", { AF_UNIX, SOCK_DGRAM } },
    { "bind", { 3 } },
    { "listen", { 3 } },
    { "connect", { 3 } },
    { "sendmsg", { 3 } },
    { "chmod", { 0 } },
    { "renameat2", { 0 } },
    { "landlock_create_ruleset", { 0 } },
    { "inotify_add_watch", { 0 } },
    { "name_to_handle_at", { 0 } },
    { "sched_setscheduler", { 0 } },
    { "shmget", { 0 } },
    { "setsid", { 0 } },
    { "setpgid", { 0 } },
  };

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    for (size_t i = 0; i < MEM_COUNT(calls); i++) {
      if (number_of(BPF_NATIVE, calls[i].name) >= 0) /* newer architectures lack the older forms */
        expect(bits, calls[i], 0);
    }
  }
}

static void test_other_architectures(void **state)
{
  static const uint32_t strange[] = { 0, AUDIT_ARCH_MIPS64, AUDIT_ARCH_PPC64LE, AUDIT_ARCH_S390X, AUDIT_ARCH_RISCV64 };

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    bool foreign = options_of(bits).foreign;
    const struct call getpid = { "getpid", { 0 } };

    for (int number = 0; number < 500; number += 7) {
      struct seccomp_data data = { .nr = number };

      for (size_t i = 0; i < MEM_COUNT(strange); i++) {
        data.arch = strange[i];
        assert_int_equal(bpf_run(&filters[bits], &data), BPF_KILLED);
      }
#ifdef __x86_64__
      data.arch = BPF_NATIVE;
      data.nr |= 0x40000000; /* x32 */
      assert_int_equal(bpf_run(&filters[bits], &data), BPF_KILLED);
#endif
    }
    expect_as(bits, BPF_FOREIGN, &getpid, foreign ? 0 : BPF_KILLED);
  }
}

#ifdef __x86_64__
/* With the option, an i386 program meets the same answers. */
static void test_i386(void **state)
{
  static const struct {
    struct call call;
    int verdict;
  } rows[] = {
    { { "umount", { 0 } }, EPERM },
    { { "vm86", { 0 } }, EPERM },
    { { "vm86old", { 0 } }, EPERM },
    { { "stime", { 0 } }, EPERM },
    { { "clock_settime64", { 0 } }, EPERM },
    { { "socketcall", { 1 } }, ENOSYS },
    { { "socket", { AF_VSOCK, SOCK_STREAM } }, EAFNOSUPPORT },
    { { "socket", { AF_NETLINK, SOCK_RAW, 9 } }, EAFNOSUPPORT },
    { { "socket", { AF_INET, SOCK_STREAM } }, 0 },
    { { "socketpair", { AF_TIPC, SOCK_STREAM } }, EAFNOSUPPORT },
    { { "ioctl", { 0, TIOCSTI } }, EPERM },
    { { "ioctl", { 0, TCGETS } }, 0 },
    { { "clone", { CLONE_NEWNS | SIGCHLD } }, EPERM },
    { { "clone", { SIGCHLD } }, 0 },
    { { "unshare", { CLONE_NEWNS } }, EPERM },
    { { "personality", { 0xffffffff } }, 0 },
    { { "personality", { 0 } }, EPERM },
    { { "open", { 0 } }, 0 },
    { { "mmap2", { 0 } }, 0 },
  };

  (void)state;
  for (unsigned bits = 0; bits < OPTIONS; bits++) {
    struct syscalls_options options = options_of(bits);

    for (size_t i = 0; i < MEM_COUNT(rows) && options.foreign; i++)
      expect_as(bits, BPF_FOREIGN, &rows[i].call, rows[i].verdict);
    for (size_t i = 0; i < MEM_COUNT(always) && options.foreign; i++) {
      const struct call call = { .name = always[i].name };

      if (number_of(BPF_FOREIGN, call.name) >= 0)
        expect_as(bits, BPF_FOREIGN, &call, always[i].error);
    }
    if (options.foreign) {
      const struct call user = { "clone", { CLONE_NEWUSER | SIGCHLD } };
      const struct call term = { "kill", { 0, SIGTERM } };

      expect_as(bits, BPF_FOREIGN, &user, options.nesting ? 0 : EPERM);
      expect_as(bits, BPF_FOREIGN, &term, options.shared_session ? EPERM : 0);
    }
  }
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_always_refused),
    cmocka_unit_test(test_namespaces),
    cmocka_unit_test(test_terminal),
    cmocka_unit_test(test_socket_families),
    cmocka_unit_test(test_shared_session),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_traced_calls),
    cmocka_unit_test(test_ordinary_calls_pass),
    cmocka_unit_test(test_other_architectures),
#ifdef __x86_64__
    cmocka_unit_test(test_i386),
#endif
  };

  return cmocka_run_group_tests(tests, compile_all, NULL);
}
