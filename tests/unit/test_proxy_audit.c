#include "base/fd.h"
#include "policy/limits.h"
#include "proxy/audit.h"
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file of its own, with size bytes in it. */
static int make_file(off_t size)
{
  int fd = memfd_create("audit", MFD_CLOEXEC);

  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, size), 0);
  assert_int_equal(lseek(fd, 0, SEEK_END), size);
  return fd;
}

static struct json_object *read_line(int fd, off_t from)
{
  char text[65536];
  ssize_t n = pread(fd, text, sizeof text - 1, from);
  struct json_object *object;

  assert_true(n > 1);
  text[n] = '\0';
  assert_true(text[n - 1] == '\n');
  assert_ptr_equal(strchr(text, '\n'), text + n - 1);
  object = json_tokener_parse(text);
  assert_non_null(object);
  return object;
}

static const char *member(struct json_object *object, const char *key)
{
  struct json_object *value = NULL;

  return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : NULL;
}

static void test_line(void **state)
{
  fd_autoclose int fd = make_file(0);
  struct addr ip;
  struct policy_rule rule = { .text = (char[]){ "*.a.test" } };
  struct audit *audit;
  struct json_object *line;
  struct audit_record record = {
    .event = "request",
    .via = "http",
    .verdict = AUDIT_ALLOW,
    .reason = REASON_ALLOWED,
    .host = SPAN("b.a.test"),
    .port = 8080,
    .ip = &ip,
    .method = SPAN("GET"),
    .path = SPAN("/\"\n\x01\xff{"),
    .rule = &rule,
    .up = UINT64_MAX,
    .down = 2,
    .ms = 3,
  };

  assert_int_equal(addr_parse(SPAN("2001:db8::1"), &ip), 0);
  assert_int_equal(audit_new(*state, fd, "run\"1", &audit), 0);
  audit_write(audit, &record);
  line = read_line(fd, 0);
  assert_string_equal(member(line, "run"), "run\"1");
  assert_int_equal(strlen(member(line, "time")), 24);
  assert_string_equal(member(line, "event"), "request");
  assert_string_equal(member(line, "verdict"), "allow");
  assert_string_equal(member(line, "via"), "http");
  assert_string_equal(member(line, "host"), "b.a.test");
  assert_string_equal(member(line, "port"), "8080");
  assert_string_equal(member(line, "ip"), "2001:db8::1");
  assert_string_equal(member(line, "method"), "GET");
  assert_string_equal(member(line, "path"), "/\"\n\x01\xc3\xbf{");
  assert_string_equal(member(line, "rule"), "*.a.test");
  assert_string_equal(member(line, "reason"), "allowed");
  assert_string_equal(member(line, "up"), "18446744073709551615");
  assert_string_equal(member(line, "down"), "2");
  assert_string_equal(member(line, "ms"), "3");
  json_object_put(line);
  audit_free(audit);
}

/* The longest texts still make one line. */
static void test_long_texts(void **state)
{
  static char bytes[LIMITS_HTTP_HEAD_BYTES];
  fd_autoclose int fd = make_file(0);
  struct span text = { bytes, sizeof bytes };
  struct audit *audit;
  struct audit_record record = {
    .event = "request",
    .verdict = AUDIT_DENY,
    .reason = REASON_BAD_TARGET,
    .host = span_sub(text, 0, 255),
    .method = text,
    .path = text,
  };

  memset(bytes, 0x01, sizeof bytes);
  assert_int_equal(audit_new(*state, fd, "run", &audit), 0);
  audit_write(audit, &record);
  assert_int_equal(audit_error(audit), 0);
  json_object_put(read_line(fd, 0));
  audit_free(audit);
}

/* A run has its own share of the file, whatever stands there before; the last line says that it is used up. */
static void test_ceiling(void **state)
{
  static char text[1024];
  const struct audit_record record = {
    .event = "request", .via = "http", .reason = REASON_ALLOWED, .path = { text, sizeof text }
  };
  fd_autoclose int fd = make_file(LIMITS_AUDIT_BYTES - 100);
  struct json_object *line;
  struct audit *audit;
  unsigned count = 0;
  off_t end = 0;

  assert_int_equal(audit_new(*state, fd, "run", &audit), 0);
  for (; audit_missing(audit) == 0; count++) {
    end = lseek(fd, 0, SEEK_END);
    audit_write(audit, &record);
  }
  assert_in_range(count, LIMITS_AUDIT_RUN_BYTES / 6500, LIMITS_AUDIT_RUN_BYTES / 6000);
  line = read_line(fd, end);
  assert_string_equal(member(line, "event"), "audit-full");
  json_object_put(line);
  audit_write(audit, &record);
  assert_int_equal(audit_missing(audit), 2);
  assert_in_range(lseek(fd, 0, SEEK_END), end, end + 200);
  audit_free(audit);
}

static void test_write_error(void **state)
{
  const struct audit_record record = { .event = "connect", .via = "http", .reason = REASON_ALLOWED };
  struct audit *audit;

  assert_int_equal(audit_new(*state, -1, "run", &audit), 0);
  audit_write(audit, &record);
  assert_int_equal(audit_error(audit), -EBADF);
  audit_free(audit);
}

