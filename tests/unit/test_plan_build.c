/* What plan_build refuses, and what it says. */
#include "unit/facts_make.h"

struct refusal {
  const char *policy;
  enum layer_kind kind;
  int error;
  const char *text; /* part of the message */
  struct thing things[4];
};

static int build_with(const struct policy *policy, const struct thing *things, size_t count, struct err *err,
                      struct plan *plan)
{
  char *const argv[] = { NULL };
  facts_autofree struct facts facts = FACTS_INIT;
  const struct make_world world = { things, count };

  make_caller(&facts, 1000, NULL);
  make_paths(&facts, policy, &world, NULL);
  return make_plan(policy, &facts, argv, err, plan);
}

static size_t count_things(const struct thing *things)
{
  size_t count = 0;

  while (count < 4 && things[count].path)
    count++;
  return count;
}

static void test_refusals(void **state)
{
  static const struct refusal rows[] = {
    { "{\"filesystem\": {\n\"write\": [\"/data\",\n\"~/out\"]}}",
      LAYER_FILE,
      -ENOENT,
      "/test.json:2: filesystem.write[0]: /data does not exist on the host; create it first",
      { { NULL } } },
    { "{\"filesystem\": {\"write\": [\"/data\"]}}",
      LAYER_FILE,
      -EACCES,
      "/data",
      { { .path = "/data", .error = -EACCES } } },
    { "{\"filesystem\": {\"read\": [\"/proc/sys\"]}}", LAYER_FILE, -EINVAL, "the sandbox has its own", { { NULL } } },
    { "{\"filesystem\": {\"write\": [\"~/root\"]}}",
      LAYER_FILE,
      -EINVAL,
      "the sandbox has its own",
      { LINK(HOME "/root", "/") } },
    { "{\"filesystem\": {\"hide\": [\".\"]}}", LAYER_FILE, -EINVAL, "holds the workspace", { { NULL } } },
    { "{\"filesystem\": {\"hide\": [\"/home\"]}}", LAYER_FILE, -EINVAL, "holds the workspace", { { NULL } } },
    { "{\"filesystem\": {\"hide\": [\"~/way\"]}}",
      LAYER_FILE,
      -EINVAL,
      "holds the workspace",
      { LINK(HOME "/way", HOME) } },
    { "{\"filesystem\": {\"hide\": [\"x\"]}}",
      LAYER_FILE,
      -EACCES,
      "hide",
      { { .path = WORK "/x", .error = -EACCES } } },
    { "{\"filesystem\": {\"protect\": [\"x\"]}}",
      LAYER_FILE,
      -EACCES,
      "cannot be protected",
      { { .path = WORK "/x", .error = -EACCES } } },
    /* A command made its directory unreadable, so that the next run should not see the hooks in it. */
    { "{}", LAYER_FILE, -EACCES, "cannot be protected", { { .path = WORK "/.git/hooks", .error = -EACCES } } },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    plan_autofree struct plan plan = PLAN_INIT;
    policy_autofree struct policy *policy = make_policy(rows[i].policy);
    struct err err = ERR_INIT;
    int r = build_with(policy, rows[i].things, count_things(rows[i].things), &err, &plan);

    unit_assert_row(r == rows[i].error, rows[i].policy, err.message);
    unit_assert_row(strstr(err.message, rows[i].text) != NULL, rows[i].policy, err.message);
  }
}

/* F31: what is absent is an error where it was asked for by an option or is to be written; else everybody is told. */
static void test_absent_paths(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  policy_autofree struct policy *policy =
      make_policy("{\"filesystem\": {\"read\": [\"/nowhere\"], \"hide\": [\"gone\"], \"protect\": [\"neither\"]}}");
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(build_with(policy, NULL, 0, &err, &plan), 0);
  assert_int_equal(plan.warnings.count, 1);
  assert_string_equal(plan.warnings.items[0],
                      "/test.json:1: filesystem.read[0]: /nowhere does not exist and is not shown");
  assert_true(strv_contains(&plan.notes, "hide: " WORK "/gone does not exist, so there is nothing to hide"));
}

