/* Everything below a process stands still, whatever it does against it; it goes on as it was. */
#include "base/clock.h"
#include "base/mem.h"
#include "sys/freeze.h"
#include "sys/proc.h"
#include "unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
  atomic_uint count; /* goes up while anything runs */
  atomic_uint continued; /* how often SIGCONT was heard */
  atomic_uint begun; /* processes */
  atomic_bool ready;
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

static void spin_in_threads(struct shared *shared)
{
  pthread_t thread;

  for (int i = 0; i < 3; i++)
    pthread_create(&thread, NULL, spin_thread, shared);
  spin(shared);
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

/* The same from thread to thread. */
static void *flee_thread(void *data)
{
  struct shared *shared = data;
  pthread_t thread;

  atomic_fetch_add(&shared->count, 1);
  pthread_detach(pthread_self());
  while (pthread_create(&thread, NULL, flee_thread, shared) != 0)
    sched_yield();
  return NULL;
}

static void flee_in_threads(struct shared *shared)
{
  (void)flee_thread(shared);
  for (;;)
    pause();
}

static atomic_uint *heard;

static void hear(int number)
{
  (void)number;
  atomic_fetch_add(heard, 1);
}

/* Wakes itself up by a timer of the kernel, whoever stops it. (A slow one: SIGSTOP
 * would end one whose signal is pending just then.) */
static void wake_up(struct shared *shared)
{
  const struct sigaction action = { .sa_handler = hear };
  struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };
  struct itimerspec every = { .it_interval = { .tv_nsec = 5000000 }, .it_value = { .tv_nsec = 5000000 } };
  timer_t timer;

  heard = &shared->count;
  sigaction(SIGCONT, &action, NULL);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &every, NULL) == 0)
    spin(shared);
}

static void hear_continue(struct shared *shared)
{
  const struct sigaction action = { .sa_handler = hear };

  heard = &shared->continued;
  sigaction(SIGCONT, &action, NULL);
  spin(shared);
}

/* The parent waits in vfork(2) without end, and cannot be interrupted. */
static void lend(struct shared *shared)
{
  if (vfork() == 0)
    spin(shared);
}

static void stop_itself(struct shared *shared)
{
  raise(SIGSTOP);
  spin(shared);
}

typedef void kind(struct shared *shared);

static kind *const peaceful[] = { stop_itself, spin, hear_continue };
static kind *const hostile[] = { stop_itself, spin, spin_in_threads, headless, flee, flee_in_threads, wake_up, lend };

static void run_init(struct shared *shared, kind *const *kinds, size_t count)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t i = 0; i < count; i++) {
    pid_t pid = fork();

    if (pid == 0) {
      atomic_fetch_add(&shared->begun, 1);
      kinds[i](shared);
      _exit(0);
    }
    if (kinds[i] == stop_itself)
      waitpid(pid, NULL, WUNTRACED);
  }
  sigaction(SIGCHLD, &ignore, NULL);
  while (atomic_load(&shared->begun) < count)
    sched_yield();
  atomic_store(&shared->ready, true);
  for (;;)
    pause();
}

/* As in a sandbox: a child of ours, and below it one that everything else is below. */
static pid_t start(kind *const *kinds, size_t count, struct shared **ret_shared)
{
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t top;

  assert_true(shared != MAP_FAILED);
  top = fork();
  if (top == 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* with a test that has failed */
    if (fork() == 0)
      run_init(shared, kinds, count);
    waitpid(-1, NULL, 0);
    _exit(0);
  }
  while (!atomic_load(&shared->ready))
    sched_yield();
  *ret_shared = shared;
  return top;
}

/* With the first process of a pid namespace everything in it is killed. */
static void end(pid_t top, struct shared *shared)
{
  kill(proc_first_child(top), SIGKILL);
  assert_int_equal(waitpid(top, NULL, 0), top);
  munmap(shared, sizeof *shared);
}

