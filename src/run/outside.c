/* Theory of operation
 *
 * A program like that is the user's own word, but what it leads to may not be. The command can write in the workspace,
 * in its private home and in what filesystem.write names, and it decides when the program runs: it plants first and
 * asks then. So, whatever it has planted there,
 *
 *   - the program, the one that its "#!" names and so on, and every symbolic link on the way to them lie elsewhere.
 *     Nobody inside can exchange one between this look and execve(2), since all of the way was seen to be elsewhere;
 *   - no argument holds the name of a place there, since it may be a script's;
 *   - PATH has no directory there, nor a relative one;
 *   - no variable leads there. Some tell a program to load code, or what else to run, by words that are no paths; they
 *     are left out whatever they hold;
 *   - the program runs in "/": what it looks for in its working directory is not the workspace's.
 *
 * What is left is what the program itself reads and runs by names of its own: settings in the home are the user's,
 * unless filesystem.write names them. A home that is writable as a whole is refused.
 */
#include "config.h"

#include "run/outside.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/span.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

#define LINKS_MAX 40 /* as the kernel's own */
#define SCRIPTS_MAX 5 /* the kernel follows no more "#!" either */
#define SCRIPT_LINE_BYTES 256

/* Loaders, interpreters and git. A name that ends in '*' stands for all that begin so. */
static const char *const code_variables[] = {
  "LD_*",      "GCONV_PATH",  "LOCPATH",          "BASH_ENV",      "BASH_FUNC_*", "ENV",   "SHELLOPTS", "BASHOPTS",
  "PS4",       "ZDOTDIR",     "PYTHON*",          "PERL*",         "RUBY*",       "GEM_*", "BUNDLE_*",  "NODE_OPTIONS",
  "NODE_PATH", "JAVA_TOOL_*", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH",   "LUA_*", "PHP*",      "GIT_*",
  "GIO_*",     "GTK_*",       "QT_PLUGIN_*",      "OPENSSL_*",     "SASL_PATH",
};

static int add_place(const char *path, struct strv *places)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r = strv_add(places, path);

  if (r == 0 && path_resolve(path, &object) == 0 && strcmp(object.real, path) != 0)
    r = strv_add(places, object.real);
  return r;
}

int outside_places(const struct policy *policy, const struct facts *facts, struct strv *ret_places)
{
  int r = add_place(facts->workspace, ret_places);

  if (r == 0 && facts->private_home)
    r = add_place(facts->private_home, ret_places);
  for (size_t i = 0; i < policy->write.count && r == 0; i++) {
    mem_autofree char *path = facts_expand(facts, policy->write.items[i].text);

    r = path ? add_place(path, ret_places) : -ENOMEM;
  }
  return r;
}

static bool is_in_a_place(const struct strv *places, const char *path)
{
  for (size_t i = 0; i < places->count; i++)
    if (path_is_within(path, places->items[i]))
      return true;
  return false;
}

/* What a symbolic link holds; NULL where there is none, or memory is short: errno is set. Caller frees. */
static char *read_link(const char *path)
{
  char target[PATH_MAX];
  struct statx stat;
  ssize_t n;

  /* Neither mounts anything nor asks a file server (sys/path.h). */
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &stat) < 0)
    return NULL;
  errno = EINVAL;
  if (!S_ISLNK(stat.stx_mode))
    return NULL;
  n = readlink(path, target, sizeof target);
  return n < 0 ? NULL : mem_strndup(target, (size_t)n);
}

enum step {
  STEP_ON,
  STEP_LINK, /* to be gone instead */
  STEP_PLACE,
};

/* Goes from *real by one name. Or -errno: the way ends here. */
static int go(const struct strv *places, struct span name, char **real, char **rest)
{
  mem_autofree char *part = mem_strndup(name.ptr, name.len);
  mem_autofree char *next = part ? path_normalise(*real, part) : NULL;
  mem_autofree char *target = NULL;
  mem_autofree char *whole = NULL;

  if (!next)
    return -ENOMEM;
  if (is_in_a_place(places, next))
    return STEP_PLACE;
  target = read_link(next);
  if (!target && errno != EINVAL)
    return -errno;
  if (!target) {
    free(*real);
    *real = mem_steal(next);
    return STEP_ON;
  }
  whole = path_join(target, *rest);
  if (!whole)
    return -ENOMEM;
  free(*rest);
  *rest = mem_steal(whole);
  return STEP_LINK;
}

