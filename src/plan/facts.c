#include "plan/facts.h"

#include "base/fd.h"
#include "base/num.h"
#include "sys/landlock.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FACTS_PASSWD_BYTES (16 * 1024 * 1024)

void facts_free(struct facts *facts)
{
  for (size_t i = 0; i < facts->path_count; i++) {
    free(facts->paths[i].asked);
    free(facts->paths[i].real);
  }
  for (size_t i = 0; i < facts->file_count; i++) {
    free(facts->files[i].path);
    free(facts->files[i].text);
  }
  for (size_t i = 0; i < facts->root_count; i++) {
    free(facts->roots[i].real);
    free(facts->roots[i].text);
  }
  for (size_t i = 0; i < facts->java_count; i++) {
    free(facts->java[i].real);
    free(facts->java[i].bytes);
  }
  free(facts->paths);
  free(facts->files);
  free(facts->home);
  free(facts->cwd);
  free(facts->workspace);
  free(facts->state_dir);
  free(facts->config_dir);
  free(facts->private_home);
  free(facts->repository);
  free(facts->hosts);
  free(facts->extra_roots);
  free(facts->certutil);
  strv_free(&facts->environment);
  strv_free(&facts->browsers);
  strv_free(&facts->placeholders);
  strv_free(&facts->sockets);
  strv_free(&facts->hidden);
  strv_free(&facts->hide_idle);
  *facts = (struct facts)FACTS_INIT;
}

const char *facts_getenv(const struct facts *facts, const char *name)
{
  size_t len = strlen(name);

  for (size_t i = 0; i < facts->environment.count; i++) {
    const char *entry = facts->environment.items[i];

    if (strncmp(entry, name, len) == 0 && entry[len] == '=')
      return entry + len + 1;
  }
  return NULL;
}

char *facts_expand(const struct facts *facts, const char *policy_path)
{
  if (policy_path[0] == '/')
    return path_join(policy_path, "");
  if (policy_path[0] == '~' && (policy_path[1] == '\0' || policy_path[1] == '/'))
    return path_join(facts->home, policy_path + 1);
  if (strcmp(policy_path, ".") == 0)
    return path_join(facts->workspace, "");
  return path_join(facts->workspace, policy_path);
}

static int read_environment(struct facts *facts)
{
  for (char **entry = environ; entry && *entry; entry++) {
    int r = strv_add(&facts->environment, *entry);

    if (r < 0)
      return r;
  }
  return 0;
}

static int resolve_directory(const char *path, char **ret_real)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r = path_resolve(path, &object);

  if (r < 0)
    return r;
  if (!S_ISDIR(object.mode))
    return -ENOTDIR;
  *ret_real = mem_steal(object.real);
  return 0;
}

/* The home that passwd(5) gives a user, or NULL. The file itself is read: a lookup through the name service would load
 * whatever modules the host has for that into this process. Caller frees. */
static char *home_in_passwd(uid_t uid)
{
  buf_autofree struct buf text = BUF_INIT(FACTS_PASSWD_BYTES);
  struct span rest;
  struct span line;

  if (fd_read_file(AT_FDCWD, "/etc/passwd", &text) < 0)
    return NULL;
  rest = buf_span(&text);
  while (span_split(&rest, '\n', &line)) {
    struct span fields[6]; /* name, password, uid, gid, comment, home */
    uint64_t number;
    size_t count = 0;

    while (count < MEM_COUNT(fields) && span_split(&line, ':', &fields[count]))
      count++;
    if (count == MEM_COUNT(fields) && num_parse_u64(fields[2], 0, UINT32_MAX, &number) == 0 && number == uid)
      return mem_strndup(fields[5].ptr, fields[5].len);
  }
  return NULL;
}

static int read_home(struct err *err, struct facts *facts)
{
  const char *home = facts_getenv(facts, "HOME");
  mem_autofree char *listed = !home || home[0] != '/' ? home_in_passwd(facts->uid) : NULL;
  int r;

  if (!home || home[0] != '/')
    home = listed ? listed : "/nonexistent";
  r = resolve_directory(home, &facts->home);
  if (r == -ENOENT) /* a user without a home: an empty private one is made for this name */
    r = (facts->home = mem_strndup(home, strlen(home))) ? 0 : -ENOMEM;
  if (r < 0)
    return err_set_errno(err, -r, "home directory %s", home);
  if (strcmp(facts->home, "/") == 0)
    return err_set(err, EINVAL, "home directory: HOME is /, which cannot be a home; set HOME to a directory of yours");
  return 0;
}

/* $variable/sbx, or home/fallback/sbx where the variable is unset or, against the XDG specification, relative. */
static char *xdg_directory(const struct facts *facts, const char *variable, const char *fallback)
{
  const char *value = facts_getenv(facts, variable);
  mem_autofree char *base = NULL;

  if (value && value[0] == '/')
    return path_join(value, "sbx");
  base = path_join(facts->home, fallback);
  return base ? path_join(base, "sbx") : NULL;
}

