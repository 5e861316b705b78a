/* Everything below a process stops, however it forks; it goes on as it was. */
#include "base/mem.h"
#include "sys/freeze.h"
#include "sys/proc.h"
#include "unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
  atomic_uint count; /* goes up while anything runs */
  atomic_bool ready;
  atomic_int stopped; /* a process that stopped itself before */
};

static void spin(struct shared *shared)
{
  for (;;)
    atomic_fetch_add(&shared->count, 1);
}

static void *spin_thread(void *shared)
{
  spin(shared);
  return NULL;
}

/* A process whose first thread has ended, and whose second runs: it looks like a zombie. */
static void headless(struct shared *shared)
{
  pthread_t thread;

  pthread_create(&thread, NULL, spin_thread, shared);
  pthread_exit(NULL);
}

/* Each child takes over from its parent, which ends at once. */
static void flee(struct shared *shared)
{
  for (;;) {
    atomic_fetch_add(&shared->count, 1);
    if (fork() > 0)
      _exit(0);
    sched_yield();
  }
}

static void run_init(struct shared *shared)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };
  static void (*const kinds[])(struct shared *shared) = { spin, headless, flee };
  pid_t pid;

  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigaction(SIGCHLD, &ignore, NULL);
  for (size_t i = 0; i < MEM_COUNT(kinds); i++) {
    if (fork() == 0) {
      kinds[i](shared);
      _exit(0);
    }
  }
  pid = fork();
  if (pid == 0) {
    raise(SIGSTOP);
    spin(shared);
  }
  atomic_store(&shared->stopped, pid);
  while (proc_state(pid) != 'T')
    sched_yield();
  atomic_store(&shared->ready, true);
  for (;;)
    pause();
}

/* Everything below pid is killed: one that flees is caught by stopping it first. */
static void kill_all(pid_t init)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;

  assert_int_equal(freeze_below(&freeze, init, &err), 0);
  for (size_t i = 0; i < freeze.count; i++)
    kill(freeze.pids[i], SIGKILL);
  freeze_thaw(&freeze);
  kill(init, SIGKILL);
  waitpid(init, NULL, 0);
}

static void test_all_stop_and_go_on(void **state)
{
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  pid_t init;

  (void)state;
  assert_true(shared != MAP_FAILED);
  init = fork();
  if (init == 0)
    run_init(shared);
  while (!atomic_load(&shared->ready))
    sched_yield();
  for (int round = 0; round < 20; round++) {
    unsigned before;

    assert_int_equal(freeze_below(&freeze, init, &err), 0);
    assert_true(freeze.count >= 3);
    before = atomic_load(&shared->count);
    for (int i = 0; i < 100; i++)
      sched_yield();
    assert_int_equal(atomic_load(&shared->count), before);
    for (size_t i = 0; i < freeze.count; i++) /* what was stopped before is not ours to continue */
      assert_int_not_equal(freeze.pids[i], atomic_load(&shared->stopped));
    freeze_thaw(&freeze);
    while (atomic_load(&shared->count) == before)
      sched_yield();
    assert_int_equal(proc_state(atomic_load(&shared->stopped)), 'T');
  }
  kill(atomic_load(&shared->stopped), SIGKILL);
  kill_all(init);
  munmap(shared, sizeof *shared);
}

static void test_nothing_below(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  pid_t init = fork();

  (void)state;
  if (init == 0)
    for (;;)
      pause();
  assert_int_equal(freeze_below(&freeze, init, &err), 0);
  assert_int_equal(freeze.count, 0);
  freeze_thaw(&freeze);
  kill(init, SIGKILL);
  waitpid(init, NULL, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_stop_and_go_on), cmocka_unit_test(test_nothing_below) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
