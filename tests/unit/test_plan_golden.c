/* Plans as `sbx show --plan` prints them, compared with tests/unit/golden/NAME.txt. SBX_UPDATE_GOLDEN=1 writes the
 * files anew: read the difference before you commit it. */
#include "unit/facts_make.h"

#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#ifndef UNIT_GOLDEN
#define UNIT_GOLDEN "tests/unit/golden"
#endif
#define LIST_MAX 8

struct golden {
  const char *name;
  const char *policy;
  uid_t uid;
  const char *workspace; /* NULL: WORK */
  const char *cwd; /* NULL: the workspace */
  struct thing things[LIST_MAX];
  const char *sockets[LIST_MAX];
  const char *hidden[LIST_MAX]; /* what the policy's patterns match */
  const char *roots[FACTS_ROOTS_MAX]; /* files of trusted certificates */
  const char *java[LIST_MAX]; /* stores of Java */
  const char *browsers[LIST_MAX]; /* with a certutil on the host */
};

static const struct golden cases[] = {
  { .name = "default-user", .policy = "{}", .uid = 1000, .cwd = WORK "/src" },
  { .name = "default-root", .policy = "{}", .uid = 0 },
  { .name = "home-tmpfs", .policy = "{\"filesystem\": {\"home\": \"tmpfs\"}}", .uid = 1000 },
  { .name = "home-host", .policy = "{\"filesystem\": {\"home\": \"host\"}}", .uid = 1000 },
  { .name = "secret-part", /* of secret places only what is named, wherever they are shown */
    .policy = "{\"filesystem\": {\"home\": \"host\", \"read\": [\"~/.ssh/id\", \"~/.config\"], \"write\": [\"~/.aws\", "
              "\"~\"]},"
              " \"network\": {\"unixSockets\": [\"~/.config/gh/s\"]}}",
    .uid = 1000,
    .things = { REGULAR(HOME "/.ssh/id"), DIRECTORY(HOME "/.aws"), DIRECTORY(HOME "/.gnupg"),
                SOCKET(HOME "/.config/gh/s"), DIRECTORY(HOME "/.config/gh") } },
  { .name = "lists",
    .policy = "{\"filesystem\": {\"read\": [\"/srv/data\", \"~/notes\"], \"write\": [\"/srv/out\", \"~/.cache/pip\"],"
              " \"hide\": [\"src/secret\", \"**/.env\", \"/srv/data/private\"], \"protect\": [\"deploy/prod\"],"
              " \"unprotect\": [\".git/hooks\"]}, \"env\": {\"set\": {\"CI\": \"1\"}},"
              " \"limits\": {\"memory\": \"1g\", \"cpus\": 1.5, \"pids\": 99, \"timeout\": \"1h\"},"
              " \"syscalls\": {\"nesting\": true, \"ptrace\": false, \"i386\": true}}",
    .uid = 1000,
    .things = { DIRECTORY("/srv/data/private"), DIRECTORY("/srv/out"), DIRECTORY(HOME "/notes"),
                DIRECTORY(HOME "/.cache/pip"), REGULAR(WORK "/src/secret"), REGULAR(WORK "/a/.env"),
                DIRECTORY(WORK "/deploy/prod") },
    .hidden = { WORK "/a/.env" } },
  { .name = "links", /* F25: protected and hidden names that are links; a policy path that is one; a linked toolchain */
    .policy =
        "{\"filesystem\": {\"write\": [\"~/repo\"], \"protect\": [\"~/repo/deploy\"], \"hide\": [\"~/repo/key\"]}}",
    .uid = 1000,
    .things = { LINK(HOME "/repo", "/data/repo"), DIRECTORY("/data/repo/deploy"), REGULAR("/data/repo/key"),
                LINK(WORK "/.vscode", WORK "/dot/vscode"), DIRECTORY(WORK "/dot/vscode"),
                LINK(WORK "/.envrc", "/nix/store/envrc"), REGULAR("/nix/store/envrc"),
                LINK(HOME "/.nvm", "/data/repo") } },
  { .name = "nested-read",
    .policy = "{\"filesystem\": {\"read\": [\"vendor\", \"/usr/share\", \"/etc\"]}}",
    .uid = 1000,
    .things = { DIRECTORY(WORK "/vendor"), DIRECTORY("/usr/share") } },
  { .name = "workspace-tmp",
    .policy = "{}",
    .uid = 1000,
    .workspace = "/tmp/w",
    .things = { DIRECTORY("/tmp/w/.git/hooks") } },
  { .name = "hidden-in-protected",
    .policy = "{\"filesystem\": {\"hide\": [\".git/config\", \".vscode/x\"]}}",
    .uid = 1000,
    .things = { REGULAR(WORK "/.vscode/x") } },
  { .name = "state-writable",
    .policy = "{\"filesystem\": {\"write\": [\"/home\"], \"hide\": [\"~/diary\"]}}",
    .uid = 1000,
    .things = { REGULAR(HOME "/diary") } },
  { .name = "sockets",
    .policy = "{\"filesystem\": {\"read\": [\"/run\"]}, \"network\": {\"unixSockets\": [\"/run/docker.sock\"]}}",
    .uid = 1000,
    .things = { SOCKET("/run/docker.sock"), SOCKET("/run/user/1000/bus"), SOCKET(WORK "/s.sock"),
                SOCKET("/var/lib/other.sock"), REGULAR(WORK "/stale"), LINK("/var/run", "/run") },
    .sockets = { "/run/docker.sock", "/run/user/1000/bus", WORK "/s.sock", "/var/lib/other.sock", WORK "/stale",
                 WORK "/gone.sock", "/var/run/docker.sock" } },
  { .name = "publish",
    .policy = "{\"network\": {\"publish\": [3000, \"80:8080\"], \"allow\": [\"192.0.2.7:3000\", \"a.test:8080\"]}}",
    .uid = 1000 },
  { .name = "upstream",
    .policy = "{\"network\": {\"upstreamProxy\": \"http://user:hunter2@proxy.test:3128\"}}",
    .uid = 1000 },
  { .name = "credentials",
    .policy = "{\"credentials\": {\"github\": {}, \"x\": {\"source\": {\"file\": \"~/token\"}, \"bind\": [\"a.test\"], "
              "\"inject\": \"attach\"}}}",
    .uid = 1000,
    .things = { DIRECTORY("/var/lib/ca-certificates"), REGULAR(HOME "/token"), DIRECTORY(HOME "/.sdkman") },
    .roots = { "/etc/ssl/ca.pem", "/var/lib/ca-certificates/bundle.pem", "/srv/not-shown.pem" },
    .java = { "/etc/ssl/certs/java/cacerts", HOME "/.sdkman/candidates/java/x/lib/security/cacerts", "/srv/jdk/cacerts",
              HOME "/jdk/cacerts" } },
  { .name = "copies", /* in the private home, in a secret place, and through a link */
    .policy =
        "{\"credentials\": {\"a\": {\"source\": {\"file\": "
        "\"~/.token\"}, \"bind\": [\"a.test\"], \"file\": [\"~/.token\", \"~/.netrc\", \"~/dotfiles/x\"]}, \"b\": "
        "{\"source\": {\"env\": \"B\"}, \"bind\": [\"b.test\"], \"file\": [\"~/.aws/credentials\", \"~/.token\", "
        "\"/srv/b\"]}}}",
    .uid = 1000,
    .things = { REGULAR(HOME "/.token"), LINK(HOME "/.netrc", HOME "/dotfiles/netrc"), REGULAR(HOME "/dotfiles/netrc"),
                REGULAR(HOME "/dotfiles/x"), REGULAR(HOME "/.aws/credentials"), REGULAR("/srv/b") } },
  { .name = "copies-home-host",
    .policy =
        "{\"filesystem\": {\"home\": \"host\"}, \"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, \"bind\": "
        "[\"a.test\"], \"file\": [\"~/.docker/config.json\", \"~/.aws/credentials\"]}}}",
    .uid = 1000,
    .things = { REGULAR(HOME "/.docker/config.json"), DIRECTORY(HOME "/.docker"), REGULAR(HOME "/.aws/credentials"),
                REGULAR(HOME "/.aws/config"), DIRECTORY(HOME "/.aws") } },
  { .name = "browser", /* one that the system has, behind one that the sandbox does not show */
    .policy = "{\"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, \"bind\": [\"a.test\"], \"env\": \"A\"}}}",
    .uid = 1000,
    .things = { PROGRAM(HOME "/bin/chromium"), PROGRAM("/usr/bin/chromium") },
    .browsers = { HOME "/bin/chromium", "/usr/bin/chromium" } },
  { .name = "browser-private", /* of a test tool, in the private home; the database of the host is not looked at */
    .policy = "{\"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, \"bind\": [\"a.test\"], \"env\": \"A\"}}}",
    .uid = 1000,
    .things = { DIRECTORY(HOME "/.local/state/sbx/home/key/.cache/puppeteer"), DIRECTORY(HOME "/.pki/nssdb") },
    .browsers = { HOME "/.cache/puppeteer" } },
  { .name = "browser-hidden",
    .policy = "{\"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, \"bind\": [\"a.test\"], \"env\": \"A\"}}}",
    .uid = 1000,
    .things = { PROGRAM(HOME "/bin/chromium") },
    .browsers = { HOME "/bin/chromium" } },
  { .name = "browser-pki-read", /* the user's own, where the policy shows it */
    .policy = "{\"filesystem\": {\"read\": [\"~/.pki\"]}, \"credentials\": {\"a\": {\"source\": {\"env\": \"A\"}, "
              "\"bind\": [\"a.test\"], \"env\": \"A\"}}}",
    .uid = 1000,
    .things = { PROGRAM("/usr/bin/chromium"), DIRECTORY(HOME "/.pki/nssdb") },
    .browsers = { "/usr/bin/chromium" } },
  { .name = "network-none", .policy = "{\"network\": {\"mode\": \"none\"}}", .uid = 1000 },
  { .name = "network-host",
    .policy = "{\"network\": {\"mode\": \"host\"}}",
    .uid = 1000,
    .things = { LINK("/etc/resolv.conf", "/run/resolvconf/resolv.conf"), REGULAR("/run/resolvconf/resolv.conf") } },
};