static bool counts_on(struct shared *shared)
{
  static const struct timespec pause = { .tv_nsec = 20000000 };
  unsigned before = atomic_load(&shared->count);

  nanosleep(&pause, NULL);
  return atomic_load(&shared->count) != before;
}

static void await_count(struct shared *shared)
{
  unsigned before = atomic_load(&shared->count);

  while (atomic_load(&shared->count) == before)
    sched_yield();
}

/* The process inside that has stopped itself. */
static pid_t stopped_one(pid_t top)
{
  return proc_first_child(proc_first_child(top));
}

/* On a busy machine it may take longer than it may take; then nobody is held, and it can be tried again. */
static void freeze_all(struct freeze *freeze, pid_t top, pid_t group, bool *ret_has_group)
{
  struct err err = ERR_INIT;
  int r = -EAGAIN;

  for (int i = 0; r == -EAGAIN && i < 100; i++) {
    r = freeze_below(freeze, top, group, &err, ret_has_group);
    assert_true(r == 0 || !freeze_holds(freeze));
  }
  if (r < 0)
    fail_msg("%s", err.message);
}

static void test_all_stop_and_go_on(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct shared *shared;
  pid_t top = start(hostile, MEM_COUNT(hostile), &shared);
  pid_t stopped = stopped_one(top);
  bool has_group;

  (void)state;
  for (int round = 0; round < 20; round++) {
    freeze_all(&freeze, top, getpgrp(), &has_group);
    assert_true(has_group);
    assert_true(freeze_holds(&freeze));
    assert_false(counts_on(shared));
    freeze_thaw(&freeze, round % 2);
    assert_false(freeze_holds(&freeze));
    await_count(shared);
    while (proc_state(stopped) != 'T') /* what was stopped before is stopped again */
      sched_yield();
  }
  end(top, shared);
}

/* However many flee, and from one end of the list to the other. */
static void test_who_flees_is_caught(void **state)
{
  static kind *const kinds[] = { stop_itself, flee, flee, flee, flee, flee, flee, flee, flee };
  struct freeze freeze = FREEZE_INIT;
  struct shared *shared;
  pid_t top = start(kinds, MEM_COUNT(kinds), &shared);
  bool has_group;

  (void)state;
  for (int round = 0; round < 20; round++) {
    freeze_all(&freeze, top, 0, &has_group);
    assert_false(counts_on(shared));
    freeze_thaw(&freeze, false);
    await_count(shared);
  }
  end(top, shared);
}

static void test_who_goes_on_is_told(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  struct shared *shared;
  pid_t top = start(peaceful, MEM_COUNT(peaceful), &shared);
  bool has_group;

  (void)state;
  assert_int_equal(freeze_below(&freeze, top, 1, &err, &has_group), 0);
  assert_false(has_group);
  assert_int_equal(kill(stopped_one(top), SIGCONT), 0); /* it waits with the rest */
  assert_false(counts_on(shared));
  freeze_thaw(&freeze, true);
  while (!atomic_load(&shared->continued))
    sched_yield();
  end(top, shared);
}

/* The sandbox may end while it is held. */
static void test_held_processes_die(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  struct shared *shared;
  pid_t top = start(hostile, MEM_COUNT(hostile), &shared);
  bool has_group;

  (void)state;
  assert_int_equal(freeze_below(&freeze, top, 0, &err, &has_group), 0);
  end(top, shared);
  assert_true(freeze_holds(&freeze));
  freeze_thaw(&freeze, true);
}

static void test_the_tracer_dies(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  struct shared *shared;
  pid_t top = start(peaceful, MEM_COUNT(peaceful), &shared);
  pid_t tracer;
  bool has_group;

  (void)state;
  assert_int_equal(freeze_below(&freeze, top, 0, &err, &has_group), 0);
  tracer = freeze.tracer;
  kill(tracer, SIGKILL);
  await_count(shared);
  assert_false(freeze_holds(&freeze));
  assert_int_equal(waitpid(tracer, NULL, 0), tracer);
  assert_false(freeze_reaped(&freeze, top));
  assert_true(freeze_reaped(&freeze, tracer));
  assert_false(freeze_reaped(&freeze, tracer));
  freeze_thaw(&freeze, true);
  end(top, shared);
}

