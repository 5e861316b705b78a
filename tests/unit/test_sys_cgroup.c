/* The test stands in a mount namespace of its own with a made-up hierarchy at /sys/fs/cgroup, on a file system that
 * knows no cgroups: files are there where a test puts them. */
#include "sys/cgroup.h"
#include "unit/temp.h"

#include <sched.h>
#include <sys/mount.h>

#define ROOT "/sys/fs/cgroup"

static char own[TEMP_PATH]; /* where the hierarchy has our own cgroup */

static void write_map(const char *path, unsigned id)
{
  char text[64];
  fd_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

  snprintf(text, sizeof text, "%u %u 1\n", id, id);
  if (fd < 0 || fd_write_all(fd, span_of(text)) < 0)
    print_error("%s: %s\n", path, strerror(errno));
}

static int enter(void **state)
{
  unsigned uid = geteuid();
  unsigned gid = getegid();

  (void)state;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
    return -1;
  temp_put("/proc/self/setgroups", "deny");
  write_map("/proc/self/uid_map", uid);
  write_map("/proc/self/gid_map", gid);
  return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* An empty hierarchy with our own cgroup in it, nothing delegated. */
static int make_tree(void **state)
{
  buf_autofree struct buf text = BUF_INIT(65536);
  const char *line;

  (void)state;
  if (mount("tmpfs", ROOT, "tmpfs", 0, "mode=0755") < 0 || fd_read_file(AT_FDCWD, "/proc/self/cgroup", &text) < 0)
    return -1;
  line = strstr(text.data, "0::/");
  if (!line)
    return -1;
  snprintf(own, sizeof own, ROOT "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
  temp_put(ROOT "/cgroup.controllers", "cpu memory pids\n");
  snprintf(own + strlen(own), sizeof own - strlen(own), "%s", own[strlen(own) - 1] == '/' ? "" : "/");
  temp_put(own, "");
  own[strlen(own) - 1] = '\0';
  return 0;
}

static int remove_tree(void **state)
{
  (void)state;
  return umount2(ROOT, MNT_DETACH);
}

static const char *in_own(const char *name)
{
  static char paths[4][TEMP_PATH + 64];
  static size_t next;
  char *path = paths[next++ % 4];

  snprintf(path, sizeof paths[0], "%s/%s", own, name);
  return path;
}

static void delegate(const char *controllers)
{
  temp_put(in_own("cgroup.procs"), "");
  temp_put(in_own("cgroup.subtree_control"), controllers);
}

static void assert_text(const char *path, const char *expected)
{
  buf_autofree struct buf text = BUF_INIT(4096);

  assert_int_equal(fd_read_file(AT_FDCWD, path, &text), 0);
  unit_assert_row(span_equal_str(buf_span(&text), expected), path, text.data ? text.data : "empty");
}

static const struct cgroup_limits all = { .memory_bytes = 1u << 20, .cpu_milli = 1500, .pids = 34 };

static void test_find(void **state)
{
  static const struct {
    const char *controllers;
    struct cgroup_limits limits;
    bool found;
  } rows[] = {
    { "cpu memory pids\n", { 1, 1, 1 }, true },
    { "memory pids\n", { 1, 0, 1 }, true },
    { "memory pids\n", { 1, 1, 1 }, false },
    { "cpuset memory pids\n", { 1, 1, 1 }, false },
    { "cpu pids\n", { .memory_bytes = 1 }, false },
    { "cpu memory\n", { .pids = 1 }, false },
    { "\n", { .cpu_milli = 1 }, false },
    { "", { .cpu_milli = 1 }, false },
    { "pids", { .pids = 1 }, true },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    mem_autofree char *parent = NULL;
    struct err err = ERR_INIT;
    int r;

    delegate(rows[i].controllers);
    r = cgroup_find(&rows[i].limits, &err, &parent);
    unit_assert_row(r == (rows[i].found ? 0 : -ENOTSUP), rows[i].controllers, err.message);
    if (rows[i].found)
      assert_string_equal(parent, own);
    else
      assert_null(parent);
  }
}

/* The nearest ancestor that will do; none above the hierarchy's root. */
static void test_find_ancestor(void **state)
{
  mem_autofree char *parent = NULL;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(cgroup_find(&all, &err, &parent), -ENOTSUP);
  temp_put(ROOT "/cgroup.procs", "");
  temp_put(ROOT "/cgroup.subtree_control", "cpu memory pids\n");
  assert_int_equal(cgroup_find(&all, &err, &parent), 0);
  assert_string_equal(parent, ROOT);
}

static void test_no_version_2(void **state)
{
  mem_autofree char *parent = NULL;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(unlink(ROOT "/cgroup.controllers"), 0);
  assert_int_equal(cgroup_find(&all, &err, &parent), -ENOTSUP);
  assert_non_null(strstr(err.message, "cgroup v2"));
}

/* As the kernel would, the test puts the files in place before. */
static void test_limit(void **state)
{
  static const char *const files[] = { "cgroup.procs", "memory.max", "memory.swap.max",
                                       "pids.max",     "cpu.max",    "cgroup.kill" };
  const char *path;
  struct err err = ERR_INIT;
  char name[64];
  int procs = -1;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(files); i++) {
    snprintf(name, sizeof name, "made/%s", files[i]);
    temp_put(in_own(name), "");
  }
  path = in_own("made");
  if (cgroup_limit(path, &all, &err, &procs) < 0)
    fail_msg("%s", err.message);
  assert_int_equal(chdir(path), 0);
  assert_text("memory.max", "1048576");
  assert_text("memory.swap.max", "0");
  assert_text("pids.max", "34");
  assert_text("cpu.max", "150000 100000");
  assert_int_equal(fcntl(procs, F_GETFD), FD_CLOEXEC);
  assert_int_equal(fd_write_all(procs, SPAN("0")), 0);
  assert_text("cgroup.procs", "0");
  cgroup_remove(path, &procs);
  assert_int_equal(procs, -1);
  assert_text("cgroup.kill", "1");
  assert_int_equal(chdir("/"), 0);
}

static void test_limit_only_what_is_asked(void **state)
{
  const struct cgroup_limits pids = { .pids = 5 };
  struct err err = ERR_INIT;
  int procs = -1;

  (void)state;
  temp_put(in_own("made/cgroup.procs"), "");
  temp_put(in_own("made/pids.max"), "");
  assert_int_equal(cgroup_limit(in_own("made"), &pids, &err, &procs), 0); /* it would fail on any other file */
  fd_close(&procs);
}

/* The name is our number, and another pid namespace may have that as well: its cgroup is not shared. */
static void test_make_shares_none(void **state)
{
  char *path = NULL;
  struct err err = ERR_INIT;
  char name[64];
  int procs = -1;

  (void)state;
  delegate("cpu memory pids\n");
  snprintf(name, sizeof name, "sbx-%d/in-use", (int)getpid());
  temp_put(in_own(name), "");
  assert_int_equal(cgroup_make(&all, &err, &path, &procs), -EEXIST);
  assert_true(S_ISREG(temp_mode(in_own(name))));
  assert_null(path);
  assert_int_equal(procs, -1);
  /* Nobody is in it: a leftover of ours, and its limits are not. */
  assert_int_equal(unlink(in_own(name)), 0);
  assert_int_equal(cgroup_make(&all, &err, &path, &procs), -ENOENT);
  assert_non_null(strstr(err.message, "memory.max"));
}

/* A limit that cannot be set: no cgroup, and no directory. */
static void test_make_fails_whole(void **state)
{
  char *path = NULL;
  struct err err = ERR_INIT;
  char name[64];
  int procs = -1;

  (void)state;
  delegate("cpu memory pids\n");
  assert_int_equal(cgroup_make(&all, &err, &path, &procs), -ENOENT); /* this file system makes no memory.max */
  assert_non_null(strstr(err.message, "memory.max"));
  snprintf(name, sizeof name, "sbx-%d", (int)getpid());
  assert_int_equal(temp_mode(in_own(name)), 0);
  assert_null(path);
  assert_int_equal(procs, -1);
}

/* Runs that were killed left their directories: gone. Those of live processes, and what is not ours, stay. */
static void test_make_sweeps(void **state)
{
  char *path = NULL;
  struct err err = ERR_INIT;
  char alive[64];
  int procs = -1;

  (void)state;
  delegate("cpu memory pids\n");
  temp_put(in_own("sbx-2147483647/"), "");
  temp_put(in_own("sbx-2147483646/in-use"), "");
  temp_put(in_own("sbx-x/"), "");
  temp_put(in_own("other-2147483647/"), "");
  temp_put(in_own("sbx-1/"), ""); /* a process that we may not signal lives too */
  snprintf(alive, sizeof alive, "sbx-%d/", (int)getppid());
  temp_put(in_own(alive), "");
  (void)cgroup_make(&all, &err, &path, &procs);
  assert_int_equal(temp_mode(in_own("sbx-2147483647")), 0);
  assert_true(S_ISDIR(temp_mode(in_own("sbx-2147483646"))));
  assert_true(S_ISDIR(temp_mode(in_own("sbx-x"))));
  assert_true(S_ISDIR(temp_mode(in_own("sbx-1"))));
  assert_true(S_ISDIR(temp_mode(in_own("other-2147483647"))));
  assert_true(S_ISDIR(temp_mode(in_own(alive))));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_find),
    TEST(test_find_ancestor),
    TEST(test_no_version_2),
    TEST(test_limit),
    TEST(test_limit_only_what_is_asked),
    TEST(test_make_shares_none),
    TEST(test_make_fails_whole),
    TEST(test_make_sweeps),
  };

  return cmocka_run_group_tests(tests, enter, NULL);
}
