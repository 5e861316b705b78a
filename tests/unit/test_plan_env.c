#include "config.h"

#include "policy/reserved.h"
#include "unit/facts_make.h"

/* The command's environment for a caller's variables and a policy. */
static void build(const char *const *caller, const char *text, struct plan *plan)
{
  char *const argv[] = { NULL };
  policy_autofree struct policy *policy = make_policy(text);
  facts_autofree struct facts facts = FACTS_INIT;
  const struct make_world world = { NULL, 0 };
  struct err err = ERR_INIT;

  make_caller(&facts, 1000, NULL);
  strv_free(&facts.environment);
  for (; *caller; caller++)
    assert_int_equal(strv_add(&facts.environment, *caller), 0);
  for (size_t i = 0; i < policy->credentials.count; i++)
    assert_int_equal(strv_addf(&facts.placeholders, "placeholder%zu", i), 0);
  make_paths(&facts, policy, &world, NULL);
  if (make_plan(policy, &facts, argv, &err, plan) < 0)
    fail_msg("%s", err.message);
}

static size_t count_of(const struct plan *plan, const char *name)
{
  size_t count = 0;

  for (size_t i = 0; i < plan->env.count; i++)
    count += strncmp(plan->env.items[i], name, strlen(name)) == 0 && plan->env.items[i][strlen(name)] == '=';
  return count;
}

static void test_allow_list(void **state)
{
  static const char *const caller[] = {
    "PATH=/bin",
    "TERM=xterm",
    "LC_TIME=C",
    "LC=x",
    "HTTP_PROXY=http://corp",
    "http_proxy=x",
    "HOME=/elsewhere",
    "TMPDIR=/gone",
    "SSH_AUTH_SOCK=/s",
    "DBUS_SESSION_BUS_ADDRESS=d",
    "XDG_RUNTIME_DIR=/run/user/7",
    "LD_PRELOAD=/evil.so",
    "BASH_ENV=/x",
    "AWS_PROFILE=p",
    "GITHUB_TOKEN=t",
    "MYAPP_ONE=1",
    "MYAPP=2",
    "DATABASE_URL=d",
    "=odd",
    "novalue",
    "PATHX=1",
    "TERM_X=1",
    NULL,
  };
  static const char *const kept[] = { "PATH=/bin",    "TERM=xterm",     "LC_TIME=C",
                                      "HOME=/home/u", "TMPDIR=/tmp",    "XDG_RUNTIME_DIR=/run/user/1000",
                                      "MYAPP_ONE=1",  "DATABASE_URL=d", "SBX=1" };
  static const char *const gone[] = { "LC",           "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
                                      "LD_PRELOAD",   "BASH_ENV",      "AWS_PROFILE",
                                      "GITHUB_TOKEN", "MYAPP",         "PATHX",
                                      "TERM_X" };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(caller, "{\"network\": {\"mode\": \"none\"}, \"env\": {\"pass\": [\"DATABASE_URL\", \"MYAPP_*\"]}}", &plan);
  for (size_t i = 0; i < MEM_COUNT(kept); i++)
    unit_assert_row(strv_contains(&plan.env, kept[i]), kept[i], "missing");
  for (size_t i = 0; i < MEM_COUNT(gone); i++) {
    unit_assert_row(count_of(&plan, gone[i]) == 0, gone[i], "passed");
    unit_assert_row(strv_contains(&plan.env_left_out, gone[i]), gone[i], "not told");
  }
  assert_int_equal(count_of(&plan, "HTTP_PROXY") + count_of(&plan, "http_proxy"), 0);
  assert_false(strv_contains(&plan.env_left_out, "HOME"));
  for (size_t i = 0; i < plan.env.count; i++)
    assert_true(strchr(plan.env.items[i], '=') > plan.env.items[i]);
}

static void test_policy_wins(void **state)
{
  static const char *const caller[] = { "PATH=/bin", "TERM=a", "TERM=b", "CI=0", "CI=9", NULL };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(caller, "{\"env\": {\"set\": {\"CI\": \"1\", \"EMPTY\": \"\", \"HTTP_PROXY\": \"mine\"}}}", &plan);
  assert_true(strv_contains(&plan.env, "CI=1") && count_of(&plan, "CI") == 1);
  assert_true(strv_contains(&plan.env, "EMPTY="));
  assert_true(strv_contains(&plan.env, "HTTP_PROXY=mine") && count_of(&plan, "HTTP_PROXY") == 1);
  assert_true(strv_contains(&plan.env, "TERM=a") && count_of(&plan, "TERM") == 1); /* as getenv(3) */
}

