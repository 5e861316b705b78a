/* A file gets another text in one step, and nothing else changes. */
#include "sys/replace.h"
#include "unit/temp.h"
#include "unit/unit.h"

#include <errno.h>

static void assert_text(const char *name, const char *text)
{
  buf_autofree struct buf found = BUF_INIT(4096);

  assert_int_equal(fd_read_file(AT_FDCWD, name, &found), 0);
  assert_string_equal(found.data, text);
}

static mode_t mode_of(const char *name)
{
  struct stat found;

  assert_int_equal(lstat(name, &found), 0);
  return found.st_mode;
}

static void test_new_and_old(void **state)
{
  int dir = open(".", O_PATH | O_DIRECTORY);

  (void)state;
  umask(022);
  assert_int_equal(replace_file(dir, "a", 0666, SPAN("one")), 0);
  assert_text("a", "one");
  assert_int_equal(mode_of("a"), S_IFREG | 0644);
  assert_int_equal(chmod("a", 0620), 0);
  assert_int_equal(replace_file(dir, "a", 0666, SPAN("two")), 0);
  assert_text("a", "two");
  assert_int_equal(mode_of("a"), S_IFREG | 0620);
  close(dir);
}

static void test_what_is_no_file(void **state)
{
  int dir = open(".", O_PATH | O_DIRECTORY);
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(replace_check(dir, "absent", &err), 0);
  assert_int_equal(replace_file(dir, "victim", 0600, SPAN("mine")), 0);
  assert_int_equal(replace_check(dir, "victim", &err), 0);
  assert_int_equal(symlink("victim", "link"), 0);
  assert_int_equal(replace_check(dir, "link", &err), -ELOOP);
  assert_int_equal(mkdir("dir", 0700), 0);
  assert_int_equal(replace_check(dir, "dir", &err), -EINVAL);
  assert_int_equal(replace_file(dir, "link", 0600, SPAN("other")), 0); /* the link itself */
  assert_text("victim", "mine");
  assert_int_equal(mode_of("link"), S_IFREG | 0600);
  assert_int_equal(replace_file(dir, "dir", 0600, SPAN("other")), -EISDIR);
  assert_int_equal(rmdir("dir"), 0);
  assert_int_equal(unlink("link") + unlink("victim"), 0);
  assert_int_equal(unlink("a"), 0);
  assert_int_equal(rmdir(*state), 0); /* nothing else is left */
  assert_int_equal(mkdir(*state, 0700), 0);
  close(dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_new_and_old), cmocka_unit_test(test_what_is_no_file) };

  return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
