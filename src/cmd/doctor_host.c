/* What stands round sbx on this machine: limits, PATH, the proxy, directories, policy files. */
#include "config.h"

#include "cmd/doctor.h"

#include "base/fd.h"
#include "cmd/cmd.h"
#include "cmd/context.h"
#include "plan/build.h"
#include "policy/upstream.h"
#include "sys/cgroup.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_TEXT_BYTES (64 * 1024)

static char *const no_environment[] = { NULL };

/* A cgroup is made, a process started in it, and both removed: writable files alone do not tell, since moving a process
 * needs more rights than that (cgroups(7), "Delegation containment"). 0 or -errno. */
static int try_cgroup(struct doctor *doctor, const struct cgroup_limits *limits, struct err *err)
{
  char *const argv[] = { doctor->self, (char[]){ "--version" }, NULL };
  buf_autofree struct buf text = BUF_INIT(HOST_TEXT_BYTES);
  mem_autofree char *path = NULL;
  int procs = -1;
  int status;
  int r = cgroup_make(limits, err, &path, &procs);

  if (r < 0)
    return r;
  r = doctor_exec(
      doctor,
      &(struct doctor_exec){ .program = doctor->self, .argv = argv, .envp = no_environment, .cgroup_procs = procs },
      err, &text, &text, &status);
  cgroup_remove(path, &procs);
  return r;
}

/* systemd gives a cgroup to what its user manager starts, and to that the controllers that it is told to. A session of
 * its own, as by ssh, stands beside the manager and gets none. */
static void mend_delegation(struct buf *mend)
{
  buf_autofree struct buf cgroup = BUF_INIT(HOST_TEXT_BYTES);
  const char *sudo = doctor_mend_sudo();

  if (access("/run/systemd/system", F_OK) < 0 || geteuid() == 0 ||
      fd_read_file(AT_FDCWD, "/proc/self/cgroup", &cgroup) < 0)
    return;
  if (!cgroup.data || !strstr(cgroup.data, "/user@"))
    buf_append_str(mend, "systemd-run --user --scope " SBX_NAME " run ...");
  else
    buf_printf(mend,
               "%smkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' | "
               "%stee /etc/systemd/system/user@.service.d/sbx.conf && %ssystemctl daemon-reload # and log in again",
               sudo, sudo, sudo);
}

void doctor_check_limits(struct doctor *doctor)
{
  static const struct {
    const char *option;
    struct cgroup_limits limits;
    const char *otherwise;
  } kinds[] = {
    { "--memory", { .memory_bytes = UINT64_C(256) * 1024 * 1024 }, "holds by rlimit, for each process" },
    { "--cpus", { .cpu_milli = 1000 }, "holds by processor affinity" },
    { "--pids", { .pids = 100 }, "holds by rlimit" },
  };
  buf_autofree struct buf mend = BUF_INIT(4096);
  bool root = geteuid() == 0;

  mend_delegation(&mend);
  for (size_t i = 0; i < MEM_COUNT(kinds) && !doctor->signal; i++) {
    struct err err = ERR_INIT;

    if (try_cgroup(doctor, &kinds[i].limits, &err) == 0)
      doctor_say(doctor, DOCTOR_OK, "limits", NULL, "%s holds by cgroup", kinds[i].option);
    else if (root && kinds[i].limits.pids)
      doctor_say(doctor, DOCTOR_WARN, "limits", mend.data,
                 "%s is refused: root's processes can only be limited by a cgroup (%s)", kinds[i].option, err.message);
    else
      doctor_say(doctor, DOCTOR_WARN, "limits", mend.data, "%s %s and not by cgroup: %s", kinds[i].option,
                 kinds[i].otherwise, err.message);
  }
}

