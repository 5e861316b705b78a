#include "sys/path.h"
#include "unit/temp.h"

static void assert_real(const char *path, const char *real)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r = path_resolve(path, &object);
  struct stat stat_of;

  if (r < 0 || strcmp(object.real, real) != 0)
    fail_msg("%s: %d, %s, not %s", path, r, object.real ? object.real : "-", real);
  assert_int_equal(stat(path, &stat_of), 0);
  assert_int_equal(object.mode, stat_of.st_mode);
  assert_int_equal(object.uid, stat_of.st_uid);
  assert_true(object.device == stat_of.st_dev);
  assert_true(object.inode == stat_of.st_ino);
}

static void assert_refused(const char *path, int error)
{
  path_object_autofree struct path_object object = { .real = NULL };
  int r = path_resolve(path, &object);

  if (r != error)
    fail_msg("%s: %d, not %d", path, r, error);
  assert_null(object.real);
}

static void test_resolve(void **state)
{
  temp_put("dir/sub/file", "x");
  temp_link("dir", "link");
  temp_link("link/sub/../sub/file", "chain");
  temp_link(temp_path(state, "chain"), "absolute");
  temp_link("nowhere", "dangling");
  temp_link("loop", "loop");
  assert_real("/", "/");
  assert_real(temp_path(state, "dir/sub/file"), temp_path(state, "dir/sub/file"));
  assert_real(temp_path(state, "dir//sub/./"), temp_path(state, "dir/sub"));
  assert_real(temp_path(state, "link/sub/file"), temp_path(state, "dir/sub/file"));
  assert_real(temp_path(state, "chain"), temp_path(state, "dir/sub/file"));
  assert_real(temp_path(state, "absolute"), temp_path(state, "dir/sub/file"));
  assert_refused(temp_path(state, "absent"), -ENOENT);
  assert_refused(temp_path(state, "dangling"), -ENOENT);
  assert_refused(temp_path(state, "loop"), -ELOOP);
  assert_refused(temp_path(state, "dir/sub/file/below"), -ENOTDIR);
}

/* A link of /proc leads past every path that was judged (F26). */
static void test_magic_links(void **state)
{
  (void)state;
  assert_refused("/proc/self/root", -ELOOP);
  assert_refused("/proc/self/root/etc/passwd", -ELOOP);
  assert_refused("/proc/self/cwd", -ELOOP);
  assert_refused("/proc/self/exe", -ELOOP);
  assert_refused("/proc/self/ns/net", -ELOOP);
  temp_link("/proc/self/root", "innocent");
  assert_refused(temp_path(state, "innocent/etc/passwd"), -ELOOP);
}

static void test_resolve_link(void **state)
{
  path_object_autofree struct path_object object = { .real = NULL };

  temp_put("target", "x");
  temp_put("dir/", "");
  temp_link("../target", "dir/link");
  temp_link("dir", "way");
  assert_int_equal(path_resolve_link(temp_path(state, "way/link"), &object), 0);
  assert_true(S_ISLNK(object.mode));
  assert_string_equal(object.real, temp_path(state, "dir/link"));
  path_object_free(&object);
  assert_null(object.real);
  assert_int_equal(path_resolve_link(temp_path(state, "target"), &object), 0);
  assert_true(S_ISREG(object.mode));
}

static void make_below(const char *root, const char *relative)
{
  struct err err = ERR_INIT;

  if (path_make_below(root, relative, 0600, &err) < 0)
    fail_msg("%s", err.message);
}

static void test_make_below(void **state)
{
  const char *root = temp_path(state, "root");

  temp_put("root/", "");
  umask(022);
  make_below(root, "a/b/c/");
  assert_int_equal(temp_mode("root/a/b/c"), S_IFDIR | 0700);
  make_below(root, "a/b/file");
  assert_int_equal(temp_mode("root/a/b/file"), S_IFREG | 0600);
  temp_put("root/a/b/file", "kept");
  make_below(root, "a/b/file");
  make_below(root, "a/b/c/");
  make_below(root, "a//b///c/");
  assert_int_equal(unlink("root/a/b/file"), 0);
  temp_put("root/a/b/dir/", "");
  make_below(root, "a/b/dir"); /* an empty directory where a file belongs */
  assert_true(S_ISREG(temp_mode("root/a/b/dir")));
}

