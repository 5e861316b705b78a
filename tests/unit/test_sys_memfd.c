#include "sys/memfd.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_contents_and_seals(void **state)
{
  static const char text[] = "policy\0text";
  buf_autofree struct buf got = BUF_INIT(64);
  fd_autoclose int fd = memfd_sealed("name", (struct span){ text, sizeof text });
  fd_autoclose int again = -1;
  char path[64];

  (void)state;
  assert_true(fd >= 0);
  assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
  assert_int_equal(fd_read_all(fd, &got), 0); /* from the beginning */
  assert_int_equal(got.len, sizeof text);
  assert_memory_equal(got.data, text, sizeof text);
  assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  assert_int_equal(pwrite(fd, "x", 1, 0), -1);
  assert_int_equal(ftruncate(fd, 0), -1);
  assert_int_equal(ftruncate(fd, 4096), -1);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, 0), -1);
  assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* opened anew it is as sealed */
  again = open(path, O_RDWR | O_CLOEXEC);
  assert_true(again >= 0);
  assert_int_equal(write(again, "x", 1), -1);
  assert_int_equal(errno, EPERM);
}

static void test_empty(void **state)
{
  fd_autoclose int fd = memfd_sealed("empty", SPAN(""));
  char byte;

  (void)state;
  assert_true(fd >= 0);
  assert_int_equal(read(fd, &byte, 1), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_contents_and_seals), cmocka_unit_test(test_empty) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
