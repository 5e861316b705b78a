/* A plan that was built passes; every change that would break an engine's assumption is refused. */
#include "unit/facts_make.h"

static void build(struct plan *plan)
{
  static const struct thing things[] = { DIRECTORY(WORK "/a"), DIRECTORY("/srv/data"), REGULAR(WORK "/secret"),
                                         LINK(HOME "/data", "/srv/data") };
  static const struct make_world world = { things, MEM_COUNT(things) };
  char *const argv[] = { NULL };
  policy_autofree struct policy *policy =
      make_policy("{\"filesystem\": {\"read\": [\"~/data\", \"a\"], \"hide\": [\"secret\"]}}");
  facts_autofree struct facts facts = FACTS_INIT;
  struct err err = ERR_INIT;

  make_caller(&facts, 1000, NULL);
  make_paths(&facts, policy, &world, NULL);
  if (make_plan(policy, &facts, argv, &err, plan) < 0 || plan_check(plan, &err) < 0)
    fail_msg("%s", err.message);
}

static void assert_refused(const struct plan *plan, const char *change, size_t at)
{
  struct err err = ERR_INIT;

  if (plan_check(plan, &err) != -EINVAL)
    fail_msg("passes: %s at %zu (%s)", change, at, plan->ops.items[at].target);
  assert_int_equal(err.code, EINVAL);
}

static void test_targets(void **state)
{
  static const char *const targets[] = { "",    "relative", "./x", "/a/../b", "/a/./b", "/..", "/a//b",
                                         "//a", "/a/",      "/",   "../a",    "/.",     " /a" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(targets); i++) {
    plan_autofree struct plan plan = PLAN_INIT;

    build(&plan);
    for (size_t at = 0; at < plan.ops.count; at++) {
      char *target = plan.ops.items[at].target;

      if (strcmp(targets[i], target) == 0)
        continue;
      plan.ops.items[at].target = make_copy(targets[i]);
      assert_refused(&plan, targets[i], at);
      free(plan.ops.items[at].target);
      plan.ops.items[at].target = target;
    }
  }
}

static void test_sources(void **state)
{
  static const char *const sources[] = { NULL, "", "relative", "/a/../b", "/a//b", "/a/" };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(&plan);
  for (size_t at = 0; at < plan.ops.count; at++) {
    struct plan_op *op = &plan.ops.items[at];
    char *source = op->source;
    char *data = op->data;

    for (size_t i = 0; i < MEM_COUNT(sources) && (op->kind == PLAN_BIND_RO || op->kind == PLAN_BIND_RW); i++) {
      op->source = sources[i] ? make_copy(sources[i]) : NULL;
      assert_refused(&plan, "source", at);
      free(op->source);
    }
    op->source = NULL;
    if (op->kind == PLAN_SYMLINK)
      assert_refused(&plan, "no text", at);
    op->source = source;
    op->data = NULL;
    if (op->kind == PLAN_FILE)
      assert_refused(&plan, "no contents", at);
    op->data = data;
  }
}

static void swap(struct plan *plan, size_t a, size_t b)
{
  struct plan_op op = plan->ops.items[a];

  plan->ops.items[a] = plan->ops.items[b];
  plan->ops.items[b] = op;
}

static void test_order(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  unsigned tried = 0;

  (void)state;
  build(&plan);
  for (size_t at = 1; at < plan.ops.count; at++) {
    const struct plan_op *op = &plan.ops.items[at];

    if (op->stage == op[-1].stage && op->stage != PLAN_STAGE_VISIBLE)
      continue;
    tried++;
    swap(&plan, at - 1, at);
    assert_refused(&plan, "order", at);
    swap(&plan, at - 1, at);
  }
  assert_true(tried > 10);
}

/* Nothing but masks may come over /proc, /sys and /dev once they stand. */
static void test_kernel_trees(void **state)
{
  static const char *const targets[] = { "/proc", "/proc/sys", "/sys/kernel", "/dev/shm", "/dev" };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(&plan);
  for (size_t at = 0; at < plan.ops.count; at++) {
    struct plan_op *op = &plan.ops.items[at];
    char *target = op->target;

    if (op->stage <= PLAN_STAGE_KERNEL || op->kind == PLAN_MASK_FILE || op->kind == PLAN_MASK_DIR)
      continue;
    for (size_t i = 0; i < MEM_COUNT(targets); i++) {
      op->target = make_copy(targets[i]);
      assert_refused(&plan, targets[i], at);
      free(op->target);
    }
    op->target = target;
  }
}

static void test_protection_is_read_only(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  unsigned tried = 0;

  (void)state;
  build(&plan);
  for (size_t at = 0; at < plan.ops.count; at++) {
    struct plan_op *op = &plan.ops.items[at];

    if (op->stage != PLAN_STAGE_PROTECT)
      continue;
    tried++;
    op->kind = PLAN_BIND_RW;
    assert_refused(&plan, "writable", at);
    op->kind = PLAN_BIND_RO;
  }
  assert_true(tried > 1);
}

static void test_seal(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  struct plan_op *last;
  char *target;

  (void)state;
  build(&plan);
  last = &plan.ops.items[plan.ops.count - 1];
  target = last->target;
  last->target = make_copy("/etc/ssh");
  assert_refused(&plan, "another seal", plan.ops.count - 1);
  free(last->target);
  last->target = target;
  last->kind = PLAN_DIR;
  assert_refused(&plan, "no seal", plan.ops.count - 1);
  last->kind = PLAN_SEAL;
  plan.ops.count--;
  assert_refused(&plan, "seal left out", plan.ops.count - 1);
  plan.ops.count++;
}

static void test_working_directory(void **state)
{
  static const char *const places[] = { "/proc", "/nowhere", "/tmp/x", WORK "/secret", "/bin" };
  plan_autofree struct plan plan = PLAN_INIT;
  char *cwd;

  (void)state;
  build(&plan);
  cwd = plan.cwd;
  for (size_t i = 0; i < MEM_COUNT(places); i++) {
    plan.cwd = make_copy(places[i]);
    assert_refused(&plan, places[i], 0);
    free(plan.cwd);
  }
  plan.cwd = cwd;
}

static void test_empty(void **state)
{
  struct plan plan = PLAN_INIT;
  struct err err = ERR_INIT;

  (void)state;
  plan.cwd = make_copy("/");
  assert_int_equal(plan_check(&plan, &err), -EINVAL);
  plan_free(&plan);
  assert_null(plan.cwd);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_targets),
    cmocka_unit_test(test_sources),
    cmocka_unit_test(test_order),
    cmocka_unit_test(test_kernel_trees),
    cmocka_unit_test(test_protection_is_read_only),
    cmocka_unit_test(test_seal),
    cmocka_unit_test(test_working_directory),
    cmocka_unit_test(test_empty),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
