#include "plan/facts_hide.h"

#include "base/fd.h"
#include "policy/fspath.h"
#include "policy/limits.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
  struct span pattern; /* relative to base */
  const char *text; /* the pattern as the policy has it, for messages */
  const char *base;
  size_t depth_max; /* parts of a pattern without "**"; SIZE_MAX with it */
  size_t entries;
  struct strv *found;
  struct err *err;
};

static int walk_directory(struct walk *walk, int fd, const char *relative, size_t depth);

static void close_dir(DIR **dir)
{
  if (*dir)
    closedir(*dir);
}

/* The directory name in dir, unless a file system is mounted there: looking into one may hang (F30). */
static int open_below(struct walk *walk, int dir, const char *name, const char *relative)
{
  struct statx stat;
  int fd;

  if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &stat) < 0)
    return errno == ENOENT ? -ENOENT
                           : err_set_errno(walk->err, errno, "hide %s: %s/%s", walk->text, walk->base, relative);
  if (stat.stx_attributes & (STATX_ATTR_AUTOMOUNT | STATX_ATTR_MOUNT_ROOT))
    return err_set(walk->err, EXDEV,
                   "hide %s: another file system is mounted at %s/%s and is not searched; hide that directory, or name "
                   "the files",
                   walk->text, walk->base, relative);
  fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno != ENOENT)
    return err_set_errno(walk->err, errno, "hide %s: %s/%s cannot be searched", walk->text, walk->base, relative);
  return fd < 0 ? -ENOENT : fd;
}

static int is_directory(int dir, const struct dirent *entry)
{
  struct stat stat;

  if (entry->d_type != DT_UNKNOWN)
    return entry->d_type == DT_DIR;
  return fstatat(dir, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 && S_ISDIR(stat.st_mode);
}

static int visit(struct walk *walk, int dir, const struct dirent *entry, const char *parent, size_t depth)
{
  mem_autofree char *relative =
      *parent ? path_join(parent, entry->d_name) : mem_strndup(entry->d_name, strlen(entry->d_name));
  int fd;

  if (!relative)
    return err_set(walk->err, ENOMEM, "out of memory");
  if (++walk->entries > LIMITS_HIDE_ENTRIES)
    return err_set(walk->err, E2BIG,
                   "hide %s: more than %d entries below %s; use a pattern without **, or name the files", walk->text,
                   LIMITS_HIDE_ENTRIES, walk->base);
  if (fspath_glob(walk->pattern, span_of(relative))) {
    if (walk->found->count >= LIMITS_HIDE_MATCHES)
      return err_set(walk->err, E2BIG, "hide %s: more than %d matches below %s; hide their directories instead",
                     walk->text, LIMITS_HIDE_MATCHES, walk->base);
    return strv_take(walk->found, path_join(walk->base, relative)); /* what lies below a hidden directory is hidden */
  }
  if (depth >= walk->depth_max || !is_directory(dir, entry))
    return 0;
  fd = open_below(walk, dir, entry->d_name, relative);
  if (fd < 0)
    return fd == -ENOENT ? 0 : fd;
  return walk_directory(walk, fd, relative, depth + 1);
}

/* Takes fd over. */
static int walk_directory(struct walk *walk, int fd, const char *relative, size_t depth)
{
  MEM_CLEANUP(close_dir) DIR *dir = fdopendir(fd);
  struct dirent *entry;
  int r = 0;

  if (!dir) {
    r = err_set_errno(walk->err, errno, "hide %s: %s/%s cannot be searched", walk->text, walk->base, relative);
    fd_close(&fd);
    return r;
  }
  while (r == 0 && (errno = 0, entry = readdir(dir))) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      r = visit(walk, dirfd(dir), entry, relative, depth);
  }
  if (r == 0 && errno)
    r = err_set_errno(walk->err, errno, "hide %s: %s/%s cannot be searched", walk->text, walk->base, relative);
  return r;
}

static size_t pattern_depth(struct span pattern)
{
  struct span part;
  size_t depth = 0;

  while (span_split(&pattern, '/', &part)) {
    if (span_equal(part, SPAN("**")))
      return SIZE_MAX;
    depth++;
  }
  return depth;
}

static int expand(const char *text, struct err *err, struct facts *facts)
{
  mem_autofree char *base = NULL;
  struct walk walk = { .text = text, .found = &facts->hidden, .err = err };
  int fd;
  int r = fspath_split(text, facts->home, facts->workspace, &base, &walk.pattern);

  if (r < 0)
    return err_set_errno(err, -r, "hide %s", text);
  walk.base = base;
  walk.depth_max = pattern_depth(walk.pattern);
  fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR ? 0 : err_set_errno(err, errno, "hide %s: %s", text, base);
  return walk_directory(&walk, fd, "", 1);
}

int facts_hide_expand(const struct policy *policy, struct err *err, struct facts *facts)
{
  for (size_t i = 0; i < policy->hide.count; i++) {
    const char *text = policy->hide.items[i].text;
    size_t before = facts->hidden.count;
    int r;

    if (!fspath_is_pattern(text))
      continue;
    r = expand(text, err, facts);
    if (r == 0 && facts->hidden.count == before && strv_add(&facts->hide_idle, text) < 0)
      r = err_set(err, ENOMEM, "out of memory");
    if (r < 0)
      return r;
  }
  return 0;
}
