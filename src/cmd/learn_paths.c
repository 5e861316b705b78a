/* Theory of operation
 *
 * A call that failed inside would have gone well outside where the host has something there that the view has not.
 *
 *   at the path, outside                 in the view                        then
 *   nothing                              -                                  fails there too: nothing
 *   a file or directory                  not shown, or the sandbox's own    read it
 *   the same, to be changed              the same, or read-only             write it
 *   nothing, in a directory, to be made  the directory as above             write the directory
 *   anything                             protected, hidden                  told, not proposed
 *   a secret, a dot file of the home     -                                  told, not proposed
 *   parts of the system, to be changed   -                                  told, not proposed
 *   the home itself, or above it         -                                  told, not proposed
 *   a socket                             not shown, or masked               told, with the option that opens it
 *   what is the user's session's         -                                  told, not proposed
 *   what the caller may not do either    -                                  nothing
 *
 * Names that begin with a dot in the home are where programs keep their keys, and where every program looks first: they
 * are the user's to show, one by one.
 */
#include "config.h"

#include "cmd/learn_paths.h"

#include "plan/ops.h"
#include "policy/limits.h"
#include "policy/value.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATHS_MAX 4096

void learn_paths_free(struct learn_paths *paths)
{
  for (size_t i = 0; i < paths->count; i++)
    free(paths->items[i].path);
  free(paths->items);
  strv_free(&paths->refused);
}

static bool is_below_any(const char *path, const char *const *dirs)
{
  for (size_t i = 0; dirs[i]; i++) {
    if (path_is_within(path, dirs[i]))
      return true;
  }
  return false;
}