static const struct audit_record connection = { .event = "connect", .via = "http", .reason = REASON_ALLOWED };

/* What a pipe holds, up to the end of the line that it is cut in. */
static size_t count_lines(int fd, char *bytes, size_t *len)
{
  size_t lines = 0;
  ssize_t n = read(fd, bytes + *len, 1 << 20);

  assert_true(n > 0);
  *len += (size_t)n;
  for (size_t i = 0; i < *len; i++)
    lines += bytes[i] == '\n';
  return lines;
}

static void stop(void *data)
{
  loop_stop(data);
}

/* Lets the loop run until fd can be read. A turn may end before anything was looked at: libuv's timers come first. */
static void run_until_readable(struct loop *loop, int fd)
{
  struct pollfd watched = { .fd = fd, .events = POLLIN };
  struct loop_timer *timer;

  assert_int_equal(loop_timer_new(loop, stop, loop, &timer), 0);
  while (poll(&watched, 1, 0) == 0) {
    loop_timer_set(timer, 1);
    loop_run(loop);
  }
  loop_timer_free(&timer);
}

/* Nobody reads: nothing blocks, lines wait, and past the ceiling they are counted. What is read is whole. */
static void test_pipe_that_nobody_reads(void **state)
{
  static char bytes[LIMITS_AUDIT_QUEUE_BYTES + (2 << 20)];
  fd_autoclose int in = -1;
  fd_autoclose int out = -1;
  struct audit *audit;
  size_t lines = 0;
  size_t wrote = 0;
  size_t len = 0;
  int fds[2];

  assert_int_equal(pipe(fds), 0);
  out = fds[0];
  in = fds[1];
  assert_int_equal(audit_new(*state, in, "run", &audit), 0);
  for (; audit_unread(audit) < 1000; wrote++)
    audit_write(audit, &connection);
  assert_in_range(wrote, LIMITS_AUDIT_QUEUE_BYTES / 200, LIMITS_AUDIT_QUEUE_BYTES / 100);
  assert_int_equal(fcntl(in, F_GETFL) & O_NONBLOCK, 0);
  while (lines < wrote - 1000) {
    run_until_readable(*state, out);
    lines = count_lines(out, bytes, &len);
  }
  assert_int_equal(lines, wrote - 1000);
  for (size_t i = 0; i < len; i++)
    assert_true(i == 0 || (bytes[i - 1] == '\n') == (bytes[i] == '{'));
  assert_int_equal(audit_error(audit), 0);
  assert_int_equal(audit_missing(audit), 0);
  audit_free(audit);
}

/* A reader that comes late misses nothing, long lines included; the loop writes on as it reads. */
static void test_pipe_with_a_late_reader(void **state)
{
  static char bytes[4 << 20];
  static char text[1024];
  const struct audit_record record = {
    .event = "request", .via = "http", .reason = REASON_ALLOWED, .path = { text, sizeof text }
  };
  fd_autoclose int in = -1;
  fd_autoclose int out = -1;
  struct audit *audit;
  size_t lines = 0;
  size_t len = 0;
  int fds[2];

  assert_int_equal(pipe(fds), 0);
  out = fds[0];
  in = fds[1];
  assert_int_equal(audit_new(*state, in, "run", &audit), 0);
  for (unsigned i = 0; i < 400; i++)
    audit_write(audit, i % 2 ? &record : &connection);
  while (lines < 400) {
    run_until_readable(*state, out);
    lines = count_lines(out, bytes, &len);
  }
  assert_int_equal(lines, 400);
  audit_end(audit, 0);
  assert_int_equal(audit_unread(audit), 0);
  audit_free(audit);
}

/* At the end of a run, and a reader that goes away. */
static void test_pipe_at_the_end(void **state)
{
  fd_autoclose int in = -1;
  fd_autoclose int out = -1;
  struct audit *audit;
  int fds[2];

  assert_int_equal(pipe(fds), 0);
  out = fds[0];
  in = fds[1];
  assert_int_equal(audit_new(*state, in, "run", &audit), 0);
  for (unsigned i = 0; i < 2000; i++)
    audit_write(audit, &connection);
  audit_end(audit, 10);
  assert_in_range(audit_unread(audit), 1000, 1900);
  fd_close(&out);
  audit_write(audit, &connection);
  assert_int_equal(audit_error(audit), -EPIPE);
  audit_free(audit);
}

static int make_loop(void **state)
{
  struct sigaction ignore = { .sa_handler = SIG_IGN };

  if (sigaction(SIGPIPE, &ignore, NULL))
    return -1;
  return loop_new(NULL, (struct loop **)state);
}

static int free_loop(void **state)
{
  loop_free(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_line),
    cmocka_unit_test(test_long_texts),
    cmocka_unit_test(test_ceiling),
    cmocka_unit_test(test_write_error),
    cmocka_unit_test(test_pipe_that_nobody_reads),
    cmocka_unit_test(test_pipe_with_a_late_reader),
    cmocka_unit_test(test_pipe_at_the_end),
  };

  return cmocka_run_group_tests(tests, make_loop, free_loop);
}
