#include "cmd/context.h"

#include "base/fd.h"
#include "policy/keys.h"
#include "policy/limits.h"
#include "policy/validate.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTEXT_SYSTEM_POLICY "/etc/sbx/policy.json"

void context_free(struct context *context)
{
  facts_free(&context->facts);
  layers_free(context->layers);
  policy_free(context->policy);
  strv_free(&context->notes);
  strv_free(&context->files);
  *context = (struct context)CONTEXT_INIT;
}

char *context_trust_path(const struct facts *facts)
{
  mem_autofree char *dir = path_join(facts->state_dir, "trust");

  return dir ? path_join(dir, strrchr(facts->private_home, '/')) : NULL;
}

char *context_project_path(const struct facts *facts)
{
  mem_autofree char *dir = path_join(facts->config_dir, "projects");
  char *path = NULL;

  if (!dir || asprintf(&path, "%s%s.json", dir, strrchr(facts->private_home, '/')) < 0)
    return NULL;
  return path;
}

int context_read_workspace_file(const struct facts *facts, struct err *err, char **ret_path, struct buf *text)
{
  fd_autoclose int fd = -1;
  struct stat stat;
  int r;

  *ret_path = path_join(facts->workspace, ".sbx.json");
  if (!*ret_path)
    return err_set(err, ENOMEM, "out of memory");
  fd = open(*ret_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT)
    return -ENOENT;
  if (fd < 0 && errno == ELOOP)
    return err_set(err, EINVAL, "%s: is a symbolic link; put the file itself there", *ret_path);
  if (fd < 0 || fstat(fd, &stat) < 0)
    return err_set_errno(err, errno, "%s", *ret_path);
  if (!S_ISREG(stat.st_mode))
    return err_set(err, EINVAL, "%s: is not a regular file", *ret_path);
  r = fd_read_all(fd, text);
  return r < 0 ? err_set_errno(err, -r, "%s", *ret_path) : 0;
}

/* Trust is given to a text, not to a name: whoever changes the file has to be trusted anew. */
static int is_trusted(const struct facts *facts, struct span text, bool *ret_trusted)
{
  buf_autofree struct buf kept = BUF_INIT(LIMITS_POLICY_BYTES);
  mem_autofree char *path = context_trust_path(facts);

  if (!path)
    return -ENOMEM;
  *ret_trusted = fd_read_file(AT_FDCWD, path, &kept) == 0 && span_equal(buf_span(&kept), text);
  return 0;
}

static int note_file(struct context *context, const char *path, struct err *err)
{
  return strv_add(&context->files, path) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

static int add_workspace_file(struct err *err, struct context *context)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  mem_autofree char *path = NULL;
  int r = context_read_workspace_file(&context->facts, err, &path, &text);

  if (r == -ENOENT)
    return 0;
  if (r == 0)
    r = is_trusted(&context->facts, buf_span(&text), &context->trusted);
  if (r < 0)
    return r;
  context->trusted |= context->suppose_trust;
  context->workspace_file = true;
  r = note_file(context, path, err);
  return r < 0 ? r
               : layers_add_text(context->layers, context->trusted ? LAYER_WORKSPACE_TRUSTED : LAYER_WORKSPACE, path,
                                 buf_span(&text), err);
}

static int add_optional_file(struct context *context, enum layer_kind kind, const char *path, struct err *err)
{
  int r = layers_add_file(context->layers, kind, path, err);

  return r == -ENOENT ? 0 : r == 0 ? note_file(context, path, err) : r;
}

static int add_named_file(struct context *context, const char *path, struct err *err)
{
  int r = layers_add_file(context->layers, LAYER_FILE, path, err);

  if (r == -ENOENT)
    return err_set(err, ENOENT, "--policy %s: no such file", path);
  return r == 0 ? note_file(context, path, err) : r;
}

