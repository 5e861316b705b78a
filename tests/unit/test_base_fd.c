#include "base/fd.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_open(int fd)
{
  return fcntl(fd, F_GETFD) >= 0;
}

static void test_close_and_steal(void **state)
{
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int number = fd;

  (void)state;
  assert_int_equal(fd_steal(&fd), number);
  assert_int_equal(fd, -1);
  fd = number;
  errno = ENOTTY;
  fd_close(&fd);
  assert_int_equal(errno, ENOTTY);
  assert_int_equal(fd, -1);
  assert_false(is_open(number));
  fd_close(&fd); /* once more does nothing */
  {
    fd_autoclose int scoped = open("/dev/null", O_RDONLY | O_CLOEXEC);

    number = scoped;
    assert_true(is_open(number));
  }
  assert_false(is_open(number));
}

/* More than a socket takes at once, with a reader that is slow to begin: write(2) is short on a non-blocking end, so
 * the blocking one has to go on by itself. */
static void test_write_all_and_read_all(void **state)
{
  static char block[300000];
  buf_autofree struct buf got = BUF_INIT(sizeof block);
  int ends[2];
  pid_t child;
  int status;

  (void)state;
  for (size_t i = 0; i < sizeof block; i++)
    block[i] = (char)(i * 7 + i / 256);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(fd_write_all(ends[1], (struct span){ block, sizeof block }) == 0 ? 0 : 1);
  }
  close(ends[1]);
  assert_int_equal(fd_read_all(ends[0], &got), 0);
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(got.len, sizeof block);
  assert_memory_equal(got.data, block, sizeof block);
}

static void test_errors(void **state)
{
  buf_autofree struct buf small = BUF_INIT(3);
  buf_autofree struct buf any = BUF_INIT(4096);
  int ends[2];

  (void)state;
  sigaction(SIGPIPE, &(const struct sigaction){ .sa_handler = SIG_IGN }, NULL);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  assert_int_equal(fd_write_all(ends[1], SPAN("")), 0);
  assert_int_equal(fd_write_all(ends[1], SPAN("four")), 0);
  close(ends[1]);
  assert_int_equal(fd_read_all(ends[0], &small), -E2BIG);
  close(ends[0]);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  assert_int_equal(fd_write_all(ends[1], SPAN("x")), -EPIPE);
  close(ends[1]);
  assert_int_equal(fd_read_all(-1, &any), -EBADF);
  assert_int_equal(fd_read_file(AT_FDCWD, "/nonexistent/file", &any), -ENOENT);
  assert_int_equal(fd_read_file(AT_FDCWD, "/proc", &any), -EISDIR);
  assert_int_equal(fd_read_file(AT_FDCWD, "/proc/self/comm", &any), 0);
  assert_true(any.len > 1);
}

static void test_flags(void **state)
{
  int ends[2];
  char byte;

  (void)state;
  assert_int_equal(pipe2(ends, 0), 0);
  assert_int_equal(fd_set_cloexec(ends[0], true), 0);
  assert_int_equal(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
  assert_int_equal(fd_set_cloexec(ends[0], false), 0);
  assert_int_equal(fcntl(ends[0], F_GETFD), 0);
  assert_int_equal(fd_set_nonblock(ends[0], true), 0);
  assert_int_equal(read(ends[0], &byte, 1), -1);
  assert_int_equal(errno, EAGAIN);
  assert_int_equal(fd_set_nonblock(ends[0], false), 0);
  assert_int_equal(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
  assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
  assert_int_equal(fd_set_cloexec(-1, true), -EBADF);
  close(ends[0]);
  close(ends[1]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_close_and_steal),
    cmocka_unit_test(test_write_all_and_read_all),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_flags),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
