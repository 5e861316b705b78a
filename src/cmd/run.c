#include "config.h"

#include "cmd/cmd.h"
#include "cmd/context.h"
#include "cmd/nested.h"
#include "cmd/planning.h"
#include "plan/print.h"
#include "policy/limits.h"
#include "sys/path.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_PLAN_TEXT_BYTES (16 * 1024 * 1024)

int cmd_find_proxy(bool tls, char **ret_path)
{
  const char *installed = tls ? SBX_PROXY_TLS_PATH : SBX_PROXY_PATH;
  path_object_autofree struct path_object self = { .real = NULL };
  char link[4096];
  ssize_t len = readlink("/proc/self/exe", link, sizeof link - 1);
  char *slash;

  if (len > 0) {
    link[len] = '\0';
    slash = strrchr(link, '/');
    if (slash)
      *slash = '\0';
    *ret_path = path_join(link, tls ? SBX_PROXY_TLS_NAME : SBX_PROXY_NAME);
    if (*ret_path && access(*ret_path, X_OK) == 0)
      return 0;
    free(*ret_path);
  }
  *ret_path = mem_strndup(installed, strlen(installed));
  return *ret_path ? 0 : -ENOMEM;
}

void cmd_tell_plan(const struct plan *plan)
{
  for (size_t i = 0; i < plan->warnings.count; i++)
    log_line(LOG_NOTICE, "%s", plan->warnings.items[i]);
  for (size_t i = 0; i < plan->notes.count; i++)
    log_line(LOG_DETAIL, "%s", plan->notes.items[i]);
  if (plan->env_left_out.count && log_enabled(LOG_DETAIL)) {
    buf_autofree struct buf names = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < plan->env_left_out.count; i++)
      buf_printf(&names, " %s", plan->env_left_out.items[i]);
    if (!buf_error(&names))
      log_line(LOG_DETAIL, "variables left out (--env NAME passes one):%s", names.data);
  }
}

static int print_plan(const struct plan *plan, bool json)
{
  buf_autofree struct buf text = BUF_INIT(RUN_PLAN_TEXT_BYTES);

  if (json)
    plan_print_json(plan, &text);
  else
    plan_print(plan, &text);
  return cmd_print(&text);
}

/* A directory of the host on a descriptor leads to everything beside and above it. */
static int check_descriptors(const struct opts *opts, struct err *err)
{
  for (size_t i = 0; i < opts->fd_count + 3; i++) {
    int fd = i < 3 ? (int)i : opts->fds[i - 3];
    struct stat stat;

    if (fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode))
      return err_set(
          err, EISDIR,
          "descriptor %d is a directory, through which the command would reach every file of the host; redirect "
          "it to a file, or show the directory with --read",
          fd);
  }
  return 0;
}

/* Fills what --ask needs. project is where a rule for the project goes. */
static int prepare_ask(const struct opts *opts, const struct policy *policy, const char *project, struct err *err,
                       struct ask_setup *ret_ask)
{
  int fd = opts->ask_fd;

  if (!opts->ask && opts->ask_ms)
    return err_set(err, EINVAL, "--ask-timeout: goes with --ask");
  if (opts->ask && policy->network != POLICY_NETWORK_PROXY)
    return err_set(err, EINVAL,
                   "--ask: network.mode is not \"proxy\", so there is nothing to ask about; add "
                   "--network proxy");
  for (size_t i = 0; i < opts->fd_count; i++) {
    if (opts->ask && opts->fds[i] == opts->ask_fd)
      return err_set(err, EINVAL, "--fd %d: is the descriptor of --ask, and the command must not answer for you",
                     opts->ask_fd);
  }
  if (opts->ask == ASK_TERMINAL) {
    fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
      return err_set_errno(err, errno, "--ask: there is no terminal to ask on; run it on one, or ask over --ask fd:N");
  }
  *ret_ask = (struct ask_setup){
    .channel = opts->ask, .fd = fd, .answer_ms = opts->ask_ms ? opts->ask_ms : LIMITS_ASK_MS, .project_file = project
  };
  return 0;
}

/* What has to be right before anything is started. */
static int check_surroundings(const struct opts *opts, const struct plan *plan, struct err *err, char **ret_proxy)
{
  int r = check_descriptors(opts, err);

  if (r < 0)
    return r;
  r = cmd_find_proxy(plan->tls, ret_proxy);
  if (r < 0)
    return err_set_errno(err, -r, "network: finding the proxy");
  if (plan->network == PLAN_NETWORK_PROXY && access(*ret_proxy, X_OK) < 0)
    return err_set_errno(err, errno, "network: %s, which this " SBX_NAME " belongs with; install both together",
                         *ret_proxy);
  r = spawn_close_inherited(NULL, 0);
  return r < 0 ? err_set_errno(err, -r, "start") : 0;
}

