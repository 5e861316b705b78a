/* What patterns of filesystem.hide match in a real tree. */
#include "plan/facts_hide.h"
#include "policy/limits.h"
#include "unit/policy_make.h"
#include "unit/temp.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Expands patterns (a JSON list) with the test's directory as workspace and its "home" as home. */
static int expand(void **state, const char *patterns, struct err *err, struct facts *facts)
{
  char text[512];

  snprintf(text, sizeof text, "{\"filesystem\": {\"hide\": [%s]}}", patterns);
  policy_autofree struct policy *policy = make_policy(text);

  facts->workspace = strdup(*state);
  facts->home = strdup(temp_path(state, "home"));
  return facts_hide_expand(policy, err, facts);
}

/* The matches below the test's directory, sorted, each with a space after it. */
static void assert_matches(void **state, const char *patterns, const char *expected)
{
  facts_autofree struct facts facts = FACTS_INIT;
  buf_autofree struct buf got = BUF_INIT(65536);
  struct err err = ERR_INIT;

  if (expand(state, patterns, &err, &facts) < 0)
    fail_msg("%s: %s", patterns, err.message);
  strv_sort(&facts.hidden);
  for (size_t i = 0; i < facts.hidden.count; i++) {
    assert_true(path_is_within(facts.hidden.items[i], *state));
    buf_printf(&got, "%s ", facts.hidden.items[i] + strlen(*state) + 1);
  }
  buf_append_str(&got, "");
  unit_assert_row(strcmp(got.data, expected) == 0, patterns, got.data);
}

static void assert_fails(void **state, const char *patterns, int error, const char *part)
{
  facts_autofree struct facts facts = FACTS_INIT;
  struct err err = ERR_INIT;
  int r = expand(state, patterns, &err, &facts);

  unit_assert_row(r == error, patterns, err.message);
  unit_assert_row(strstr(err.message, part) != NULL, part, err.message);
}

static void test_patterns(void **state)
{
  static const char *const files[] = { ".env",      "a/.env",          "a/b/.env", "a/b/c/.env.local",
                                       "a/key.pem", "a/b/x.pem/inner", "a/envy",   "b/.env/",
                                       "home/.env", "home/x/.env" };

  for (size_t i = 0; i < MEM_COUNT(files); i++)
    temp_put(temp_path(state, files[i]), "x");
  assert_matches(state, "\"**/.env\"", ".env a/.env a/b/.env b/.env home/.env home/x/.env ");
  assert_matches(state, "\"a/**/.env\"", "a/.env a/b/.env ");
  assert_matches(state, "\"*/.env\"", "a/.env b/.env home/.env ");
  assert_matches(state, "\"a/*\"", "a/.env a/b a/envy a/key.pem ");
  assert_matches(state, "\"**/*.pem\"", "a/b/x.pem a/key.pem "); /* and nothing below what matched */
  assert_matches(state, "\"**/.env*\"", ".env a/.env a/b/.env a/b/c/.env.local b/.env home/.env home/x/.env ");
  assert_matches(state, "\"?/key.???\"", "a/key.pem ");
  assert_matches(state, "\"~/**/.env\"", "home/.env home/x/.env ");
  assert_matches(state, "\"~/*/.env\"", "home/x/.env ");
  assert_matches(state, "\"nowhere/*\"", "");
  assert_matches(state, "\"a/key.pem/*\"", "");
  assert_matches(state, "\"*/.env\", \"a/*.pem\"", "a/.env a/key.pem b/.env home/.env ");
}

/* P12: without a pattern nothing is read; what cannot even be entered is no fault then. */
static void test_plain_paths_are_not_searched(void **state)
{
  temp_put(temp_path(state, "closed/x"), "x");
  assert_int_equal(chmod("closed", 0), 0);
  assert_matches(state, "\"closed/x\", \"absent\", \"/nonexistent/y\"", "");
}

