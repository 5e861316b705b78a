/* What the kernel offers, found by trying it: version numbers say nothing about what a distribution or a container has
 * added or taken away. */
#include "config.h"

#include "cmd/doctor.h"

#include "sys/landlock.h"
#include "sys/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each makes one harmless call. 0, or -errno. */

static int try_openat2(void)
{
  struct open_how how = { .flags = O_PATH | O_CLOEXEC };
  long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);

  return fd < 0 ? -errno : close((int)fd);
}

static int try_pidfd_open(void)
{
  long fd = syscall(SYS_pidfd_open, getpid(), 0);

  return fd < 0 ? -errno : close((int)fd);
}

static int try_close_range(void)
{
  return syscall(SYS_close_range, ~0U, ~0U, 0) < 0 ? -errno : 0;
}

static int try_memfd_create(void)
{
  long fd = syscall(SYS_memfd_create, "sbx-doctor", 3U /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);

  return fd < 0 ? -errno : close((int)fd);
}

static int try_seccomp(void)
{
  uint32_t action = SECCOMP_RET_KILL_PROCESS;

  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? -errno : 0;
}

static const struct {
  const char *name;
  int (*try)(void);
  enum doctor_status without; /* what it means when it is missing */
  const char *purpose;
} features[] = {
  { "openat2", try_openat2, DOCTOR_FAIL, "to verify what was mounted (Linux 5.6)" },
  { "memfd_create", try_memfd_create, DOCTOR_FAIL, "to hand the policy over (Linux 3.17)" },
  { "seccomp filters", try_seccomp, DOCTOR_FAIL, "to refuse system calls (Linux 4.14, CONFIG_SECCOMP_FILTER)" },
  { "close_range", try_close_range, DOCTOR_WARN, "to keep descriptors out (Linux 5.9)" },
  { "pidfd_open", try_pidfd_open, DOCTOR_WARN, "below the floor of " SBX_NAME ", Linux 5.15" },
};

static void check_landlock(struct doctor *doctor)
{
  int abi = landlock_abi();

  if (abi > 0)
    doctor_say(doctor, DOCTOR_OK, "kernel: Landlock", NULL, "ABI version %d", abi);
  else
    doctor_say(doctor, DOCTOR_WARN, "kernel: Landlock", NULL,
               "is not there or switched off; " SBX_PROXY_NAME
               " confines itself by its system call filter alone (Linux 5.13, "
               "and landlock in the lsm= list of the kernel's command line)");
}

void doctor_check_kernel(struct doctor *doctor)
{
  for (size_t i = 0; i < MEM_COUNT(features); i++) {
    int r = features[i].try();

    if (r == 0)
      doctor_say(doctor, DOCTOR_OK, "kernel", NULL, "%s", features[i].name);
    else
      doctor_say(doctor, features[i].without, "kernel", NULL, "%s is missing (%s), needed %s; use a newer kernel",
                 features[i].name, strerror(-r), features[i].purpose);
  }
  check_landlock(doctor);
}

/* What a child does in its new namespaces. */
static bool needs_nothing(void)
{
  return true;
}

