/* Commands about policy files: check, init, trust; and the printing that show shares. */
#include "config.h"

#include "cmd/cmd.h"
#include "cmd/context.h"
#include "cmd/planning.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "policy/print.h"
#include "policy/validate.h"
#include "sys/path.h"
#include "sys/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int cmd_print_policy(const struct policy *policy)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);

  policy_print(policy, false, &text);
  return cmd_print(&text);
}

static int check_one(const char *path, struct err *err, struct strv *notes)
{
  layers_autofree struct layers *layers = layers_new();
  policy_autofree struct policy *policy = NULL;
  int r = layers ? layers_add_file(layers, LAYER_FILE, path, err) : err_set(err, ENOMEM, "out of memory");

  if (r == -ENOENT && !err->code)
    return err_set(err, ENOENT, "%s: no such file", path);
  return r < 0 ? r : policy_validate(layers, err, notes, &policy);
}

/* What was looked at, and what came of it. Each list may be empty. */
struct checked {
  struct strv files;
  struct strv notes;
};

static void checked_free(struct checked *checked)
{
  strv_free(&checked->files);
  strv_free(&checked->notes);
}

static void append_list(const char *name, const struct strv *list, struct buf *out)
{
  buf_printf(out, ", \"%s\": [", name);
  for (size_t i = 0; i < list->count; i++) {
    buf_append_str(out, i ? ", " : "");
    buf_append_json(out, span_of(list->items[i]));
  }
  buf_append_byte(out, ']');
}

static int print_check(const struct opts *opts, int r, const struct err *err, const struct checked *checked)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);

  if (!opts->json) {
    for (size_t i = 0; i < checked->files.count; i++)
      log_line(LOG_NOTICE, "read %s", checked->files.items[i]);
    for (size_t i = 0; i < checked->notes.count; i++)
      log_line(LOG_NOTICE, "%s", checked->notes.items[i]);
    if (r < 0)
      return cmd_fail(err);
    buf_append_str(&text, "ok\n");
    return cmd_print(&text);
  }
  buf_printf(&text, "{\"ok\": %s, \"error\": ", r < 0 ? "false" : "true");
  if (r < 0)
    buf_append_json(&text, span_of(err->message));
  else
    buf_append_str(&text, "null");
  append_list("files", &checked->files, &text);
  append_list("notes", &checked->notes, &text);
  buf_append_str(&text, "}\n");
  return cmd_print(&text) || r < 0 ? RUN_EXIT_FAILED : 0;
}

/* What a run here would have, up to its plan: a policy may be sound and ask for what this machine has not. */
static int check_here(const struct opts *opts, struct err *err, struct checked *checked)
{
  context_autofree struct context context = CONTEXT_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  int r = context_load(opts, err, &context);

  if (r == 0)
    r = planning_make(&context, err, &plan);
  checked->files = context.files;
  checked->notes = context.notes;
  context.files = context.notes = (struct strv)STRV_INIT;
  for (size_t i = 0; i < plan.warnings.count && r == 0; i++)
    r = strv_add(&checked->notes, plan.warnings.items[i]) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
  return r;
}

int cmd_check(const struct opts *opts, char *const *args)
{
  MEM_CLEANUP(checked_free) struct checked checked = { .files = STRV_INIT, .notes = STRV_INIT };
  struct err err = ERR_INIT;
  int r;

  if (args[0] && args[1]) {
    err_set(&err, EINVAL, "check: one FILE at a time");
    return cmd_fail(&err);
  }
  r = args[0] ? check_one(args[0], &err, &checked.notes) : check_here(opts, &err, &checked);
  return print_check(opts, r, &err, &checked);
}

/* Files that tell which profile suits a project. */
static const struct {
  const char *file;
  const char *profile;
} init_hints[] = {
  { ".git", "git" },
  { "package.json", "node" },
  { "pyproject.toml", "python" },
  { "requirements.txt", "python" },
  { "setup.py", "python" },
  { "Cargo.toml", "rust" },
  { "go.mod", "go" },
};

