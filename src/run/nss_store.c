/* Theory of operation
 *
 * certutil takes longer than anything else at the start of a run, and nearly all of that before it looks at the
 * certificate. So it is started before the sandbox is made, with a pipe to read the certificate from; when the proxy
 * has made the CA it is mostly waiting there, and needs some milliseconds more.
 *
 * It writes into a directory of ours that nobody inside can see, in memory since the database's many fsync(2) take
 * longer than all the rest on a disk. What it has made goes into the sandbox as text (plan "late" files): links that an
 * earlier command has planted in its home lead nowhere from there.
 */
#include "config.h"

#include "run/nss_store.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/limits.h"
#include "sys/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[NSS_STORE_FILES] = { "cert9.db", "key4.db", "pkcs11.txt" };

static int spawn(const char *certutil, int in, int said, struct err *err, struct nss_store *store)
{
  static char *const no_environment[] = { NULL };
  mem_autofree char *dir = NULL;
  /* Without a password, since none was set; trusted to name servers and no more. */
  char *argv[] = { (char[]){ "certutil" },
                   (char[]){ "-A" },
                   (char[]){ "-a" },
                   (char[]){ "-n" },
                   (char[]){ SBX_NAME },
                   (char[]){ "-t" },
                   (char[]){ "C,," },
                   (char[]){ "-d" },
                   NULL,
                   NULL };
  const struct spawn_fd fds[] = { { in, STDIN_FILENO }, { said, STDOUT_FILENO }, { said, STDERR_FILENO } };

  if (asprintf(&dir, "sql:%s", store->dir) < 0) {
    dir = NULL;
    return err_set(err, ENOMEM, "out of memory");
  }
  argv[MEM_COUNT(argv) - 2] = dir;
  return spawn_program(&(struct spawn){ .program = certutil,
                                        .argv = argv,
                                        .envp = no_environment,
                                        .directory = "/",
                                        .fds = fds,
                                        .fd_count = MEM_COUNT(fds),
                                        .new_session = true,
                                        .landlock = -1,
                                        .cgroup_procs = -1 },
                       err, &store->pid);
}

int nss_store_begin(const char *certutil, struct err *err, struct nss_store *store)
{
  char template[] = "/dev/shm/sbx-nss.XXXXXX";
  int in[2] = { -1, -1 };
  int said[2] = { -1, -1 };
  int r;

  for (size_t i = 0; i < NSS_STORE_FILES; i++)
    store->files[i] = (struct buf)BUF_INIT(LIMITS_NSS_BYTES);
  if (!mkdtemp(template))
    return err_set_errno(err, errno, "%s", template);
  store->dir = mem_strndup(template, strlen(template));
  if (!store->dir) {
    (void)rmdir(template);
    return err_set(err, ENOMEM, "out of memory");
  }
  if (pipe2(in, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0 || fd_set_nonblock(said[0], true) < 0)
    r = err_set_errno(err, errno, "pipes");
  else
    r = spawn(certutil, in[0], said[1], err, store);
  store->in = in[1];
  store->said = said[0];
  fd_close(&in[0]);
  fd_close(&said[1]);
  return r;
}

/* 0 and the status of waitpid(2); -ETIME; or another -errno. */
static int await_end(pid_t pid, int *ret_status)
{
  uint64_t deadline = clock_mono_ns() + LIMITS_NSS_MS * UINT64_C(1000000);
  fd_autoclose int end = (int)syscall(SYS_pidfd_open, pid, 0);
  struct pollfd poller = { .fd = end, .events = POLLIN };
  int n = 0;

  if (end < 0)
    return -errno;
  for (uint64_t now; n <= 0 && (now = clock_mono_ns()) < deadline;) {
    n = poll(&poller, 1, (int)((deadline - now) / 1000000) + 1);
    if (n < 0 && errno != EINTR)
      return -errno;
  }
  if (n <= 0)
    return -ETIME;
  return waitpid(pid, ret_status, 0) < 0 ? -errno : 0;
}

static int tell_status(const struct nss_store *store, int status, struct err *err)
{
  char text[256];
  ssize_t n = read(store->said, text, sizeof text);
  struct span said = { .ptr = text, .len = n > 0 ? (size_t)n : 0 };

  said = span_trim(span_sub(said, 0, span_find(said, '\n')));
  if (WIFSIGNALED(status))
    return err_set(err, EIO, "was killed by signal %d", WTERMSIG(status));
  return err_set(err, EIO, "ended with status %d%s%.*s", WEXITSTATUS(status), said.len > 0 ? ": " : "", (int)said.len,
                 said.ptr);
}

static int read_files(struct nss_store *store, struct err *err)
{
  fd_autoclose int dir = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (dir < 0)
    return err_set_errno(err, errno, "%s", store->dir);
  for (size_t i = 0; i < NSS_STORE_FILES; i++) {
    int r = fd_read_file(dir, names[i], &store->files[i]);

    if (r < 0)
      return err_set_errno(err, -r, "what should have been made, %s", names[i]);
  }
  return 0;
}

int nss_store_finish(struct nss_store *store, struct span certificate, struct err *err)
{
  int status = 0;
  int r;

  (void)fd_write_all(store->in, certificate); /* one that ended before has more to say than this */
  fd_close(&store->in);
  r = await_end(store->pid, &status);
  if (r == -ETIME)
    return err_set(err, ETIME, "did not end within %d s", LIMITS_NSS_MS / 1000);
  if (r < 0)
    return err_set_errno(err, -r, "waiting for it");
  store->pid = -1;
  if (status != 0)
    return tell_status(store, status, err);
  r = read_files(store, err);
  for (size_t i = 0; i < NSS_STORE_FILES && r < 0; i++)
    buf_free(&store->files[i]); /* all or none */
  return r;
}

struct span nss_store_file(const struct nss_store *store, const char *name)
{
  for (size_t i = 0; i < NSS_STORE_FILES; i++) {
    if (strcmp(names[i], name) == 0)
      return buf_span(&store->files[i]);
  }
  return SPAN("");
}

/* With whatever files are in it, such as the journal of a database that was not finished. */
static void remove_directory(const char *path)
{
  DIR *dir = opendir(path);
  const struct dirent *entry;

  while (dir && (entry = readdir(dir)))
    (void)unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir)
    closedir(dir);
  (void)rmdir(path);
}

void nss_store_free(struct nss_store *store)
{
  if (store->pid > 0) {
    (void)kill(-store->pid, SIGKILL);
    (void)kill(store->pid, SIGKILL);
    (void)waitpid(store->pid, NULL, 0);
  }
  fd_close(&store->in);
  fd_close(&store->said);
  if (store->dir)
    remove_directory(store->dir);
  free(store->dir);
  for (size_t i = 0; i < NSS_STORE_FILES; i++)
    buf_free(&store->files[i]);
  *store = (struct nss_store)NSS_STORE_INIT;
}
