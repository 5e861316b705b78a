#include "sys/scm.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct pair {
  int ends[2];
};

static int open_pair(void **state)
{
  struct pair *pair = malloc(sizeof *pair);

  *state = pair;
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->ends);
}

static int close_pair(void **state)
{
  struct pair *pair = *state;

  fd_close(&pair->ends[0]);
  fd_close(&pair->ends[1]);
  free(pair);
  return 0;
}

/* How many descriptors the process has. */
static size_t count_fds(void)
{
  size_t count = 0;

  for (int fd = 0; fd < 1024; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static bool is_same_file(int a, int b)
{
  struct stat left;
  struct stat right;

  return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_ino == right.st_ino && left.st_dev == right.st_dev;
}

static void test_round_trip(void **state)
{
  const struct pair *pair = *state;
  char bytes[16] = "";

  for (size_t count = 0; count <= SCM_FDS_MAX; count += count < 3 ? 1 : 61) {
    int sent[SCM_FDS_MAX];
    int got[SCM_FDS_MAX];
    size_t room = SCM_FDS_MAX;
    int pipe_ends[2];

    assert_int_equal(pipe2(pipe_ends, 0), 0);
    for (size_t i = 0; i < count; i++)
      sent[i] = pipe_ends[i % 2];
    assert_int_equal(scm_send(pair->ends[0], SPAN("a\0b"), sent, count), 0);
    assert_int_equal(scm_recv(pair->ends[1], bytes, sizeof bytes, got, &room), 3);
    assert_memory_equal(bytes, "a\0b", 3);
    assert_int_equal(room, count);
    for (size_t i = 0; i < count; i++) {
      assert_true(is_same_file(got[i], sent[i]));
      assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
      fd_close(&got[i]);
    }
    fd_close(&pipe_ends[0]);
    fd_close(&pipe_ends[1]);
  }
}

/* More than there is room for: refused, and nothing stays open. */
static void test_too_many(void **state)
{
  const struct pair *pair = *state;
  const int sent[] = { 0, 0, 0, 0 };
  char bytes[16];
  size_t before = count_fds();

  for (size_t room = 0; room < MEM_COUNT(sent); room++) {
    int got[MEM_COUNT(sent)];
    size_t count = room;

    assert_int_equal(scm_send(pair->ends[0], SPAN("x"), sent, MEM_COUNT(sent)), 0);
    assert_int_equal(scm_recv(pair->ends[1], bytes, sizeof bytes, got, &count), -EMSGSIZE);
    assert_int_equal(count_fds(), before);
  }
}

/* A message that does not fit is no message, and its descriptors are closed. */
static void test_cut_message(void **state)
{
  const struct pair *pair = *state;
  const int sent[] = { 0 };
  int got[1];
  size_t count = 1;
  size_t before = count_fds();
  char bytes[3];

  assert_int_equal(scm_send(pair->ends[0], SPAN("four"), sent, 1), 0);
  assert_int_equal(scm_recv(pair->ends[1], bytes, sizeof bytes, got, &count), -EMSGSIZE);
  assert_int_equal(count_fds(), before);
}

static void test_errors(void **state)
{
  struct pair *pair = *state;
  const int many[SCM_FDS_MAX + 1] = { 0 };
  static char block[65536];
  char bytes[4];
  size_t count = 0;
  int r;

  assert_int_equal(scm_send(pair->ends[0], SPAN(""), NULL, 0), -EINVAL);
  assert_int_equal(scm_send(pair->ends[0], SPAN("x"), many, MEM_COUNT(many)), -EINVAL);
  assert_int_equal(scm_send(pair->ends[0], SPAN("x"), (const int[]){ -1 }, 1), -EBADF);
  assert_int_equal(scm_recv(pair->ends[1], bytes, sizeof bytes, NULL, &count), -EAGAIN);
  while ((r = scm_send(pair->ends[0], (struct span){ block, sizeof block }, NULL, 0)) == 0)
    continue;
  assert_int_equal(r, -EAGAIN);
  fd_close(&pair->ends[0]);
  assert_int_equal(scm_send(pair->ends[1], SPAN("x"), NULL, 0), -EPIPE); /* and no SIGPIPE */
}

static void test_end_of_file(void **state)
{
  struct pair *pair = *state;
  char bytes[4];
  size_t count = 0;

  fd_close(&pair->ends[0]);
  assert_int_equal(scm_recv(pair->ends[1], bytes, sizeof bytes, NULL, &count), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_round_trip), TEST(test_too_many), TEST(test_cut_message), TEST(test_errors), TEST(test_end_of_file),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
