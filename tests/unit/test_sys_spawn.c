/* The test program starts itself: with an argument it is the child, which reports what it finds on descriptor 1. */
#include "sys/spawn.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *self;
static char *const empty_environment[] = { NULL };

/* Reads a line of /proc/self/status and prints it. */
static void report_status(const char *label)
{
  buf_autofree struct buf text = BUF_INIT(65536);
  const char *at;

  if (fd_read_file(AT_FDCWD, "/proc/self/status", &text) == 0 && (at = strstr(text.data, label)))
    dprintf(1, "%.*s\n", (int)strcspn(at, "\n"), at);
}

static int report(void)
{
  while (read(0, &(char){ 0 }, 1) == 1) /* until the parent wants to know */
    continue;
  dprintf(1, "fds");
  for (int fd = 0; fd < 1024; fd++) {
    struct stat stat;

    if (fstat(fd, &stat) == 0)
      dprintf(1, " %d:%llu", fd, (unsigned long long)stat.st_ino);
  }
  dprintf(1, "\npid %d session %d group %d uid %u gid %u\n", (int)getpid(), (int)getsid(0), (int)getpgrp(), geteuid(),
          getegid());
  report_status("SigBlk:");
  report_status("SigIgn:");
  report_status("NoNewPrivs:");
  return 0;
}

/* Says that it lives, then answers every byte of its input; with a child of its own that holds descriptor 1 open. */
static int hold(bool with_child)
{
  char byte;

  if (with_child && fork() == 0) {
    for (;;)
      pause();
  }
  if (write(1, "r", 1) != 1)
    return 1;
  while (read(0, &byte, 1) == 1) {
    if (write(1, &byte, 1) != 1)
      return 1;
  }
  for (;;)
    pause();
}

struct child {
  pid_t pid;
  int input; /* what the child reads */
  int output; /* what the child writes */
};

static int start(const char *mode, struct spawn spawn, struct err *err, struct child *ret_child)
{
  char *const argv[] = { self, strdup(mode), NULL };
  struct spawn_fd fds[SPAWN_FDS_MAX + 3];
  int in[2];
  int out[2];
  int r;

  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  fds[0] = (struct spawn_fd){ in[0], 0 };
  fds[1] = (struct spawn_fd){ out[1], 1 };
  for (size_t i = 0; i < spawn.fd_count; i++)
    fds[i + 2] = spawn.fds[i];
  spawn.fds = fds;
  spawn.fd_count += 2;
  spawn.program = spawn.program ? spawn.program : self;
  spawn.argv = argv;
  spawn.envp = empty_environment;
  r = spawn_program(&spawn, err, &ret_child->pid);
  free(argv[1]);
  close(in[0]);
  close(out[1]);
  ret_child->input = in[1];
  ret_child->output = out[0];
  return r;
}

static void start_well(const char *mode, struct spawn spawn, struct child *ret_child)
{
  struct err err = ERR_INIT;

  if (start(mode, spawn, &err, ret_child) < 0)
    fail_msg("%s", err.message);
}

static void finish(struct child *child, struct buf *out, int *ret_status)
{
  close(child->input);
  assert_int_equal(fd_read_all(child->output, out), 0);
  close(child->output);
  assert_int_equal(waitpid(child->pid, ret_status, 0), child->pid);
}

static void run_report(struct spawn spawn, struct buf *out, pid_t *ret_pid)
{
  struct child child;
  int status;

  start_well("report", spawn, &child);
  finish(&child, out, &status);
  assert_int_equal(status, 0);
  *ret_pid = child.pid;
}

static const struct spawn plain = { .landlock = -1, .cgroup_procs = -1 };

/* The inode behind descriptor fd in a report; 0 where it is not open there. */
static unsigned long long inode_of(const struct buf *out, int fd)
{
  struct span rest = span_sub(buf_span(out), 0, span_find(buf_span(out), '\n'));
  struct span part;
  char label[16];

  snprintf(label, sizeof label, "%d:", fd);
  while (span_split(&rest, ' ', &part)) {
    uint64_t inode;

    if (span_starts_with(part, span_of(label)) &&
        num_parse_u64(span_sub(part, strlen(label), part.len), 0, UINT64_MAX, &inode) == 0)
      return inode;
  }
  return 0;
}

