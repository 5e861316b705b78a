#include "sys/proc.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process with this name that waits for the end of a pipe; *ret_pipe is ours. */
static pid_t start_named(const char *name, bool with_child, int *ret_pipe)
{
  int ends[2];
  int ready[2];
  pid_t pid;
  char byte;

  assert_int_equal(pipe(ends), 0);
  assert_int_equal(pipe(ready), 0);
  pid = fork();
  if (pid == 0) {
    close(ends[1]);
    prctl(PR_SET_NAME, name);
    if (with_child && fork() == 0) {
      (void)!read(ends[0], &byte, 1);
      _exit(0);
    }
    (void)!write(ready[1], "r", 1);
    (void)!read(ends[0], &byte, 1);
    _exit(0);
  }
  close(ends[0]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  *ret_pipe = ends[1];
  return pid;
}

static void stop(pid_t pid, int pipe_end)
{
  close(pipe_end);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A command may call itself what it likes, fields of /proc/PID/stat included. */
static const char *const names[] = {
  "plain", "a) Z 1 (b", ") R 1 1", "((((", "))))", "with space", "new\nline", "CapEff:\t0", "S)", "", "\\n) Z",
};

static void test_state_of_odd_names(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    int end;
    pid_t pid = start_named(names[i], false, &end);
    int got = proc_state(pid);

    unit_assert_row(got == 'S' || got == 'R', names[i], "wrong state");
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    unit_assert_row(proc_state(pid) == 'T', names[i], "not stopped");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
    unit_assert_row(proc_state(pid) == 'Z', names[i], "not dead");
    stop(pid, end);
    assert_int_equal(proc_state(pid), -ENOENT);
  }
}

static void test_first_child(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    int end;
    pid_t pid = start_named(names[i], true, &end);
    pid_t child = proc_first_child(pid);
    pid_t self = proc_first_child(getpid());

    assert_true(child > 0 && child != pid);
    assert_int_equal(self, pid);
    assert_int_equal(proc_first_child(child), -ENOENT);
    stop(pid, end);
    assert_true(proc_first_child(pid) < 0);
  }
}

/* The child's number is ours, and its namespace is told from ours. */
static void test_pid_namespaces(void **state)
{
  long pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
  pid_t child = (pid_t)pid;

  (void)state;
  if (pid == 0) {
    for (;;)
      pause();
  }
  assert_true(pid > 0);
  assert_false(proc_in_other_pid_namespace(getpid()));
  assert_true(proc_in_other_pid_namespace(child));
  assert_int_equal(proc_first_child(getpid()), child);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_false(proc_in_other_pid_namespace(child)); /* gone: it cannot be told */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_state_of_odd_names),
    cmocka_unit_test(test_first_child),
    cmocka_unit_test(test_pid_namespaces),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
