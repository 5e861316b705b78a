/* Theory of operation
 *
 * The tree of processes is gone through again and again: who runs is sent SIGSTOP, until one pass has seen nobody run.
 * The children of a process are listed only when it was seen stopped, so it has no others: a shell that waits for its
 * jobs must not see them stop, and one that forks as fast as it can is caught before its children are. Whoever was seen
 * running, or has vanished, makes another pass necessary; after so many, everything is let go.
 *
 * A thread that waits in the kernel without being interruptible (a parent in vfork(2), a slow disk) counts as stopped
 * once it has been sent SIGSTOP: that is pending, and it does not return to its program before it has obeyed.
 *
 * Continued are those that were stopped here and no others, children before their parents: a shell inside that wakes up
 * finds none of its jobs stopped, and one that the user had stopped stays so.
 */
#include "sys/freeze.h"

#include "base/fd.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PASSES_MAX 200
#define PASS_NS 1000000
#define PIDS_MAX 65536
#define FILE_BYTES (256 * 1024)
#define PATH_BYTES 320

struct pass {
  pid_t *queue; /* whom to look at */
  size_t count;
  size_t cap;
  bool quiet; /* nobody was seen running */
};

static int push(struct pass *pass, pid_t pid)
{
  if (mem_grow(&pass->queue, pass->count, &pass->cap, sizeof *pass->queue, PIDS_MAX) < 0)
    return -ENOMEM;
  pass->queue[pass->count++] = pid;
  return 0;
}

/* The state of one thread, as in proc_pid_stat(5); 'X' where it is gone. */
static char state_of(pid_t pid, const char *thread)
{
  buf_autofree struct buf text = BUF_INIT(FILE_BYTES);
  char path[PATH_BYTES];
  size_t end;

  snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, thread);
  if (fd_read_file(AT_FDCWD, path, &text) < 0)
    return 'X';
  end = span_find_last(buf_span(&text), ')');
  return end + 2 < text.len ? text.data[end + 2] : 'X';
}

static int push_children(struct pass *pass, pid_t pid, const char *thread)
{
  buf_autofree struct buf text = BUF_INIT(FILE_BYTES);
  char path[PATH_BYTES];
  struct span rest;
  struct span word;
  int r;

  snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, thread);
  r = fd_read_file(AT_FDCWD, path, &text);
  if (r < 0) {
    pass->quiet = false; /* gone since, and its children have another parent */
    return r == -ENOENT || r == -ESRCH ? 0 : r;
  }
  rest = span_trim(buf_span(&text));
  while (span_split(&rest, ' ', &word)) {
    uint64_t number;

    if (num_parse_u64(word, 1, INT32_MAX, &number) == 0 && push(pass, (pid_t)number) < 0)
      return -ENOMEM;
  }
  return 0;
}

static bool is_ours(const struct freeze *freeze, pid_t pid)
{
  for (size_t i = 0; i < freeze->count; i++) {
    if (freeze->pids[i] == pid)
      return true;
  }
  return false;
}

/* One process: every thread's state, or every thread's children. stops: the states of one that is stopped. *ret_runs is
 * whether a thread is in another. */
static int look(struct pass *pass, pid_t pid, bool list, const char *stops, bool *ret_runs)
{
  char path[PATH_BYTES];
  struct dirent *entry;
  DIR *tasks;
  int r = 0;

  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  tasks = opendir(path);
  if (!tasks) {
    pass->quiet = false;
    return 0;
  }
  while (r == 0 && (entry = readdir(tasks))) {
    if (entry->d_name[0] == '.')
      continue;
    if (list)
      r = push_children(pass, pid, entry->d_name);
    else
      *ret_runs |= !strchr(stops, state_of(pid, entry->d_name));
  }
  closedir(tasks);
  return r;
}

static int stop(struct freeze *freeze, struct pass *pass, pid_t pid)
{
  pass->quiet = false;
  if (!is_ours(freeze, pid)) {
    if (mem_grow(&freeze->pids, freeze->count, &freeze->cap, sizeof *freeze->pids, PIDS_MAX) < 0)
      return -ENOMEM;
    freeze->pids[freeze->count++] = pid;
  }
  (void)kill(pid, SIGSTOP);
  return 0;
}

static int run_pass(struct freeze *freeze, pid_t init, struct pass *pass)
{
  int r;

  pass->count = 0;
  pass->quiet = true;
  r = look(pass, init, true, NULL, NULL);
  for (size_t i = 0; i < pass->count && r == 0; i++) {
    pid_t pid = pass->queue[i];
    bool runs = false;

    r = look(pass, pid, false, is_ours(freeze, pid) ? "TtZXD" : "TtZX", &runs);
    if (r == 0)
      r = runs ? stop(freeze, pass, pid) : look(pass, pid, true, NULL, NULL);
  }
  return r;
}

int freeze_below(struct freeze *freeze, pid_t init, struct err *err)
{
  static const struct timespec pause = { .tv_nsec = PASS_NS };
  struct pass pass = { .queue = NULL };
  int r = 0;

  for (size_t i = 0; i < freeze->count; i++)
    (void)kill(freeze->pids[i], SIGSTOP); /* it may have been continued */
  for (unsigned i = 0; i < PASSES_MAX && r == 0 && !pass.quiet; i++) {
    if (i)
      nanosleep(&pause, NULL);
    r = run_pass(freeze, init, &pass);
  }
  free(pass.queue);
  if (r == 0 && pass.quiet)
    return 0;
  freeze_thaw(freeze);
  return err_set(err, EAGAIN, "the command cannot be stopped for the question");
}

void freeze_thaw(struct freeze *freeze)
{
  while (freeze->count)
    (void)kill(freeze->pids[--freeze->count], SIGCONT);
  free(freeze->pids);
  *freeze = (struct freeze)FREEZE_INIT;
}
