/* The stages that show files of the user: home, toolchains, workspace, and what the policy reads and writes. */
#include "plan/build.h"
#include "plan/ops.h"
#include "plan/view.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static bool is_shown(const struct plan *plan, const char *path)
{
  const struct plan_op *cover = ops_covering(plan, path);

  return cover && ops_is_bind(cover);
}

static int add_bind(const struct fact_path *fact, bool writable, const char *target, const char *why, struct err *err,
                    struct plan *plan)
{
  struct plan_op *op =
    ops_add(plan, PLAN_STAGE_VISIBLE, writable ? PLAN_BIND_RW : PLAN_BIND_RO, fact->real, target, why);

  if (!op)
    return OUT_OF_MEMORY(err);
  op->device = fact->device;
  op->inode = fact->inode;
  return 0;
}

/* Shows what fact found, under its real name; and under the name asked for where that leads through links that will not
 * be there inside. */
static int show(const struct fact_path *fact, bool writable, const char *why, struct err *err, struct plan *plan)
{
  int r = add_bind(fact, writable, fact->real, why, err, plan);

  if (r == 0 && strcmp(fact->asked, fact->real) != 0 && !is_shown(plan, fact->asked))
    r = add_bind(fact, writable, fact->asked, why, err, plan);
  return r;
}

/* The kernel's own trees are the plan's; and a whole root shows everything that the rest of the plan keeps away. */
static bool is_reserved(const char *path)
{
  return strcmp(path, "/") == 0 || path_is_within(path, "/proc") || path_is_within(path, "/sys") ||
         path_is_within(path, "/dev");
}

static int origin_error(const struct policy_path *path, struct err *err, int code, const char *text)
{
  const struct policy_origin *origin = &path->origin;

  if (origin->line)
    return err_set(err, code, "%s:%u: %s: %s %s", origin->file, origin->line, origin->json_path, path->text, text);
  return err_set(err, code, "%s: %s %s", origin->file ? origin->file : "policy", path->text, text);
}

static int show_policy_path(const struct policy_path *path, bool writable, const struct facts *facts, struct err *err,
                            struct plan *plan)
{
  mem_autofree char *absolute = facts_expand(facts, path->text);
  const struct fact_path *fact = absolute ? facts_path(facts, absolute) : NULL;

  if (!absolute)
    return OUT_OF_MEMORY(err);
  if (!fact)
    return err_set(err, EINVAL, "plan: %s was not looked at", absolute);
  if (fact->error == -ENOENT || fact->error == -ENOTDIR) {
    if (writable || !path->origin.line)
      return origin_error(path, err, ENOENT, "does not exist on the host; create it first, or take it out");
    return strv_addf(&plan->warnings, "%s:%u: %s: %s does not exist and is not shown", path->origin.file,
                     path->origin.line, path->origin.json_path, path->text) < 0
             ? OUT_OF_MEMORY(err)
             : 0;
  }
  if (fact->error)
    return origin_error(path, err, -fact->error, strerror(-fact->error));
  if (is_reserved(fact->real))
    return origin_error(path, err, EINVAL, "cannot be shown: the sandbox has its own; name what you need below it");
  return show(fact, writable, writable ? "write" : "read", err, plan);
}

static int show_list(const struct policy_paths *paths, bool writable, const struct facts *facts, struct err *err,
                     struct plan *plan)
{
  for (size_t i = 0; i < paths->count; i++) {
    int r = show_policy_path(&paths->items[i], writable, facts, err, plan);

    if (r < 0)
      return r;
  }
  return 0;
}

static int show_tools(const struct facts *facts, struct err *err, struct plan *plan)
{
  for (const char *const *name = view_home_tools(); *name; name++) {
    mem_autofree char *path = path_join(facts->home, *name);
    const struct fact_path *fact = path ? facts_path(facts, path) : NULL;

    if (!path)
      return OUT_OF_MEMORY(err);
    /* A tool that is a link is shown under its own name: its real place may be anywhere in the home. */
    if (fact && !fact->error && !is_reserved(fact->real)) {
      int r = add_bind(fact, false, fact->asked, "toolchain", err, plan);

      if (r < 0)
        return r;
    }
  }
  return 0;
}

