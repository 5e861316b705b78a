/* Theory of operation: protection and hiding.
 *
 * A protected path is mounted read-only on itself. A mount point can be neither renamed nor removed, but a directory
 * above it can, and a new one made in its place would be writable; so each directory between the writable tree and the
 * protected path becomes a mount point as well, a writable one ("pinned"). Such a mount would cover what is mounted
 * below the directory before it, so it takes its place by name among the visible trees.
 *
 * A protected name that is a symbolic link cannot be mounted on. Where the link leads is protected instead.
 *
 * One object may be shown under several names (a link of the policy's, a toolchain that is a link): what is protected
 * or hidden is so under each of them.
 *
 * A hidden path is covered by something that nobody can open. Renaming a directory above it carries the cover along;
 * but the next run would not find it under its name, so the directories above it are pinned, but for what a pattern
 * has found, which the next run looks for again. Hiding comes last and so wins over every other list.
 */
#include "config.h"

#include "plan/build.h"
#include "plan/ops.h"
#include "plan/veil.h"
#include "plan/view.h"
#include "policy/fspath.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static bool is_unprotected(const struct policy *policy, const struct facts *facts, const char *path)
{
  for (size_t i = 0; i < policy->unprotect.count; i++) {
    if (fspath_match(policy->unprotect.items[i].text, facts->home, facts->workspace, path))
      return true;
  }
  return false;
}

/* Mounts path on itself. The object must be the one that was looked at, where it was. */
static int bind_in_place(const struct plan_op *cover, const char *path, enum plan_op_kind kind, const char *why,
                         const struct facts *facts, struct err *err, struct plan *plan)
{
  enum plan_stage stage = kind == PLAN_BIND_RW ? PLAN_STAGE_VISIBLE : PLAN_STAGE_PROTECT;
  mem_autofree char *source = ops_source_of(cover, path);
  const struct fact_path *fact = source ? facts_path(facts, source) : NULL;
  struct plan_op *op = source ? ops_add(plan, stage, kind, source, path, why) : NULL;

  if (!op)
    return OUT_OF_MEMORY(err);
  if (fact && !fact->error && strcmp(fact->real, source) == 0) {
    op->device = fact->device;
    op->inode = fact->inode;
  }
  ops_place(plan);
  return 0;
}

/* Every directory above path that lies in a writable tree of the host and is no mount point yet, also above the tree
 * that shows path itself: that may stand in another one. */
static int pin_ancestors(const char *path, const struct facts *facts, struct err *err, struct plan *plan)
{
  mem_autofree char *ancestor = mem_strndup(path, strlen(path));

  if (!ancestor)
    return OUT_OF_MEMORY(err);
  for (char *at = ancestor + 1; (at = strchr(at, '/')); *at++ = '/') {
    const struct plan_op *cover;
    int r = 0;

    *at = '\0';
    cover = ops_covering(plan, ancestor);
    if (cover && cover->kind == PLAN_BIND_RW && cover->stage == PLAN_STAGE_VISIBLE &&
        strcmp(cover->target, ancestor) != 0)
      r = bind_in_place(cover, ancestor, PLAN_BIND_RW, "pinned", facts, err, plan);
    if (r < 0)
      return r;
  }
  return 0;
}

/* name is where a writable tree shows something. */
static int protect_at(const char *name, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = pin_ancestors(name, facts, err, plan);

  /* Where the user made this very path writable, or it is the workspace, the narrower word wins. */
  return r < 0 ? r : bind_in_place(ops_covering(plan, name), name, PLAN_BIND_RO, "protect", facts, err, plan);
}

/* real exists. */
static int protect_real(const char *real, const struct facts *facts, struct err *err, struct plan *plan)
{
  size_t at = 0;

  for (;;) {
    mem_autofree char *name = NULL;
    int r = ops_next_shown(plan, real, &at, &name);

    if (r == 0)
      return 0;
    if (r > 0 && ops_covering(plan, name)->kind == PLAN_BIND_RW)
      r = protect_at(name, facts, err, plan);
    else if (r > 0) /* read-only already, but perhaps in a writable tree */
      r = pin_ancestors(name, facts, err, plan);
    if (r < 0)
      return r == -ENOMEM ? OUT_OF_MEMORY(err) : r;
  }
}

/* Covers the object that fact found, wherever it is shown. pin: the name has to lead there for the next run as well. */
static int mask(const struct fact_path *fact, const char *why, bool pin, const struct facts *facts, struct err *err,
                struct plan *plan)
{
  size_t at = 0;

  for (;;) {
    mem_autofree char *name = NULL;
    int r = ops_next_shown(plan, fact->real, &at, &name);
    struct plan_op *op = NULL;

    if (r == 0)
      return 0;
    if (r > 0 && pin)
      r = pin_ancestors(name, facts, err, plan) < 0 ? -ENOMEM : 1;
    if (r > 0)
      op = ops_add(plan, PLAN_STAGE_HIDE, S_ISDIR(fact->mode) ? PLAN_MASK_DIR : PLAN_MASK_FILE, NULL, name, why);
    if (!op)
      return OUT_OF_MEMORY(err);
    op->device = fact->device;
    op->inode = fact->inode;
  }
}

