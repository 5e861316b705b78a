/* Theory of operation
 *
 * The command may call anything but what stands here. Isolation itself is the namespaces' and the mounts' work; the
 * filter takes away the kernel's large or easily misused parts, and the few calls that reach across the namespaces: the
 * terminal's input queue, the caller's process group, keyrings, and whatever would let a program make mounts of its own
 * (a mount namespace of its own would let it rename what a mask is mounted on, which detaches the mask everywhere).
 *
 * Arguments that the kernel reads as 32 bits are compared as 32 bits (F5). Answers are chosen so that honest programs
 * fall back: ENOSYS where libraries probe, EPERM or EAFNOSUPPORT where they report.
 */
#include "plan/syscalls.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "sys/trace.h"

#define LOW32 UINT64_C(0xffffffff)
#define FAMILIES 64 /* more than any kernel has (AF_MAX is 46 in Linux 6.18); what lies beyond it refuses by itself */

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define REFUSE(call, errno_value, why) \
  { .name = (call), .answer = SECCOMP_ERRNO, .error = (errno_value), .reason = (why) }
#define REFUSE_EQ(call, argument, bits, datum, errno_value, why) \
  { .name = (call), \
    .test = SECCOMP_ARG_EQ, \
    .arg = (argument), \
    .mask = (bits), \
    .value = (datum), \
    .answer = SECCOMP_ERRNO, \
    .error = (errno_value), \
    .reason = (why) }
#define REFUSE_NE(call, argument, datum, errno_value, why) \
  { .name = (call), \
    .test = SECCOMP_ARG_NE, \
    .arg = (argument), \
    .value = (datum), \
    .answer = SECCOMP_ERRNO, \
    .error = (errno_value), \
    .reason = (why) }