static void test_make_below_keeps_contents(void **state)
{
  buf_autofree struct buf text = BUF_INIT(64);

  temp_put("root/file", "kept");
  make_below(temp_path(state, "root"), "file");
  assert_int_equal(fd_read_file(AT_FDCWD, "root/file", &text), 0);
  assert_string_equal(text.data, "kept");
}

/* A command that had the directory before planted links: at each part of the path in turn, to a directory, to a file,
 * to nothing, and relative ones. What they lead to is untouched, and the mount point is real. */
static void test_make_below_past_planted_links(void **state)
{
  static const char *const parts[] = { "root/a", "root/a/b", "root/a/b/c" };
  static const char *const ends[] = { "a/b/c", "a/b/c/" };

  for (size_t i = 0; i < MEM_COUNT(parts) * MEM_COUNT(ends) * 4; i++) {
    const char *const targets[] = { temp_path(state, "out"), temp_path(state, "out/file"), "/nonexistent/name",
                                    "../../../../out" };
    const char *part = parts[i % MEM_COUNT(parts)];
    const char *end = ends[i / MEM_COUNT(parts) % MEM_COUNT(ends)];
    const char *target = targets[i / MEM_COUNT(parts) / MEM_COUNT(ends)];
    bool directory = end[strlen(end) - 1] == '/';
    void *root = strdup(temp_path(state, "root"));
    struct stat out;

    temp_put("out/file", "outside");
    temp_put("root/", "");
    for (size_t k = 0; parts[k] != part; k++)
      assert_int_equal(mkdir(parts[k], 0700), 0);
    temp_link(target, part);
    make_below(root, end);
    assert_true(S_ISDIR(temp_mode("root/a")) && S_ISDIR(temp_mode("root/a/b")));
    assert_int_equal(temp_mode("root/a/b/c") & S_IFMT, directory ? S_IFDIR : S_IFREG);
    assert_int_equal(stat("out", &out), 0);
    assert_int_equal(out.st_nlink, 2); /* no directory was made in it */
    assert_int_equal(temp_mode("out/c"), 0);
    assert_int_equal(temp_mode("out/b"), 0);
    assert_int_equal(stat("out/file", &out), 0);
    assert_int_equal(out.st_size, 7);
    assert_int_equal(temp_mode("/nonexistent"), 0);
    assert_int_equal(temp_remove(&root), 0);
    assert_int_equal(chdir(*state), 0);
  }
}

static void test_make_below_past_other_things(void **state)
{
  temp_put("root/file", "in the way");
  make_below(temp_path(state, "root"), "file/deep/");
  assert_true(S_ISDIR(temp_mode("root/file/deep")));
  assert_int_equal(mkfifo("root/fifo", 0600), 0);
  make_below(temp_path(state, "root"), "fifo");
  assert_true(S_ISREG(temp_mode("root/fifo")));
  assert_int_equal(mkfifo("root/fifo2", 0600), 0);
  make_below(temp_path(state, "root"), "fifo2/x");
  assert_true(S_ISREG(temp_mode("root/fifo2/x")));
}

static void test_make_below_errors(void **state)
{
  static const char *const escapes[] = { "..", "../x", "a/../../x", "a/..", ".", "./x", "a/./x/" };
  struct err err = ERR_INIT;

  temp_put("root/a/keep/file", "x");
  for (size_t i = 0; i < MEM_COUNT(escapes); i++) {
    unit_assert_row(path_make_below(temp_path(state, "root"), escapes[i], 0600, &err) == -EINVAL, escapes[i], "passed");
    assert_int_equal(temp_mode("x"), 0);
  }
  assert_int_equal(path_make_below(temp_path(state, "absent"), "x", 0600, &err), -ENOENT);
  assert_int_equal(path_make_below(temp_path(state, "root"), "a/keep", 0600, &err),
                   -ENOTEMPTY); /* never more than a name */
  assert_true(S_ISREG(temp_mode("root/a/keep/file")));
  assert_non_null(strstr(err.message, "a/keep"));
}