/* The first program of our name on PATH. NULL where there is none, or memory is short. Caller frees. */
static char *find_on_path(const struct doctor *doctor, const char *name)
{
  struct span rest = span_of(facts_getenv(&doctor->facts, "PATH"));
  struct span part;

  while (rest.ptr && span_split(&rest, ':', &part)) {
    mem_autofree char *dir = part.len ? mem_strndup(part.ptr, part.len) : mem_strndup(".", 1);
    mem_autofree char *path = dir ? path_join(dir, name) : NULL;
    struct stat stat_buf;

    if (path && stat(path, &stat_buf) == 0 && S_ISREG(stat_buf.st_mode) && access(path, X_OK) == 0)
      return mem_steal(path);
  }
  return NULL;
}

void doctor_check_name(struct doctor *doctor)
{
  const char *name = strrchr(doctor->self, '/') + 1;
  mem_autofree char *dir = mem_strndup(doctor->self, (size_t)(name - doctor->self - 1));
  mem_autofree char *found = find_on_path(doctor, name);
  buf_autofree struct buf mend = BUF_INIT(8192);
  struct stat ours;
  struct stat theirs;

  if (!dir) {
    doctor->error = -ENOMEM;
    return;
  }
  buf_append_str(&mend, "export PATH=");
  doctor_mend_quote(dir, &mend);
  buf_append_str(&mend, ":\"$PATH\"");
  if (!found)
    doctor_say(doctor, DOCTOR_WARN, "PATH", mend.data, "holds no %s; it has to be called as %s", name, doctor->self);
  else if (stat(doctor->self, &ours) == 0 && stat(found, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino)
    doctor_say(doctor, DOCTOR_OK, "PATH", NULL, "%s is this program (%s)", found, doctor->self);
  else
    doctor_say(doctor, DOCTOR_WARN, "PATH", mend.data, "%s stands first and is another program than this one, %s",
               found, doctor->self);
}

/* It is started as it is: without its control socket it says so and ends. Only runs with credentials need the one with
 * tls. */
static void check_proxy(struct doctor *doctor, bool tls)
{
  const char *name = tls ? SBX_PROXY_TLS_NAME : SBX_PROXY_NAME;
  enum doctor_status fault = tls ? DOCTOR_WARN : DOCTOR_FAIL;
  mem_autofree char *program = NULL;
  mem_autofree char *own = mem_strndup(name, strlen(name));
  char *const argv[] = { own, NULL };
  buf_autofree struct buf text = BUF_INIT(HOST_TEXT_BYTES);
  struct err err = ERR_INIT;
  int status = 0;
  int r = own ? cmd_find_proxy(tls, &program) : -ENOMEM;

  if (r < 0) {
    doctor->error = r;
    return;
  }
  if (access(program, X_OK) < 0) {
    doctor_say(doctor, fault, name, NULL,
               "%s: %s; it belongs beside %s, or there: install both together (make install)", program, strerror(errno),
               doctor->self);
    return;
  }
  r = doctor_exec(doctor,
                  &(struct doctor_exec){ .program = program, .argv = argv, .envp = no_environment, .cgroup_procs = -1 },
                  &err, &text, &text, &status);
  if (r == -EINTR)
    return;
  if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE)
    doctor_say(doctor, DOCTOR_OK, name, NULL, "%s can be run", program);
  else
    doctor_say(doctor, fault, name, NULL, "%s cannot be run: %s", program,
               r < 0       ? err.message
               : text.data ? text.data
                           : "it died");
}

void doctor_check_proxy(struct doctor *doctor)
{
  check_proxy(doctor, false);
  if (!doctor->error)
    check_proxy(doctor, true);
}

/* Cuts path back to its nearest ancestor that exists. */
static void cut_to_existing(char *path, struct stat *ret_stat)
{
  while (stat(path, ret_stat) < 0) {
    char *slash = strrchr(path, '/');

    if (!slash || slash == path) {
      path[1] = '\0';
      (void)stat("/", ret_stat);
      return;
    }
    *slash = '\0';
  }
}

