#include "config.h"

#include "policy/limits.h"
#include "unit/policy_make.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text of a policy file and how its error begins. Every one is refused before anything of it counts. */
static void test_refused(void **state)
{
  static const struct {
    const char *text;
    const char *start;
  } rows[] = {
    { "[]", "/p.json:1: policy: a list where an object is wanted" },
    { "null", "/p.json:1: policy: null where an object is wanted" },
    { "{\"network\": []}", "/p.json:1: network: a list where an object is wanted" },
    { "{\"netwrok\": {}}", "/p.json:1: netwrok: unknown key; did you mean \"network\"?" },
    { "{\n\"network\": {\n\"alow\": []}}", "/p.json:3: network.alow: unknown key; did you mean \"allow\"?" },
    { "{\"zzz\": 1}", "/p.json:1: zzz: unknown key; the keys are listed in " SBX_POLICY_PAGE "(5)" },
    { "{\"Network\": {}}", "/p.json:1: Network: unknown key; did you mean \"network\"?" },
    { "{\"network.mode\": \"none\"}", "/p.json:1: network.mode: unknown key" },
    { "{\"env.set\": {}}", "/p.json:1: env.set: unknown key" },
    { "{\"env\": {\"set.x\": {}}}", "/p.json:1: env.set.x: unknown key" },
    { "{\"network\": {\"$schema\": \"x\"}}", "/p.json:1: network.$schema: unknown key" },
    { "{\"credentials\": null}", "/p.json:1: credentials: null where an object is wanted; write {\"NAME\": {...}}" },
    { "{\"credentials\": {\"x\": 1}}", "/p.json:1: credentials.x: a number where an object is wanted" },
    { "{\"network\": {\"allow\": [\"a.test\",\n {\"host\": \"b.test\", \"methods\": [\"get\"]}]}}",
      "/p.json:2: network.allow[1]: \"{\"host\": \"b.test\", \"methods\": [\"get\"]}\": methods[0]: methods are" },
    { "{\"network\": {\"deny\": [{\"host\": \"b.test\"}]}}",
      "/p.json:1: network.deny[0]: \"{\"host\": \"b.test\"}\": an object without methods and paths" },
    { "{\"network\": {\"allow\": \"a.test\"}}", "/p.json:1: network.allow: a string where a list is wanted" },
    { "{\"network\": {\"allow\": null}}", "/p.json:1: network.allow: null where a list is wanted" },
    { "{\"network\": {\"allow\": {}}}", "/p.json:1: network.allow: an object where a list is wanted" },
    { "{\"network\": {\"allow\": [1]}}", "/p.json:1: network.allow[0]: a number where a string is wanted" },
    { "{\"network\": {\"allow\": [null]}}", "/p.json:1: network.allow[0]: null where a string is wanted" },
    { "{\"network\": {\"allow\": [[\"a\"]]}}", "/p.json:1: network.allow[0]: a list where a string is wanted" },
    { "{\"network\": {\"mode\": true}}", "/p.json:1: network.mode: true or false where a string is wanted" },
    { "{\"network\": {\"mode\": null}}", "/p.json:1: network.mode: null where a string is wanted" },
    { "{\"network\": {\"forward\": [true]}}",
      "/p.json:1: network.forward[0]: true or false where a number or a string" },
    { "{\"filesystem\": {\"read\": [1]}}", "/p.json:1: filesystem.read[0]: a number where a string is wanted" },
    { "{\"env\": {\"set\": []}}", "/p.json:1: env.set: a list where an object is wanted" },
    { "{\"env\": {\"set\": {\"CI\": 1}}}", "/p.json:1: env.set.CI: a number where a string is wanted" },
    { "{\"env\": {\"set\": {\"CI\": null}}}", "/p.json:1: env.set.CI: null where a string is wanted" },
    { "{\"env\": {\"pass\": {}}}", "/p.json:1: env.pass: an object where a list is wanted" },
    { "{\"limits\": {\"pids\": \"10\"}}", "/p.json:1: limits.pids: a string where a number is wanted" },
    { "{\"limits\": {\"memory\": true}}", "/p.json:1: limits.memory: true or false where a number or a string" },
    { "{\"syscalls\": {\"nesting\": \"true\"}}",
      "/p.json:1: syscalls.nesting: a string where true or false is wanted" },
    { "{\"syscalls\": {\"nesting\": 1}}", "/p.json:1: syscalls.nesting: a number where true or false is wanted" },
    { "{\"syscalls\": {\"ptrace\": null}}", "/p.json:1: syscalls.ptrace: null where true or false is wanted" },
    { "{\"audit\": {\"file\": 1}}", "/p.json:1: audit.file: a number where a string is wanted" },
    { "{\"extends\": \"node\"}", "/p.json:1: extends: not a list" },
    { "{\"extends\": [1]}", "/p.json:1: extends: not a string" },
    { "{\"extends\":\n[\"git\", \"nod\"]}",
      "/p.json:2: extends[1]: no profile \"nod\"; the profiles are claude, codex, default, git, go" },
    { "{\"extends\": [\"../x\"]}", "/p.json:1: extends[0]: no profile" },
    { "{\"network\": {}, \"network\": {}}", "/p.json:1: \"network\" stands twice" },
    { "{\"network\": {\"allow\": [], \"allow\": [\"*\"]}}", "/p.json:1: \"allow\" stands twice" },
    { "{\"extends\": [], \"extends\": []}", "/p.json:1: \"extends\" stands twice" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct make_layer layer = { LAYER_FILE, "/p.json", rows[i].text };
    struct err err = ERR_INIT;
    struct policy *policy = NULL;
    unit_assert_row(make_validate(&layer, 1, &err, NULL, &policy) == -EINVAL, rows[i].text, "accepted");
    unit_assert_row(span_starts_with(span_of(err.message), span_of(rows[i].start)), rows[i].text, err.message);
    assert_int_equal(err.code, EINVAL);
    assert_null(policy);
  }
}

static void test_origins(void **state)
{
  struct policy *policy = make_policy("{\n\"$schema\": \"x\",\n\"network\": {\n\"allow\": [\"a.test\",\n\"b.test\"],\n"
                                      "\"publish\": [3000]},\n\"env\": {\"set\": {\n\"A\": \"\"}}}");

  (void)state;
  assert_int_equal(policy->allow.count, 2);
  assert_string_equal(policy->allow.items[1].origin.file, "/test.json");
  assert_string_equal(policy->allow.items[1].origin.json_path, "network.allow[1]");
  assert_int_equal(policy->allow.items[1].origin.line, 5);
  assert_string_equal(policy->publish.items[0].origin.json_path, "network.publish[0]");
  assert_int_equal(policy->publish.items[0].origin.line, 6);
  assert_string_equal(policy->env_set.items[0].origin.json_path, "env.set.A");
  assert_int_equal(policy->env_set.items[0].origin.line, 8);
  policy_free(policy);
}

static void test_profiles(void **state)
{
  struct policy *policy = make_policy("{\"extends\": [\"git\", \"node\", \"git\", \"default\"]}");

  (void)state;
  assert_string_equal(policy->allow.items[0].origin.file, "profile git");
  assert_true(policy->allow.items[0].origin.line > 1);
  for (size_t i = 0; i < policy->allow.count; i++)
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(policy->allow.items[i].text, policy->allow.items[j].text);
  policy_free(policy);
}

static void test_unknown_profile(void **state)
{
  layers_autofree struct layers *layers = layers_new();
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(layers_add_profile(layers, "nod", &err), -ENOENT);
  assert_string_equal(err.message,
                      "no profile \"nod\"; the profiles are claude, codex, default, git, go, node, offline, python, "
                      "rust, strict");
  assert_int_equal(layers_add_profile(layers, "", &err), -ENOENT);
  assert_int_equal(layers_add_option(layers, "extends", "nod", "--profile", &err), -ENOENT);
}

static void test_options(void **state)
{
  static const char *const options[][3] = {
    { "network.allow", "A.test:22", "--allow" },
    { "network.allow", "b.test", "--allow" },
    { "network.mode", "none", "--network" },
    { "filesystem.hide", "**/.env", "--hide" },
    { "env", "FOO", "--env" },
    { "env", "BAR=a=b", "--env" },
    { "env.pass", "EMPTY=", "--env" },
    { "limits.memory", "1g", "--memory" },
    { "limits.cpus", "1.5", "--cpus" },
    { "limits.pids", "9", "--pids" },
    { "limits.timeout", "90s", "--timeout" },
    { "syscalls.nesting", "true", "--syscalls" },
    { "network.forward", "8080:80", "--forward" },
    { "audit.file", "fd:3", "--audit" },
    { "extends", "git", "--profile" },
    { "limits.memory", "none", "--memory" },
  };
  layers_autofree struct layers *layers = layers_new();
  struct err err = ERR_INIT;
  strv_autofree struct strv notes = STRV_INIT;
  policy_autofree struct policy *policy = NULL;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(options); i++)
    if (layers_add_option(layers, options[i][0], options[i][1], options[i][2], &err) < 0)
      fail_msg("%s: %s", options[i][1], err.message);
  assert_int_equal(policy_validate(layers, &err, &notes, &policy), 0);
  size_t last = policy->allow.count - 1;
  assert_string_equal(policy->allow.items[last - 1].text, "a.test:22"); /* behind the profile's */
  assert_string_equal(policy->allow.items[last].text, "b.test");
  assert_string_equal(policy->allow.items[last].origin.file, "--allow");
  assert_string_equal(policy->allow.items[last].origin.json_path, "");
  assert_int_equal(policy->allow.items[last].origin.line, 0);
  assert_int_equal(policy->network, POLICY_NETWORK_NONE);
  assert_string_equal(policy->env_pass.items[policy->env_pass.count - 1].text, "FOO");
  assert_int_equal(policy->env_set.count, 2);
  assert_string_equal(policy->env_set.items[0].value, "a=b");
  assert_string_equal(policy->env_set.items[1].value, "");
  assert_int_equal(policy->memory_bytes, 0);
  assert_int_equal(policy->cpu_milli, 1500);
  assert_int_equal(policy->pids, 9);
  assert_int_equal(policy->timeout_ms, 90000);
  assert_true(policy->nesting);
  assert_int_equal(policy->forward.items[0].host_port, 8080);
  assert_string_equal(policy->audit_file, "fd:3");
}

