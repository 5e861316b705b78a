/* temp: a directory of a test's own, gone at its end. */
#ifndef SBX_TESTS_UNIT_TEMP_H
#define SBX_TESTS_UNIT_TEMP_H

#include "base/fd.h"
#include "sys/path.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_PATH 4096

/* Makes a directory and enters it; *state is its real path. */
static inline int temp_make(void **state)
{
  const char *base = getenv("TMPDIR");
  char name[TEMP_PATH];
  char *dir;

  snprintf(name, sizeof name, "%s/sbx-unit.XXXXXX", base ? base : "/tmp");
  dir = mkdtemp(name) ? realpath(name, NULL) : NULL;
  *state = dir;
  return dir ? chdir(dir) : -1;
}

static inline int temp_remove_one(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
  (void)stat;
  (void)kind;
  (void)where;
  return remove(path);
}

static inline int temp_open_up(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
  (void)where;
  return kind == FTW_D || kind == FTW_DNR ? chmod(path, stat->st_mode | 0700) : 0;
}

static inline int temp_remove(void **state)
{
  char *dir = *state;
  int r = chdir("/");

  (void)nftw(dir, temp_open_up, 16, FTW_PHYS);
  r |= nftw(dir, temp_remove_one, 16, FTW_PHYS | FTW_DEPTH);
  free(dir);
  return r;
}

/* Makes a file that holds text, or a directory where the path ends in '/', with the directories above it. */
static inline void temp_put(const char *path, const char *text)
{
  char part[TEMP_PATH];
  fd_autoclose int fd = -1;

  for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
    if (mkdir(part, 0755) < 0 && errno != EEXIST)
      fail_msg("mkdir %s: %s", part, strerror(errno));
  }
  if (path[strlen(path) - 1] == '/')
    return;
  fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || fd_write_all(fd, span_of(text)) < 0)
    fail_msg("%s: %s", path, strerror(errno));
}

static inline void temp_link(const char *target, const char *path)
{
  if (symlink(target, path) < 0)
    fail_msg("%s: %s", path, strerror(errno));
}

/* A path below the test's directory, in memory of its own until the next eight calls. */
static inline const char *temp_path(void **state, const char *below)
{
  static char paths[8][TEMP_PATH];
  static size_t next;
  char *path = paths[next++ % 8];

  snprintf(path, TEMP_PATH, "%s/%s", (const char *)*state, below);
  return path;
}

static inline mode_t temp_mode(const char *path)
{
  struct stat stat;

  return lstat(path, &stat) == 0 ? stat.st_mode : 0;
}

#endif
