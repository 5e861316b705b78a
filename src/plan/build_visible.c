/* The stages that show files of the user: home, toolchains, workspace, and what the policy reads and writes. */
#include "plan/build.h"
#include "plan/ops.h"
#include "plan/veil.h"
#include "plan/view.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static int add_bind(const struct fact_path *fact, bool writable, const char *target, const char *why, struct err *err,
                    struct plan *plan)
{
  struct plan_op *op =
      ops_add(plan, PLAN_STAGE_VISIBLE, writable ? PLAN_BIND_RW : PLAN_BIND_RO, fact->real, target, why);

  if (!op)
    return OUT_OF_MEMORY(err);
  op->mode = fact->mode;
  op->device = fact->device;
  op->inode = fact->inode;
  return 0;
}

/* Whether the system's own read-only trees show real already; to mount it again would uncover what was taken out
 * there. */
static bool is_of_system(const struct plan *plan, const char *real)
{
  const struct plan_op *cover = ops_covering(plan, real);

  return cover && cover->stage == PLAN_STAGE_SYSTEM && cover->kind == PLAN_BIND_RO &&
         strcmp(cover->source, cover->target) == 0;
}

/* Whether the name that was asked for leads to the object inside: by the links of a tree that is there as on the host,
 * or because another mount shows the object there. 1, 0 or -ENOMEM. */
static int leads_there(const struct plan *plan, const struct fact_path *fact)
{
  const struct plan_op *cover = ops_covering(plan, fact->asked);
  mem_autofree char *source = NULL;

  if (!cover || (!ops_is_bind(cover) && cover->kind != PLAN_SYMLINK))
    return 0;
  if (cover->kind == PLAN_SYMLINK || strcmp(cover->source, cover->target) == 0)
    return 1;
  source = ops_source_of(cover, fact->asked);
  return source ? strcmp(source, fact->real) == 0 : -ENOMEM;
}

/* The kernel's own trees are the plan's; and a whole root shows everything that the rest of the plan keeps away. */
static bool is_reserved(const char *path)
{
  return strcmp(path, "/") == 0 || path_is_within(path, "/proc") || path_is_within(path, "/sys") ||
         path_is_within(path, "/dev");
}

/* In a file a path is told as it stands there, and which one is meant. */
static int origin_error(const struct policy_path *path, const char *absolute, struct err *err, int code,
                        const char *text)
{
  const struct policy_origin *origin = &path->origin;

  if (origin->line && path->text[0] != '/')
    return err_set(err, code, "%s:%u: %s: %s (%s) %s", origin->file, origin->line, origin->json_path, path->text,
                   absolute, text);
  if (origin->line)
    return err_set(err, code, "%s:%u: %s: %s %s", origin->file, origin->line, origin->json_path, path->text, text);
  return err_set(err, code, "%s: %s %s", origin->file ? origin->file : "policy", absolute, text);
}

/* Whether a path that is named within a tree leads out of it. */
static bool leaves(const struct fact_path *fact, const char *tree)
{
  return path_is_within(fact->asked, tree) && !path_is_within(fact->real, tree);
}

/* A link below a writable tree may be of a command's making, and leads where the command wants. */
static bool leaves_writable_tree(const struct fact_path *fact, const struct policy *policy, const struct facts *facts)
{
  if (leaves(fact, facts->workspace))
    return true;
  for (size_t i = 0; i < policy->write.count; i++) {
    mem_autofree char *tree = facts_expand(facts, policy->write.items[i].text);
    const struct fact_path *other = tree ? facts_path(facts, tree) : NULL;

    if (!other || other->error || other == fact)
      continue;
    if (leaves(fact, other->asked) || leaves(fact, other->real))
      return true;
  }
  return false;
}