/* F51: NO_PROXY names the sandbox's own loopback; and no caller's proxy survives. */
static void test_proxy(void **state)
{
  static const char *const caller[] = { "NO_PROXY=*", "no_proxy=10.0.0.0/8", "https_proxy=http://corp:1", NULL };
  static const char *const modes[] = { "proxy", "none", "host" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(modes); i++) {
    plan_autofree struct plan plan = PLAN_INIT;
    char text[64];

    snprintf(text, sizeof text, "{\"network\": {\"mode\": \"%s\"}}", modes[i]);
    build(caller, text, &plan);
    assert_int_equal(count_of(&plan, "https_proxy"), i == 0);
    assert_int_equal(count_of(&plan, "HTTPS_PROXY"), i == 0);
    assert_int_equal(count_of(&plan, "NO_PROXY"), i == 0);
    assert_int_equal(plan.http_port, i == 0 ? BUILD_HTTP_PORT : 0);
    if (i > 0)
      continue;
    assert_true(strv_contains(&plan.env, "https_proxy=http://127.0.0.1:3128"));
    assert_true(strv_contains(&plan.env, "NO_PROXY=localhost,127.0.0.1,::1"));
    assert_true(strv_contains(&plan.env, "no_proxy=localhost,127.0.0.1,::1"));
    assert_true(strv_contains(&plan.env, "NODE_USE_ENV_PROXY=1"));
  }
}

static void test_no_path(void **state)
{
  static const char *const caller[] = { "TERM=x", NULL };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(caller, "{}", &plan);
  assert_int_equal(count_of(&plan, "PATH"), 1);
}

/* The value of a credential never passes, whoever asks for it; its variables have the placeholder. */
static void test_credentials(void **state)
{
  static const char *const caller[] = { "PATH=/bin", "GITHUB_TOKEN=hunter2", "SECRET=hunter2", "SSL_CERT_FILE=/x",
                                        NULL };
  static const char *const kept[] = { "GITHUB_TOKEN=placeholder0", "GH_TOKEN=placeholder0", "OTHER=placeholder1",
                                      "NODE_EXTRA_CA_CERTS=/run/sbx/ca.pem" };
  plan_autofree struct plan plan = PLAN_INIT;

  (void)state;
  build(
      caller,
      "{\"env\": {\"pass\": [\"SECRET\", \"GITHUB_*\", \"S*\"]}, \"credentials\": {\"github\": {}, \"x\": {\"source\": "
      "{\"env\": \"SECRET\"}, \"env\": \"OTHER\", \"bind\": [\"a.test\"]}}}",
      &plan);
  for (size_t i = 0; i < MEM_COUNT(kept); i++)
    unit_assert_row(strv_contains(&plan.env, kept[i]), kept[i], "set");
  assert_int_equal(count_of(&plan, "GITHUB_TOKEN"), 1);
  assert_int_equal(count_of(&plan, "SECRET"), 0);
  assert_int_equal(count_of(&plan, "SSL_CERT_DIR"), 0);
  for (size_t i = 0; i < plan.env.count; i++)
    unit_assert_row(!strstr(plan.env.items[i], "hunter2"), plan.env.items[i], "the value");
  assert_false(strv_contains(&plan.env_left_out, "SECRET"));
}

/* Placeholders stand inside whatever the network is; trust is about the proxy alone. */
static void test_credentials_without_proxy(void **state)
{
  static const char *const caller[] = { "PATH=/bin", "GITHUB_TOKEN=hunter2", NULL };
  static const char *const modes[] = { "none", "host" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(modes); i++) {
    plan_autofree struct plan plan = PLAN_INIT;
    char text[128];
    snprintf(text, sizeof text, "{\"network\": {\"mode\": \"%s\"}, \"credentials\": {\"github\": {}}}", modes[i]);
    build(caller, text, &plan);
    assert_true(strv_contains(&plan.env, "GITHUB_TOKEN=placeholder0"));
    assert_int_equal(count_of(&plan, "NODE_EXTRA_CA_CERTS"), 0);
    assert_false(plan.tls);
    assert_int_equal(plan.late_max, 0);
  }
}