static int protect(const char *path, const struct policy *policy, const struct facts *facts, struct err *err,
                   struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, path);

  if (!fact)
    return err_set(err, EINVAL, "plan: %s was not looked at", path);
  if (is_unprotected(policy, facts, path) || fact->error == -ENOENT || fact->error == -ENOTDIR || fact->error == -ELOOP)
    return 0;
  /* A directory that a command made unreadable it can make readable again. */
  if (fact->error)
    return err_set_errno(err, -fact->error, "protect: %s cannot be looked at, so it cannot be protected", path);
  if (path_is_within(facts->workspace, fact->real) && strcmp(facts->workspace, fact->real) != 0)
    return err_set(err, EINVAL, "protect: %s holds the workspace, which is writable; protect what is in it", path);
  if (strcmp(fact->real, path) != 0 &&
      (strv_addf(&plan->notes, "protect: %s is a link; what it leads to, %s, is protected", path, fact->real) < 0 ||
       strv_add(&plan->links, path) < 0 || strv_add(&plan->links, fact->real) < 0))
    return OUT_OF_MEMORY(err);
  return protect_real(fact->real, facts, err, plan);
}

/* In a linked worktree or a submodule .git is a file that tells where the repository is. */
static int protect_gitfile(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  mem_autofree char *path = path_join(facts->workspace, ".git");
  const struct fact_path *fact = path ? facts_path(facts, path) : NULL;

  if (!path)
    return OUT_OF_MEMORY(err);
  return fact && !fact->error && S_ISREG(fact->mode) ? protect(path, policy, facts, err, plan) : 0;
}

/* Whether the nearest directory above path that exists is writable inside under any name. 1, 0 or -ENOMEM. */
static int is_creatable(const char *path, const struct facts *facts, const struct plan *plan)
{
  mem_autofree char *dir = mem_strndup(path, strlen(path));
  const struct fact_path *fact = NULL;
  size_t at = 0;
  int r = dir ? 1 : -ENOMEM;

  while (dir && dir[0] && (!(fact = facts_path(facts, dir)) || fact->error))
    *strrchr(dir, '/') = '\0';
  while (r > 0 && dir[0]) {
    mem_autofree char *name = NULL;

    r = ops_next_shown(plan, fact->real, &at, &name);
    if (r > 0 && ops_covering(plan, name)->kind == PLAN_BIND_RW)
      return 1;
  }
  return r < 0 ? r : 0;
}

/* One of sbx's own directories that does not exist yet but could be made by the command: it is made before the start,
 * so that it can be protected. */
static int protect_missing(const char *dir, const struct facts *facts, struct err *err, struct plan *plan)
{
  const struct plan_op *cover = ops_covering(plan, dir);
  int r = is_creatable(dir, facts, plan);

  if (r < 0)
    return OUT_OF_MEMORY(err);
  if (r == 0)
    return 0;
  if (!cover || cover->kind != PLAN_BIND_RW || strcmp(cover->source, cover->target) != 0)
    return err_set(err, EINVAL,
                   "%s would be writable, but " SBX_NAME
                   " keeps its own files there, and as it does not exist yet it cannot be "
                   "protected; mkdir -p %s first, or make less writable",
                   dir, dir);
  if (strv_add(&plan->own_dirs, dir) < 0)
    return OUT_OF_MEMORY(err);
  r = protect_at(dir, facts, err, plan);
  return r < 0 ? r : 1;
}

/* sbx's own settings and state decide what the next run may do; a command that can write them widens itself. */
static int protect_own(const struct facts *facts, struct err *err, struct plan *plan)
{
  const char *const dirs[] = { facts->config_dir, facts->state_dir };

  for (size_t i = 0; i < MEM_COUNT(dirs); i++) {
    const struct fact_path *fact = facts_path(facts, dirs[i]);
    bool state = i == 1;
    int r;

    if (!fact || fact->error) {
      r = protect_missing(dirs[i], facts, err, plan);
      if (r > 0 && state && !ops_add(plan, PLAN_STAGE_HIDE, PLAN_MASK_DIR, NULL, dirs[i], "private homes and audits"))
        r = OUT_OF_MEMORY(err);
    } else {
      r = protect_real(fact->real, facts, err, plan);
      if (r == 0 && state)
        r = mask(fact, "private homes and audits", false, facts, err, plan);
    }
    if (r < 0)
      return r;
  }
  return 0;
}