int outside_is_writable(const struct strv *places, const char *path)
{
  mem_autofree char *real = mem_strndup("/", 1);
  mem_autofree char *rest = mem_strndup(path, strlen(path));
  int links = 0;
  int r = real && rest ? STEP_ON : -ENOMEM;

  while (r >= 0 && r != STEP_PLACE && *rest && links < LINKS_MAX) {
    mem_autofree char *whole = rest;
    size_t from = strspn(whole, "/");
    struct span name = { whole + from, strcspn(whole + from, "/") };
    const char *behind = name.ptr + name.len;

    if (from > 0)
      real[1] = '\0'; /* an absolute path, or link: slashes behind a name are taken off with it */
    behind += strspn(behind, "/");
    rest = mem_strndup(behind, strlen(behind));
    r = rest ? go(places, name, &real, &rest) : -ENOMEM;
    links += r == STEP_LINK;
  }
  return r == -ENOMEM ? r : r == STEP_PLACE;
}

/* Whether text holds the name of a place, wherever in it. */
static bool holds_a_place(const struct strv *places, const char *text)
{
  for (size_t i = 0; i < places->count; i++) {
    size_t len = strlen(places->items[i]);

    for (const char *at = strstr(text, places->items[i]); at; at = strstr(at + 1, places->items[i]))
      if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.", at[len]) || at[len] == '\0')
        return true;
  }
  return false;
}

/* Whether text holds a path that leads into a place, by its name or through links. 1, 0 or -ENOMEM. */
static int leads_inside(const struct strv *places, const char *text)
{
  int r = holds_a_place(places, text);

  while (r == 0 && *text) {
    size_t len = strcspn(text, ":;,= \t\n\"'()|&<>");
    mem_autofree char *word = mem_strndup(text, len);

    if (!word)
      return -ENOMEM;
    if (word[0] == '/')
      r = outside_is_writable(places, word);
    text += len + (text[len] != '\0');
  }
  return r;
}

/* What the first line of a script has behind its "#!"; false where it is none, or cannot be read. */
static bool read_script(const char *path, char line[SCRIPT_LINE_BYTES])
{
  fd_autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, line, SCRIPT_LINE_BYTES - 1);

  if (n < 2 || line[0] != '#' || line[1] != '!')
    return false;
  line[n] = '\0';
  line[strcspn(line, "\n")] = '\0';
  memmove(line, line + 2, strlen(line + 2) + 1);
  return true;
}

/* Judges a program, and what runs it. 0; -EPERM; -ENOMEM. */
static int judge(const struct strv *places, const char *path)
{
  mem_autofree char *program = mem_strndup(path, strlen(path));
  int r = program ? outside_is_writable(places, program) : -ENOMEM;
  char line[SCRIPT_LINE_BYTES];

  for (int i = 0; i < SCRIPTS_MAX && r == 0 && read_script(program, line); i++) {
    const char *word = line + strspn(line, " \t");
    size_t len = strcspn(word, " \t");

    r = leads_inside(places, word);
    free(program);
    program = mem_strndup(word, len);
    if (!program)
      return -ENOMEM;
  }
  return r == 1 ? -EPERM : r;
}

/* Looks at one place. 0 and the path; -ENOENT; -EPERM where the command may write it; -ENOMEM. */
static int try_program(const struct strv *places, const char *path, char **ret_path)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r;

  if (path_resolve(path, &object) < 0 || !S_ISREG(object.mode) || access(path, X_OK) < 0)
    return -ENOENT;
  r = judge(places, path);
  if (r < 0)
    return r;
  *ret_path = mem_strndup(path, strlen(path));
  return *ret_path ? 0 : -ENOMEM;
}

int outside_find_program(const struct strv *places, const struct facts *facts, const char *name, struct err *err,
                         char **ret_path)
{
  struct span rest = span_of(facts_getenv(facts, "PATH"));
  struct span part;
  bool refused = false;
  int r = name[0] == '/' ? try_program(places, name, ret_path) : -ENOENT;

  refused = r == -EPERM;
  while (!strchr(name, '/') && (r == -ENOENT || r == -EPERM) && span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    mem_autofree char *path = dir && dir[0] == '/' ? path_join(dir, name) : NULL;

    if (!dir || (dir[0] == '/' && !path))
      return OUT_OF_MEMORY(err);
    if (path)
      r = try_program(places, path, ret_path);
    refused |= r == -EPERM;
  }
  if (r == 0)
    return 0;
  if (r == -ENOMEM)
    return OUT_OF_MEMORY(err);
  if (refused)
    return err_set(err, EPERM,
                   "the program %s stands where the command inside may write, or what its \"#!\" names does; put it "
                   "elsewhere",
                   name);
  if (strchr(name, '/') && name[0] != '/')
    return err_set(err, EINVAL, "the program %s: a relative path; write an absolute one", name);
  return err_set(err, ENOENT, "the program %s was not found; install it, or name another source", name);
}

