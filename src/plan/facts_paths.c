#include "plan/facts.h"

#include "base/fd.h"
#include "plan/facts_browser.h"
#include "plan/facts_hide.h"
#include "plan/view.h"
#include "policy/fspath.h"
#include "policy/limits.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FACTS_PROC_UNIX_BYTES (4 * 1024 * 1024)
#define FACTS_COPY_BYTES (256 * 1024)
#define FACTS_COPIES_MAX 64
#define FACTS_ROOTS_BYTES (4 * 1024 * 1024)

static int compare_paths(const void *a, const void *b)
{
  return strcmp(((const struct fact_path *)a)->asked, ((const struct fact_path *)b)->asked);
}

const struct fact_path *facts_path(const struct facts *facts, const char *path)
{
  mem_autofree char *copy = mem_strndup(path, strlen(path));
  struct fact_path key = { .asked = copy };

  if (!copy || !facts->path_count)
    return NULL;
  return bsearch(&key, facts->paths, facts->path_count, sizeof *facts->paths, compare_paths);
}

/* Adds a path and the directories above it, up to the root; and the root where it is the path. */
static int want_with_parents(struct strv *wanted, const char *path)
{
  mem_autofree char *dir = mem_strndup(path, strlen(path));
  char *slash;
  int r = !dir ? -ENOMEM : strcmp(path, "/") == 0 ? strv_add(wanted, path) : 0;

  while (r == 0 && dir[0] && dir[1]) {
    r = strv_add(wanted, dir);
    slash = strrchr(dir, '/');
    if (!slash || slash == dir)
      break;
    *slash = '\0';
  }
  return r;
}

/* The name of $VIRTUAL_ENV, or NULL. Caller frees. */
static char *name_venv(const struct facts *facts)
{
  const char *value = facts_getenv(facts, "VIRTUAL_ENV");
  mem_autofree char *path = value && value[0] == '/' ? path_normalise("/", value) : NULL;

  if (!path || !path_is_within(path, facts->home) || strcmp(path, facts->home) == 0 ||
      path_is_within(facts->workspace, path) || path_is_within(path, facts->workspace))
    return NULL;
  return mem_steal(path);
}

const struct fact_path *facts_venv(const struct facts *facts)
{
  mem_autofree char *path = name_venv(facts);
  mem_autofree char *mark = path ? path_join(path, "pyvenv.cfg") : NULL;
  const struct fact_path *fact = mark ? facts_path(facts, mark) : NULL;

  if (!fact || fact->error || !S_ISREG(fact->mode))
    return NULL;
  fact = facts_path(facts, path);
  return fact && !fact->error && path_is_within(fact->real, facts->home) ? fact : NULL;
}

static int want_venv(struct strv *wanted, const struct facts *facts)
{
  mem_autofree char *path = name_venv(facts);
  mem_autofree char *mark = path ? path_join(path, "pyvenv.cfg") : NULL;

  return mark ? want_with_parents(wanted, mark) : 0;
}

static int want_below(struct strv *wanted, const char *dir, const char *const *names)
{
  for (; *names; names++) {
    mem_autofree char *path = path_join(dir, *names);
    int r = path ? want_with_parents(wanted, path) : -ENOMEM;

    if (r < 0)
      return r;
  }
  return 0;
}

static int want_policy(struct strv *wanted, const struct facts *facts, const struct policy_paths *paths)
{
  for (size_t i = 0; i < paths->count; i++) {
    mem_autofree char *path = NULL;
    int r;

    if (fspath_is_pattern(paths->items[i].text))
      continue; /* its matches are in facts->hidden */
    path = facts_expand(facts, paths->items[i].text);
    r = path ? want_with_parents(wanted, path) : -ENOMEM;

    if (r < 0)
      return r;
  }
  return 0;
}

static int want_masks(struct strv *wanted, const struct view_mask *masks)
{
  int r = 0;

  for (; masks->path && r == 0; masks++)
    r = strv_add(wanted, masks->path);
  return r;
}

static int want_system(struct strv *wanted, const struct facts *facts)
{
  int r = want_below(wanted, "/", view_system_trees());

  if (r == 0)
    r = strv_add(wanted, "/etc/resolv.conf");
  if (r == 0)
    r = strv_add(wanted, "/etc/hosts");
  if (r == 0)
    r = want_below(wanted, "/", view_sys_trees());
  if (r == 0)
    r = want_masks(wanted, view_kernel_masks());
  if (r == 0 && facts->uid == 0)
    r = want_masks(wanted, view_kernel_masks_root());
  if (r == 0 && facts->uid == 0)
    r = want_below(wanted, "/", view_proc_readonly_root());
  if (r == 0 && facts->uid == 0)
    r = want_below(wanted, "/", view_etc_root_only());
  return r;
}

