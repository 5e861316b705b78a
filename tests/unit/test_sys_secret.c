#include "base/fd.h"
#include "sys/secret.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define SMAPS_BYTES (4 * 1024 * 1024)

/* Whether the mapping that begins at an address has a flag of proc_pid_smaps(5), such as "dd". */
static bool has_flag(const void *at, const char *flag)
{
  buf_autofree struct buf text = BUF_INIT(SMAPS_BYTES);
  char start[32];
  const char *map;
  const char *flags;
  const char *end;
  const char *found;

  assert_int_equal(fd_read_file(AT_FDCWD, "/proc/self/smaps", &text), 0);
  snprintf(start, sizeof start, "%lx-", (unsigned long)at);
  map = strstr(text.data, start);
  flags = map ? strstr(map, "VmFlags:") : NULL;
  end = flags ? strchr(flags, '\n') : NULL;
  found = flags ? strstr(flags, flag) : NULL;
  return found && found < end;
}

static void test_memory(void **state)
{
  struct secret secret = SECRET_INIT;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(secret_new(10000, &err, &secret), 0);
  assert_int_equal(secret.size, 10000);
  assert_int_equal(secret.len, 0);
  for (size_t i = 0; i < secret.size; i++)
    assert_int_equal(secret.bytes[i], 0);
  memset(secret.bytes, 'x', secret.size);
  assert_true(has_flag(secret.bytes, " dd")); /* not in a core dump */
  assert_true(has_flag(secret.bytes, " dc")); /* not in a child */
#ifndef __SANITIZE_ADDRESS__ /* it makes mlock(2) do nothing */
  assert_true(has_flag(secret.bytes, " lo"));
#endif
  secret_free(&secret);
  assert_null(secret.bytes);
  secret_free(&secret);
}

/* Without a right to lock memory there is a secret all the same. */
static void test_unlocked(void **state)
{
  const struct rlimit none = { 0, 0 };
  struct secret secret = SECRET_INIT;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  assert_int_equal(secret_new(1, &err, &secret), 0);
  assert_true(has_flag(secret.bytes, " dd"));
  secret_free(&secret);
}

static void test_guard(void **state)
{
  (void)state;
  secret_guard_process(true);
  assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
  secret_guard_process(false);
  assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_unlocked),
    cmocka_unit_test(test_guard),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
