#include "base/log.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* What log_line prints for a text at a level. */
static void capture(enum log_level level, const char *text, struct buf *out)
{
  fd_autoclose int file = memfd_create("log", MFD_CLOEXEC);
  fd_autoclose int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

  assert_true(file >= 0 && saved >= 0);
  assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
  log_line(level, "%s", text);
  assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
  assert_int_equal(lseek(file, 0, SEEK_SET), 0);
  assert_int_equal(fd_read_all(file, out), 0);
}

static void assert_line(const char *text, const char *line)
{
  buf_autofree struct buf out = BUF_INIT(65536);

  capture(LOG_ERROR, text, &out);
  unit_assert_row(span_equal_str(buf_span(&out), line), line, out.data ? out.data : "nothing");
}

static void test_lines(void **state)
{
  (void)state;
  log_open("prog", LOG_NOTICE);
  assert_line("hello", "prog: hello\n");
  assert_line("", "prog: \n");
  assert_line("one\ntwo", "prog: one\\x0atwo\n"); /* no second line can be forged */
  assert_line("\x1b]0;title\x07\r", "prog: \\x1b]0;title\\x07\\x0d\n");
  assert_line("\x7f", "prog: \\x7f\n");
  assert_line("gr\xc3\xbc\xc3\x9f \xe2\x82\xac", "prog: gr\xc3\xbc\xc3\x9f \xe2\x82\xac\n");
  assert_line("\xc2\x9b"
              "31m",
              "prog: \\xc2\\x9b"
              "31m\n");
  assert_line("\x9b"
              "31m",
              "prog: \\x9b"
              "31m\n");
  assert_line("\xc2", "prog: \\xc2\n");
  assert_line("\xc2\xa0", "prog: \xc2\xa0\n");
}

/* The longest text, every byte of it escaped, still is one line. */
static void test_long_line(void **state)
{
  static char text[20000];
  buf_autofree struct buf out = BUF_INIT(65536);

  (void)state;
  memset(text, '\n', sizeof text - 1);
  log_open("prog", LOG_NOTICE);
  capture(LOG_ERROR, text, &out);
  assert_true(out.len > 8192 && span_ends_with(buf_span(&out), SPAN("\\x0a\n")));
  assert_int_equal(span_find(buf_span(&out), '\n'), out.len - 1);
}

static void test_levels(void **state)
{
  static const enum log_level levels[] = { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_DETAIL };

  (void)state;
  for (size_t set = 0; set < MEM_COUNT(levels); set++) {
    log_open("prog", levels[set]);
    assert_int_equal(log_level(), levels[set]);
    for (size_t used = 0; used < MEM_COUNT(levels); used++) {
      buf_autofree struct buf out = BUF_INIT(256);

      assert_int_equal(log_enabled(levels[used]), used <= set);
      capture(levels[used], "x", &out);
      assert_int_equal(out.len > 0, used <= set);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_long_line),
                                      cmocka_unit_test(test_levels) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
