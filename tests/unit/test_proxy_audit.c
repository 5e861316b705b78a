#include "base/fd.h"
#include "policy/limits.h"
#include "proxy/audit.h"
#include "unit/unit.h"

#include <json-c/json.h>
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

  (void)state;
  assert_int_equal(addr_parse(SPAN("2001:db8::1"), &ip), 0);
  assert_int_equal(audit_new(fd, "run\"1", &audit), 0);
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

  (void)state;
  memset(bytes, 0x01, sizeof bytes);
  assert_int_equal(audit_new(fd, "run", &audit), 0);
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
  off_t end;

  (void)state;
  assert_int_equal(audit_new(fd, "run", &audit), 0);
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

  (void)state;
  assert_int_equal(audit_new(-1, "run", &audit), 0);
  audit_write(audit, &record);
  assert_int_equal(audit_error(audit), -EBADF);
  audit_free(audit);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_line),
    cmocka_unit_test(test_long_texts),
    cmocka_unit_test(test_ceiling),
    cmocka_unit_test(test_write_error),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