/* Traces a child of its own. */
static void trace_child(struct shared *shared)
{
  pid_t pid = fork();

  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGUSR1);
    spin(shared);
  }
  waitpid(pid, NULL, 0);
  ptrace(PTRACE_CONT, pid, NULL, NULL);
  for (;;)
    pause();
}

static void test_traced_by_another(void **state)
{
  static kind *const kinds[] = { trace_child };
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  struct shared *shared;
  pid_t top = start(kinds, MEM_COUNT(kinds), &shared);
  bool has_group;

  (void)state;
  await_count(shared);
  assert_int_equal(freeze_below(&freeze, top, 0, &err, &has_group), -EBUSY);
  assert_non_null(strstr(err.message, "traced by another"));
  assert_false(freeze_holds(&freeze));
  await_count(shared);
  end(top, shared);
}

/* Executes itself while other threads of it run: ptrace(2) waits for execve(2), and that for threads that we hold. */
static char word[] = "again";
static char *const again[] = { word, word, NULL };

static void *pause_thread(void *data)
{
  for (;;)
    pause();
  return data;
}

static void *execute_thread(void *data)
{
  static const struct timespec pause = { .tv_nsec = 200000 };

  (void)data;
  nanosleep(&pause, NULL);
  execv("/proc/self/exe", again);
  return NULL;
}

static int run_again(void)
{
  pthread_t thread;

  for (int i = 0; i < 8; i++)
    pthread_create(&thread, NULL, pause_thread, NULL);
  pthread_create(&thread, NULL, execute_thread, NULL);
  (void)pause_thread(NULL);
  return 0;
}

static void execute(struct shared *shared)
{
  atomic_fetch_add(&shared->count, 1);
  execv("/proc/self/exe", again);
}

static void test_execve_with_threads(void **state)
{
  static kind *const kinds[] = { spin, execute };
  struct freeze freeze = FREEZE_INIT;
  struct shared *shared;
  pid_t top = start(kinds, MEM_COUNT(kinds), &shared);
  bool has_group;

  (void)state;
  for (int round = 0; round < 10; round++) {
    struct err err = ERR_INIT;
    uint64_t before = clock_mono_ns();
    int r = freeze_below(&freeze, top, 0, &err, &has_group);

    assert_true(r == 0 || r == -EAGAIN);
    assert_true(clock_mono_ns() - before < UINT64_C(5000000000));
    printf("# round %d: %d %llu ms\n", round, r, (unsigned long long)(clock_mono_ns() - before) / 1000000);
    if (r == 0)
      assert_false(counts_on(shared));
    freeze_thaw(&freeze, false);
    await_count(shared);
  }
  end(top, shared);
}

static void test_nothing_below(void **state)
{
  struct freeze freeze = FREEZE_INIT;
  struct err err = ERR_INIT;
  bool has_group = true;
  pid_t top = fork();

  (void)state;
  if (top == 0)
    (void)pause_thread(NULL);
  assert_int_equal(freeze_below(&freeze, top, getpgrp(), &err, &has_group), 0);
  assert_false(has_group);
  freeze_thaw(&freeze, true);
  kill(top, SIGKILL);
  assert_int_equal(waitpid(top, NULL, 0), top);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_stop_and_go_on),  cmocka_unit_test(test_who_flees_is_caught),
    cmocka_unit_test(test_who_goes_on_is_told), cmocka_unit_test(test_held_processes_die),
    cmocka_unit_test(test_the_tracer_dies),     cmocka_unit_test(test_traced_by_another),
    cmocka_unit_test(test_execve_with_threads), cmocka_unit_test(test_nothing_below)
  };

  if (argc > 1 && strcmp(argv[1], word) == 0)
    return run_again();
  (void)setpgid(0, 0); /* the caller's group may be one of another pid namespace, without a number here */
  alarm(120);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
