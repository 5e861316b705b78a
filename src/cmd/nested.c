#include "config.h"

#include "cmd/nested.h"

#include "cmd/cmd.h"
#include "plan/plan.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef SECCOMP_MODE_FILTER
#define SECCOMP_MODE_FILTER 2
#endif

bool nested_is_inside(void)
{
  struct statvfs root;
  struct stat marker;

  return lstat(PLAN_MARKER, &marker) == 0 && S_ISREG(marker.st_mode) && statvfs("/", &root) == 0 &&
         (root.f_flag & ST_RDONLY) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
         prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

int nested_run(const struct opts *opts, char *const *args)
{
  const char *refused = opts->setting_count        ? opts->settings[0].option
                        : opts->policy_files.count ? "--policy"
                        : opts->workspace          ? "--workspace"
                        : opts->fd_count           ? "--fd"
                        : opts->audit_fd >= 0      ? "--audit"
                        : opts->ask                ? "--ask"
                        : opts->dry_run            ? "--dry-run"
                                                   : NULL;
  struct err err = ERR_INIT;

  if (refused) {
    err_set(&err, ENOTSUP,
            "%s: cannot be honoured here, inside a sandbox of " SBX_NAME ", whose policy stays as it is; leave the "
            "option out",
            refused);
    return cmd_fail(&err);
  }
  log_line(LOG_DETAIL, "already inside a sandbox; the command runs in it as it is");
  execvp(args[0], args);
  err_set_errno(&err, errno, "%s", args[0]);
  (void)cmd_fail(&err);
  return err.code == ENOENT || err.code == ENOTDIR ? RUN_EXIT_NOT_FOUND : RUN_EXIT_NOT_EXECUTABLE;
}