static size_t count_things(const struct golden *golden)
{
  size_t count = 0;

  while (count < LIST_MAX && golden->things[count].path)
    count++;
  return count;
}

static void build(const struct golden *golden, struct buf *out)
{
  char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, NULL };
  policy_autofree struct policy *policy = make_policy(golden->policy);
  facts_autofree struct facts facts = FACTS_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  const struct make_world world = { golden->things, count_things(golden) };
  const char *programs[LIST_MAX * 3] = { "/usr/bin/sh", "/bin/sh", HOME "/.cargo/bin/sh",
                                         HOME "/.local/state/sbx/home/key/.cargo/bin/sh" };
  struct err err = ERR_INIT;

  make_caller(&facts, golden->uid, golden->workspace);
  if (golden->cwd) {
    free(facts.cwd);
    facts.cwd = make_copy(golden->cwd);
  }
  for (size_t i = 0; i < LIST_MAX && golden->sockets[i]; i++)
    assert_int_equal(strv_add(&facts.sockets, golden->sockets[i]), 0);
  for (size_t i = 0; i < LIST_MAX && golden->hidden[i]; i++)
    assert_int_equal(strv_add(&facts.hidden, golden->hidden[i]), 0);
  for (size_t i = 0; i < FACTS_ROOTS_MAX && golden->roots[i]; i++)
    facts.roots[facts.root_count++] = (struct fact_roots){ make_copy(golden->roots[i]), make_copy("roots") };
  for (size_t i = 0; i < LIST_MAX && golden->java[i]; i++)
    facts.java[facts.java_count++] = (struct fact_java){ make_copy(golden->java[i]), make_copy("store"), 5 };
  for (size_t i = 0; i < LIST_MAX && golden->browsers[i]; i++) {
    assert_int_equal(strv_add(&facts.browsers, golden->browsers[i]), 0);
    programs[4 + 2 * i] = golden->browsers[i];
    programs[5 + 2 * i] = HOME "/.local/state/sbx/home/key/.cache/puppeteer";
  }
  if (facts.browsers.count > 0)
    facts.certutil = make_copy("/usr/bin/certutil");
  for (size_t i = 0; i < policy->credentials.count; i++)
    assert_int_equal(strv_add(&facts.placeholders, "placeholder"), 0);
  make_paths(&facts, policy, &world, programs);
  if (make_plan(policy, &facts, argv, &err, &plan) < 0 || plan_check(&plan, &err) < 0 ||
      plan_resolve_program(&facts, &err, &plan) < 0)
    fail_msg("%s: %s", golden->name, err.message);
  plan_print(&plan, out);
  for (size_t i = 0; i < plan.private_mounts.count; i++)
    buf_printf(out, "mount point %s\n", plan.private_mounts.items[i]);
  for (size_t i = 0; i < plan.passing_mounts.count; i++)
    buf_printf(out, "passing mount point %s\n", plan.passing_mounts.items[i]);
  for (size_t i = 0; i < plan.warnings.count; i++)
    buf_printf(out, "warning %s\n", plan.warnings.items[i]);
  for (size_t i = 0; i < plan.notes.count; i++)
    buf_printf(out, "note %s\n", plan.notes.items[i]);
  for (size_t i = 0; i < plan.env_left_out.count; i++)
    buf_printf(out, "left out %s\n", plan.env_left_out.items[i]);
}

