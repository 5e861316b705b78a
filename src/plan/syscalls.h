/* syscalls: the filter of DESIGN 7 as a table. */
#ifndef SBX_PLAN_SYSCALLS_H
#define SBX_PLAN_SYSCALLS_H

#include "sys/seccomp.h"

struct syscalls_options {
  bool nesting; /* user namespaces and what a browser's own sandbox needs with them */
  bool ptrace;
  bool foreign; /* i386 programs */
  bool pin_cpus; /* the CPU limit may have to hold by affinity, which the command must not undo */
  bool trace_paths; /* calls with paths stop for a tracer (sys/trace.h) */
  bool shared_session; /* the command stays in the caller's process group, so kill(0) would reach outside */
};

/* Rows that a filter can have, at most. */
#define SYSCALLS_ROWS_MAX 400

/* Fills rows (room for SYSCALLS_ROWS_MAX) for these options and makes *ret_filter point at them. */
void syscalls_build(const struct syscalls_options *options, struct seccomp_row *rows,
                    struct seccomp_filter *ret_filter);

#endif
