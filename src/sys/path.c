#include "sys/path.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PATH_BYTES 4096

void path_object_free(struct path_object *object)
{
  free(object->real);
  object->real = NULL;
}

static int open_quietly(const char *path, int flags, uint64_t resolve)
{
  struct open_how how = { .flags = (unsigned)(flags | O_PATH | O_CLOEXEC), .resolve = RESOLVE_NO_MAGICLINKS | resolve };
  long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

  return fd < 0 ? -errno : (int)fd;
}

int path_examine(int fd, struct path_object *ret_object)
{
  struct statx wide;
  struct stat plain;

  if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &wide) == 0) {
    ret_object->mode = wide.stx_mode;
    ret_object->uid = wide.stx_uid;
    ret_object->device = makedev(wide.stx_dev_major, wide.stx_dev_minor);
    ret_object->inode = wide.stx_ino;
    return 0;
  }
  if (fstat(fd, &plain) < 0) /* a filter around us may not know statx */
    return -errno;
  ret_object->mode = plain.st_mode;
  ret_object->uid = plain.st_uid;
  ret_object->device = plain.st_dev;
  ret_object->inode = plain.st_ino;
  return 0;
}

/* The path that a descriptor stands for. */
static int name_of(int fd, char **ret_real)
{
  char link[32];
  char real[PATH_BYTES];
  ssize_t len;

  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  len = readlink(link, real, sizeof real - 1);
  if (len < 0)
    return -errno;
  if (len == (ssize_t)sizeof real - 1)
    return -ENAMETOOLONG;
  real[len] = '\0';
  if (real[0] != '/') /* "(unreachable)": outside of our root */
    return -ENOENT;
  /* The kernel's mark of a directory that was removed while somebody stands in it (proc(5)). */
  if (span_ends_with((struct span){ .ptr = real, .len = (size_t)len }, SPAN(" (deleted)")) &&
      faccessat(AT_FDCWD, real, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
    return -ENOENT;
  *ret_real = mem_strndup(real, (size_t)len);
  return *ret_real ? 0 : -ENOMEM;
}

/* Whether path is spelled as the kernel would spell it, were no part of it a link. */
static bool is_canonical(const char *path)
{
  struct span rest = span_of(path + 1);
  struct span part;

  if (path[0] != '/')
    return false;
  while (span_split(&rest, '/', &part)) {
    if (part.len == 0 || span_equal(part, SPAN(".")) || span_equal(part, SPAN("..")))
      return false;
  }
  return true;
}

/* Most paths have no link in them: then the path is its own name, and the kernel need not be asked for it. */
static int look(const char *path, int flags, struct path_object *ret_object)
{
  bool plain = is_canonical(path);
  fd_autoclose int fd = open_quietly(path, flags, plain ? RESOLVE_NO_SYMLINKS : 0);
  int r;

  if (fd == -ELOOP && plain) {
    plain = false;
    fd = open_quietly(path, flags, 0);
  }
  if (fd == -ENOSYS) { /* a filter around us may not know the call; O_PATH alone opens nothing */
    plain = false;
    fd = open(path, flags | O_PATH | O_CLOEXEC);
    fd = fd < 0 ? -errno : fd;
  }
  if (fd < 0)
    return fd;
  r = path_examine(fd, ret_object);
  if (r < 0)
    return r;
  if (!plain)
    return name_of(fd, &ret_object->real);
  ret_object->real = mem_strndup(path, strlen(path));
  return ret_object->real ? 0 : -ENOMEM;
}

int path_resolve(const char *path, struct path_object *ret_object)
{
  return look(path, 0, ret_object);
}

int path_resolve_link(const char *path, struct path_object *ret_object)
{
  return look(path, O_NOFOLLOW, ret_object);
}

/* Opens the directory name below parent, making it where it is absent and removing a link or file in its place. */
static int descend(int parent, const char *name, int *ret_fd)
{
  for (int attempt = 0; attempt < 3; attempt++) {
    int fd = openat(parent, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
      *ret_fd = fd;
      return 0;
    }
    if (errno == ENOENT) {
      if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    } else if (errno == ELOOP || errno == ENOTDIR) {
      if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -errno;
    } else {
      return -errno;
    }
  }
  return -ELOOP;
}

/* An empty file at name, unless a file is there already. */
static int touch(int parent, const char *name, mode_t mode)
{
  struct stat stat;
  int fd;

  if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISREG(stat.st_mode) || S_ISSOCK(stat.st_mode))
      return 0;
    if (unlinkat(parent, name, S_ISDIR(stat.st_mode) ? AT_REMOVEDIR : 0) < 0)
      return -errno;
  }
  fd = openat(parent, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0)
    return errno == EEXIST ? 0 : -errno;
  fd_close(&fd);
  return 0;
}

