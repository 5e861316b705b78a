/* Theory of operation
 *
 * A mount needs something to be mounted on, and in the private home that something would stay: later runs would find
 * an empty ~/.ssh/id_rsa. So it is removed at the end; but a name that is removed takes a mount on it along in every
 * namespace, and another run of the project may have one there. Each run that has such mount points holds a shared lock
 * from before it makes them to its end, and then removes them if it can have the lock for itself: the last one does.
 * A run that begins meanwhile waits for the lock, and makes its own anew.
 *
 * The lock is a file in the state directory, which is hidden inside: a command cannot hold it.
 *
 * The files have mode 0, for two reasons. What a run that was killed leaves behind cannot be read as if it were the
 * real one; and a file that a command made there itself is not taken for ours.
 */
#include "run/passing.h"

#include "base/fd.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

static int take_lock(const struct plan *plan, const struct facts *facts, struct err *err, int *ret_lock)
{
  mem_autofree char *dir = path_join(facts->state_dir, "locks");
  mem_autofree char *path = dir ? path_join(dir, strrchr(plan->private_home, '/')) : NULL;
  fd_autoclose int fd = -1;
  int r = path ? path_make_all(dir, err) : err_set(err, ENOMEM, "out of memory");

  if (r < 0)
    return r;
  fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  while (fd >= 0 && (r = flock(fd, LOCK_SH)) < 0 && errno == EINTR)
    ;
  if (fd < 0 || r < 0)
    return err_set_errno(err, errno, "%s", path);
  *ret_lock = fd_steal(&fd);
  return 0;
}

int passing_make(const struct plan *plan, const struct facts *facts, struct err *err, int *ret_lock)
{
  int r = plan->passing_mounts.count ? take_lock(plan, facts, err, ret_lock) : 0;

  for (size_t i = 0; i < plan->passing_mounts.count && r == 0; i++)
    r = path_make_below(plan->private_home, plan->passing_mounts.items[i], 0, err);
  return r < 0 ? err_wrap(err, "own directories") : 0;
}

void passing_remove(const struct plan *plan, int *lock)
{
  if (*lock < 0)
    return;
  if (flock(*lock, LOCK_EX | LOCK_NB) == 0) {
    for (size_t i = plan->passing_mounts.count; i-- > 0;)
      path_remove_below(plan->private_home, plan->passing_mounts.items[i]);
  }
  fd_close(lock);
}
