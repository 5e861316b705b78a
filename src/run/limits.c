#include "run/limits.h"

#include "sys/cgroup.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Processes of the sandbox that are not the command's: pid 1 inside, and in a cgroup also the guard. */
#define LIMITS_OWN_PIDS 2

static struct cgroup_limits wanted(const struct plan *plan)
{
  return (struct cgroup_limits){ .memory_bytes = plan->limits.memory_bytes,
                                 .cpu_milli = plan->limits.cpu_milli,
                                 .pids = plan->limits.pids ? plan->limits.pids + LIMITS_OWN_PIDS : 0 };
}

int limits_prepare(const struct plan *plan, struct err *err, struct limits *limits)
{
  struct cgroup_limits want = wanted(plan);
  struct err why = ERR_INIT;

  if (!want.memory_bytes && !want.cpu_milli && !want.pids)
    return 0;
  if (cgroup_make(&want, &why, &limits->cgroup, &limits->procs_fd) == 0)
    return 0;
  if (want.cpu_milli % 1000)
    return err_set(err, ENOTSUP,
                   "limits.cpus: a fraction of a CPU needs a cgroup (%s); use a whole number, or leave the limit out",
                   why.message);
  /* The kernel exempts uid 0 of the host from RLIMIT_NPROC. */
  if (want.pids && geteuid() == 0)
    return err_set(err, ENOTSUP,
                   "limits.pids: root's processes can only be limited by a cgroup (%s); run as a user, or leave the "
                   "limit out",
                   why.message);
  return 0;
}

/* By its number: the C libraries disagree on the type of a resource. */
static int set_limit(pid_t pid, int resource, uint64_t value, const char *name, struct err *err)
{
  const struct {
    uint64_t soft;
    uint64_t hard;
  } limit = { .soft = value, .hard = value };

  if (syscall(SYS_prlimit64, pid, resource, &limit, NULL) == 0)
    return 0;
  if (errno == EPERM)
    return err_set(err, EPERM,
                   "limits.%s: %llu is more than your own hard limit (ulimit -H); ask for less, or leave it out", name,
                   (unsigned long long)value);
  return err_set_errno(err, errno, "limits.%s: prlimit", name);
}

/* As many processors as the limit allows, rounded up, beginning at one that differs from run to run. */
static int set_affinity(pid_t pid, uint64_t cpu_milli, struct err *err)
{
  size_t want = (size_t)((cpu_milli + 999) / 1000);
  cpu_set_t have;
  cpu_set_t chosen;
  size_t start;

  if (sched_getaffinity(0, sizeof have, &have) < 0)
    return err_set_errno(err, errno, "limits.cpus: sched_getaffinity");
  if (want >= (size_t)CPU_COUNT(&have))
    return 0;
  CPU_ZERO(&chosen);
  start = (size_t)getpid() % CPU_SETSIZE;
  for (size_t i = 0; i < CPU_SETSIZE && want; i++) {
    size_t cpu = (start + i) % CPU_SETSIZE;

    if (CPU_ISSET(cpu, &have)) {
      CPU_SET(cpu, &chosen);
      want--;
    }
  }
  if (sched_setaffinity(pid, sizeof chosen, &chosen) < 0)
    return err_set_errno(err, errno, "limits.cpus: sched_setaffinity");
  return 0;
}

int limits_apply(const struct plan *plan, const struct limits *limits, pid_t init, struct err *err)
{
  const struct plan_limits *want = &plan->limits;
  int r = 0;

  if (limits->cgroup)
    return 0;
  if (want->memory_bytes)
    r = set_limit(init, RLIMIT_DATA, want->memory_bytes, "memory", err);
  if (r == 0 && want->pids)
    r = set_limit(init, RLIMIT_NPROC, want->pids + 1, "pids", err);
  if (r == 0 && want->cpu_milli)
    r = set_affinity(init, want->cpu_milli, err);
  return r;
}

void limits_release(struct limits *limits)
{
  if (limits->cgroup)
    cgroup_remove(limits->cgroup, &limits->procs_fd);
  free(limits->cgroup);
  limits->cgroup = NULL;
}

const char *limits_means(const struct limits *limits)
{
  return limits->cgroup ? "a cgroup" : "rlimits, per process where the kernel has no other (setrlimit(2))";
}