/* NAME=file:PATH with the path from where the user stands. NULL when memory is short. Caller frees. */
static char *credential_value(const struct facts *facts, const char *value)
{
  static const char mark[] = "=file:";
  const char *at = strchr(value, '=');
  const char *path = at && strncmp(at, mark, strlen(mark)) == 0 ? at + strlen(mark) : "";
  mem_autofree char *whole = NULL;
  char *changed = NULL;

  if (path[0] == '/' || path[0] == '~' || path[0] == '\0')
    return mem_strndup(value, strlen(value));
  whole = path_normalise(facts->cwd, path);
  if (!whole || asprintf(&changed, "%.*s%s", (int)(path - value), value, whole) < 0)
    return NULL;
  return changed;
}

/* A path on the command line is meant from where the user stands, one in a file from the workspace. Patterns are always
 * the workspace's. NULL when memory is short. Caller frees. */
static char *option_value(const struct facts *facts, const struct opts_setting *setting)
{
  const struct key *key = keys_find(span_of(setting->key));
  bool path = key && (key->type == KEY_TYPE_PATH || key->type == KEY_TYPE_PATTERN || key->type == KEY_TYPE_FILE);
  const char *value = setting->value;

  if (key && key->type == KEY_TYPE_CREDENTIAL)
    return credential_value(facts, value);
  if (!path || value[0] == '/' || value[0] == '~' || value[0] == '\0' || strpbrk(value, "*?"))
    return mem_strndup(value, strlen(value));
  return path_normalise(facts->cwd, value);
}

static int add_option(struct context *context, const struct opts_setting *setting, struct err *err)
{
  mem_autofree char *value = option_value(&context->facts, setting);

  return value ? layers_add_option(context->layers, setting->key, value, setting->option, err)
               : err_set(err, ENOMEM, "out of memory");
}

static int add_layers(const struct opts *opts, struct err *err, struct context *context)
{
  mem_autofree char *user = path_join(context->facts.config_dir, "policy.json");
  mem_autofree char *project = context_project_path(&context->facts);
  int r = user && project ? layers_add_profile(context->layers, "default", err) : err_set(err, ENOMEM, "out of memory");

  if (r == 0)
    r = add_optional_file(context, LAYER_SYSTEM, CONTEXT_SYSTEM_POLICY, err);
  if (r == 0)
    r = add_optional_file(context, LAYER_USER, user, err);
  if (r == 0)
    r = add_optional_file(context, LAYER_PROJECT, project, err);
  if (r == 0)
    r = add_workspace_file(err, context);
  for (size_t i = 0; i < opts->policy_files.count && r == 0; i++)
    r = add_named_file(context, opts->policy_files.items[i], err);
  for (size_t i = 0; i < opts->setting_count && r == 0; i++)
    r = add_option(context, &opts->settings[i], err);
  return r;
}

int context_load(const struct opts *opts, struct err *err, struct context *context)
{
  int r = facts_read_caller(opts->workspace, err, &context->facts);

  if (r < 0)
    return r;
  context->layers = layers_new();
  if (!context->layers)
    return err_set(err, ENOMEM, "out of memory");
  r = add_layers(opts, err, context);
  return r < 0 ? r : policy_validate(context->layers, err, &context->notes, &context->policy);
}

int context_widen(struct context *context, const char *const *rules, size_t count, const char *option, struct err *err,
                  struct policy **ret_before)
{
  strv_autofree struct strv notes = STRV_INIT;
  struct policy *wider = NULL;
  int r = 0;

  for (size_t i = 0; i < count && r == 0; i++)
    r = layers_add_option(context->layers, keys_at(KEY_ALLOW)->path, rules[i], option, err);
  if (r == 0)
    r = policy_validate(context->layers, err, &notes, &wider);
  if (r < 0)
    return r;
  *ret_before = context->policy;
  context->policy = wider;
  return 0;
}

void context_tell(const struct context *context)
{
  for (size_t i = 0; i < context->notes.count; i++)
    log_line(LOG_NOTICE, "%s", context->notes.items[i]);
}
