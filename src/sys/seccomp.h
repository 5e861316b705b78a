/* seccomp: filter tables → BPF. The one module that includes libseccomp's header. */
#ifndef SBX_SYS_SECCOMP_H
#define SBX_SYS_SECCOMP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seccomp_test {
  SECCOMP_ALWAYS, /* whatever the arguments */
  SECCOMP_ARG_EQ, /* (argument & mask) == value */
  SECCOMP_ARG_NE, /* argument != value (the mask is not used) */
};

enum seccomp_answer {
  SECCOMP_ALLOW,
  SECCOMP_ERRNO, /* the call returns -error */
  SECCOMP_KILL, /* the process is killed */
  SECCOMP_TRACE, /* its tracer is told error as a datum, and the call goes on; ENOSYS where there is no tracer */
};

/* One row. Rows of one filter must not contradict each other for the same call and arguments. */
struct seccomp_row {
  const char *name; /* name of the system call; one that this architecture or library does not know is left out */
  enum seccomp_test test;
  unsigned arg; /* 0..5 */
  uint64_t mask; /* 32-bit arguments are compared with mask 0xffffffff (F5) */
  uint64_t value;
  enum seccomp_answer answer;
  int error; /* SECCOMP_ERRNO and SECCOMP_TRACE only */
  const char *reason; /* why; not used by the filter */
  enum seccomp_test also; /* a second test on another argument, which must hold too; SECCOMP_ALWAYS for none */
  unsigned also_arg;
  uint64_t also_mask;
  uint64_t also_value;
};

struct seccomp_filter {
  const struct seccomp_row *rows;
  size_t count;
  enum seccomp_answer otherwise; /* what a call that no row matches gets */
  int otherwise_error;
  bool foreign; /* also filter the 32-bit architecture of this machine; without it, its calls are killed */
};

/* Compiles the filter and writes it to fd as an array of struct sock_filter; then sets the file's offset back to 0.
 * Calls of other architectures, and x32 calls, kill the process. 0 or -errno. */
int seccomp_export(const struct seccomp_filter *filter, int fd, struct err *err);

/* Compiles and installs the filter on the calling process (all threads), with no_new_privs set. */
int seccomp_apply(const struct seccomp_filter *filter, struct err *err);

#endif