int outside_program(const struct strv *places, const struct facts *facts, const struct strv *argv, struct err *err,
                    char **ret_path)
{
  mem_autofree char *path = NULL;
  int r = outside_find_program(places, facts, argv->items[0], err, &path);

  /* Not quoted: it may hold anything. */
  for (size_t i = 1; i < argv->count && r == 0; i++) {
    r = leads_inside(places, argv->items[i]);
    if (r == 1)
      return err_set(err, EPERM,
                     "the program %s: its argument %zu names a place where the command inside may write; put what is "
                     "there elsewhere",
                     argv->items[0], i);
    if (r < 0)
      return OUT_OF_MEMORY(err);
  }
  if (r == 0)
    *ret_path = mem_steal(path);
  return r;
}

/* Whether a directory has a name that leads inside: a program that is called by it could be planted. 1, 0 or -ENOMEM.
 */
static int has_link_inside(const struct strv *places, const char *path)
{
  DIR *dir = opendir(path);
  struct dirent *entry;
  struct stat st;
  int r = 0;

  while (dir && r == 0 && (entry = readdir(dir))) {
    mem_autofree char *link = NULL;

    if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
      continue;
    link = path_join(path, entry->d_name);
    r = link ? outside_is_writable(places, link) : -ENOMEM;
  }
  if (dir)
    closedir(dir);
  return r;
}

/* PATH without relative directories, those that lead inside, and those with a name in them that does. */
static int add_path(const struct strv *places, const char *value, struct strv *environment)
{
  buf_autofree struct buf kept = BUF_INIT(strlen("PATH=") + strlen(value) + 1);
  struct span rest = span_of(value);
  struct span part;

  buf_append_str(&kept, "PATH=");
  while (span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    int r = dir ? dir[0] != '/' : -ENOMEM;

    if (r == 0)
      r = outside_is_writable(places, dir);
    if (r == 0)
      r = has_link_inside(places, dir);
    if (r < 0)
      return r;
    if (r)
      continue;
    if (kept.len > strlen("PATH="))
      buf_append_byte(&kept, ':');
    buf_append_str(&kept, dir);
  }
  return buf_error(&kept) ? buf_error(&kept) : strv_take(environment, buf_steal(&kept));
}

static bool is_code(const char *entry)
{
  size_t len = strcspn(entry, "=");

  for (size_t i = 0; i < MEM_COUNT(code_variables); i++) {
    const char *name = code_variables[i];
    size_t length = strlen(name);
    bool prefix = name[length - 1] == '*';

    if (prefix ? len >= length - 1 && strncmp(entry, name, length - 1) == 0
               : len == length && strncmp(entry, name, len) == 0)
      return true;
  }
  return false;
}

int outside_environment(const struct strv *places, const struct facts *facts, struct err *err,
                        struct strv *ret_environment)
{
  strv_autofree struct strv environment = STRV_INIT;
  int r = outside_is_writable(places, facts->home);

  if (r == 1)
    return err_set(err, EPERM,
                   "the whole home is where the command inside may write, and so are the settings of programs; make "
                   "less of it writable, or name a source that is no program");
  for (size_t i = 0; i < facts->environment.count && r == 0; i++) {
    const char *entry = facts->environment.items[i];

    if (strncmp(entry, "PATH=", strlen("PATH=")) == 0) {
      r = add_path(places, entry + strlen("PATH="), &environment);
    } else if (!is_code(entry)) {
      r = leads_inside(places, entry + strcspn(entry, "="));
      r = r == 0 ? strv_add(&environment, entry) : r < 0 ? r : 0;
    }
  }
  if (r < 0)
    return OUT_OF_MEMORY(err);
  *ret_environment = environment;
  environment = (struct strv)STRV_INIT;
  return 0;
}