static void test_refused_options(void **state)
{
  static const struct {
    const char *key;
    const char *text;
    const char *start;
  } rows[] = {
    { "network.allow", "*.com", "--opt \"*.com\": a wildcard over a whole top-level domain" },
    { "network.allow", "", "--opt \"\": empty rule" },
    { "network.allow", "\xff", "--opt: bytes that are not UTF-8" },
    { "network.mode", "off", "--opt \"off\": unknown word; write none, proxy or host" },
    { "filesystem.read", "", "--opt \"\": empty path" },
    { "env", "=x", "--opt : a variable's name" },
    { "env", "A-B=x", "--opt A-B: not a variable's name" },
    { "env", "*", "--opt \"*\": every variable" },
    { "limits.pids", "0", "--opt \"0\": out of range; write a whole number" },
    { "syscalls.nesting", "yes", "--opt \"yes\": unknown word; write false or true" },
    { "audit.file", "relative", "--opt \"relative\": neither an absolute path" },
    { "no.such", "x", "--opt: no policy key" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    layers_autofree struct layers *layers = layers_new();
    strv_autofree struct strv notes = STRV_INIT;
    struct err err = ERR_INIT;
    struct policy *policy = NULL;
    int r = layers_add_option(layers, rows[i].key, rows[i].text, "--opt", &err);
    if (r == 0)
      r = policy_validate(layers, &err, &notes, &policy);
    unit_assert_row(r == -EINVAL, rows[i].text, "accepted");
    unit_assert_row(span_starts_with(span_of(err.message), span_of(rows[i].start)), rows[i].text, err.message);
  }
}

static void test_too_many_values(void **state)
{
  struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  struct make_layer layer = { LAYER_FILE, "/p.json", NULL };
  struct err err = ERR_INIT;

  (void)state;
  buf_append_str(&text, "{\"network\": {\"forward\": [1");
  for (int i = 0; i < LIMITS_POLICY_ITEMS; i++)
    buf_append_str(&text, ",1");
  buf_append_str(&text, "]}}");
  layer.text = text.data;
  assert_int_equal(make_validate(&layer, 1, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "more than 65536 values"));
  buf_free(&text);
}

struct files {
  char dir[64];
};

/* Another owner than the file has, where not zero: a test cannot give files away unless it is root. */
static uid_t fstat_owner;

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

int __wrap_fstat(int fd, struct stat *st)
{
  int r = __real_fstat(fd, st);

  if (r == 0 && fstat_owner != 0)
    st->st_uid = fstat_owner;
  return r;
}

static int files_setup(void **state)
{
  static struct files files;

  snprintf(files.dir, sizeof files.dir, "%s", "policy-load-XXXXXX");
  *state = &files;
  return mkdtemp(files.dir) ? 0 : -1;
}

static int files_teardown(void **state)
{
  const struct files *files = *state;
  char path[128];
  static const char *const names[] = { "p.json", "link", "fifo", "dir" };

  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    snprintf(path, sizeof path, "%s/%s", files->dir, names[i]);
    if (unlink(path) < 0)
      rmdir(path);
  }
  return rmdir(files->dir);
}

