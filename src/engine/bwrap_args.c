#include "engine/bwrap_args.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define BWRAP_ARGS_MAX 8990 /* it refuses 9,000 */

struct writer {
  struct buf *args; /* NUL-terminated options */
  size_t count; /* of options and values */
  const struct bwrap_fds *fds;
  size_t next_file; /* of fds->files */
  size_t next_late; /* of fds->late */
  const char *closed_dir;
};

static void arg_end(struct writer *writer)
{
  buf_append_byte(writer->args, '\0');
  writer->count++;
}

static void arg(struct writer *writer, const char *text)
{
  buf_append_str(writer->args, text);
  arg_end(writer);
}

static void args2(struct writer *writer, const char *option, const char *value)
{
  arg(writer, option);
  arg(writer, value);
}

static void args3(struct writer *writer, const char *option, const char *first, const char *second)
{
  args2(writer, option, first);
  arg(writer, second);
}

static void arg_mode(struct writer *writer, mode_t mode)
{
  arg(writer, "--perms");
  buf_printf(writer->args, "%04o", (unsigned)mode);
  arg_end(writer);
}

static void arg_fd(struct writer *writer, const char *option, int fd)
{
  arg(writer, option);
  buf_printf(writer->args, "%d", fd);
  arg_end(writer);
}

static int add_file(struct writer *writer, const struct plan_op *op)
{
  const struct bwrap_fds *fds = writer->fds;
  int fd;

  if (op->late ? writer->next_late == fds->late_count : writer->next_file == fds->file_count)
    return -E2BIG;
  fd = op->late ? fds->late[writer->next_late++] : fds->files[writer->next_file++];
  arg_mode(writer, op->mode);
  arg_fd(writer, op->kind == PLAN_COVER ? "--ro-bind-data" : "--file", fd);
  arg(writer, op->target);
  return 0;
}

static int add_op(struct writer *writer, const struct plan_op *op)
{
  switch (op->kind) {
  case PLAN_BIND_RO:
    args3(writer, "--ro-bind", op->source, op->target);
    return 0;
  case PLAN_BIND_RW:
    args3(writer, "--bind", op->source, op->target);
    return 0;
  case PLAN_TMPFS:
    arg_mode(writer, op->mode);
    args2(writer, "--tmpfs", op->target);
    return 0;
  case PLAN_DIR:
    arg_mode(writer, op->mode);
    args2(writer, "--dir", op->target);
    return 0;
  case PLAN_SYMLINK:
    args3(writer, "--symlink", op->source, op->target);
    return 0;
  case PLAN_FILE:
  case PLAN_COVER:
    return add_file(writer, op);
  case PLAN_PROC:
    args2(writer, "--proc", op->target);
    return 0;
  case PLAN_DEV:
    args2(writer, "--dev", op->target);
    return 0;
  case PLAN_MASK_FILE:
    /* A device on a mount without devices: open(2) gives EACCES to everybody, connect(2) ECONNREFUSED. */
    args3(writer, "--ro-bind", "/dev/null", op->target);
    return 0;
  case PLAN_MASK_DIR:
    args3(writer, "--ro-bind", writer->closed_dir, op->target);
    return 0;
  case PLAN_SEAL:
    args2(writer, "--remount-ro", op->target);
    return 0;
  }
  return -EINVAL;
}

static void add_env(struct writer *writer, const struct strv *env)
{
  arg(writer, "--clearenv");
  for (size_t i = 0; i < env->count; i++) {
    struct span entry = span_of(env->items[i]);
    size_t equals = span_find(entry, '=');

    arg(writer, "--setenv");
    buf_append(writer->args, span_sub(entry, 0, equals));
    arg_end(writer);
    buf_append(writer->args, span_sub(entry, equals + 1, entry.len));
    arg_end(writer);
  }
}

/* The marker comes last before the root is sealed. */
static void add_gate(struct writer *writer)
{
  arg_mode(writer, 0444);
  arg_fd(writer, "--file", writer->fds->gate);
  arg(writer, PLAN_MARKER);
}

static int add_ops(struct writer *writer, const struct plan_ops *ops, struct err *err)
{
  for (size_t i = 0; i < ops->count; i++) {
    const struct plan_op *op = &ops->items[i];
    int r;

    if (strcmp(op->target, PLAN_MARKER) == 0)
      continue; /* it is the gate */
    if (i + 1 == ops->count)
      add_gate(writer);
    r = add_op(writer, op);
    if (r < 0)
      return err_set_errno(err, -r, "%s", op->target);
  }
  return 0;
}

int bwrap_args_fit(size_t view, size_t command, struct err *err)
{
  if (view + command <= BWRAP_ARGS_MAX)
    return 0;
  return err_set(
      err, E2BIG,
      "engine: %zu arguments of the command and %zu for the view of files; bubblewrap accepts %d in all: hide "
      "or protect directories instead of the files in them, or pass the command's arguments in a file",
      command, view, BWRAP_ARGS_MAX);
}

int bwrap_args_write(const struct plan *plan, const struct bwrap_fds *fds, const char *closed_dir, struct err *err,
                     struct buf *args)
{
  static const char *const namespaces[] = { "--unshare-user", "--unshare-pid",    "--unshare-ipc",
                                            "--unshare-uts",  "--unshare-cgroup", "--cap-drop" };
  struct writer writer = { .args = args, .fds = fds, .closed_dir = closed_dir };
  int r;

  for (size_t i = 0; i < MEM_COUNT(namespaces); i++)
    arg(&writer, namespaces[i]);
  arg(&writer, "ALL");
  if (plan->network != PLAN_NETWORK_HOST)
    arg(&writer, "--unshare-net");
  args2(&writer, "--hostname", "sbx");
  arg_fd(&writer, "--json-status-fd", fds->status);
  arg_fd(&writer, "--block-fd", fds->release);
  arg_fd(&writer, "--seccomp", fds->filter);
  r = add_ops(&writer, &plan->ops, err);
  if (r < 0)
    return r;
  args2(&writer, "--chdir", plan->cwd);
  add_env(&writer, &plan->env);
  if (buf_error(args))
    return err_set_errno(err, -buf_error(args), "engine: arguments");
  return bwrap_args_fit(writer.count, plan->argv.count, err);
}
