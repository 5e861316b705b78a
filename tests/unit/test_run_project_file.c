/* A rule comes into the user's file at its place, and every other byte stays. */
#include "config.h"

#include "run/project_file.h"

#include "policy/doc.h"
#include "unit/temp.h"
#include "unit/unit.h"

#include <errno.h>

static void put(const char *text)
{
  int fd = open("p.json", O_WRONLY | O_CREAT | O_TRUNC, 0640);

  assert_int_equal(fd_write_all(fd, span_of(text)), 0);
  close(fd);
}

static void assert_text(const char *text)
{
  buf_autofree struct buf found = BUF_INIT(65536);

  assert_int_equal(fd_read_file(AT_FDCWD, "p.json", &found), 0);
  assert_string_equal(found.data, text);
}

static int allow(void **state, const char *rule, struct err *err)
{
  mem_autofree char *path = path_join(*state, "p.json");

  return project_file_allow(path, rule, err);
}

static const struct {
  const char *before;
  const char *after;
} texts[] = {
  { "{}", "{\"network\": { \"allow\": [\"r.test\"] }}" },
  { "{ }\n", "{\"network\": { \"allow\": [\"r.test\"] } }\n" },
  { "{\n}\n", "{\n  \"network\": { \"allow\": [\"r.test\"] }\n}\n" },
  { "// mine\n{\n  // nothing yet\n}\n// end",
    "// mine\n{\n  // nothing yet\n  \"network\": { \"allow\": [\"r.test\"] }\n}\n// end" },
  { "{\"env\": {}}", "{\"env\": {}, \"network\": { \"allow\": [\"r.test\"] }}" },
  { "{\n\t\"env\": { \"pass\": [\"A\"] } // why, so\n}\n",
    "{\n\t\"env\": { \"pass\": [\"A\"] }, // why, so\n\t\"network\": { \"allow\": [\"r.test\"] }\n}\n" },
  { "{\"network\": {}}", "{\"network\": {\"allow\": [\"r.test\"]}}" },
  { "{\"network\": {\n  \"deny\": [\n    \"x.test\"\n  ] /* } */\n}}",
    "{\"network\": {\n  \"deny\": [\n    \"x.test\"\n  ], /* } */\n  \"allow\": [\"r.test\"]\n}}" },
  { "{\"network\": {\"allow\": []}}", "{\"network\": {\"allow\": [\"r.test\"]}}" },
  { "{\"network\": {\"allow\": [ /* none */ ]}}", "{\"network\": {\"allow\": [ /* none */ \"r.test\" ]}}" },
  { "{\"network\": {\"allow\": [\"a.test\"]}}", "{\"network\": {\"allow\": [\"a.test\", \"r.test\"]}}" },
  { "{\"network\": {\"allow\": [ \"a.test\" ], \"deny\": []}}",
    "{\"network\": {\"allow\": [ \"a.test\", \"r.test\" ], \"deny\": []}}" },
  { "{\"network\": {\"allow\": [\"a.test\" /* ] */]}}",
    "{\"network\": {\"allow\": [\"a.test\", /* ] */ \"r.test\"]}}" },
  { "{\n  \"network\": {\n    \"allow\": [\n      \"a.test\", // \xc3\xa4 one\n      {\"host\": \"b.test\"} // ] two\n"
    "      // and no more\n    ]\n  }\n}\n",
    "{\n  \"network\": {\n    \"allow\": [\n      \"a.test\", // \xc3\xa4 one\n      {\"host\": \"b.test\"}, // ] two\n"
    "      // and no more\n      \"r.test\"\n    ]\n  }\n}\n" },
  { "{\r\n\"network\": {\r\n\"allow\": [\r\n  \"a.test\"\r\n]}}",
    "{\r\n\"network\": {\r\n\"allow\": [\r\n  \"a.test\",\r\n  \"r.test\"\n]}}" },
  { "{\"network\": {\"allow\": [\"r.test\"]}, \"env\": {}}", "{\"network\": {\"allow\": [\"r.test\"]}, \"env\": {}}" },
};

static void test_at_its_place(void **state)
{
  for (size_t i = 0; i < MEM_COUNT(texts); i++) {
    struct err err = ERR_INIT;
    struct stat stat;

    put(texts[i].before);
    if (allow(state, "r.test", &err) < 0)
      fail_msg("%s: %s", texts[i].before, err.message);
    assert_text(texts[i].after);
    assert_int_equal(lstat("p.json", &stat), 0);
    assert_int_equal(stat.st_mode & 0777, 0640);
  }
}

static void test_a_new_file(void **state)
{
  struct err err = ERR_INIT;
  struct stat stat;

  (void)unlink("p.json");
  assert_int_equal(allow(state, "r.test", &err), 0);
  assert_int_equal(allow(state, "[2001:db8::1]:7", &err), 0);
  assert_int_equal(allow(state, "r.test", &err), 0);
  assert_text("// Your own policy for one project; " SBX_NAME
              " run --ask adds to it. Edit it as you like.\n{\n  \"network\": "
              "{\n    \"allow\": [\n"
              "      \"r.test\",\n      \"[2001:db8::1]:7\"\n    ]\n  }\n}\n");
  assert_int_equal(lstat("p.json", &stat), 0);
  assert_int_equal(stat.st_mode & 0777, 0600);
}

static void test_what_is_left_alone(void **state)
{
  static const char *const bad[] = { "", "[]", "{", "{\"network\": []}", "{\"network\": {\"allow\": {}}}", "{} x" };
  struct err err = ERR_INIT;

  for (size_t i = 0; i < MEM_COUNT(bad); i++) {
    put(bad[i]);
    assert_int_equal(allow(state, "r.test", &err), -EINVAL);
    if (bad[i][0])
      assert_text(bad[i]);
  }
  put("{}");
  assert_int_equal(rename("p.json", "elsewhere"), 0);
  assert_int_equal(symlink("elsewhere", "p.json"), 0);
  assert_int_equal(allow(state, "r.test", &err), -ELOOP);
  assert_non_null(strstr(err.message, "symbolic link"));
  assert_text("{}");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_at_its_place), cmocka_unit_test(test_a_new_file),
                                      cmocka_unit_test(test_what_is_left_alone) };

  return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