static int show_workspace(const struct facts *facts, struct err *err, struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, facts->workspace);

  if (!fact || fact->error)
    return err_set(err, ENOENT, "workspace: %s cannot be looked at", facts->workspace);
  if (is_reserved(fact->real))
    return err_set(err, EINVAL, "workspace: %s cannot be made writable; name a directory below it", facts->workspace);
  return add_bind(fact, true, fact->real, "workspace", err, plan);
}

static int show_home(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  const struct plan_op *op = NULL;

  switch (policy->home) {
  case POLICY_HOME_PRIVATE:
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_BIND_RW, facts->private_home, facts->home, "private home");
    plan->private_home = mem_strndup(facts->private_home, strlen(facts->private_home));
    return op && plan->private_home ? 0 : OUT_OF_MEMORY(err);
  case POLICY_HOME_TMPFS:
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_TMPFS, NULL, facts->home, "empty home");
    break;
  case POLICY_HOME_HOST:
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_BIND_RO, facts->home, facts->home, "host's home");
    break;
  }
  return op ? 0 : OUT_OF_MEMORY(err);
}

static int compare_targets(const void *a, const void *b)
{
  return strcmp(((const struct plan_op *)a)->target, ((const struct plan_op *)b)->target);
}

/* Parents before children, so that no mount covers one made before it; of two for one target the last given stays, a
 * writable one before all (a tree that is both read and written is written). */
static void sort_visible(struct plan *plan, size_t from)
{
  struct plan_op *items = plan->ops.items + from;
  size_t count = plan->ops.count - from;
  size_t kept = 0;

  if (count)
    qsort(items, count, sizeof *items, compare_targets);
  for (size_t i = 0; i < count; i++) {
    if (kept && strcmp(items[kept - 1].target, items[i].target) == 0) {
      struct plan_op *dropped = &items[i];

      if (items[i].kind == PLAN_BIND_RW && items[kept - 1].kind != PLAN_BIND_RW) {
        struct plan_op swap = items[kept - 1];

        items[kept - 1] = items[i];
        items[i] = swap;
      }
      free(dropped->target);
      free(dropped->source);
      continue;
    }
    if (kept != i)
      items[kept] = items[i];
    kept++;
  }
  plan->ops.count = from + kept;
}

/* Mount points in the private home are made by us, without following links that an earlier command may have planted. */
static int list_private_mounts(const struct facts *facts, size_t from, struct err *err, struct plan *plan)
{
  for (size_t i = from; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    const char *below = op->target + strlen(facts->home);
    const struct fact_path *fact = facts_path(facts, op->target);
    bool directory = !fact || fact->error || S_ISDIR(fact->mode);

    if (!path_is_within(op->target, facts->home) || *below == '\0')
      continue;
    if (strv_addf(&plan->private_mounts, "%s%s", below + 1, directory ? "/" : "") < 0)
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

int build_visible(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = show_home(policy, facts, err, plan);
  size_t from = plan->ops.count;

  if (r == 0 && policy->home != POLICY_HOME_HOST)
    r = show_tools(facts, err, plan);
  if (r == 0)
    r = show_list(&policy->read, false, facts, err, plan);
  if (r == 0)
    r = show_list(&policy->unix_sockets, false, facts, err, plan);
  if (r == 0)
    r = show_workspace(facts, err, plan);
  if (r == 0)
    r = show_list(&policy->write, true, facts, err, plan);
  if (r < 0)
    return r;
  sort_visible(plan, from);
  return plan->private_home ? list_private_mounts(facts, from, err, plan) : 0;
}