/* Names that hold keys wherever they lie. */
static bool has_secret_name(const char *path)
{
  static const char *const names[] = { ".env", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", NULL };
  static const char *const prefixes[] = { "id_", ".env.", NULL };
  static const char *const suffixes[] = { ".pem", ".key", ".p12", ".pfx", ".jks", ".kdbx", NULL };
  struct span name = span_of(strrchr(path, '/') + 1);

  for (size_t i = 0; names[i]; i++) {
    if (span_equal_str(name, names[i]))
      return true;
  }
  for (size_t i = 0; prefixes[i]; i++) {
    if (span_starts_with(name, span_of(prefixes[i])))
      return true;
  }
  for (size_t i = 0; suffixes[i]; i++) {
    size_t len = strlen(suffixes[i]);

    if (name.len > len && span_equal_str(span_sub(name, name.len - len, name.len), suffixes[i]))
      return true;
  }
  return false;
}

/* Why a path is not proposed, or NULL. */
static const char *why_not(const struct learn_paths *paths, const struct path_object *object, bool write)
{
  const char *path = object->real;
  static const char *const system[] = { "/usr",    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
                                        "/libx32", "/etc", "/opt",  "/nix", "/boot",  NULL };
  const char *home = paths->facts->home;
  const struct plan_op *op = ops_covering(paths->plan, path);

  if (S_ISSOCK(object->mode))
    return "a socket of the host, which is shut off on purpose; --unix-socket with its path opens it";
  if (path_is_within(home, path))
    return "it holds the whole home directory";
  if (path_is_within(path, home) && path[strlen(home) + 1] == '.')
    return "a dot file of the home; it may hold secrets";
  if (path_is_within(path, paths->facts->state_dir) || path_is_within(path, paths->facts->config_dir))
    return "it belongs to " SBX_NAME;
  if (path_is_within(path, "/run/user"))
    return "it belongs to a login session, with its sockets and keys";
  if (op && (op->kind == PLAN_MASK_FILE || op->kind == PLAN_MASK_DIR))
    return "it is hidden";
  if (has_secret_name(path))
    return "its name is one that secrets have";
  if (write && op && op->stage == PLAN_STAGE_PROTECT)
    return "it is protected";
  if (write && is_below_any(path, system) && !path_is_within(path, home))
    return "it is a part of the system";
  return NULL;
}

/* Whether the view has at this path what the host has. */
static bool is_shown(const struct plan *plan, const char *path, bool write)
{
  const struct plan_op *op = ops_covering(plan, path);

  if (!op || strcmp(op->source ? op->source : "", op->target) != 0)
    return false; /* nothing, or something of the sandbox's own */
  return op->kind == PLAN_BIND_RW || (op->kind == PLAN_BIND_RO && !write);
}

static void refuse(struct learn_paths *paths, const char *path, const char *why)
{
  buf_autofree struct buf line = BUF_INIT(3 * LIMITS_PATH_BYTES);

  buf_append_str(&line, path);
  buf_append_str(&line, ": ");
  buf_append_str(&line, why);
  if (!buf_error(&line) && paths->refused.count < PATHS_MAX && !strv_contains(&paths->refused, line.data) &&
      strv_add(&paths->refused, line.data) < 0)
    paths->incomplete = true;
}

static void propose(struct learn_paths *paths, const struct path_object *object, enum trace_want want)
{
  struct learn_path *item;

  for (size_t i = 0; i < paths->count; i++) {
    item = &paths->items[i];
    if (strcmp(item->path, object->real) == 0) {
      if (want > item->want)
        item->want = want;
      return;
    }
  }
  if (mem_grow(&paths->items, paths->count, &paths->cap, sizeof *item, PATHS_MAX) < 0) {
    paths->incomplete = true;
    return;
  }
  item = &paths->items[paths->count];
  *item = (struct learn_path){ .path = mem_strndup(object->real, strlen(object->real)),
                               .want = want,
                               .directory = S_ISDIR(object->mode) };
  if (item->path)
    paths->count++;
  else
    paths->incomplete = true;
}

/* The directory in which a name is to be made: the nearest one that exists. */
static int find_parent(const char *path, struct path_object *ret_object)
{
  mem_autofree char *text = mem_strndup(path, strlen(path));
  char *slash;

  while (text && (slash = strrchr(text, '/')) && slash != text) {
    *slash = '\0';
    if (path_resolve(text, ret_object) == 0)
      return 0;
  }
  return -ENOENT;
}

/* What the call needs of the host. */
static int find_object(const char *path, enum trace_want want, struct path_object *ret_object)
{
  int r = want == TRACE_ENTRY ? -ENOENT : path_resolve(path, ret_object);

  if (r == 0 || (want != TRACE_WRITE && want != TRACE_ENTRY))
    return r;
  return find_parent(path, ret_object);
}

void learn_paths_take(void *data, const char *path, enum trace_want want)
{
  static const char *const kernel[] = { "/proc", "/sys", "/dev", NULL };
  struct learn_paths *paths = data;
  path_object_autofree struct path_object object = { .real = NULL };
  mem_autofree char *text = path_normalise("/", path);
  bool write = want == TRACE_WRITE || want == TRACE_ENTRY;
  int access = write ? W_OK : want == TRACE_READ ? R_OK : F_OK;
  const char *why;

  if (!text || is_below_any(text, kernel) || find_object(text, want, &object) < 0 || is_below_any(object.real, kernel))
    return;
  if (S_ISSOCK(object.mode)) {
    write = false; /* it is shown read-only, and connected to with the right to write */
    access = W_OK;
  }
  /* What the caller may not do either would fail without a sandbox too. */
  if (is_shown(paths->plan, object.real, write) || faccessat(AT_FDCWD, object.real, access, AT_EACCESS) < 0)
    return;
  why = why_not(paths, &object, write);
  if (why)
    refuse(paths, want == TRACE_ENTRY ? text : object.real, why);
  else
    propose(paths, &object, want);
}

/* Whether another proposal makes this one needless. */
static bool is_covered(const struct learn_paths *paths, size_t index)
{
  const struct learn_path *item = &paths->items[index];

  for (size_t i = 0; i < paths->count; i++) {
    const struct learn_path *other = &paths->items[i];

    if (i == index)
      continue;
    /* It lies in a directory that is shown whole. */
    if (path_is_within(item->path, other->path) && other->want != TRACE_LOOK &&
        (other->want != TRACE_READ || item->want <= TRACE_READ))
      return true;
    /* A directory that was only looked at is there when something in it is shown. */
    if (item->want == TRACE_LOOK && item->directory && path_is_within(other->path, item->path))
      return true;
  }
  return false;
}

/* As a policy has it: below the home with "~". */
static int add_text(const struct learn_paths *paths, const struct learn_path *item, bool write, struct strv *list,
                    struct strv *notes)
{
  const struct key *key = keys_at(write ? KEY_WRITE : KEY_READ);
  const char *home = paths->facts->home;
  bool below = path_is_within(item->path, home);
  buf_autofree struct buf text = BUF_INIT(LIMITS_PATH_BYTES);
  struct err err = ERR_INIT;

  buf_append_str(&text, below ? "~" : "");
  buf_append_str(&text, item->path + (below ? strlen(home) : 0));
  if (buf_error(&text))
    return -ENOMEM;
  if (value_check(key, NULL, text.data, false, &err) < 0)
    return strv_addf(notes, "%s was tried, and cannot be written in a policy: %s", item->path, err.message);
  return strv_add(list, text.data);
}

int learn_paths_propose(const struct learn_paths *paths, struct strv *ret_read, struct strv *ret_write,
                        struct strv *ret_notes)
{
  int r = 0;

  for (size_t i = 0; i < paths->count && r == 0; i++) {
    const struct learn_path *item = &paths->items[i];
    bool write = item->want == TRACE_WRITE || item->want == TRACE_ENTRY;

    if (!is_covered(paths, i))
      r = add_text(paths, item, write, write ? ret_write : ret_read, ret_notes);
  }
  for (size_t i = 0; i < paths->refused.count && r == 0; i++)
    r = strv_addf(ret_notes, "tried, not proposed: %s", paths->refused.items[i]);
  if (r == 0 && paths->incomplete)
    r = strv_add(ret_notes, "more paths were tried than can be kept: some may be missing");
  strv_sort(ret_read);
  strv_sort(ret_write);
  return r;
}
