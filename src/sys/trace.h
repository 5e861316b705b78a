/* trace: which paths the processes of a sandbox asked for in vain.
 *
 * ptrace(2) from outside: nothing of ours runs inside, and nothing is changed there. The sandbox's system call filter
 * answers the calls of trace_calls() with SECCOMP_TRACE and their index; see trace.c.
 */
#ifndef SBX_SYS_TRACE_H
#define SBX_SYS_TRACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a call wanted with a path. */
enum trace_want {
  TRACE_LOOK, /* that it is there: stat(2), access(2), chdir(2) ... */
  TRACE_READ, /* to open or execute it */
  TRACE_WRITE, /* to open it for writing, or to change it itself */
  TRACE_ENTRY, /* to make, rename or remove the name in its directory */
};

/* Where the rest of what a call wants stands. */
enum trace_flags {
  TRACE_FLAGS_NONE,
  TRACE_FLAGS_OPEN, /* O_WRONLY and so on in an argument */
  TRACE_FLAGS_HOW, /* the same in a struct open_how */
  TRACE_FLAGS_MODE, /* W_OK and so on */
};

struct trace_path {
  int dir; /* argument with the descriptor of a directory, or -1 */
  int path; /* argument with the path, or -1 */
};

struct trace_call {
  const char *name;
  enum trace_want want;
  struct trace_path paths[2];
  enum trace_flags flags;
  int flags_arg;
};

/* The calls that are traced. */
const struct trace_call *trace_calls(size_t *ret_count);

struct trace;

/* failed(data, path, want) is told of each call that a path has failed: with ENOENT, ENOTDIR, EACCES, EPERM or EROFS.
 * path is absolute, as the process names it, with "." and ".." in it. NULL when memory is short. */
struct trace *trace_new(void (*failed)(void *data, const char *path, enum trace_want want), void *data);
void trace_free(struct trace *trace);

/* Traces a process of the sandbox and whatever it starts from here on; all of it is killed when we die. 0 or -errno,
 * with the way to allow it in err. Every stop is a status of waitpid(-1, ..., __WALL) from then on, and the processes
 * stand still until trace_take() has got it. */
int trace_attach(struct trace *trace, pid_t pid, struct err *err);

/* Takes a status of waitpid(2). */
void trace_take(struct trace *trace, pid_t pid, int status);

#endif
