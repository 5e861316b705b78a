#include "base/fd.h"
#include "policy/limits.h"
#include "policy/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool loadfile_is_workspace(enum layer_kind kind)
{
  return kind == LAYER_WORKSPACE || kind == LAYER_WORKSPACE_TRUSTED;
}

/* Who could have written the file decides whether it may speak for the user. A workspace file may be anybody's. */
static int loadfile_check(enum layer_kind kind, const char *path, const struct stat *st, struct err *err)
{
  if (!S_ISREG(st->st_mode))
    return err_set(err, EINVAL, "%s: not a regular file; replace it by one", path);
  if (st->st_size > LIMITS_POLICY_BYTES)
    return err_set(err, EINVAL, "%s: larger than %d bytes; name fewer things", path, LIMITS_POLICY_BYTES);
  if (loadfile_is_workspace(kind))
    return 0;
  if (st->st_mode & S_IWOTH)
    return err_set(err, EPERM, "%s: writable by everybody; run: chmod o-w %s", path, path);
  if (st->st_uid != 0 && st->st_uid != geteuid())
    return err_set(err, EPERM, "%s: owned by user %u, neither you nor root; copy it to a file of your own", path,
                   (unsigned)st->st_uid);
  return 0;
}

int layers_add_file(struct layers *layers, enum layer_kind kind, const char *path, struct err *err)
{
  int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (loadfile_is_workspace(kind) ? O_NOFOLLOW : 0);
  fd_autoclose int fd = open(path, flags);
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  struct stat st;
  int r;

  if (fd < 0 && errno == ENOENT)
    return -ENOENT;
  if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW))
    return err_set(err, ELOOP, "%s: a symbolic link; a policy inside the workspace has to be a file", path);
  if (fd < 0)
    return err_set_errno(err, errno, "%s: cannot be opened", path);
  if (fstat(fd, &st) < 0)
    return err_set_errno(err, errno, "%s: cannot be examined", path);
  r = loadfile_check(kind, path, &st, err);
  if (r < 0)
    return r;
  r = fd_read_all(fd, &text);
  if (r == -E2BIG)
    return err_set(err, EINVAL, "%s: larger than %d bytes; name fewer things", path, LIMITS_POLICY_BYTES);
  if (r < 0)
    return err_set_errno(err, -r, "%s: cannot be read", path);
  return layers_add_text(layers, kind, path, buf_span(&text), err);
}