static void write_file(const char *path, const char *text, size_t len, mode_t mode)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, len), (ssize_t)len);
  assert_int_equal(fchmod(fd, mode), 0);
  close(fd);
}

static void check_file(enum layer_kind kind, const char *path, int wanted, const char *part)
{
  layers_autofree struct layers *layers = layers_new();
  struct err err = ERR_INIT;
  int r = layers_add_file(layers, kind, path, &err);

  if (r != wanted)
    fail_msg("%s as kind %d: %d, wanted %d: %s", path, (int)kind, r, wanted, err.message);
  if (part && !strstr(err.message, part))
    fail_msg("%s as kind %d: %s", path, (int)kind, err.message);
  if (wanted == -ENOENT)
    assert_int_equal(err.code, 0);
}

static void test_files(void **state)
{
  const struct files *files = *state;
  static char big[LIMITS_POLICY_BYTES + 1];
  char path[128];
  char link[128];
  char other[128];

  snprintf(path, sizeof path, "%s/p.json", files->dir);
  snprintf(link, sizeof link, "%s/link", files->dir);
  check_file(LAYER_FILE, path, -ENOENT, NULL);
  write_file(path, "{}", 2, 0600);
  check_file(LAYER_FILE, path, 0, NULL);
  check_file(LAYER_WORKSPACE, path, 0, NULL);
  assert_int_equal(symlink("p.json", link), 0);
  check_file(LAYER_FILE, link, 0, NULL);
  check_file(LAYER_USER, link, 0, NULL);
  check_file(LAYER_WORKSPACE, link, -ELOOP, "symbolic link");
  check_file(LAYER_WORKSPACE_TRUSTED, link, -ELOOP, "symbolic link");
  write_file(path, "{}", 2, 0666);
  check_file(LAYER_FILE, path, -EPERM, "chmod o-w");
  check_file(LAYER_USER, path, -EPERM, "chmod o-w");
  check_file(LAYER_SYSTEM, path, -EPERM, "chmod o-w");
  check_file(LAYER_WORKSPACE, path, 0, NULL);
  write_file(path, "{}", 2, 0664);
  check_file(LAYER_FILE, path, 0, NULL);
  memset(big, ' ', sizeof big);
  memcpy(big, "{}", 2);
  write_file(path, big, sizeof big - 1, 0600);
  check_file(LAYER_FILE, path, 0, NULL);
  write_file(path, big, sizeof big, 0600);
  check_file(LAYER_FILE, path, -EINVAL, "larger than");
  check_file(LAYER_WORKSPACE, path, -EINVAL, "larger than");
  snprintf(other, sizeof other, "%s/fifo", files->dir);
  assert_int_equal(mkfifo(other, 0600), 0);
  check_file(LAYER_FILE, other, -EINVAL, "not a regular file"); /* and does not wait for a writer */
  check_file(LAYER_WORKSPACE, other, -EINVAL, "not a regular file");
  snprintf(other, sizeof other, "%s/dir", files->dir);
  assert_int_equal(mkdir(other, 0700), 0);
  check_file(LAYER_FILE, other, -EINVAL, "not a regular file");
  snprintf(other, sizeof other, "%s/p.json/x", files->dir);
  check_file(LAYER_FILE, other, -ENOTDIR, "cannot be opened");
  check_file(LAYER_FILE, "/dev/zero", -EINVAL, "not a regular file");
}

static void test_owner(void **state)
{
  const struct files *files = *state;
  char path[128];

  snprintf(path, sizeof path, "%s/p.json", files->dir);
  write_file(path, "{}", 2, 0600);
  fstat_owner = geteuid() + 12345;
  check_file(LAYER_FILE, path, -EPERM, "neither you nor root");
  check_file(LAYER_USER, path, -EPERM, "neither you nor root");
  check_file(LAYER_SYSTEM, path, -EPERM, "neither you nor root");
  check_file(LAYER_WORKSPACE, path, 0, NULL);
  fstat_owner = 0;
  check_file(LAYER_USER, path, 0, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_origins),
    cmocka_unit_test(test_profiles),
    cmocka_unit_test(test_unknown_profile),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_refused_options),
    cmocka_unit_test(test_too_many_values),
    cmocka_unit_test_setup_teardown(test_files, files_setup, files_teardown),
    cmocka_unit_test_setup_teardown(test_owner, files_setup, files_teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