/* Every place where the command's program may lie: itself, or below each entry of PATH; below the home also where the
 * private home keeps that place. */
static int want_command(struct strv *wanted, const struct facts *facts, const char *path_variable, const char *command)
{
  struct span rest = span_of(path_variable);
  struct span part;
  int r = 0;

  if (strchr(command, '/')) {
    mem_autofree char *path = command[0] == '/' ? path_join(command, "") : path_join(facts->cwd, command);

    return path ? strv_add(wanted, path) : -ENOMEM;
  }
  while (r == 0 && span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    mem_autofree char *path = dir && dir[0] == '/' ? path_join(dir, command) : NULL;

    if (dir && dir[0] != '/')
      continue; /* an entry relative to wherever the caller stands: not followed */
    r = path ? strv_add(wanted, path) : -ENOMEM;
    if (r == 0 && path_is_within(path, facts->home)) {
      mem_autofree char *kept = path_join(facts->private_home, path + strlen(facts->home));

      r = kept ? strv_add(wanted, kept) : -ENOMEM;
    }
  }
  return r;
}

static int want_all(struct strv *wanted, const struct policy *policy, const char *path_variable, const char *command,
                    const struct facts *facts)
{
  mem_autofree char *git = path_join(facts->workspace, ".git");
  const char *const dirs[] = { facts->workspace, facts->cwd, facts->state_dir, facts->config_dir, facts->home };
  int r = want_system(wanted, facts);

  for (size_t i = 0; i < MEM_COUNT(dirs) && r == 0; i++)
    r = want_with_parents(wanted, dirs[i]);
  if (r == 0)
    r = git ? strv_add(wanted, git) : -ENOMEM;
  if (r == 0)
    r = want_below(wanted, facts->home, view_home_tools());
  if (r == 0)
    r = want_venv(wanted, facts);
  if (r == 0)
    r = want_below(wanted, facts->workspace, view_protected());
  if (r == 0)
    r = want_below(wanted, facts->home, view_home_secrets());
  if (r == 0)
    r = want_policy(wanted, facts, &policy->read);
  if (r == 0)
    r = want_policy(wanted, facts, &policy->write);
  if (r == 0)
    r = want_policy(wanted, facts, &policy->protect);
  if (r == 0)
    r = want_policy(wanted, facts, &policy->hide);
  if (r == 0)
    r = want_policy(wanted, facts, &policy->unix_sockets);
  for (size_t i = 0; i < facts->hidden.count && r == 0; i++)
    r = want_with_parents(wanted, facts->hidden.items[i]);
  for (size_t i = 0; i < facts->sockets.count && r == 0; i++)
    r = strv_add(wanted, facts->sockets.items[i]);
  if (r == 0 && command)
    r = want_command(wanted, facts, path_variable, command);
  return r;
}

static int look(struct fact_path *fact)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r = path_resolve_link(fact->asked, &object);

  if (r == 0 && S_ISLNK(object.mode)) {
    fact->link = true;
    path_object_free(&object);
    r = path_resolve(fact->asked, &object);
  }
  fact->error = r;
  if (r < 0)
    return r == -ENOMEM ? r : 0;
  fact->real = mem_steal(object.real);
  fact->mode = object.mode;
  fact->uid = object.uid;
  fact->device = object.device;
  fact->inode = object.inode;
  return 0;
}

static int look_at_all(struct strv *wanted, struct facts *facts)
{
  const char *missing = NULL; /* the last directory that is not there: nor is what would be in it */

  strv_sort(wanted);
  for (size_t i = 0; i < wanted->count; i++) {
    struct fact_path *fact;
    int r;

    if (i && strcmp(wanted->items[i], wanted->items[i - 1]) == 0)
      continue;
    r = mem_grow(&facts->paths, facts->path_count, &facts->path_cap, sizeof *facts->paths, STRV_MAX_DEFAULT);
    if (r < 0)
      return r;
    fact = &facts->paths[facts->path_count];
    *fact = (struct fact_path){ .asked = mem_strndup(wanted->items[i], strlen(wanted->items[i])) };
    if (!fact->asked)
      return -ENOMEM;
    facts->path_count++;
    if (missing && path_is_within(fact->asked, missing)) {
      fact->error = -ENOENT;
      continue;
    }
    r = look(fact);
    if (r < 0)
      return r;
    if (fact->error == -ENOENT && !fact->link)
      missing = wanted->items[i];
  }
  return 0;
}