int path_make_below(const char *root, const char *relative, mode_t mode, struct err *err)
{
  fd_autoclose int at = open(root, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  struct span rest = span_of(relative);
  struct span part;

  if (at < 0)
    return err_set_errno(err, errno, "%s", root);
  while (span_split(&rest, '/', &part)) {
    mem_autofree char *name = mem_strndup(part.ptr, part.len);
    int next = -1;
    int r;

    if (!name)
      return err_set(err, ENOMEM, "out of memory");
    if (part.len == 0)
      continue;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
      return err_set(err, EINVAL, "%s: mount point %s: '%s' is no name", root, relative, name);
    r = rest.ptr ? descend(at, name, &next) : touch(at, name, mode);
    if (r < 0)
      return err_set_errno(err, -r, "%s/%s: cannot make the mount point", root, relative);
    if (!rest.ptr)
      return 0;
    fd_close(&at);
    at = next;
  }
  return 0;
}

/* Whether nobody can have put anything into the file, nor has had a use for it. */
static bool is_bare(int parent, const char *name)
{
  struct stat stat;

  return fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode) && stat.st_size == 0 &&
         (stat.st_mode & 07777) == 0;
}

void path_remove_below(const char *root, const char *relative)
{
  fd_autoclose int at = open(root, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  struct span rest = span_of(relative);
  bool directory = span_ends_with(rest, SPAN("/"));
  struct span part;

  rest.len -= directory;
  while (at >= 0 && span_split(&rest, '/', &part)) {
    mem_autofree char *name = mem_strndup(part.ptr, part.len);
    int next;

    if (!name)
      return;
    if (!rest.ptr) {
      if (directory || is_bare(at, name))
        (void)unlinkat(at, name, directory ? AT_REMOVEDIR : 0);
      return;
    }
    next = openat(at, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
    fd_close(&at);
    at = next;
  }
}

static int make_directory(const char *path)
{
  struct stat stat_of;

  if (mkdir(path, 0700) == 0)
    return 0;
  if (errno != EEXIST || stat(path, &stat_of) < 0)
    return -errno;
  return S_ISDIR(stat_of.st_mode) ? 0 : -ENOTDIR;
}

int path_make_all(const char *path, struct err *err)
{
  mem_autofree char *copy = mem_strndup(path, strlen(path));

  if (!copy)
    return err_set(err, ENOMEM, "out of memory");
  if (make_directory(copy) == 0)
    return 0;
  for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
    int r;

    if (slash)
      *slash = '\0';
    r = make_directory(copy);
    if (r < 0)
      return err_set_errno(err, -r, "%s: cannot make the directory", copy);
    if (!slash)
      return 0;
    *slash = '/';
  }
}

bool path_is_within(const char *path, const char *dir)
{
  size_t len = strlen(dir);

  if (len == 1 && dir[0] == '/')
    return true;
  return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

char *path_join(const char *dir, const char *rest)
{
  char *joined = NULL;
  bool root = strcmp(dir, "/") == 0;

  while (*rest == '/')
    rest++;
  if (asprintf(&joined, "%s%s%s", root ? "" : dir, *rest || root ? "/" : "", rest) < 0)
    return NULL;
  return joined;
}

char *path_normalise(const char *dir, const char *relative)
{
  char *out = malloc(strlen(dir) + strlen(relative) + 2);
  struct span rest = span_of(relative);
  struct span part;
  size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

  if (!out)
    return NULL;
  memcpy(out, dir, len);
  while (span_split(&rest, '/', &part)) {
    if (part.len == 0 || span_equal(part, SPAN(".")))
      continue;
    if (span_equal(part, SPAN(".."))) {
      while (len > 0 && out[len - 1] != '/')
        len--;
      len -= len > 0; /* the slash itself */
      continue;
    }
    out[len++] = '/';
    memcpy(out + len, part.ptr, part.len);
    len += part.len;
  }
  if (len == 0)
    out[len++] = '/';
  out[len] = '\0';
  return out;
}