static void init_text(const struct facts *facts, struct buf *out)
{
  const char *before = NULL;

  buf_append_str(out, "// What commands may do in this project: " SBX_POLICY_PAGE "(5). " SBX_NAME
                      " takes from this file only what narrows,\n"
                      "// until you run `" SBX_NAME " trust`.\n"
                      "{\n"
                      "  \"extends\": [");
  for (size_t i = 0; i < MEM_COUNT(init_hints); i++) {
    mem_autofree char *path = path_join(facts->workspace, init_hints[i].file);

    if (!path || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
        (before && strcmp(before, init_hints[i].profile) == 0))
      continue;
    buf_printf(out, "%s\"%s\"", before ? ", " : "", init_hints[i].profile);
    before = init_hints[i].profile;
  }
  buf_append_str(out, "],\n"
                      "  \"filesystem\": {\n"
                      "    \"hide\": [],\n"
                      "    \"protect\": []\n"
                      "  },\n"
                      "  \"network\": {\n"
                      "    \"allow\": [],\n"
                      "    \"deny\": []\n"
                      "  }\n"
                      "}\n");
}

int cmd_init(const struct opts *opts, char *const *args)
{
  facts_autofree struct facts facts = FACTS_INIT;
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  mem_autofree char *path = NULL;
  fd_autoclose int fd = -1;
  struct err err = ERR_INIT;
  int r;

  if (args[0])
    r = err_set(&err, EINVAL, "init: takes no argument %s", args[0]);
  else
    r = facts_read_caller(opts->workspace, &err, &facts);
  if (r < 0)
    return cmd_fail(&err);
  path = path_join(facts.workspace, ".sbx.json");
  if (!path)
    return cmd_fail(&(struct err){ .code = ENOMEM, .message = "out of memory" });
  init_text(&facts, &text);
  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0 && errno == EEXIST)
    err_set(&err, EEXIST, "%s: exists already; edit it, or remove it first", path);
  else if (fd < 0)
    err_set_errno(&err, errno, "%s", path);
  else if ((r = fd_write_all(fd, buf_span(&text))) < 0)
    err_set_errno(&err, -r, "%s", path);
  if (err.code)
    return cmd_fail(&err);
  log_line(LOG_NOTICE, "wrote %s", path);
  log_line(LOG_NOTICE, "what it allows counts once it is trusted; look at it, then: " SBX_NAME " trust");
  return 0;
}

/* In one step, so that a run never reads half of it. */
static int keep_text(const struct facts *facts, struct span text, struct err *err)
{
  mem_autofree char *path = context_trust_path(facts);
  char *slash = path ? strrchr(path, '/') : NULL;
  fd_autoclose int dir = -1;
  int r;

  if (!slash)
    return err_set(err, ENOMEM, "out of memory");
  *slash = '\0';
  r = path_make_all(path, err);
  if (r < 0)
    return r;
  dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  r = dir < 0 ? -errno : replace_file(dir, slash + 1, 0600, text);
  return r < 0 ? err_set_errno(err, -r, "%s/%s", path, slash + 1) : 0;
}

/* What would be trusted has to be a policy that can be loaded. */
static int check_text(const char *path, struct span text, struct err *err)
{
  layers_autofree struct layers *layers = layers_new();
  policy_autofree struct policy *policy = NULL;
  strv_autofree struct strv notes = STRV_INIT;
  int r = layers ? layers_add_text(layers, LAYER_WORKSPACE_TRUSTED, path, text, err)
                 : err_set(err, ENOMEM, "out of memory");

  if (r == 0)
    r = policy_validate(layers, err, &notes, &policy);
  for (size_t i = 0; i < notes.count && r == 0; i++)
    log_line(LOG_NOTICE, "%s", notes.items[i]);
  return r;
}

int cmd_trust(const struct opts *opts, char *const *args)
{
  facts_autofree struct facts facts = FACTS_INIT;
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  mem_autofree char *path = NULL;
  struct err err = ERR_INIT;
  int r = args[0] ? err_set(&err, EINVAL, "trust: takes no argument %s", args[0]) : 0;

  if (r == 0)
    r = facts_read_caller(opts->workspace, &err, &facts);
  if (r == 0)
    r = context_read_workspace_file(&facts, &err, &path, &text);
  if (r == -ENOENT && !err.code)
    r = err_set(&err, ENOENT, "%s: there is none to trust; " SBX_NAME " init makes one", path);
  if (r == 0)
    r = check_text(path, buf_span(&text), &err);
  if (r == 0)
    r = keep_text(&facts, buf_span(&text), &err);
  if (r < 0)
    return cmd_fail(&err);
  log_line(LOG_NOTICE, "trusted %s as it is now; after any change it has to be trusted again", path);
  return 0;
}