static void compare(const struct golden *golden)
{
  buf_autofree struct buf got = BUF_INIT(1 << 20);
  buf_autofree struct buf expected = BUF_INIT(1 << 20);
  char path[4096];
  struct span left;
  struct span right;

  build(golden, &got);
  snprintf(path, sizeof path, "%s/%s.txt", UNIT_GOLDEN, golden->name);
  if (getenv("SBX_UPDATE_GOLDEN")) {
    fd_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_int_equal(fd_write_all(fd, buf_span(&got)), 0);
    return;
  }
  if (fd_read_file(AT_FDCWD, path, &expected) < 0)
    fail_msg("%s cannot be read", path);
  left = buf_span(&got);
  right = buf_span(&expected);
  for (unsigned line = 1; left.ptr || right.ptr; line++) {
    struct span a = SPAN("");
    struct span b = SPAN("");

    (void)span_split(&left, '\n', &a);
    (void)span_split(&right, '\n', &b);
    if (!span_equal(a, b))
      fail_msg("%s:%u:\n  %.*s\n  is expected; the plan has\n  %.*s", path, line, (int)b.len, b.ptr, (int)a.len, a.ptr);
  }
}

static void test_golden(void **state)
{
  compare(*state);
}

int main(void)
{
  struct CMUnitTest tests[MEM_COUNT(cases)];

  for (size_t i = 0; i < MEM_COUNT(cases); i++) {
    struct golden *golden = malloc(sizeof *golden);

    if (!golden)
      return 1;
    *golden = cases[i];
    tests[i] = (struct CMUnitTest){ .name = cases[i].name, .test_func = test_golden, .initial_state = golden };
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);

  for (size_t i = 0; i < MEM_COUNT(cases); i++)
    free(tests[i].initial_state);
  return failed;
}