/* Adds name as seen from every directory in which some process stands. */
static int add_relative_socket(struct facts *facts, const struct strv *dirs, struct span name)
{
  mem_autofree char *relative = mem_strndup(name.ptr, name.len);
  int r = relative ? 0 : -ENOMEM;

  for (size_t i = 0; i < dirs->count && r == 0; i++)
    r = strv_take(&facts->sockets, path_join(dirs->items[i], relative));
  return r;
}

/* The working directories of the processes that we may look at, ours and the workspace among them. */
static int read_directories(const struct facts *facts, struct strv *dirs)
{
  DIR *proc = opendir("/proc");
  struct dirent *entry;
  int r = strv_add(dirs, facts->workspace);

  while (r == 0 && proc && (entry = readdir(proc))) {
    char link[sizeof entry->d_name + 16];
    char target[4096];
    ssize_t len;

    if (!span_is_digit(entry->d_name[0]))
      continue;
    snprintf(link, sizeof link, "/proc/%s/cwd", entry->d_name);
    len = readlink(link, target, sizeof target - 1);
    if (len <= 0 || target[0] != '/')
      continue;
    target[len] = '\0';
    if (!strv_contains(dirs, target))
      r = strv_add(dirs, target);
  }
  if (proc)
    closedir(proc);
  return r;
}

/* The eighth column of a line of /proc/net/unix (proc(5)): the path, or empty. */
static struct span socket_path(struct span line)
{
  struct span field;

  for (int column = 0; column < 7; column++) {
    while (line.len && line.ptr[0] == ' ')
      line = span_sub(line, 1, line.len);
    if (!span_split(&line, ' ', &field) || !line.ptr)
      return (struct span)SPAN_INIT("");
  }
  return line;
}

/* Paths of the sockets that servers of the host have bound. A server that bound a relative path shows that one: it is
 * looked for below the directories in which processes stand now. */
static int read_sockets(struct facts *facts)
{
  buf_autofree struct buf text = BUF_INIT(FACTS_PROC_UNIX_BYTES);
  strv_autofree struct strv dirs = STRV_INIT;
  int r = fd_read_file(AT_FDCWD, "/proc/net/unix", &text);
  struct span rest;
  struct span line;

  if (r == -ENOENT)
    return 0;
  if (r < 0)
    return r;
  rest = buf_span(&text);
  (void)span_split(&rest, '\n', &line); /* the header */
  while (r == 0 && span_split(&rest, '\n', &line)) {
    struct span path = socket_path(line);

    if (!path.len || path.ptr[0] == '@')
      continue;
    if (path.ptr[0] == '/') {
      r = strv_add_span(&facts->sockets, path);
      continue;
    }
    if (!dirs.count)
      r = read_directories(facts, &dirs);
    if (r == 0)
      r = add_relative_socket(facts, &dirs, path);
  }
  return r;
}

static int copy_file(struct facts *facts, const char *path)
{
  buf_autofree struct buf text = BUF_INIT(FACTS_COPY_BYTES);
  struct fact_file *file;
  int r;

  if (fd_read_file(AT_FDCWD, path, &text) < 0)
    return 0; /* what the user may not read is not there inside */
  r = mem_grow(&facts->files, facts->file_count, &facts->file_cap, sizeof *facts->files, FACTS_COPIES_MAX);
  if (r < 0)
    return r == -E2BIG ? 0 : r;
  file = &facts->files[facts->file_count];
  *file = (struct fact_file){ .path = mem_strndup(path, strlen(path)), .text = buf_steal(&text), .mode = 0644 };
  facts->file_count++;
  return file->path && file->text ? 0 : -ENOMEM;
}

/* ssh refuses configuration that belongs neither to root nor to the user, and root is nobody inside (F32). The client's
 * files are small, so the sandbox gets copies that belong to the user; host keys are not among them. */
int facts_read_files(struct err *err, struct facts *facts)
{
  static const char included[] = "/etc/ssh/ssh_config.d";
  buf_autofree struct buf hosts = BUF_INIT(FACTS_COPY_BYTES);
  DIR *dir;
  struct dirent *entry;
  int r = copy_file(facts, "/etc/ssh/ssh_config");

  if (r == 0)
    r = copy_file(facts, "/etc/ssh/ssh_known_hosts");
  if (r == 0 && fd_read_file(AT_FDCWD, "/etc/hosts", &hosts) == 0)
    facts->hosts = buf_steal(&hosts);
  dir = opendir(included);
  while (r == 0 && dir && (entry = readdir(dir))) {
    mem_autofree char *path = path_join(included, entry->d_name);

    if (entry->d_name[0] != '.')
      r = path ? copy_file(facts, path) : -ENOMEM;
  }
  if (dir)
    closedir(dir);
  return r < 0 ? err_set_errno(err, -r, "reading ssh's configuration") : 0;
}

