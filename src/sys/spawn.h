/* spawn: starts another program, with everything that it inherits named one by one.
 *
 * The program starts with no_new_privs unless may_gain says otherwise, with no signal blocked, none ignored but what
 * we ignore, and with these descriptors alone: 0, 1, 2 and the ones listed.
 */
#ifndef SBX_SYS_SPAWN_H
#define SBX_SYS_SPAWN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX 128

struct spawn_fd {
  int from; /* our descriptor */
  int to; /* its number in the program; may equal from */
};

struct spawn {
  const char *program; /* absolute path */
  char *const *argv; /* NULL-terminated */
  char *const *envp; /* NULL-terminated */
  const char *directory; /* where it runs; NULL: where the caller does */
  const struct spawn_fd *fds;
  size_t fd_count; /* at most SPAWN_FDS_MAX */
  /* Kernel-held lifetime: the program is pid 1 of a pid namespace of its own (in a user namespace that maps the caller
   * to itself). It ignores every signal but SIGKILL from here, and when it dies the kernel kills all below it. */
  bool guard;
  bool new_session; /* setsid(2): no controlling terminal, a process group of its own */
  bool may_gain; /* no no_new_privs: a program of the user's own, which may be setgid or ask sudo(8) */
  int landlock; /* a ruleset (landlock.h) that it is put under, or -1 */
  int cgroup_procs; /* joins the cgroup behind this cgroup.procs before anything else; -1 for none */
};

/* A program whose start has begun. */
struct spawn_child {
  pid_t pid;
  int report; /* spawn's own */
};

#define SPAWN_CHILD_INIT { .pid = -1, .report = -1 }

/* Begins to start the program, and does not wait. What spawn points to, and the descriptors in it, may be gone when
 * this returns. 0; or -errno where there is no child: -EPERM, -ENOSPC and -EUSERS are about the namespaces (clone(2)).
 */
int spawn_begin(const struct spawn *spawn, struct err *err, struct spawn_child *ret_child);

/* Waits until the program is being executed. On failure the child is gone. program: for the message.
 * 0; or -errno as for spawn_program(). */
int spawn_confirm(struct spawn_child *child, const char *program, struct err *err);

/* Both. The child is killed when the thread that called this dies, from before it does anything
 * (PR_SET_PDEATHSIG, checked against a caller that is dead already).
 * 0 and the child's pid; or -errno: -ENOENT and -EACCES come from execve(2), other errors name the step. */
int spawn_program(const struct spawn *spawn, struct err *err, pid_t *ret_pid);

/* Marks every descriptor from 3 on close-on-exec, except those in keep. 0 or -errno. */
int spawn_close_inherited(const int *keep, size_t count);

#endif