static const struct seccomp_row always[] = {
  /* Mounts: none of one's own, by either interface. */
  REFUSE("mount", EPERM, "mounts are the plan's"),
  REFUSE("umount", EPERM, "mounts are the plan's"),
  REFUSE("umount2", EPERM, "mounts are the plan's"),
  REFUSE("pivot_root", EPERM, "mounts are the plan's"),
  REFUSE("open_tree", EPERM, "new mount interface"),
  REFUSE("open_tree_attr", EPERM, "new mount interface"),
  REFUSE("move_mount", EPERM, "new mount interface"),
  REFUSE("fsopen", EPERM, "new mount interface"),
  REFUSE("fsconfig", EPERM, "new mount interface"),
  REFUSE("fsmount", EPERM, "new mount interface"),
  REFUSE("fspick", EPERM, "new mount interface"),
  REFUSE("mount_setattr", EPERM, "new mount interface"),
  REFUSE("setns", EPERM, "entry into other namespaces"),
  REFUSE_EQ("clone", 0, CLONE_NEWNS, CLONE_NEWNS, EPERM, "a mount namespace of its own could detach masks"),
  REFUSE_EQ("unshare", 0, CLONE_NEWNS, CLONE_NEWNS, EPERM, "a mount namespace of its own could detach masks"),
  REFUSE_EQ("clone", 0, CLONE_NEWCGROUP, CLONE_NEWCGROUP, EPERM, "cgroup namespace"),
  REFUSE_EQ("unshare", 0, CLONE_NEWCGROUP, CLONE_NEWCGROUP, EPERM, "cgroup namespace"),
  REFUSE_EQ("unshare", 0, CLONE_NEWTIME, CLONE_NEWTIME, EPERM, "time namespace"),
  /* Its flags lie in memory, where no filter can read them; libc falls back to clone. */
  REFUSE("clone3", ENOSYS, "flags cannot be judged; libc falls back"),

  /* Input that the host's shell would read as typed (CVE-2017-5226 and its kind). */
  REFUSE_EQ("ioctl", 1, LOW32, TIOCSTI, EPERM, "types into the terminal"),
  REFUSE_EQ("ioctl", 1, LOW32, TIOCLINUX, EPERM, "pastes into a virtual console"),
  REFUSE_EQ("ioctl", 1, LOW32, TIOCSETD, EPERM, "loads line disciplines (CVE-2023-31082 and its kind)"),

  /* Keyrings are not namespaced. */
  REFUSE("add_key", EPERM, "the host's keyrings"),
  REFUSE("request_key", EPERM, "the host's keyrings"),
  REFUSE("keyctl", EPERM, "the host's keyrings"),

  /* Large kernel interfaces with a history of local root. */
  REFUSE("bpf", EPERM, "kernel attack surface"),
  REFUSE("perf_event_open", EPERM, "kernel attack surface"),
  REFUSE("userfaultfd", EPERM, "widens kernel races"),
  REFUSE("io_uring_setup", ENOSYS, "does I/O past the filter; libraries fall back"),
  REFUSE("io_uring_enter", ENOSYS, "does I/O past the filter"),
  REFUSE("io_uring_register", ENOSYS, "does I/O past the filter"),
  REFUSE("modify_ldt", EPERM, "kernel attack surface (CVE-2015-5157)"),
  REFUSE("vm86", EPERM, "kernel attack surface"),
  REFUSE("vm86old", EPERM, "kernel attack surface"),
  REFUSE("uselib", EPERM, "obsolete"),
  REFUSE("lookup_dcookie", EPERM, "obsolete"),
  REFUSE("nfsservctl", EPERM, "obsolete"),
  REFUSE("_sysctl", ENOSYS, "obsolete"),
  REFUSE_NE("personality", 0, 0xffffffff, EPERM, "turns off address randomisation and more; the query passes"),

  /* Ways to an object that no path in the view leads to. */
  REFUSE("open_by_handle_at", EPERM, "opens files outside the view (CVE-2014-3519 and its kind)"),
  REFUSE("pidfd_getfd", EPERM, "takes descriptors of other processes"),

  /* The machine's, whoever calls. Most need a capability too; root's sandbox has none. */
  REFUSE("init_module", EPERM, "kernel modules"),
  REFUSE("finit_module", EPERM, "kernel modules"),
  REFUSE("delete_module", EPERM, "kernel modules"),
  REFUSE("kexec_load", EPERM, "another kernel"),
  REFUSE("kexec_file_load", EPERM, "another kernel"),
  REFUSE("reboot", EPERM, "the machine"),
  REFUSE("swapon", EPERM, "the machine"),
  REFUSE("swapoff", EPERM, "the machine"),
  REFUSE("acct", EPERM, "the machine"),
  REFUSE("quotactl", EPERM, "the machine"),
  REFUSE("quotactl_fd", EPERM, "the machine"),
  REFUSE("syslog", EPERM, "the kernel's log"),
  REFUSE("settimeofday", EPERM, "the machine's clock"),
  REFUSE("stime", EPERM, "the machine's clock"),
  REFUSE("clock_settime", EPERM, "the machine's clock"),
  REFUSE("clock_settime64", EPERM, "the machine's clock"),
  REFUSE("iopl", EPERM, "ports of the machine"),
  REFUSE("ioperm", EPERM, "ports of the machine"),
  REFUSE("vhangup", EPERM, "the caller's terminal"),

  /* One call that carries every socket call, its arguments in memory: 32-bit libc has the single calls as well. */
  REFUSE("socketcall", ENOSYS, "arguments cannot be judged; libc falls back"),

  /* Netlink other than NETLINK_ROUTE (0). */
  { .name = "socket",
    .test = SECCOMP_ARG_EQ,
    .arg = 0,
    .mask = LOW32,
    .value = AF_NETLINK,
    .answer = SECCOMP_ERRNO,
    .error = EAFNOSUPPORT,
    .reason = "only NETLINK_ROUTE",
    .also = SECCOMP_ARG_NE,
    .also_arg = 2,
    .also_value = 0 },
};

/* Namespaces that a browser's own sandbox makes together with a user namespace. */
static const uint64_t nestable[] = { CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS };

/* Signals of job control: to stop or continue one's own job is what Ctrl-Z does, outside processes of the job included.
 * Any other signal to process group 0 would reach processes of the host that share the job. */
static bool is_job_signal(int signal_number)
{
  return signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU || signal_number == SIGCONT ||
         signal_number == SIGWINCH;
}