static void test_absent_path_of_an_option(void **state)
{
  static const struct {
    const char *key;
    const char *option;
  } rows[] = { { "filesystem.read", "--read" },
               { "filesystem.write", "--write" },
               { "network.unixSockets", "--unix-socket" } };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    layers_autofree struct layers *layers = layers_new();
    strv_autofree struct strv notes = STRV_INIT;
    policy_autofree struct policy *policy = NULL;
    plan_autofree struct plan plan = PLAN_INIT;
    struct err err = ERR_INIT;
    char expected[128];

    assert_int_equal(layers_add_option(layers, rows[i].key, "/nowhere", rows[i].option, &err), 0);
    assert_int_equal(policy_validate(layers, &err, &notes, &policy), 0);
    assert_int_equal(build_with(policy, NULL, 0, &err, &plan), -ENOENT);
    snprintf(expected, sizeof expected, "%s: /nowhere does not exist on the host; create it first, or take it out",
             rows[i].option);
    assert_string_equal(err.message, expected);
  }
}

/* A fact that is missing is a fault of the program, never a path that is left as it is. */
static void test_unknown_paths(void **state)
{
  static const char *const policies[] = {
    "{\"filesystem\": {\"read\": [\"/data\"]}}",
    "{\"filesystem\": {\"write\": [\"/data\"]}}",
    "{\"filesystem\": {\"hide\": [\"/data\"]}}",
    "{\"filesystem\": {\"protect\": [\"/data\"]}}",
  };
  char *const argv[] = { NULL };
  policy_autofree struct policy *none = make_policy("{}");

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(policies); i++) {
    policy_autofree struct policy *policy = make_policy(policies[i]);
    facts_autofree struct facts facts = FACTS_INIT;
    plan_autofree struct plan plan = PLAN_INIT;
    const struct make_world world = { NULL, 0 };
    struct err err = ERR_INIT;

    make_caller(&facts, 1000, NULL);
    make_paths(&facts, none, &world, NULL);
    unit_assert_row(make_plan(policy, &facts, argv, &err, &plan) == -EINVAL, policies[i], err.message);
    unit_assert_row(strstr(err.message, "/data was not looked at") != NULL, policies[i], err.message);
  }
}

/* Unprotecting a name lifts that name's protection and no other's. */
static void test_unprotect(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  policy_autofree struct policy *policy = make_policy("{\"filesystem\": {\"unprotect\": [\".git/hooks\"]}}");
  const struct plan_op *hooks;
  const struct plan_op *config;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(build_with(policy, NULL, 0, &err, &plan), 0);
  hooks = make_at(&plan, WORK "/.git/hooks");
  config = make_at(&plan, WORK "/.git/config");
  assert_true(hooks && hooks->kind == PLAN_BIND_RW);
  assert_true(config && config->kind == PLAN_BIND_RO);
}

static void test_program_of_print(void **state)
{
  plan_autofree struct plan plan = PLAN_INIT;
  policy_autofree struct policy *policy = make_policy("{}");
  buf_autofree struct buf text = BUF_INIT(1 << 20);
  buf_autofree struct buf json = BUF_INIT(1 << 20);
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(build_with(policy, NULL, 0, &err, &plan), 0);
  assert_int_equal(strv_add(&plan.argv, "evil\x1b[2J\n"), 0);
  plan_print(&plan, &text);
  plan_print_json(&plan, &json);
  assert_null(strchr(text.data, '\x1b'));
  assert_null(strchr(json.data, '\x1b'));
  assert_non_null(strstr(text.data, "evil\\x1b[2J\\x0a"));
  assert_non_null(strstr(json.data, "\"evil\\u001b[2J\\n\""));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_absent_paths),
    cmocka_unit_test(test_absent_path_of_an_option),
    cmocka_unit_test(test_unknown_paths),
    cmocka_unit_test(test_unprotect),
    cmocka_unit_test(test_program_of_print),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
