#include "plan/veil.h"

#include "plan/ops.h"
#include "plan/view.h"
#include "sys/path.h"

#include <errno.h>
#include <sys/stat.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static enum veil_asked asked_by(const char *named, const char *path)
{
  return !named || !path_is_within(named, path) ? VEIL_NOTHING : strcmp(named, path) == 0 ? VEIL_WHOLE : VEIL_PART;
}

enum veil_asked veil_asked(const struct policy *policy, const struct facts *facts, const char *path)
{
  const struct policy_paths *const lists[] = { &policy->read, &policy->write, &policy->unix_sockets };
  enum veil_asked asked = asked_by(facts->workspace, path);

  for (size_t i = 0; i < MEM_COUNT(lists); i++) {
    for (size_t j = 0; j < lists[i]->count; j++) {
      mem_autofree char *named = facts_expand(facts, lists[i]->items[j].text);
      enum veil_asked more = asked_by(named, path);

      asked = more > asked ? more : asked;
    }
  }
  for (size_t i = 0; i < policy->credentials.count && asked == VEIL_NOTHING; i++) {
    const struct strv *files = &policy->credentials.items[i].files;

    for (size_t j = 0; j < files->count && asked == VEIL_NOTHING; j++) {
      mem_autofree char *named = facts_expand(facts, files->items[j]);

      asked = asked_by(named, path) == VEIL_NOTHING ? VEIL_NOTHING : VEIL_PART;
    }
  }
  return asked;
}

bool veil_is_one(const struct plan_op *op)
{
  return op->stage == PLAN_STAGE_VISIBLE && op->kind == PLAN_TMPFS;
}

/* Wherever the object that fact found is shown. */
static int veil(const struct fact_path *fact, const char *why, struct err *err, struct plan *plan)
{
  size_t at = 0;

  for (;;) {
    mem_autofree char *name = NULL;
    int r = ops_next_shown(plan, fact->real, &at, &name);
    struct plan_op *op;

    if (r == 0)
      return 0;
    op = r > 0 ? ops_add(plan, PLAN_STAGE_VISIBLE, PLAN_TMPFS, NULL, name, why) : NULL;
    if (!op)
      return OUT_OF_MEMORY(err);
    op->mode = 0700;
    op->device = fact->device;
    op->inode = fact->inode;
  }
}

static int veil_names(const char *base, const char *const *names, const char *why, const struct policy *policy,
                      const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = 0;

  for (; *names && r == 0; names++) {
    mem_autofree char *path = path_join(base, *names);
    const struct fact_path *fact = path ? facts_path(facts, path) : NULL;

    if (!path)
      return OUT_OF_MEMORY(err);
    if (fact && !fact->error && S_ISDIR(fact->mode) && veil_asked(policy, facts, path) == VEIL_PART)
      r = veil(fact, why, err, plan);
  }
  return r;
}

int veil_secrets(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = veil_names(facts->home, view_home_secrets(), "a secret of the home, but for what is named of it", policy,
                     facts, err, plan);

  if (r == 0 && facts->uid == 0)
    r = veil_names("/", view_etc_root_only(), "for root only, but for what is named of it", policy, facts, err, plan);
  return r;
}