/* What is not a bare mount point of ours stays, and no link is followed. */
static void test_remove_below(void **state)
{
  const char *root = temp_path(state, "root");
  struct err err = ERR_INIT;

  temp_put("root/", "");
  assert_int_equal(path_make_below(root, "a/ours", 0, &err), 0);
  assert_int_equal(temp_mode("root/a/ours"), S_IFREG);
  make_below(root, "a/dir/");
  make_below(root, "a/theirs");
  temp_put("root/a/full/file", "x");
  temp_put("root/a/data", "x");
  assert_int_equal(chmod("root/a/data", 0), 0);
  temp_put("outside/", "");
  assert_int_equal(symlink("../../outside", "root/a/link"), 0);
  assert_int_equal(path_make_below(temp_path(state, "outside"), "x", 0, &err), 0);
  root = temp_path(state, "root");
  for (int i = 0; i < 2; i++) {
    path_remove_below(root, "a/ours");
    path_remove_below(root, "a/dir/");
    path_remove_below(root, "a/theirs");
    path_remove_below(root, "a/full/");
    path_remove_below(root, "a/full");
    path_remove_below(root, "a/data");
    path_remove_below(root, "a/link");
    path_remove_below(root, "a/link/x");
    path_remove_below(root, "absent/x");
  }
  assert_int_equal(temp_mode("root/a/ours"), 0);
  assert_int_equal(temp_mode("root/a/dir"), 0);
  assert_true(S_ISREG(temp_mode("root/a/theirs")));
  assert_true(S_ISREG(temp_mode("root/a/full/file")));
  assert_true(S_ISREG(temp_mode("root/a/data")));
  assert_true(S_ISLNK(temp_mode("root/a/link")));
  assert_true(S_ISREG(temp_mode("outside/x")));
}

static void test_make_all(void **state)
{
  struct err err = ERR_INIT;

  umask(022);
  assert_int_equal(path_make_all(temp_path(state, "x/y/z"), &err), 0);
  assert_int_equal(temp_mode("x/y/z"), S_IFDIR | 0700);
  assert_int_equal(temp_mode("x"), S_IFDIR | 0700);
  assert_int_equal(path_make_all(temp_path(state, "x/y/z"), &err), 0);
  assert_int_equal(path_make_all("/", &err), 0);
  temp_link("x", "link");
  assert_int_equal(path_make_all(temp_path(state, "link/more"), &err), 0);
  assert_true(S_ISDIR(temp_mode("x/more")));
  temp_put("file", "x");
  assert_int_equal(path_make_all(temp_path(state, "file"), &err), -ENOTDIR);
  assert_int_equal(path_make_all(temp_path(state, "file/below"), &err), -ENOTDIR);
  assert_non_null(strstr(err.message, temp_path(state, "file")));
  temp_link("nowhere", "dangling");
  assert_true(path_make_all(temp_path(state, "dangling"), &err) < 0);
  assert_int_equal(temp_mode("nowhere"), 0);
}

static void test_text(void **state)
{
  static const struct {
    const char *path;
    const char *dir;
    bool within;
  } rows[] = {
    { "/a", "/a", true },    { "/a/b", "/a", true },  { "/ab", "/a", false },
    { "/a", "/a/b", false }, { "/a/b", "/", true },   { "/", "/", true },
    { "/", "/a", false },    { "/a-b", "/a", false }, { "/a/bc/d", "/a/b", false },
  };
  static const struct {
    const char *dir;
    const char *rest;
    const char *joined;
  } joins[] = {
    { "/a", "b", "/a/b" }, { "/a", "/b", "/a/b" },          { "/a", "", "/a" }, { "/", "b", "/b" }, { "/", "", "/" },
    { "/", "//b", "/b" },  { "/a/b", "c/d/", "/a/b/c/d/" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    unit_assert_row(path_is_within(rows[i].path, rows[i].dir) == rows[i].within, rows[i].path, rows[i].dir);
  for (size_t i = 0; i < MEM_COUNT(joins); i++) {
    mem_autofree char *joined = path_join(joins[i].dir, joins[i].rest);

    unit_assert_row(strcmp(joined, joins[i].joined) == 0, joins[i].joined, joined);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_make, temp_remove)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_resolve),
    TEST(test_magic_links),
    TEST(test_resolve_link),
    TEST(test_make_below),
    TEST(test_make_below_keeps_contents),
    TEST(test_make_below_past_planted_links),
    TEST(test_make_below_past_other_things),
    TEST(test_make_below_errors),
    TEST(test_remove_below),
    TEST(test_make_all),
    cmocka_unit_test(test_text),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