/* AppArmor may let a user namespace be made and take its capabilities. */
static bool makes_mounts_private(void)
{
  return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool mounts_proc(void)
{
  return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* A child in new namespaces that tries what act does. 0 or -errno. */
static int try_namespaces(int flags, bool (*act)(void))
{
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  int status;

  if (pid < 0)
    return -errno;
  if (pid == 0)
    _exit(act() ? 0 : errno);
  if (waitpid((pid_t)pid, &status, 0) < 0)
    return -errno;
  return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Settings of the host that keep user namespaces from the caller. */
static const struct {
  const char *path;
  const char *name;
  int64_t bad;
  int64_t good;
  bool root_too;
} settings[] = {
  { "/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_mnt_namespaces", "user.max_mnt_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_pid_namespaces", "user.max_pid_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_net_namespaces", "user.max_net_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_ipc_namespaces", "user.max_ipc_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_uts_namespaces", "user.max_uts_namespaces", 0, 15000, true },
  { "/proc/sys/user/max_cgroup_namespaces", "user.max_cgroup_namespaces", 0, 15000, true },
  { "/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", 0, 1, false },
};

static bool explain_by_setting(struct doctor *doctor, const char *what)
{
  for (size_t i = 0; i < MEM_COUNT(settings); i++) {
    buf_autofree struct buf mend = BUF_INIT(4096);
    int64_t value;

    if (probe_number(settings[i].path, &value) < 0 || value != settings[i].bad ||
        (geteuid() == 0 && !settings[i].root_too))
      continue;
    buf_printf(&mend, "%ssysctl -w %s=%lld", doctor_mend_sudo(), settings[i].name, (long long)settings[i].good);
    doctor_say(doctor, DOCTOR_FAIL, "user namespaces", mend.data, "%s are turned off by %s = %lld", what,
               settings[i].name, (long long)value);
    return true;
  }
  return false;
}

static bool explain_by_apparmor(struct doctor *doctor)
{
  buf_autofree struct buf mend = BUF_INIT(16 * 1024);
  int64_t value;

  if (probe_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", &value) < 0 || value == 0)
    return false;
  doctor_mend_apparmor(doctor, &mend);
  doctor_say(
      doctor, DOCTOR_FAIL, "user namespaces", mend.data,
      "AppArmor keeps them from programs without a profile (kernel.apparmor_restrict_unprivileged_userns = %lld); "
      "the profile for " SBX_NAME " is %s",
      (long long)value, SBX_APPARMOR_PATH);
  return true;
}

static void explain_namespaces(struct doctor *doctor, const char *what, int error)
{
  const char *container = doctor_container();

  if (explain_by_setting(doctor, what) || (geteuid() != 0 && explain_by_apparmor(doctor)))
    return;
  if (container)
    doctor_say(doctor, DOCTOR_FAIL, "user namespaces",
               "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
               "--security-opt systempaths=unconfined (podman: unmask=ALL)",
               "%s are refused (%s) by the filter or profile of the container (%s) that this runs in", what,
               strerror(error), container);
  else if (error == ENOSPC || error == EUSERS)
    doctor_say(
        doctor, DOCTOR_FAIL, "user namespaces", NULL,
        "%s are refused (%s): a limit below /proc/sys/user is used up; end programs that hold namespaces, or raise it",
        what, strerror(error));
  else
    doctor_say(
        doctor, DOCTOR_FAIL, "user namespaces", NULL,
        "%s are refused (%s), though no setting of this machine does it: the kernel lacks them (CONFIG_USER_NS), or "
        "this runs under a system call filter or in a chroot; start it outside of that",
        what, strerror(error));
}

/* Where parts of /proc are covered, the kernel lets nobody have a new one that would show them. */
static void check_proc(struct doctor *doctor)
{
  int r = try_namespaces(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, mounts_proc);

  if (r == 0)
    doctor_say(doctor, DOCTOR_OK, "proc", NULL, "a new one can be mounted");
  else
    doctor_say(doctor, DOCTOR_FAIL, "proc",
               "start the container with --security-opt systempaths=unconfined (podman: --security-opt unmask=ALL)",
               "a new one cannot be mounted (%s): parts of the one here are covered, as container runtimes do",
               strerror(-r));
}

void doctor_check_namespaces(struct doctor *doctor)
{
  static const struct {
    int flag;
    const char *name;
  } kinds[] = {
    { CLONE_NEWUSER, "user namespaces" },     { CLONE_NEWNS, "mount namespaces" }, { CLONE_NEWPID, "pid namespaces" },
    { CLONE_NEWNET, "net namespaces" },       { CLONE_NEWIPC, "ipc namespaces" },  { CLONE_NEWUTS, "uts namespaces" },
    { CLONE_NEWCGROUP, "cgroup namespaces" },
  };

  for (size_t i = 0; i < MEM_COUNT(kinds); i++) {
    int r = try_namespaces(CLONE_NEWUSER | kinds[i].flag,
                           kinds[i].flag == CLONE_NEWNS ? makes_mounts_private : needs_nothing);

    if (r < 0) {
      explain_namespaces(doctor, kinds[i].name, -r);
      return;
    }
  }
  doctor_say(doctor, DOCTOR_OK, "user namespaces", NULL,
             "this user can make user, mount, pid, net, ipc, uts and cgroup namespaces, with capabilities in them");
  check_proc(doctor);
}
