#include "sys/trace.h"

#include "base/mem.h"

#define NO_PATH { .dir = -1, .path = -1 }
/* A path argument, and one that is relative to a directory's descriptor. */
#define PATH(at) { .dir = -1, .path = (at) }
#define PATH_AT(at) { .dir = (at), .path = (at) + 1 }
#define ONE(call, wanted, where) \
  { \
    .name = (call), .want = (wanted), .paths = { where, NO_PATH } \
  }
#define FLAGGED(call, wanted, where, kind, at) \
  { .name = (call), .want = (wanted), .paths = { where, NO_PATH }, .flags = (kind), .flags_arg = (at) }

const struct trace_call *trace_calls(size_t *ret_count)
{
  static const struct trace_call calls[] = {
    FLAGGED("open", TRACE_READ, PATH(0), TRACE_FLAGS_OPEN, 1),
    FLAGGED("openat", TRACE_READ, PATH_AT(0), TRACE_FLAGS_OPEN, 2),
    FLAGGED("openat2", TRACE_READ, PATH_AT(0), TRACE_FLAGS_HOW, 2),
    ONE("creat", TRACE_WRITE, PATH(0)),
    ONE("execve", TRACE_READ, PATH(0)),
    ONE("execveat", TRACE_READ, PATH_AT(0)),

    ONE("stat", TRACE_LOOK, PATH(0)),
    ONE("stat64", TRACE_LOOK, PATH(0)),
    ONE("lstat", TRACE_LOOK, PATH(0)),
    ONE("lstat64", TRACE_LOOK, PATH(0)),
    ONE("newfstatat", TRACE_LOOK, PATH_AT(0)),
    ONE("fstatat64", TRACE_LOOK, PATH_AT(0)),
    ONE("statx", TRACE_LOOK, PATH_AT(0)),
    ONE("readlink", TRACE_LOOK, PATH(0)),
    ONE("readlinkat", TRACE_LOOK, PATH_AT(0)),
    ONE("chdir", TRACE_LOOK, PATH(0)),
    FLAGGED("access", TRACE_LOOK, PATH(0), TRACE_FLAGS_MODE, 1),
    FLAGGED("faccessat", TRACE_LOOK, PATH_AT(0), TRACE_FLAGS_MODE, 2),
    FLAGGED("faccessat2", TRACE_LOOK, PATH_AT(0), TRACE_FLAGS_MODE, 2),

    ONE("truncate", TRACE_WRITE, PATH(0)),
    ONE("truncate64", TRACE_WRITE, PATH(0)),
    ONE("chmod", TRACE_WRITE, PATH(0)),
    ONE("fchmodat", TRACE_WRITE, PATH_AT(0)),
    ONE("chown", TRACE_WRITE, PATH(0)),
    ONE("lchown", TRACE_WRITE, PATH(0)),
    ONE("fchownat", TRACE_WRITE, PATH_AT(0)),
    ONE("utime", TRACE_WRITE, PATH(0)),
    ONE("utimes", TRACE_WRITE, PATH(0)),
    ONE("utimensat", TRACE_WRITE, PATH_AT(0)),

    ONE("mkdir", TRACE_ENTRY, PATH(0)),
    ONE("mkdirat", TRACE_ENTRY, PATH_AT(0)),
    ONE("mknod", TRACE_ENTRY, PATH(0)),
    ONE("mknodat", TRACE_ENTRY, PATH_AT(0)),
    ONE("unlink", TRACE_ENTRY, PATH(0)),
    ONE("unlinkat", TRACE_ENTRY, PATH_AT(0)),
    ONE("rmdir", TRACE_ENTRY, PATH(0)),
    ONE("symlink", TRACE_ENTRY, PATH(1)),
    ONE("symlinkat", TRACE_ENTRY, PATH_AT(1)),
    ONE("link", TRACE_ENTRY, PATH(1)),
    ONE("linkat", TRACE_ENTRY, PATH_AT(2)),
    { .name = "rename", .want = TRACE_ENTRY, .paths = { PATH(0), PATH(1) } },
    { .name = "renameat", .want = TRACE_ENTRY, .paths = { PATH_AT(0), PATH_AT(2) } },
    { .name = "renameat2", .want = TRACE_ENTRY, .paths = { PATH_AT(0), PATH_AT(2) } },
  };

  *ret_count = MEM_COUNT(calls);
  return calls;
}