/* Says a fault of a directory with "COMMAND 'PATH'" as its mend. */
static void say_directory(struct doctor *doctor, enum doctor_status status, const char *name, const char *command,
                          const char *path, const char *fault)
{
  buf_autofree struct buf mend = BUF_INIT(16 * 1024);

  buf_append_str(&mend, command);
  doctor_mend_quote(path, &mend);
  doctor_say(doctor, status, name, mend.data, "%s %s", path, fault);
}

/* A directory that cannot be made yet is made with its owner; never is the owner of what lies above it changed. */
static void check_directory(struct doctor *doctor, const char *name, const char *path, bool ours_to_write)
{
  mem_autofree char *existing = mem_strndup(path, strlen(path));
  char own[128];
  char make[128];
  struct stat stat_buf;
  bool there;

  if (!existing) {
    doctor->error = -ENOMEM;
    return;
  }
  snprintf(own, sizeof own, "%schown -R %u:%u ", doctor_mend_sudo(), geteuid(), getegid());
  snprintf(make, sizeof make, "%sinstall -d -m 700 -o %u -g %u ", doctor_mend_sudo(), geteuid(), getegid());
  cut_to_existing(existing, &stat_buf);
  there = strcmp(existing, path) == 0;
  if (there && !S_ISDIR(stat_buf.st_mode))
    say_directory(doctor, DOCTOR_FAIL, name, "rm -i ", path, "is no directory");
  else if (there && stat_buf.st_uid != geteuid() && stat_buf.st_uid != 0)
    say_directory(doctor, ours_to_write ? DOCTOR_FAIL : DOCTOR_WARN, name, own, path, "belongs to another user");
  else if (ours_to_write && access(existing, W_OK | X_OK) < 0)
    say_directory(doctor, DOCTOR_FAIL, name, there ? own : make, path,
                  there ? "cannot be written" : "cannot be made; XDG_STATE_HOME can name another place");
  else if (there && (stat_buf.st_mode & (S_IWGRP | S_IWOTH)))
    say_directory(doctor, DOCTOR_WARN, name, "chmod go-w ", path, "can be written by other users");
  else
    doctor_say(doctor, DOCTOR_OK, name, NULL, "%s%s", path, there ? "" : " (made when it is needed)");
}

void doctor_check_directories(struct doctor *doctor)
{
  check_directory(doctor, "state directory", doctor->facts.state_dir, true);
  check_directory(doctor, "config directory", doctor->facts.config_dir, false);
}

/* The parent proxy, as these files and the variables have it. That it answers is not tried: it is not ours. */
static void check_upstream(struct doctor *doctor, const struct context *context)
{
  plan_upstream_autofree struct plan_upstream found = { .http = NULL };
  buf_autofree struct buf shown = BUF_INIT(1024);
  struct upstream upstream;
  struct err err = ERR_INIT;
  const char *url;

  if (plan_find_upstream(context->policy, &context->facts, &err, &found) < 0) {
    doctor_say(doctor, DOCTOR_FAIL, "parent proxy", NULL, "%s", err.message);
    return;
  }
  url = found.other ? found.other : found.http;
  if (!url || upstream_parse(span_of(url), true, &err, &upstream) < 0)
    return;
  upstream_print(&upstream, &shown);
  mem_wipe(&upstream, sizeof upstream);
  doctor_say(doctor, DOCTOR_OK, "parent proxy", NULL, "connections go through %s", shown.data ? shown.data : "");
}

/* The system's and the user's policy files; a project's are for sbx check. */
void doctor_check_policy(struct doctor *doctor)
{
  char root[] = "/";
  const struct opts opts = { .workspace = root, .audit_fd = -1 };
  context_autofree struct context context = CONTEXT_INIT;
  struct err err = ERR_INIT;

  if (context_load(&opts, &err, &context) < 0)
    doctor_say(doctor, DOCTOR_FAIL, "policy", NULL, "%s", err.message);
  else
    doctor_say(doctor, DOCTOR_OK, "policy", NULL, "the files of the system and of the user are sound");
  if (!err.code)
    check_upstream(doctor, &context);
}