static size_t count_fds(const struct buf *out)
{
  struct span line = span_sub(buf_span(out), 0, span_find(buf_span(out), '\n'));
  size_t count = 0;

  for (size_t i = 0; i < line.len; i++)
    count += line.ptr[i] == ':';
  return count;
}

static unsigned long long inode_here(int fd)
{
  struct stat stat;

  assert_int_equal(fstat(fd, &stat), 0);
  return stat.st_ino;
}

/* F2: what the caller has open, close-on-exec or not, is not the program's. */
static void test_inherits_what_is_listed(void **state)
{
  buf_autofree struct buf out = BUF_INIT(65536);
  int ends[2];
  pid_t pid;
  struct spawn spawn = plain;

  (void)state;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(dup2(ends[0], 33), 33);
  assert_int_equal(dup2(ends[0], 251), 251);
  spawn.fds = &(struct spawn_fd){ ends[1], 7 };
  spawn.fd_count = 1;
  run_report(spawn, &out, &pid);
  assert_int_equal(count_fds(&out), 4); /* 0, 1, 2 and 7 */
  assert_int_equal(inode_of(&out, 7), inode_here(ends[1]));
  assert_int_equal(inode_of(&out, 33), 0);
  assert_int_equal(inode_of(&out, 251), 0);
  buf_free(&out);
  spawn.fds = &(struct spawn_fd){ 33, 33 };
  run_report(spawn, &out, &pid);
  assert_int_equal(count_fds(&out), 4);
  assert_int_equal(inode_of(&out, 33), inode_here(33));
  close(33);
  close(251);
  close(ends[0]);
  close(ends[1]);
}

/* New numbers that are old numbers of others, and numbers beyond every one in use. */
static void test_numbers_may_cross(void **state)
{
  static const struct {
    int from[3];
    int to[3];
  } rows[] = {
    { { 40, 41, 42 }, { 41, 42, 40 } },   { { 40, 41, 42 }, { 41, 40, 42 } }, { { 40, 41, 42 }, { 104, 103, 102 } },
    { { 40, 41, 42 }, { 101, 100, 41 } }, { { 40, 40, 41 }, { 41, 42, 40 } }, { { 40, 41, 42 }, { 900, 3, 4 } },
  };
  int files[3];

  (void)state;
  for (int i = 0; i < 3; i++) {
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    files[i] = dup3(ends[0], 40 + i, O_CLOEXEC);
    assert_int_equal(files[i], 40 + i);
    close(ends[0]);
    close(ends[1]);
  }
  for (size_t row = 0; row < MEM_COUNT(rows); row++) {
    buf_autofree struct buf out = BUF_INIT(65536);
    struct spawn_fd fds[3];
    struct spawn spawn = plain;
    pid_t pid;

    for (size_t i = 0; i < 3; i++)
      fds[i] = (struct spawn_fd){ rows[row].from[i], rows[row].to[i] };
    spawn.fds = fds;
    spawn.fd_count = 3;
    run_report(spawn, &out, &pid);
    for (size_t i = 0; i < 3; i++)
      assert_int_equal(inode_of(&out, fds[i].to), inode_here(fds[i].from));
    assert_int_equal(count_fds(&out), 6);
  }
  for (int i = 0; i < 3; i++)
    close(files[i]);
}

/* What is blocked or handled here is not so in the program; what the caller was told to ignore stays ignored, as
 * nohup(1) wants it, but not SIGCHLD. */