static bool has_roots(const struct facts *facts, const char *real)
{
  for (size_t i = 0; i < facts->root_count; i++) {
    if (strcmp(facts->roots[i].real, real) == 0)
      return true;
  }
  return false;
}

/* What cannot be read is not there for programs either. */
static int read_roots(struct facts *facts, const char *name)
{
  path_object_autofree struct path_object object = { .real = NULL };
  buf_autofree struct buf text = BUF_INIT(FACTS_ROOTS_BYTES);
  struct fact_roots *roots = &facts->roots[facts->root_count];

  if (path_resolve(name, &object) < 0 || !S_ISREG(object.mode) || has_roots(facts, object.real) ||
      fd_read_file(AT_FDCWD, object.real, &text) < 0)
    return 0;
  facts->root_count++;
  roots->real = mem_steal(object.real);
  roots->text = buf_steal(&text);
  return roots->text ? 0 : -ENOMEM;
}

/* Node.js has roots of its own and does not look at the system's, so it is told of a company's by this variable. */
static int read_extra_roots(struct facts *facts)
{
  const char *name = facts_getenv(facts, "NODE_EXTRA_CA_CERTS");
  path_object_autofree struct path_object object = { .real = NULL };
  buf_autofree struct buf text = BUF_INIT(FACTS_ROOTS_BYTES);

  if (!name || name[0] != '/' || path_resolve(name, &object) < 0 || !S_ISREG(object.mode) ||
      path_is_within(object.real, facts->workspace) || fd_read_file(AT_FDCWD, object.real, &text) < 0 ||
      text.len == 0 || strlen(text.data) != text.len || !strstr(text.data, "-----BEGIN CERTIFICATE-----"))
    return 0;
  facts->extra_roots = buf_steal(&text);
  return facts->extra_roots ? 0 : -ENOMEM;
}

/* The names that programs know it by: Debian's and others', Fedora's, openSUSE's, Alpine's. */
int facts_read_roots(struct err *err, struct facts *facts)
{
  static const char *const names[FACTS_ROOTS_MAX] = { "/etc/ssl/certs/ca-certificates.crt",
                                                      "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                                      "/etc/ssl/cert.pem" };

  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    if (read_roots(facts, names[i]) < 0)
      return err_set(err, ENOMEM, "out of memory");
  }
  return read_extra_roots(facts) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* The repository that a .git file (gitrepository-layout(5)) names: of a linked worktree the one that it belongs to. The
 * file may be of a command's making; what it names is only told. */
static int read_gitfile(struct facts *facts)
{
  mem_autofree char *path = path_join(facts->workspace, ".git");
  const struct fact_path *fact = path ? facts_path(facts, path) : NULL;
  buf_autofree struct buf text = BUF_INIT(LIMITS_PATH_BYTES);
  static const struct span prefix = SPAN_INIT("gitdir:");
  mem_autofree char *name = NULL;
  fd_autoclose int fd = -1;
  struct span line;
  char *worktrees;

  if (!fact || fact->error || !S_ISREG(fact->mode))
    return path ? 0 : -ENOMEM;
  fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || fd_read_all(fd, &text) < 0)
    return 0;
  line = span_sub(buf_span(&text), 0, span_find(buf_span(&text), '\n'));
  if (!span_starts_with(line, prefix))
    return 0;
  line = span_trim(span_sub(line, prefix.len, line.len));
  name = mem_strndup(line.ptr, line.len);
  facts->repository = name ? path_normalise(name[0] == '/' ? "/" : facts->workspace, name) : NULL;
  if (!facts->repository)
    return -ENOMEM;
  worktrees = strstr(facts->repository, "/.git/worktrees/");
  if (worktrees)
    worktrees[strlen("/.git")] = '\0';
  return 0;
}

int facts_read_paths(const struct policy *policy, const char *path_variable, const char *command, struct err *err,
                     struct facts *facts)
{
  strv_autofree struct strv wanted = STRV_INIT;
  int r = facts_hide_expand(policy, err, facts);

  if (r < 0)
    return r;
  r = read_sockets(facts);
  if (r < 0)
    return err_set_errno(err, -r, "/proc/net/unix");
  r = want_all(&wanted, policy, path_variable, command, facts);
  if (r == 0 && facts->certutil)
    r = facts_find_browsers(path_variable, facts, &wanted);
  if (r == 0)
    r = look_at_all(&wanted, facts);
  if (r == 0)
    r = read_gitfile(facts);
  return r < 0 ? err_set_errno(err, -r, "reading the host's paths") : 0;
}
