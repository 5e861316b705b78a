#include "config.h"

#include "sys/probe.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_FILE_BYTES 4096

int probe_number(const char *path, int64_t *ret_value)
{
  buf_autofree struct buf text = BUF_INIT(PROBE_FILE_BYTES);
  struct span digits;
  uint64_t value;
  int r = fd_read_file(AT_FDCWD, path, &text);

  if (r < 0)
    return r;
  digits = buf_span(&text);
  while (digits.len && digits.ptr[digits.len - 1] == '\n')
    digits.len--;
  r = num_parse_u64(digits, 0, INT64_MAX, &value);
  if (r == 0)
    *ret_value = (int64_t)value;
  return r;
}

int probe_userns_settings(struct err *err)
{
  int64_t value;

  if (probe_number("/proc/sys/user/max_user_namespaces", &value) == 0 && value == 0)
    return err_set(err, EPERM,
                   "user namespaces are turned off (user.max_user_namespaces = 0); to turn them on: "
                   "sudo sysctl -w user.max_user_namespaces=15000");
  if (geteuid() == 0)
    return 0;
  if (probe_number("/proc/sys/kernel/unprivileged_userns_clone", &value) == 0 && value == 0)
    return err_set(err, EPERM,
                   "user namespaces are for root only (kernel.unprivileged_userns_clone = 0); to allow them: "
                   "sudo sysctl -w kernel.unprivileged_userns_clone=1");
  if (probe_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", &value) == 0 && value == 1)
    return err_set(
        err, EPERM,
        "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1); to allow " SBX_NAME ": "
        "install its AppArmor profile as /etc/apparmor.d/" SBX_NAME " and run sudo apparmor_parser -r "
        "/etc/apparmor.d/" SBX_NAME);
  return 0;
}

int probe_userns(void)
{
  long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

  if (pid < 0)
    return -errno;
  if (pid == 0)
    _exit(0);
  return waitpid((pid_t)pid, NULL, 0) < 0 ? -errno : 0;
}

int probe_program(const char *name, char **ret_path)
{
  static const char *const dirs[] = { "/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin" };

  if (name[0] == '/') {
    *ret_path = access(name, X_OK) == 0 ? mem_strndup(name, strlen(name)) : NULL;
    return *ret_path ? 0 : -ENOENT;
  }
  for (size_t i = 0; i < MEM_COUNT(dirs); i++) {
    mem_autofree char *path = path_join(dirs[i], name);

    if (!path)
      return -ENOMEM;
    if (access(path, X_OK) == 0) {
      *ret_path = mem_steal(path);
      return 0;
    }
  }
  return -ENOENT;
}