static void test_signals_and_privilege(void **state)
{
  buf_autofree struct buf out = BUF_INIT(65536);
  const struct sigaction ignore = { .sa_handler = SIG_IGN };
  const struct sigaction usual = { .sa_handler = SIG_DFL };
  struct child child;
  sigset_t blocked;
  sigset_t before;
  sigset_t after;
  int status;

  (void)state;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGRTMAX);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  for (int number = 1; number <= 64; number++)
    (void)sigaction(number, number == SIGHUP || number == SIGCHLD ? &ignore : &usual, NULL);
  start_well("report", plain, &child);
  (void)sigaction(SIGHUP, &usual, NULL);
  (void)sigaction(SIGCHLD, &usual, NULL);
  finish(&child, &out, &status);
  assert_int_equal(status, 0);
  assert_non_null(strstr(out.data, "SigBlk:\t0000000000000000\n"));
  /* libc keeps 32 and 33 for itself; whoever started us by posix_spawn(3) may have left them ignored. */
  assert_true(strstr(out.data, "SigIgn:\t0000000000000001\n") || strstr(out.data, "SigIgn:\t0000000180000001\n"));
  assert_non_null(strstr(out.data, "NoNewPrivs:\t1\n"));
  sigprocmask(SIG_SETMASK, &before, &after); /* ours are as they were */
  assert_true(sigismember(&after, SIGTERM) && sigismember(&after, SIGRTMAX) && !sigismember(&after, SIGINT));
}

static void test_session(void **state)
{
  for (int session = 0; session < 2; session++) {
    buf_autofree struct buf out = BUF_INIT(65536);
    struct spawn spawn = plain;
    char expected[128];
    pid_t pid;

    (void)state;
    spawn.new_session = session;
    run_report(spawn, &out, &pid);
    snprintf(expected, sizeof expected, "pid %d session %d group %d uid %u gid %u\n", (int)pid,
             (int)(session ? pid : getsid(0)), (int)(session ? pid : getpgrp()), geteuid(), getegid());
    unit_assert_row(strstr(out.data, expected) != NULL, expected, out.data);
  }
}

static void expect_byte(int fd, char expected)
{
  char byte = 0;

  assert_int_equal(read(fd, &byte, 1), 1);
  assert_int_equal(byte, expected);
}

