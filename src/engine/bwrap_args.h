/* bwrap_args: a plan as bubblewrap's options (bwrap(1)). */
#ifndef SBX_ENGINE_BWRAP_ARGS_H
#define SBX_ENGINE_BWRAP_ARGS_H

#include "base/buf.h"
#include "base/err.h"
#include "plan/plan.h"

/* The numbers that descriptors have in bubblewrap. */
struct bwrap_fds {
  int status;
  int release;
  int gate;
  int filter;
  const int *files; /* one for each operation with data but the marker and late ones, in their order */
  size_t file_count;
  const int *late; /* one for each late operation, in their order */
  size_t late_count;
};

/* Whether bubblewrap takes so many arguments for the view of files and of the command. 0; or -E2BIG with the mend. */
int bwrap_args_fit(size_t view, size_t command, struct err *err);

/* Appends the options, each NUL-terminated, as --args wants them. closed_dir stands for hidden directories.
 * 0; -E2BIG where they are more than bubblewrap takes; -ENOMEM. */
int bwrap_args_write(const struct plan *plan, const struct bwrap_fds *fds, const char *closed_dir, struct err *err,
                     struct buf *args);

#endif