/* So that the next run finds them under their names as well. */
static int pin_veils(const struct facts *facts, struct err *err, struct plan *plan)
{
  strv_autofree struct strv veils = STRV_INIT;
  int r = 0;

  for (size_t i = 0; i < plan->ops.count && r == 0; i++)
    r = veil_is_one(&plan->ops.items[i]) ? strv_add(&veils, plan->ops.items[i].target) : 0;
  if (r < 0)
    return OUT_OF_MEMORY(err);
  for (size_t i = 0; i < veils.count && r == 0; i++)
    r = pin_ancestors(veils.items[i], facts, err, plan);
  return r;
}

int build_protect(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = pin_veils(facts, err, plan);

  for (const char *const *name = view_protected(); *name && r == 0; name++) {
    mem_autofree char *path = path_join(facts->workspace, *name);

    r = path ? protect(path, policy, facts, err, plan) : OUT_OF_MEMORY(err);
  }
  if (r == 0)
    r = protect_gitfile(policy, facts, err, plan);
  for (size_t i = 0; i < policy->protect.count && r == 0; i++) {
    mem_autofree char *path = facts_expand(facts, policy->protect.items[i].text);

    r = path ? protect(path, policy, facts, err, plan) : OUT_OF_MEMORY(err);
  }
  return r == 0 ? protect_own(facts, err, plan) : r;
}

static int hide(const char *path, const char *why, bool pin, const struct facts *facts, struct err *err,
                struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, path);

  if (!fact)
    return err_set(err, EINVAL, "plan: %s was not looked at", path);
  if (fact->error == -ENOENT || fact->error == -ENOTDIR)
    return strv_addf(&plan->notes, "%s: %s does not exist, so there is nothing to hide", why, path) < 0
               ? OUT_OF_MEMORY(err)
               : 0;
  if (fact->error)
    return err_set_errno(err, -fact->error, "%s %s", why, path);
  if (path_is_within(facts->workspace, fact->real))
    return err_set(err, EINVAL, "%s: %s holds the workspace, which cannot be hidden; work in another directory", why,
                   path);
  return mask(fact, why, pin, facts, err, plan);
}

static bool is_named_socket(const struct policy *policy, const struct facts *facts, const char *path)
{
  for (size_t i = 0; i < policy->unix_sockets.count; i++) {
    mem_autofree char *named = facts_expand(facts, policy->unix_sockets.items[i].text);
    const struct fact_path *fact = named ? facts_path(facts, named) : NULL;

    if (fact && !fact->error && strcmp(fact->real, path) == 0)
      return true;
  }
  return false;
}

static int hide_sockets(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  for (size_t i = 0; i < facts->sockets.count; i++) {
    const struct fact_path *fact = facts_path(facts, facts->sockets.items[i]);
    int r;

    if (!fact || fact->error || !S_ISSOCK(fact->mode) || is_named_socket(policy, facts, fact->real))
      continue;
    r = hide(facts->sockets.items[i], "host socket", true, facts, err, plan);
    if (r < 0)
      return r;
  }
  return 0;
}

/* Places that are secret by themselves, wherever they come into view. */
static int hide_names(const char *base, const char *const *names, const char *why, const struct policy *policy,
                      const struct facts *facts, struct err *err, struct plan *plan)
{
  for (; *names; names++) {
    mem_autofree char *path = path_join(base, *names);
    const struct fact_path *fact = path ? facts_path(facts, path) : NULL;
    int r = path ? 0 : OUT_OF_MEMORY(err);
    enum veil_asked asked;

    asked = path ? veil_asked(policy, facts, path) : VEIL_WHOLE;
    if (fact && !fact->error && (asked == VEIL_NOTHING || (asked == VEIL_PART && !S_ISDIR(fact->mode))))
      r = hide(path, why, true, facts, err, plan);
    if (r < 0)
      return r;
  }
  return 0;
}

/* All mount points in them are made. */
static int seal_veils(struct err *err, struct plan *plan)
{
  size_t count = plan->ops.count;

  for (size_t i = 0; i < count; i++) {
    if (veil_is_one(&plan->ops.items[i]) &&
        !ops_add(plan, PLAN_STAGE_HIDE, PLAN_SEAL, NULL, plan->ops.items[i].target, "of secrets"))
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

int build_hide(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = 0;

  for (size_t i = 0; i < policy->hide.count && r == 0; i++) {
    mem_autofree char *path = NULL;

    if (fspath_is_pattern(policy->hide.items[i].text))
      continue;
    path = facts_expand(facts, policy->hide.items[i].text);
    r = path ? hide(path, "hide", true, facts, err, plan) : OUT_OF_MEMORY(err);
  }
  for (size_t i = 0; i < facts->hidden.count && r == 0; i++)
    r = hide(facts->hidden.items[i], "hide", false, facts, err, plan);
  if (r == 0)
    r = hide_names(facts->home, view_home_secrets(), "secret of the home", policy, facts, err, plan);
  if (r == 0 && facts->uid == 0)
    r = hide_names("/", view_etc_root_only(), "for root only", policy, facts, err, plan);
  if (r == 0)
    r = hide_sockets(policy, facts, err, plan);
  return r == 0 ? seal_veils(err, plan) : r;
}