/* No placeholder goes where sbx puts something else, and nowhere else is one refused. */
static void test_reserved(void **state)
{
  static const char *const caller[] = { "PATH=/bin", NULL };
  static const char *const free_names[] = { "GITHUB_TOKEN", "PATHS", "HTTP_PROXY_TOKEN", "LDAP_PASSWORD", "GIT_TOKEN" };
  plan_autofree struct plan plan = PLAN_INIT;
  struct err err = ERR_INIT;
  char text[512];

  (void)state;
  build(caller, "{\"credentials\": {\"github\": {\"env\": \"X\"}}}", &plan);
  assert_true(plan.env.count > 30);
  for (size_t i = 0; i < plan.env.count; i++) {
    struct span name = span_of(plan.env.items[i]);

    name.len = span_find(name, '=');
    if (!span_equal_str(name, "X"))
      unit_assert_row(reserved_is_variable(name), plan.env.items[i], "could be taken");
  }
  assert_true(reserved_is_variable(SPAN("LD_PRELOAD")));
  for (size_t i = 0; i < MEM_COUNT(free_names); i++)
    assert_false(reserved_is_variable(span_of(free_names[i])));
  for (const char *const *name = (const char *const[]){ "PATH", "HTTPS_PROXY", "LD_AUDIT", NULL }; *name; name++) {
    struct make_layer layer = { LAYER_FILE, "/p.json", text };

    snprintf(text, sizeof text, "{\"credentials\": {\"github\": {\"env\": [\"X\", \"%s\"]}}}", *name);
    assert_int_equal(make_validate(&layer, 1, &err, NULL, NULL), -EINVAL);
    assert_non_null(strstr(err.message, "credentials.github: env: "));
    assert_non_null(strstr(err.message, " is set by " SBX_NAME " itself"));
  }
}

/* git's helpers: behind what the caller's own variables say, for each host and port, and of the preset github alone. */
static void test_git(void **state)
{
  static const char *const caller[] = { "PATH=/bin", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b",
                                        "GIT_CONFIG_VALUE_0=c", NULL };
  static const char *const wanted[] = {
    "GIT_CONFIG_COUNT=5",
    "GIT_CONFIG_KEY_0=a.b",
    "GIT_CONFIG_KEY_1=credential.https://git.test.helper",
    "GIT_CONFIG_VALUE_1=",
    "GIT_CONFIG_KEY_2=credential.https://git.test.helper",
    "GIT_CONFIG_VALUE_2=!f() { test \"$1\" != get || printf 'username=x-access-token\\npassword=%s\\n' \"$T\"; }; f",
    "GIT_CONFIG_KEY_4=credential.https://*.git.test:8443.helper",
  };
  plan_autofree struct plan plan = PLAN_INIT;
  plan_autofree struct plan other = PLAN_INIT;

  (void)state;
  build(caller,
        "{\"env\": {\"pass\": [\"GIT_CONFIG_*\"]}, \"credentials\": {\"mine\": {\"preset\": \"github\", \"env\": "
        "\"T\", \"bind\": "
        "[\"git.test\", \"*.git.test:8443\", \"192.0.2.1\"]}, \"npm\": {}}}",
        &plan);
  for (size_t i = 0; i < MEM_COUNT(wanted); i++)
    unit_assert_row(strv_contains(&plan.env, wanted[i]), wanted[i], "missing");
  assert_int_equal(count_of(&plan, "GIT_CONFIG_COUNT"), 1);
  assert_int_equal(count_of(&plan, "GIT_CONFIG_KEY_5"), 0);
  build((const char *const[]){ NULL }, "{\"credentials\": {\"npm\": {}}}", &other);
  assert_int_equal(count_of(&other, "GIT_CONFIG_COUNT"), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_allow_list),
    cmocka_unit_test(test_credentials),
    cmocka_unit_test(test_credentials_without_proxy),
    cmocka_unit_test(test_policy_wins),
    cmocka_unit_test(test_proxy),
    cmocka_unit_test(test_no_path),
    cmocka_unit_test(test_reserved),
    cmocka_unit_test(test_git),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