/* The guard is pid 1 of a namespace of its own, as our own user; it ignores signals, and takes all below it along. */
static void test_guard(void **state)
{
  static const int sent[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGABRT, SIGTSTP };
  buf_autofree struct buf out = BUF_INIT(65536);
  struct spawn spawn = plain;
  struct child child;
  char expected[64];
  pid_t pid;
  int status;

  (void)state;
  spawn.guard = true;
  run_report(spawn, &out, &pid);
  snprintf(expected, sizeof expected, "uid %u gid %u\n", geteuid(), getegid());
  assert_non_null(strstr(out.data, "\npid 1 session "));
  assert_non_null(strstr(out.data, expected));
  assert_true(pid > 1);
  buf_free(&out);

  start_well("hold+", spawn, &child);
  expect_byte(child.output, 'r');
  for (size_t i = 0; i < MEM_COUNT(sent); i++)
    assert_int_equal(kill(child.pid, sent[i]), 0);
  assert_int_equal(write(child.input, "x", 1), 1);
  expect_byte(child.output, 'x');
  assert_int_equal(kill(child.pid, SIGKILL), 0);
  finish(&child, &out, &status); /* ends only when its child, which holds the pipe as well, has died */
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* P6: SIGKILL of the caller kills the program. The pipe's end comes when nobody has it any more. */
static void test_dies_with_the_caller(void **state)
{
  for (int guard = 0; guard < 2; guard++) {
    buf_autofree struct buf out = BUF_INIT(64);
    int alive[2];
    pid_t middle;

    (void)state;
    assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
    middle = fork();
    if (middle == 0) {
      struct spawn spawn = plain;
      struct child child;
      struct err err = ERR_INIT;

      close(alive[0]);
      spawn.guard = guard;
      spawn.fds = &(struct spawn_fd){ alive[1], 9 };
      spawn.fd_count = 1;
      if (start(guard ? "hold+" : "hold", spawn, &err, &child) < 0 || read(child.output, &(char){ 0 }, 1) != 1)
        _exit(1);
      (void)!write(alive[1], "r", 1);
      for (;;)
        pause();
    }
    close(alive[1]);
    expect_byte(alive[0], 'r');
    assert_int_equal(kill(middle, SIGKILL), 0);
    assert_int_equal(waitpid(middle, NULL, 0), middle);
    assert_int_equal(fd_read_all(alive[0], &out), 0);
    assert_int_equal(out.len, 0);
    close(alive[0]);
  }
}

static void expect_failure(struct spawn spawn, int error, const char *part)
{
  struct err err = ERR_INIT;
  struct child child = { .pid = -7 };
  int r = start("report", spawn, &err, &child);

  close(child.input);
  close(child.output);
  unit_assert_row(r == error, part, err.message);
  unit_assert_row(strstr(err.message, part) != NULL, part, err.message);
  assert_int_equal(child.pid, -7);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left behind */
  assert_int_equal(errno, ECHILD);
}

static void test_failures(void **state)
{
  static struct spawn_fd bad[] = { { 999, 5 } };
  static struct spawn_fd bad_in_place[] = { { 999, 999 } };
  fd_autoclose int unwritable = open("/dev/null", O_RDONLY | O_CLOEXEC);

  (void)state;
  for (int guard = 0; guard < 2; guard++) {
    struct spawn spawn = plain;

    spawn.guard = guard;
    spawn.program = "/nonexistent/program";
    expect_failure(spawn, -ENOENT, "/nonexistent/program");
    spawn.program = "/etc/passwd";
    expect_failure(spawn, -EACCES, "execve");
    spawn.program = NULL;
    spawn.fds = bad;
    spawn.fd_count = 1;
    expect_failure(spawn, -EBADF, "descriptors");
    spawn.fds = bad_in_place;
    expect_failure(spawn, -EBADF, "descriptors");
    spawn.fd_count = 0;
    spawn.cgroup_procs = unwritable;
    expect_failure(spawn, -EBADF, "cgroup");
  }
}

/* A start that fails in moving the pipe over which it would say so. */
static void test_failure_is_reported(void **state)
{
  static struct spawn_fd beyond[] = { { 1, 500 } };
  static struct spawn_fd many[SPAWN_FDS_MAX + 1];
  struct spawn spawn = plain;
  struct rlimit old;
  struct rlimit low;

  (void)state;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  low = (struct rlimit){ .rlim_cur = 400, .rlim_max = old.rlim_max };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
  spawn.fds = beyond;
  spawn.fd_count = 1;
  expect_failure(spawn, -EINVAL, "descriptors");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  spawn.fds = many;
  spawn.fd_count = MEM_COUNT(many);
  expect_failure(spawn, -E2BIG, "descriptors");
}

static void test_joins_the_cgroup(void **state)
{
  buf_autofree struct buf out = BUF_INIT(65536);
  struct spawn spawn = plain;
  int ends[2];
  pid_t pid;

  (void)state;
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  spawn.cgroup_procs = ends[1];
  run_report(spawn, &out, &pid);
  close(ends[1]);
  expect_byte(ends[0], '0'); /* "the writer" */
  assert_int_equal(read(ends[0], &(char){ 0 }, 1), 0);
  close(ends[0]);
}

static void test_close_inherited(void **state)
{
  int keep[2];

  (void)state;
  keep[0] = dup2(0, 70);
  keep[1] = dup2(0, 71);
  assert_int_equal(dup2(0, 72), 72);
  assert_int_equal(spawn_close_inherited(keep, 1), 0);
  assert_int_equal(fcntl(70, F_GETFD), 0);
  assert_int_equal(fcntl(71, F_GETFD), FD_CLOEXEC);
  assert_int_equal(fcntl(72, F_GETFD), FD_CLOEXEC);
  assert_int_equal(fcntl(2, F_GETFD), 0);
  close(72);
  assert_int_equal(spawn_close_inherited((const int[]){ 72 }, 1), -EBADF);
  close(70);
  close(71);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_inherits_what_is_listed),
    cmocka_unit_test(test_numbers_may_cross),
    cmocka_unit_test(test_signals_and_privilege),
    cmocka_unit_test(test_session),
    cmocka_unit_test(test_guard),
    cmocka_unit_test(test_dies_with_the_caller),
    cmocka_unit_test(test_failures),
    cmocka_unit_test(test_failure_is_reported),
    cmocka_unit_test(test_joins_the_cgroup),
    cmocka_unit_test(test_close_inherited),
  };
  int failed;

  if (argc > 1 && strcmp(argv[1], "report") == 0)
    return report();
  if (argc > 1)
    return hold(strcmp(argv[1], "hold+") == 0);
  self = realpath(argv[0], NULL);
  failed = self ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
  free(self);
  return failed;
}