/* A row that does not fit would be a call that passes. */
_Static_assert(MEM_COUNT(always) + 2 * FAMILIES + 2 * MEM_COUNT(nestable) + 64 + 64 + 8 <= SYSCALLS_ROWS_MAX,
               "SYSCALLS_ROWS_MAX is too small");

static void add(struct seccomp_row *rows, size_t *count, struct seccomp_row row)
{
  rows[(*count)++] = row;
}

/* socketpair(2) makes a socket, and loads the family's module, before it finds that the family has no pairs. */
static void add_families(struct seccomp_row *rows, size_t *count)
{
  static const char *const calls[] = { "socket", "socketpair" };

  for (size_t i = 0; i < MEM_COUNT(calls); i++) {
    for (uint64_t family = 0; family < FAMILIES; family++) {
      if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
        continue;
      add(rows, count, (struct seccomp_row)REFUSE_EQ(calls[i], 0, LOW32, family, EAFNOSUPPORT, "socket family (F6)"));
    }
  }
}

static void add_session(struct seccomp_row *rows, size_t *count)
{
  for (int signal_number = 1; signal_number <= 64; signal_number++) {
    struct seccomp_row row = REFUSE_EQ("kill", 0, LOW32, 0, EPERM, "the caller's process group");

    if (is_job_signal(signal_number))
      continue;
    row.also = SECCOMP_ARG_EQ;
    row.also_arg = 1;
    row.also_mask = LOW32;
    row.also_value = (uint64_t)signal_number;
    add(rows, count, row);
  }
  /* PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9; older kernels answer EINVAL as well. */
  add(rows, count, (struct seccomp_row)REFUSE_EQ("pidfd_send_signal", 3, 4, 4, EINVAL, "the caller's process group"));
  /* IOPRIO_WHO_PGRP is 2 */
  add(rows, count, (struct seccomp_row)REFUSE_EQ("ioprio_set", 0, LOW32, 2, EPERM, "the caller's process group"));
  /* PRIO_PGRP is 1 */
  add(rows, count, (struct seccomp_row)REFUSE_EQ("setpriority", 0, LOW32, 1, EPERM, "the caller's process group"));
}

static void add_traced(struct seccomp_row *rows, size_t *count)
{
  size_t call_count;
  const struct trace_call *calls = trace_calls(&call_count);

  for (size_t i = 0; i < call_count; i++)
    add(rows, count,
        (struct seccomp_row){ .name = calls[i].name,
                              .answer = SECCOMP_TRACE,
                              .error = (int)i,
                              .reason = "told to the tracer that learns paths" });
}

void syscalls_build(const struct syscalls_options *options, struct seccomp_row *rows, struct seccomp_filter *ret_filter)
{
  size_t count = 0;

  for (size_t i = 0; i < MEM_COUNT(always); i++)
    add(rows, &count, always[i]);
  add_families(rows, &count);
  for (size_t i = 0; i < MEM_COUNT(nestable) && !options->nesting; i++) {
    add(rows, &count, (struct seccomp_row)REFUSE_EQ("clone", 0, nestable[i], nestable[i], EPERM, "namespace"));
    add(rows, &count, (struct seccomp_row)REFUSE_EQ("unshare", 0, nestable[i], nestable[i], EPERM, "namespace"));
  }
  if (!options->ptrace) {
    add(rows, &count, (struct seccomp_row)REFUSE("ptrace", EPERM, "syscalls.ptrace is off"));
    add(rows, &count, (struct seccomp_row)REFUSE("process_vm_readv", EPERM, "syscalls.ptrace is off"));
    add(rows, &count, (struct seccomp_row)REFUSE("process_vm_writev", EPERM, "syscalls.ptrace is off"));
  }
  if (options->pin_cpus)
    add(rows, &count, (struct seccomp_row)REFUSE("sched_setaffinity", EPERM, "limits.cpus"));
  if (options->shared_session)
    add_session(rows, &count);
  if (options->trace_paths)
    add_traced(rows, &count);
  *ret_filter =
      (struct seccomp_filter){ .rows = rows, .count = count, .otherwise = SECCOMP_ALLOW, .foreign = options->foreign };
}