/* The nearest directory from cwd upwards that holds .git, or NULL. The home and what lies above it do not count: a
 * repository of dotfiles must not make all of the home a workspace. */
static char *find_git_root(const struct facts *facts)
{
  mem_autofree char *dir = mem_strndup(facts->cwd, strlen(facts->cwd));

  while (dir && dir[1] && !path_is_within(facts->home, dir)) {
    mem_autofree char *git = path_join(dir, ".git");
    struct stat stat;

    if (git && lstat(git, &stat) == 0 && (S_ISDIR(stat.st_mode) || S_ISREG(stat.st_mode)))
      return mem_steal(dir);
    *strrchr(dir, '/') = '\0';
  }
  return NULL;
}

/* Directories that hold more than a project: refused unless --workspace names them. */
static const char *unfit_workspace(const struct facts *facts, const char *dir)
{
  static const char *const trees[] = { "/usr",  "/etc", "/bin",  "/sbin", "/lib", "/lib64",
                                       "/boot", "/dev", "/proc", "/sys",  "/run" };
  static const char *const exact[] = { "/tmp", "/var", "/var/tmp", "/opt", "/mnt", "/media", "/srv" };

  if (strcmp(dir, facts->home) == 0)
    return "is your home directory";
  if (path_is_within(facts->home, dir))
    return "holds your home directory";
  for (size_t i = 0; i < MEM_COUNT(trees); i++) {
    if (path_is_within(dir, trees[i]))
      return "belongs to the system";
  }
  for (size_t i = 0; i < MEM_COUNT(exact); i++) {
    if (strcmp(dir, exact[i]) == 0)
      return "is shared by the whole system";
  }
  return NULL;
}

static int find_workspace(const char *option, struct err *err, struct facts *facts)
{
  const char *unfit;
  int r;

  if (option) {
    r = resolve_directory(option, &facts->workspace);
    if (r < 0)
      return err_set_errno(err, -r, "--workspace %s", option);
  } else {
    facts->workspace = find_git_root(facts);
    if (!facts->workspace)
      facts->workspace = mem_strndup(facts->cwd, strlen(facts->cwd));
    if (!facts->workspace)
      return err_set(err, ENOMEM, "out of memory");
    unfit = unfit_workspace(facts, facts->workspace);
    if (unfit)
      return err_set(err, EINVAL,
                     "workspace: %s %s, which is too much to make writable; change into a project, or name a directory "
                     "with --workspace DIR",
                     facts->workspace, unfit);
  }
  return 0;
}

/* A file name for a workspace, one to one: '/' becomes '!', and '!' and '%' become %21 and %25. Names that would be too
 * long for a directory entry end in a hash. */
static char *workspace_key(const char *workspace)
{
  buf_autofree struct buf key = BUF_INIT(3 * 4096);
  uint64_t hash = UINT64_C(14695981039346656037);

  for (const char *at = workspace + 1; *at; at++) {
    hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    if (*at == '/')
      buf_append_byte(&key, '!');
    else if (*at == '!' || *at == '%')
      buf_printf(&key, "%%%02x", (unsigned)*at);
    else
      buf_append_byte(&key, *at);
  }
  if (key.len == 0)
    buf_append_str(&key, "%root");
  if (key.len > 200) {
    key.len = 180;
    buf_printf(&key, "%%%016llx", (unsigned long long)hash);
  }
  return buf_steal(&key);
}

static int name_directories(struct err *err, struct facts *facts)
{
  mem_autofree char *key = workspace_key(facts->workspace);
  mem_autofree char *homes = NULL;

  facts->state_dir = xdg_directory(facts, "XDG_STATE_HOME", ".local/state");
  facts->config_dir = xdg_directory(facts, "XDG_CONFIG_HOME", ".config");
  homes = facts->state_dir ? path_join(facts->state_dir, "home") : NULL;
  if (key && homes)
    facts->private_home = path_join(homes, key);
  if (!facts->config_dir || !facts->private_home)
    return err_set(err, ENOMEM, "out of memory");
  return 0;
}

int facts_read_caller(const char *workspace_option, struct err *err, struct facts *facts)
{
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int r;

  facts->uid = geteuid();
  facts->gid = getegid();
  facts->terminal = terminal >= 0;
  facts->landlock_abi = landlock_abi();
  fd_close(&terminal);
  r = read_environment(facts);
  if (r < 0)
    return err_set_errno(err, -r, "environment");
  r = read_home(err, facts);
  if (r < 0)
    return r;
  r = resolve_directory(".", &facts->cwd);
  if (r < 0)
    return err_set_errno(err, -r, "current directory; change into one that exists");
  r = find_workspace(workspace_option, err, facts);
  if (r < 0)
    return r;
  return name_directories(err, facts);
}