static int show_policy_path(const struct policy_path *path, bool writable, const struct policy *policy,
                            const struct facts *facts, struct err *err, struct plan *plan)
{
  mem_autofree char *absolute = facts_expand(facts, path->text);
  const struct fact_path *fact = absolute ? facts_path(facts, absolute) : NULL;

  if (!absolute)
    return OUT_OF_MEMORY(err);
  if (!fact)
    return err_set(err, EINVAL, "plan: %s was not looked at", absolute);
  if (fact->error == -ENOENT || fact->error == -ENOTDIR) {
    if (writable || !path->origin.line)
      return origin_error(path, absolute, err, ENOENT, "does not exist on the host; create it first, or take it out");
    return strv_addf(&plan->warnings, "%s:%u: %s: %s%s%s%s does not exist and is not shown", path->origin.file,
                     path->origin.line, path->origin.json_path, path->text, *path->text == '/' ? "" : " (",
                     *path->text == '/' ? "" : absolute, *path->text == '/' ? "" : ")") < 0
               ? OUT_OF_MEMORY(err)
               : 0;
  }
  if (fact->error)
    return origin_error(path, absolute, err, -fact->error, strerror(-fact->error));
  if (is_reserved(fact->real))
    return origin_error(path, absolute, err, EINVAL,
                        "cannot be shown: the sandbox has its own; name what you need below it");
  if (leaves_writable_tree(fact, policy, facts))
    return origin_error(
        path, absolute, err, EXDEV,
        "leads out of a writable directory through a symbolic link, which a command may have made; name "
        "the place that is meant by its own path");
  if (!writable && is_of_system(plan, fact->real))
    return 0;
  return add_bind(fact, writable, fact->real, writable ? "write" : "read", err, plan);
}

static int show_list(const struct policy_paths *paths, bool writable, const struct policy *policy,
                     const struct facts *facts, struct err *err, struct plan *plan)
{
  for (size_t i = 0; i < paths->count; i++) {
    int r = show_policy_path(&paths->items[i], writable, policy, facts, err, plan);

    if (r < 0)
      return r;
  }
  return 0;
}

/* Shows what is in a list under the names asked for too, where those lead through links that are not there inside. */
static int show_names(const struct policy_paths *paths, bool writable, const struct facts *facts, struct err *err,
                      struct plan *plan)
{
  for (size_t i = 0; i < paths->count; i++) {
    mem_autofree char *absolute = facts_expand(facts, paths->items[i].text);
    const struct fact_path *fact = absolute ? facts_path(facts, absolute) : NULL;
    int r;

    if (!absolute)
      return OUT_OF_MEMORY(err);
    if (!fact || fact->error || strcmp(fact->asked, fact->real) == 0 || is_reserved(fact->asked))
      continue;
    r = leads_there(plan, fact);
    if (r < 0)
      return OUT_OF_MEMORY(err);
    r = r ? 0 : add_bind(fact, writable, fact->asked, writable ? "write" : "read", err, plan);
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

/* The Python environment that the caller has activated, where it lies in the home and is none by name only. */
static int show_venv(const struct facts *facts, struct err *err, struct plan *plan)
{
  const struct fact_path *venv = facts_venv(facts);

  return venv ? add_bind(venv, false, venv->asked, "toolchain", err, plan) : 0;
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
  const struct fact_path *fact = facts_path(facts, facts->home);
  const struct plan_op *op = NULL;

  switch (policy->home) {
  case POLICY_HOME_PRIVATE:
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_BIND_RW, facts->private_home, facts->home, "private home");
    plan->private_home = mem_strndup(facts->private_home, strlen(facts->private_home));
    return op && plan->private_home &&
                   strv_addf(&plan->notes, "home: what is written to %s stays in %s, this project's own", facts->home,
                             facts->private_home) == 0
               ? 0
               : OUT_OF_MEMORY(err);
  case POLICY_HOME_TMPFS:
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_TMPFS, NULL, facts->home, "empty home");
    break;
  case POLICY_HOME_HOST:
    if (!fact || fact->error)
      return err_set(err, ENOENT, "filesystem.home: host: %s does not exist", facts->home);
    op = ops_add(plan, PLAN_STAGE_HOME, PLAN_BIND_RO, facts->home, facts->home, "host's home");
    break;
  }
  return op ? 0 : OUT_OF_MEMORY(err);
}

/* Of two for one target the first one stays. */
static int rank(const struct plan_op *op)
{
  return veil_is_one(op) ? 0 : op->kind == PLAN_BIND_RW ? 1 : 2;
}

