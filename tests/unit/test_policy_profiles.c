#include "policy/profiles.h"
#include "unit/policy_make.h"

static void test_every_profile_loads(void **state)
{
  (void)state;
  for (const char *const *name = profile_names(); *name; name++) {
    layers_autofree struct layers *layers = layers_new();
    strv_autofree struct strv notes = STRV_INIT;
    policy_autofree struct policy *policy = NULL;
    struct err err = ERR_INIT;
    unit_assert_row(layers_add_profile(layers, *name, &err) == 0, *name, err.message);
    unit_assert_row(policy_validate(layers, &err, &notes, &policy) == 0, *name, err.message);
    unit_assert_row(notes.count == 0, *name, "notes");
    assert_non_null(profiles_find(span_of(*name)));
  }
}

static void test_the_set_of_profiles(void **state)
{
  static const char *const wanted[] = { "claude", "codex",   "default", "git",  "go",
                                        "node",   "offline", "python",  "rust", "strict" };
  const char *const *names = profile_names();

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(wanted); i++)
    assert_string_equal(names[i], wanted[i]);
  assert_null(names[MEM_COUNT(wanted)]);
  assert_null(profiles_find(SPAN("")));
  assert_null(profiles_find(SPAN("gi")));
  assert_null(profiles_find(SPAN("git.json")));
}

/* No profile opens what a profile has no business to open. */
static void test_profiles_are_modest(void **state)
{
  (void)state;
  for (const char *const *name = profile_names(); *name; name++) {
    char text[64];
    snprintf(text, sizeof text, "{\"extends\": [\"%s\"]}", *name);
    struct policy *policy = make_policy(text);
    for (size_t i = 0; i < policy->allow.count; i++)
      unit_assert_row(policy->allow.items[i].kind == POLICY_HOST_NAME ||
                          policy->allow.items[i].kind == POLICY_HOST_SUBDOMAINS,
                      *name, policy->allow.items[i].text);
    unit_assert_row(policy->network != POLICY_NETWORK_HOST, *name, "the host's network");
    unit_assert_row(policy->home != POLICY_HOME_HOST, *name, "the host's home");
    unit_assert_row(policy->unprotect.count + policy->write.count + policy->unix_sockets.count == 0, *name, "paths");
    unit_assert_row(policy->forward.count + policy->publish.count == 0, *name, "ports");
    unit_assert_row(policy->env_set.count == (strcmp(*name, "claude") == 0 ? 2 : 0), *name, "values");
    unit_assert_row(!policy->nesting && !policy->foreign && !policy->audit_file, *name, "system calls or audit");
    policy_free(policy);
  }
}

static void test_offline_and_strict(void **state)
{
  struct policy *offline = make_policy("{\"extends\": [\"offline\"]}");
  struct policy *strict = make_policy("{\"extends\": [\"strict\"]}");
  bool env = false;

  (void)state;
  assert_int_equal(offline->network, POLICY_NETWORK_NONE);
  assert_false(strict->ptrace);
  for (size_t i = 0; i < strict->hide.count; i++)
    env = env || strcmp(strict->hide.items[i].text, "**/.env") == 0;
  assert_true(env);
  policy_free(offline);
  policy_free(strict);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_profile_loads),
    cmocka_unit_test(test_the_set_of_profiles),
    cmocka_unit_test(test_profiles_are_modest),
    cmocka_unit_test(test_offline_and_strict),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
