/* context: what most commands begin with: the caller, the layers of the policy in their order, the policy. */
#ifndef SBX_CMD_CONTEXT_H
#define SBX_CMD_CONTEXT_H

#include "cmd/opts.h"
#include "plan/facts.h"
#include "policy/load.h"
#include "policy/policy.h"

struct context {
  struct facts facts;
  struct layers *layers;
  struct policy *policy;
  struct strv notes; /* what validation had to say */
  struct strv files; /* the policy files that were read, in their order */
  bool workspace_file; /* there is a .sbx.json */
  bool trusted; /* and it is the one that the user trusted */
  bool suppose_trust; /* set before loading: take it as trusted, to see what would be */
};

#define CONTEXT_INIT { .layers = NULL, .policy = NULL }

void context_free(struct context *context);
#define context_autofree MEM_CLEANUP(context_free)

/* Reads the caller and every layer, and makes the policy. 0 or -errno. */
int context_load(const struct opts *opts, struct err *err, struct context *context);

/* Makes the policy anew, with count more rules in network.allow; *ret_before gets the policy as it was. option is what
 * their origin is called. 0 or -errno. */
int context_widen(struct context *context, const char *const *rules, size_t count, const char *option, struct err *err,
                  struct policy **ret_before);

/* Prints the notes. */
void context_tell(const struct context *context);

/* The .sbx.json of the workspace as it is now. *ret_path is set whether it exists or not. 0, -ENOENT, or -errno. */
int context_read_workspace_file(const struct facts *facts, struct err *err, char **ret_path, struct buf *text);

/* The user's own policy for this workspace, to which --ask adds; it need not exist. NULL when memory is short. */
char *context_project_path(const struct facts *facts);

/* Where `sbx trust` keeps the text that the user has trusted, for this workspace. NULL when memory is short. */
char *context_trust_path(const struct facts *facts);

#endif
