/* learn: runs a command with every public host allowed, and prints the smallest policy that would have let it pass.
 *
 * Everything else is as in `run`: files, system calls, privilege, and what the policy denies. Hosts are learnt from
 * the audit, which is written to a memory file and appended to where it belongs when the run has ended; paths by
 * tracing the command (sys/trace.h).
 */
#include "config.h"

#include "cmd/cmd.h"
#include "cmd/context.h"
#include "cmd/learn_hosts.h"
#include "cmd/learn_paths.h"
#include "cmd/nested.h"
#include "cmd/planning.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "run/audit_file.h"
#include "sys/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEARN_TEXT_BYTES (16 * 1024 * 1024)

/* Every public host. The transparent front listens on the ports that rules name one by one: those below 1024 on every
 * address, the others on the addresses of each name that is looked up. Ports that servers of a project's own like to
 * take, such as 8080, are left to them. "*:*" is for programs that use the proxy. */
static const char *const everything[] = {
  "*",     "*:21",  "*:22",  "*:25",  "*:110",  "*:143",  "*:389",  "*:465",  "*:587",   "*:636", "*:853",
  "*:873", "*:990", "*:993", "*:995", "*:3306", "*:5432", "*:8443", "*:9418", "*:27017", "*:*",
};

struct learn {
  const struct opts *opts;
  struct context *context;
  struct policy *before; /* the user's policy, without everything */
  int output; /* standard output, or the directory of the file that the policy goes to */
  int named; /* the audit that the user has named, or -1 */
  int record; /* the audit of this run */
  struct learn_paths paths;
};

/* What follows the directory in the name of the file. */
static const char *output_name(const struct opts *opts)
{
  const char *slash = strrchr(opts->output, '/');

  return slash ? slash + 1 : opts->output;
}

/* The directory is opened before the start, so that the command cannot lead us to another; the file is written when the
 * command has ended, and a refused run leaves it as it is. */
static int open_directory(const struct opts *opts, struct err *err, int *ret_fd)
{
  const char *name = output_name(opts);
  mem_autofree char *dir = mem_strndup(opts->output, (size_t)(name - opts->output));
  fd_autoclose int fd = dir ? open(dir[0] ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  struct err cause = ERR_INIT;

  if (!dir)
    return err_set(err, ENOMEM, "out of memory");
  if (fd < 0)
    return err_set_errno(err, errno, "--output %s: its directory", opts->output);
  if (!name[0] || replace_check(fd, name, &cause) < 0)
    return err_set(
        err, EINVAL,
        "--output %s: %s; name a regular file, or leave --output out, and the policy goes to standard output "
        "after what the command writes",
        opts->output, name[0] ? cause.message : "is a directory");
  if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
    return err_set_errno(err, errno, "--output %s: its directory", opts->output);
  *ret_fd = fd_steal(&fd);
  return 0;
}

static int open_output(const struct opts *opts, struct err *err, int *ret_fd)
{
  int fd;

  if (opts->output)
    return open_directory(opts, err, ret_fd);
  fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd < 0)
    return err_set_errno(err, errno, "standard output");
  *ret_fd = fd;
  return 0;
}

static int open_all(struct learn *learn, struct err *err)
{
  const struct run_request request = { .policy = learn->context->policy,
                                       .facts = &learn->context->facts,
                                       .audit_fd = learn->opts->audit_fd };
  int r = open_output(learn->opts, err, &learn->output);

  if (r == 0 && audit_is_named(&request)) {
    learn->named = audit_file_open(&request, err);
    r = learn->named < 0 ? learn->named : 0;
  }
  if (r < 0)
    return r;
  learn->record = memfd_create("sbx-learn", MFD_CLOEXEC);
  if (learn->record < 0 || fcntl(learn->record, F_SETFL, O_APPEND) < 0)
    return err_set_errno(err, errno, "record");
  return 0;
}

static int read_record(struct learn *learn, struct err *err, struct buf *text)
{
  int r = lseek(learn->record, 0, SEEK_SET) < 0 ? -errno : fd_read_all(learn->record, text);

  return r < 0 ? err_set_errno(err, -r, "record") : 0;
}

/* The audit goes where that of `run` would have gone. */
static int keep_audit(struct learn *learn, struct span text, struct err *err)
{
  const struct run_request request = { .policy = learn->context->policy,
                                       .facts = &learn->context->facts,
                                       .audit_fd = -1 };
  int r = 0;

  if (learn->named < 0 && text.len)
    learn->named = audit_file_open(&request, err);
  if (text.len)
    r = learn->named < 0 ? learn->named : fd_write_all(learn->named, text);
  return r < 0 && !err->code ? err_set_errno(err, -r, "audit") : r;
}

static void print_list(const char *name, const struct strv *list, bool first, struct buf *out)
{
  if (!list->count)
    return;
  buf_printf(out, "%s\n    \"%s\": [", first ? "" : ",", name);
  for (size_t i = 0; i < list->count; i++) {
    buf_append_str(out, i ? ",\n      " : "\n      ");
    buf_append_json(out, span_of(list->items[i]));
  }
  buf_append_str(out, "\n    ]");
}