static void test_links_are_not_followed(void **state)
{
  temp_put(temp_path(state, "real/.env"), "x");
  temp_link("real", temp_path(state, "link"));
  temp_link("/etc", temp_path(state, "etc"));
  temp_link("..", temp_path(state, "real/up"));
  temp_link("nowhere", temp_path(state, "dangling.env"));
  assert_matches(state, "\"**/.env\"", "real/.env ");
  assert_matches(state, "\"**/passwd\"", "");
  assert_matches(state, "\"**/*.env\"", "dangling.env real/.env "); /* by name */
  assert_matches(state, "\"li*\"", "link ");
}

/* A depth is enough where the pattern has one: nothing deeper is entered. */
static void test_depth(void **state)
{
  temp_put(temp_path(state, "a/b/c/d/.env"), "x");
  temp_put(temp_path(state, "a/.env"), "x");
  assert_matches(state, "\"*/.env\"", "a/.env ");
  assert_matches(state, "\"*/*/*/*/.env\"", "a/b/c/d/.env ");
}

static void test_unreadable_directory(void **state)
{
  pid_t child;
  int status;

  temp_put(temp_path(state, "a/closed/.env"), "x");
  assert_int_equal(chmod("a/closed", 0), 0);
  if (geteuid() != 0) {
    assert_fails(state, "\"**/.env\"", -EACCES, "a/closed");
    assert_matches(state, "\"*/.env\"", ""); /* not as deep */
    return;
  }
  /* For root, who may read all: as somebody else. */
  assert_int_equal(chmod(*state, 0755), 0);
  child = fork();
  if (child == 0) {
    struct err err = ERR_INIT;
    facts_autofree struct facts facts = FACTS_INIT;

    if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
      _exit(2);
    _exit(expand(state, "\"**/.env\"", &err, &facts) == -EACCES && strstr(err.message, "a/closed") ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* F30: what is mounted below is not looked into, and said. */
static void test_mounts(void **state)
{
  pid_t child;
  int status;

  temp_put(temp_path(state, "a/mnt/"), "");
  temp_put(temp_path(state, "b/.env"), "x");
  child = fork();
  if (child == 0) {
    struct err err = ERR_INIT;
    facts_autofree struct facts facts = FACTS_INIT;
    facts_autofree struct facts shallow = FACTS_INIT;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || mount("none", temp_path(state, "a/mnt"), "tmpfs", 0, NULL) < 0)
      _exit(2);
    if (expand(state, "\"**/.env\"", &err, &facts) != -EXDEV || !strstr(err.message, "a/mnt"))
      _exit(3);
    _exit(expand(state, "\"*/.env\"", &err, &shallow) == 0 && shallow.hidden.count == 1 ? 0 : 4);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* As many matches as the limit allows, and not one more. */
static void test_match_limit(void **state)
{
  facts_autofree struct facts facts = FACTS_INIT;
  struct err err = ERR_INIT;
  char name[32];

  for (int i = 0; i < LIMITS_HIDE_MATCHES; i++) {
    snprintf(name, sizeof name, "m/%d.key", i);
    temp_put(temp_path(state, name), "");
  }
  assert_int_equal(expand(state, "\"m/*.key\"", &err, &facts), 0);
  assert_int_equal(facts.hidden.count, LIMITS_HIDE_MATCHES);
  temp_put(temp_path(state, "m/one-more.key"), "");
  assert_fails(state, "\"m/*.key\"", -E2BIG, "matches below");
}

/* A tree deeper than there are descriptors ends in an error, not in a part of the tree. */
static void test_deep_tree(void **state)
{
  struct rlimit old;
  struct rlimit few;
  char path[2048];
  size_t len = (size_t)snprintf(path, sizeof path, "%s/d", (const char *)*state);

  while (len + 3 < 400)
    len += (size_t)snprintf(path + len, sizeof path - len, "/d");
  snprintf(path + len, sizeof path - len, "/.env");
  temp_put(path, "x");
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  few = (struct rlimit){ .rlim_cur = 40, .rlim_max = old.rlim_max };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  assert_fails(state, "\"**/.env\"", -EMFILE, "cannot be searched");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_make, temp_remove)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_patterns),
    TEST(test_plain_paths_are_not_searched),
    TEST(test_links_are_not_followed),
    TEST(test_depth),
    TEST(test_unreadable_directory),
    TEST(test_mounts),
    TEST(test_match_limit),
    TEST(test_deep_tree),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
