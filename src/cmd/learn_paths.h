/* learn_paths: from paths that a command has asked for in vain to what the policy should show. */
#ifndef SBX_CMD_LEARN_PATHS_H
#define SBX_CMD_LEARN_PATHS_H

#include "base/strv.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "sys/trace.h"

struct learn_path {
  char *path; /* of the host, real */
  enum trace_want want;
  bool directory;
};

struct learn_paths {
  const struct facts *facts;
  const struct plan *plan;
  struct learn_path *items; /* what can be proposed */
  size_t count;
  size_t cap;
  struct strv refused; /* "PATH: why it is not proposed" */
  bool incomplete;
};

void learn_paths_free(struct learn_paths *paths);

/* For trace_new(): data is a struct learn_paths, with facts and plan set. */
void learn_paths_take(void *data, const char *path, enum trace_want want);

/* Texts for filesystem.read and filesystem.write, sorted, none of them below another; and a line for each path that was
 * tried and is not proposed. 0 or -ENOMEM. */
int learn_paths_propose(const struct learn_paths *paths, struct strv *ret_read, struct strv *ret_write,
                        struct strv *ret_notes);

#endif