/* The lists that there are, as a policy file. */
static void print_policy(const struct strv *read, const struct strv *write, const struct strv *allow, struct buf *out)
{
  bool files = read->count || write->count;

  buf_append_str(out, files || allow->count ? "{\n" : "{");
  if (files) {
    buf_append_str(out, "  \"filesystem\": {");
    print_list("read", read, true, out);
    print_list("write", write, !read->count, out);
    buf_append_str(out, allow->count ? "\n  },\n" : "\n  }\n");
  }
  if (allow->count) {
    buf_append_str(out, "  \"network\": {");
    print_list("allow", allow, true, out);
    buf_append_str(out, "\n  }\n");
  }
  buf_append_str(out, "}\n");
}

/* What was learnt is not lost with the file. */
static int put_policy(const struct learn *learn, const struct buf *text, struct err *err)
{
  const char *file = learn->opts->output;
  int r = buf_error(text);

  if (r == 0 && file)
    r = replace_file(learn->output, output_name(learn->opts), 0666, buf_span(text));
  else if (r == 0)
    r = fd_write_all(learn->output, buf_span(text));
  if (r == 0)
    return 0;
  if (file && !buf_error(text))
    (void)cmd_print(text);
  return err_set_errno(err, -r, "%s", file ? file : "standard output");
}

static int write_policy(struct learn *learn, struct err *err)
{
  buf_autofree struct buf audit = BUF_INIT(LIMITS_AUDIT_BYTES + 64 * 1024);
  buf_autofree struct buf text = BUF_INIT(LEARN_TEXT_BYTES);
  strv_autofree struct strv rules = STRV_INIT;
  strv_autofree struct strv read = STRV_INIT;
  strv_autofree struct strv write = STRV_INIT;
  strv_autofree struct strv notes = STRV_INIT;
  int r = read_record(learn, err, &audit);

  if (r == 0)
    r = keep_audit(learn, buf_span(&audit), err);
  if (r == 0)
    r = learn_hosts(learn->before, buf_span(&audit), err, &rules, &notes);
  if (r == 0 && learn_paths_propose(&learn->paths, &read, &write, &notes) < 0)
    r = err_set(err, ENOMEM, "out of memory");
  if (r < 0)
    return r;
  print_policy(&read, &write, &rules, &text);
  for (size_t i = 0; i < notes.count; i++)
    log_line(LOG_NOTICE, "%s", notes.items[i]);
  return put_policy(learn, &text, err);
}

static int run(struct learn *learn, char *const *args)
{
  plan_autofree struct plan plan = PLAN_INIT;
  struct trace *trace = NULL;
  struct err err = ERR_INIT;
  bool about_command = false;
  bool started = false;
  int status;

  if (learn->context->policy->network == POLICY_NETWORK_HOST)
    log_line(LOG_NOTICE, "network.mode is \"host\": which hosts are reached cannot be learnt");
  if (planning_begin(learn->context, args, true, &err, &plan) < 0 ||
      planning_finish(learn->context, &err, &plan, &about_command) < 0)
    return cmd_fail_plan(&err, about_command);
  cmd_tell_plan(&plan);
  if (open_all(learn, &err) < 0)
    return cmd_fail(&err);
  learn->paths.facts = &learn->context->facts;
  learn->paths.plan = &plan;
  if (!learn->opts->hosts_only) {
    trace = trace_new(learn_paths_take, &learn->paths);
    if (!trace) {
      err_set(&err, ENOMEM, "out of memory");
      return cmd_fail(&err);
    }
    plan.syscalls.trace_paths = true;
  }
  status = cmd_start(learn->opts, learn->context, &plan, true, learn->record, trace, &started);
  trace_free(trace);
  if (started && write_policy(learn, &err) < 0)
    return cmd_fail(&err);
  return status;
}

int cmd_learn(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  struct learn learn = { .opts = opts, .context = &context, .output = -1, .named = -1, .record = -1 };
  struct err err = ERR_INIT;
  int status;

  if (!args[0])
    err_set(&err, EINVAL, "learn: no command given; for example: " SBX_NAME " learn -- make test");
  else if (nested_is_inside())
    err_set(&err, ENOTSUP, "learn: cannot be done here, inside a sandbox of " SBX_NAME ", whose policy stays as it is");
  else if (context_load(opts, &err, &context) == 0)
    (void)context_widen(&context, everything, MEM_COUNT(everything), "learn", &err, &learn.before);
  if (err.code)
    return cmd_fail(&err);
  context_tell(&context);
  status = run(&learn, args);
  policy_free(learn.before);
  learn_paths_free(&learn.paths);
  fd_close(&learn.output);
  fd_close(&learn.named);
  fd_close(&learn.record);
  return status;
}