/* By target. */
static int compare_shown(const void *a, const void *b)
{
  const struct plan_op *left = a;
  const struct plan_op *right = b;
  int order = strcmp(left->target, right->target);

  if (order == 0)
    order = rank(left) - rank(right);
  return order || veil_is_one(left) ? order : strcmp(left->source, right->source);
}

/* Parents before children, so that no mount covers one made before it; and one for each target (a tree that is both
 * read and written is written). */
static void sort_visible(struct plan *plan, size_t from)
{
  struct plan_op *items = plan->ops.items + from;
  size_t count = plan->ops.count - from;
  size_t kept = 0;

  if (count)
    qsort(items, count, sizeof *items, compare_shown);
  for (size_t i = 0; i < count; i++) {
    if (kept && strcmp(items[kept - 1].target, items[i].target) == 0) {
      free(items[i].target);
      free(items[i].source);
      continue;
    }
    items[kept++] = items[i];
  }
  plan->ops.count = from + kept;
}

/* What is there by this policy, and may not be in the next run. */
static bool is_passing(const struct plan_op *op)
{
  return op->late == PLAN_LATE_CREDENTIAL || strcmp(op->why, "read") == 0 || strcmp(op->why, "write") == 0;
}

/* Mount points in the private home are made by us, without following links that an earlier command may have planted. */
static int list_private_mounts(const struct facts *facts, size_t from, struct err *err, struct plan *plan)
{
  for (size_t i = from; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    mem_autofree char *above = mem_strndup(op->target, (size_t)(strrchr(op->target, '/') - op->target));
    const struct plan_op *cover;

    if (!above)
      return OUT_OF_MEMORY(err);
    cover = *above ? ops_covering(plan, above) : NULL;
    if (!cover || cover->stage != PLAN_STAGE_HOME)
      continue; /* elsewhere, or in a tree of the host, where it exists */
    if (strv_addf(is_passing(op) ? &plan->passing_mounts : &plan->private_mounts, "%s%s",
                  op->target + strlen(facts->home) + 1, S_ISDIR(op->mode) ? "/" : "") < 0)
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

/* What the policy shows beside the workspace: first each object where it really is, then, when all of that is known,
 * the names that need a mount of their own. Secrets are veiled where the home or the system shows them, so that what is
 * asked for of them is mounted, and then where the lists show them. */
static int show_policy(const struct policy *policy, size_t from, const struct facts *facts, struct err *err,
                       struct plan *plan)
{
  int r = veil_secrets(policy, facts, err, plan);

  if (r == 0)
    r = show_list(&policy->read, false, policy, facts, err, plan);
  if (r == 0)
    r = show_list(&policy->unix_sockets, false, policy, facts, err, plan);
  if (r == 0)
    r = show_list(&policy->write, true, policy, facts, err, plan);
  if (r < 0)
    return r;
  sort_visible(plan, from);
  r = veil_secrets(policy, facts, err, plan);
  sort_visible(plan, from);
  if (r == 0)
    r = show_names(&policy->write, true, facts, err, plan);
  if (r == 0)
    r = show_names(&policy->read, false, facts, err, plan);
  if (r == 0)
    r = show_names(&policy->unix_sockets, false, facts, err, plan);
  sort_visible(plan, from);
  return r;
}

int build_visible(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = show_home(policy, facts, err, plan);
  size_t from = plan->ops.count;

  if (r == 0 && policy->home != POLICY_HOME_HOST)
    r = show_tools(facts, err, plan);
  if (r == 0 && policy->home != POLICY_HOME_HOST)
    r = show_venv(facts, err, plan);
  if (r == 0)
    r = show_workspace(facts, err, plan);
  if (r == 0)
    r = show_policy(policy, from, facts, err, plan);
  if (r == 0)
    r = build_trust_java(facts, err, plan);
  if (r == 0)
    r = build_copies(policy, facts, err, plan);
  if (r < 0)
    return r;
  r = plan->private_home ? list_private_mounts(facts, from, err, plan) : 0;
  return r == 0 ? build_trust_nss(policy, facts, err, plan) : r;
}
