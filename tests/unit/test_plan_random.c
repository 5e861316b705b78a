/* Plans for random hosts and policies: what must hold of every one of them. */
#include "unit/facts_make.h"

#define ROUNDS 3000
#define THINGS_MAX 24

static const char *const roots[] = { WORK,   HOME,    HOME "/.config", HOME "/.local/state/sbx",
                                     "/srv", "/home", "/run",          "/tmp" };
static const char *const parts[] = { "a", "b", "c", ".git", "hooks", "a-b" };

struct host {
  struct thing things[THINGS_MAX];
  size_t count;
  char names[THINGS_MAX * 2][128];
  size_t used;
};

static const char *name_of(struct host *host, struct unit_random *random)
{
  char *name = host->names[host->used++];
  size_t len = (size_t)snprintf(name, sizeof host->names[0], "%s", roots[unit_below(random, MEM_COUNT(roots))]);

  for (size_t depth = 1 + unit_below(random, 3); depth > 0; depth--)
    len +=
        (size_t)snprintf(name + len, sizeof host->names[0] - len, "/%s", parts[unit_below(random, MEM_COUNT(parts))]);
  return name;
}

/* A tree that can be: nothing lies below a file, a socket or a link. */
static bool fits(const struct host *host, const struct thing *thing)
{
  const struct make_world world = { host->things, host->count };
  mem_autofree char *above = make_copy(thing->path);

  if (make_find(&world, thing->path) ||
      (!S_ISDIR(thing->mode) && (make_is_above(host->things, host->count, thing->path) ||
                                 make_is_above(make_base, MEM_COUNT(make_base), thing->path))))
    return false;
  for (char *slash = strrchr(above, '/'); slash != above; slash = strrchr(above, '/')) {
    const struct thing *found;

    *slash = '\0';
    found = make_find(&world, above);
    if (found && !S_ISDIR(found->mode))
      return false;
  }
  return true;
}

static void make_host(struct host *host, struct unit_random *random)
{
  host->count = 0;
  host->used = 0;
  for (size_t i = 0; i < THINGS_MAX; i++) {
    static const mode_t kinds[] = { S_IFDIR | 0755, S_IFDIR | 0755, S_IFREG | 0644, S_IFSOCK | 0755, 0 };
    struct thing thing = { .path = name_of(host, random), .mode = kinds[unit_below(random, MEM_COUNT(kinds))] };

    if (!thing.mode)
      thing.real = host->count ? host->things[unit_below(random, host->count)].path : "/srv";
    if (fits(host, &thing))
      host->things[host->count++] = thing;
  }
}

/* Some of the host's names as a JSON list. */
static void add_list(struct buf *out, const char *key, const struct host *host, struct unit_random *random)
{
  buf_printf(out, "\"%s\": [", key);
  for (size_t count = unit_below(random, 4); count > 0; count--)
    buf_printf(out, "\"%s\"%s", host->things[unit_below(random, host->count)].path, count > 1 ? ", " : "");
  buf_append_str(out, "]");
}

static void make_random_policy(struct buf *out, const struct host *host, struct unit_random *random)
{
  static const char *const lists[] = { "read", "write", "hide", "protect" };
  static const char *const homes[] = { "private", "private", "tmpfs", "host" };

  buf_printf(out, "{\"filesystem\": {\"home\": \"%s\"", homes[unit_below(random, MEM_COUNT(homes))]);
  for (size_t i = 0; i < MEM_COUNT(lists); i++) {
    buf_append_str(out, ", ");
    add_list(out, lists[i], host, random);
  }
  buf_append_str(out, "}}");
}

/* Goes through the names under which the finished plan shows a real path of the host. NULL at the end. */
static char *next_name(const struct plan *plan, const char *real, size_t *at, const struct plan_op **ret_op)
{
  while (*at < plan->ops.count) {
    const struct plan_op *op = &plan->ops.items[(*at)++];
    char *name;

    if ((op->kind != PLAN_BIND_RO && op->kind != PLAN_BIND_RW) || !path_is_within(real, op->source))
      continue;
    name = path_join(op->target, real + strlen(op->source));
    if (make_at(plan, name) == op) {
      *ret_op = op;
      return name;
    }
    free(name);
  }
  return NULL;
}

static void assert_unseen(const struct plan *plan, const char *real, const char *policy)
{
  const struct plan_op *op;
  size_t at = 0;
  mem_autofree char *name = next_name(plan, real, &at, &op);

  if (name)
    fail_msg("%s is hidden, but %s shows it; policy %s", real, name, policy);
}

static bool is_mount_point(const struct plan *plan, const char *path)
{
  for (size_t i = 0; i < plan->ops.count; i++) {
    if (strcmp(plan->ops.items[i].target, path) == 0)
      return true;
  }
  return false;
}