int cmd_fail_plan(const struct err *err, bool about_command)
{
  (void)cmd_fail(err);
  return about_command && err->code == ENOENT   ? RUN_EXIT_NOT_FOUND
         : about_command && err->code == EACCES ? RUN_EXIT_NOT_EXECUTABLE
                                                : RUN_EXIT_FAILED;
}

static int show_plan(const struct opts *opts, struct context *context, struct plan *plan)
{
  struct err err = ERR_INIT;
  bool about_command;

  if (planning_finish(context, &err, plan, &about_command) < 0)
    return cmd_fail_plan(&err, about_command);
  cmd_tell_plan(plan);
  return print_plan(plan, opts->json);
}

int cmd_start(const struct opts *opts, struct context *context, struct plan *plan, bool planned, int audit_fd,
              struct trace *trace, bool *ret_started)
{
  mem_autofree char *proxy = NULL;
  mem_autofree char *project = context_project_path(&context->facts);
  struct run_request request = { .policy = context->policy,
                                 .facts = &context->facts,
                                 .plan = plan,
                                 .keep_fds = opts->fds,
                                 .keep_count = opts->fd_count,
                                 .audit_fd = audit_fd,
                                 .summary = opts->summary,
                                 .trace = trace };
  struct run run = RUN_INIT;
  struct err err = ERR_INIT;
  bool about_command = false;
  int r = project ? check_surroundings(opts, plan, &err, &proxy) : err_set(&err, ENOMEM, "out of memory");

  if (r == 0)
    r = prepare_ask(opts, context->policy, project, &err, &request.ask);
  if (r == 0)
    r = run_prepare(&request, &err, &run);
  if (r < 0)
    return cmd_fail(&err);
  if (!planned && planning_finish(context, &err, plan, &about_command) < 0) {
    run_abandon(&run);
    return cmd_fail_plan(&err, about_command);
  }
  if (!planned)
    cmd_tell_plan(plan);
  request.proxy_program = proxy;
  return run_command(&request, &run, ret_started);
}

int cmd_run(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  struct err err = ERR_INIT;
  bool started = false;

  if (!args[0]) {
    err_set(&err, EINVAL, "run: no command given; for example: " SBX_NAME " run -- make test");
    return cmd_fail(&err);
  }
  if (opts->json && !opts->dry_run) {
    err_set(&err, EINVAL, "run: --json goes with --dry-run, whose plan it prints");
    return cmd_fail(&err);
  }
  if (nested_is_inside())
    return nested_run(opts, args);
  if (context_load(opts, &err, &context) < 0)
    return cmd_fail(&err);
  context_tell(&context);
  if (planning_begin(&context, args, !opts->dry_run, &err, &plan) < 0)
    return cmd_fail(&err);
  plan.ask = opts->ask != ASK_NOBODY;
  return opts->dry_run ? show_plan(opts, &context, &plan)
                       : cmd_start(opts, &context, &plan, false, opts->audit_fd, NULL, &started);
}

int cmd_shell(const struct opts *opts, char *const *args)
{
  const char *shell = getenv("SHELL");
  char fallback[] = "/bin/sh";
  mem_autofree char *name =
      shell && *shell ? mem_strndup(shell, strlen(shell)) : mem_strndup(fallback, strlen(fallback));
  char interactive[] = "-i";
  char *const command[] = { name, interactive, NULL };
  struct err err = ERR_INIT;

  if (args[0]) {
    err_set(&err, EINVAL, "shell: takes no command; use " SBX_NAME " run -- %s", args[0]);
    return cmd_fail(&err);
  }
  if (!name) {
    err_set(&err, ENOMEM, "out of memory");
    return cmd_fail(&err);
  }
  return cmd_run(opts, command);
}

int cmd_show(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  struct err err = ERR_INIT;

  if (args[0]) {
    err_set(&err, EINVAL, "show: takes no argument %s", args[0]);
    return cmd_fail(&err);
  }
  if (context_load(opts, &err, &context) < 0)
    return cmd_fail(&err);
  context_tell(&context);
  if (!opts->plan)
    return cmd_print_policy(context.policy);
  if (planning_make(&context, &err, &plan) < 0)
    return cmd_fail(&err);
  cmd_tell_plan(&plan);
  return print_plan(&plan, opts->json);
}