/* Nobody inside can write it, nor rename a directory above it that belongs to the host. */
static void assert_kept(const struct plan *plan, const char *real, const char *policy)
{
  const struct plan_op *op;
  size_t at = 0;

  for (;;) {
    mem_autofree char *name = next_name(plan, real, &at, &op);

    if (!name)
      return;
    if (op->kind != PLAN_BIND_RO)
      fail_msg("%s is protected, but writable at %s; policy %s", real, name, policy);
    for (char *slash = strrchr(name, '/'); slash != name; slash = strrchr(name, '/')) {
      const struct plan_op *cover;

      *slash = '\0';
      cover = make_at(plan, name);
      if (cover && cover->kind == PLAN_BIND_RW && cover->stage != PLAN_STAGE_HOME && !is_mount_point(plan, name))
        fail_msg("%s is protected, but %s can be renamed; policy %s", real, name, policy);
    }
  }
}

static void check_order(const struct plan *plan, const char *policy)
{
  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];

    for (size_t k = i + 1; k < plan->ops.count; k++) {
      const struct plan_op *later = &plan->ops.items[k];

      assert_true(later->stage >= op->stage);
      if (op->stage == PLAN_STAGE_VISIBLE && later->stage == PLAN_STAGE_VISIBLE &&
          path_is_within(op->target, later->target))
        fail_msg("%s is mounted after %s; policy %s", later->target, op->target, policy);
      /* A cover in a place that an earlier cover closed could not be mounted. */
      if (op->kind == PLAN_MASK_DIR && later->kind != PLAN_SEAL && op->stage == PLAN_STAGE_HIDE)
        assert_false(path_is_within(later->target, op->target));
    }
  }
}

static void check_lists(const struct policy *policy, const struct facts *facts, const struct plan *plan,
                        const char *text)
{
  for (size_t i = 0; i < policy->hide.count; i++) {
    const struct fact_path *fact = facts_path(facts, policy->hide.items[i].text);

    if (!fact->error)
      assert_unseen(plan, fact->real, text);
  }
  for (size_t i = 0; i < policy->protect.count; i++) {
    const struct fact_path *fact = facts_path(facts, policy->protect.items[i].text);

    if (!fact->error)
      assert_kept(plan, fact->real, text);
  }
  for (size_t i = 0; i < policy->read.count; i++) {
    const struct fact_path *fact = facts_path(facts, policy->read.items[i].text);
    const struct plan_op *op = fact->error ? NULL : make_at(plan, fact->real);

    if (op && op->kind != PLAN_BIND_RO && op->kind != PLAN_BIND_RW && op->kind != PLAN_MASK_DIR &&
        op->kind != PLAN_MASK_FILE)
      fail_msg("%s is read, but not there; policy %s", fact->real, text);
  }
  for (const char *const *name = view_protected(); *name; name++) {
    mem_autofree char *path = path_join(facts->workspace, *name);
    const struct fact_path *fact = facts_path(facts, path);

    if (!fact->error)
      assert_kept(plan, fact->real, text);
  }
  assert_kept(plan, facts->config_dir, text);
  assert_unseen(plan, facts->state_dir, text);
  for (size_t i = 0; i < facts->sockets.count; i++) {
    const struct fact_path *fact = facts_path(facts, facts->sockets.items[i]);

    if (!fact->error && S_ISSOCK(fact->mode))
      assert_unseen(plan, fact->real, text);
  }
}

static bool check_round(struct unit_random *random)
{
  char *const argv[] = { NULL };
  buf_autofree struct buf text = BUF_INIT(65536);
  facts_autofree struct facts facts = FACTS_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  struct host host;
  struct make_world world = { host.things, 0 };
  struct err err = ERR_INIT;

  make_host(&host, random);
  world.count = host.count;
  make_random_policy(&text, &host, random);
  policy_autofree struct policy *policy = make_policy(text.data);

  make_caller(&facts, 1000, NULL);
  for (size_t i = 0; i < host.count; i++) {
    if (S_ISSOCK(host.things[i].mode))
      assert_int_equal(strv_add(&facts.sockets, host.things[i].path), 0);
  }
  make_paths(&facts, policy, &world, NULL);
  if (make_plan(policy, &facts, argv, &err, &plan) < 0) {
    assert_true(err.code == EINVAL || err.code == ENOENT || err.code == ELOOP || err.code == EXDEV);
    assert_true(err.message[0] && !strstr(err.message, "was not looked at"));
    return false;
  }
  if (plan_check(&plan, &err) < 0)
    fail_msg("%s; policy %s", err.message, text.data);
  check_order(&plan, text.data);
  check_lists(policy, &facts, &plan, text.data);
  return true;
}

static void test_random_plans(void **state)
{
  struct unit_random random = unit_seed(__func__);
  unsigned built = 0;

  (void)state;
  for (unsigned round = 0; round < ROUNDS; round++)
    built += check_round(&random);
  assert_true(built > ROUNDS / 4); /* else the rest proves little */
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_plans) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
