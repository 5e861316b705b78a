/* Theory of operation: signals.
 *
 * With a controlling terminal the command shares our process group, so what the terminal sends (Ctrl-C, Ctrl-Z,
 * hang-up) reaches it without us; the kernel marks such a signal SI_KERNEL. What somebody sends to our pid is meant
 * for the command as well, so it is passed on. Without a terminal the command has a session of its own and everything
 * is passed on. A stop signal also stops us, so that the shell sees its job stop; unless it came from inside, from a
 * program that suspends its own job and needs no copy. */
#include "run/supervise.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sys/proc.h"
#include "sys/trace.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a command gets to clean up after its time was up, before it is killed. */
#define SUPERVISE_GRACE_MS 2000

/* How often to look whether there is a command to pass a signal on to. */
#define SUPERVISE_PENDING_MS 1

/* How often to look, every 2 ms, whether the command has stopped. */
#define SUPERVISE_STOP_LOOKS 20

enum supervise_clock {
  SUPERVISE_RUNNING,
  SUPERVISE_TERMINATED, /* the time was up and SIGTERM was sent */
  SUPERVISE_KILLED,
};

struct state {
  struct supervise *supervise;
  enum supervise_clock clock;
  uint64_t deadline_ns; /* 0: none */
  bool ended;
  int status;
  sigset_t pending; /* signals to be passed on as soon as there is a command */
  bool has_pending;
};

void supervise_signals(sigset_t *set)
{
  static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
  const struct sigaction fresh = { .sa_handler = SIG_DFL };

  sigemptyset(set);
  sigaddset(set, SIGPIPE); /* our own messages may go to a pipe that nobody reads any more */
  sigaddset(set, SIGCHLD);
  sigaction(SIGCHLD, &fresh, NULL); /* a caller that ignores it would leave us nobody to wait for */
  for (size_t i = 0; i < MEM_COUNT(handled); i++) {
    struct sigaction now;

    if (sigaction(handled[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(set, handled[i]);
  }
}

static void pass_on(struct state *state, int number)
{
  pid_t command = engine_command(state->supervise->engine);

  if (command < 0) {
    sigaddset(&state->pending, number);
    state->has_pending = true;
    return;
  }
  (void)kill(command, number);
  /* In a session of its own the command's process group is orphaned, and the kernel takes SIGTSTP for nothing. */
  if (number == SIGTSTP && state->supervise->own_session)
    (void)kill(command, SIGSTOP);
}

/* What came before there was a command. */
static void pass_pending(struct state *state)
{
  if (!state->has_pending || engine_command(state->supervise->engine) < 0)
    return;
  state->has_pending = false;
  for (int number = 1; number <= 64; number++) {
    if (sigismember(&state->pending, number) == 1)
      pass_on(state, number);
  }
  sigemptyset(&state->pending);
}

static void reap(struct state *state)
{
  struct supervise *supervise = state->supervise;
  int status;
  pid_t pid;

  while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
    if (pid == supervise->engine->guard) {
      state->ended = true;
      state->status = status;
    } else if (pid == supervise->proxy->pid) {
      proxy_reaped(supervise->proxy, supervise->summary, status);
    } else if (secrets_reaped(supervise->secrets, pid, status)) {
      continue;
    } else if (supervise->trace) {
      trace_take(supervise->trace, pid, status);
    } else {
      ask_reaped(supervise->ask, pid);
    }
  }
}

/* The terminal stops the command as it stops us. The shell takes the terminal back as soon as it sees us stopped, so
 * the command should have got there first; one that handles the signal itself is not waited for long. */
static void await_stop(struct state *state)
{
  static const struct timespec pause = { .tv_nsec = 2000000 };
  pid_t command = engine_command(state->supervise->engine);

  for (int i = 0; i < SUPERVISE_STOP_LOOKS && command > 0 && proc_state(command) != 'T'; i++)
    nanosleep(&pause, NULL);
}

static void handle_signal(struct state *state, const struct signalfd_siginfo *info)
{
  int number = (int)info->ssi_signo;
  bool from_terminal = info->ssi_code == SI_KERNEL;
  bool from_inside = !from_terminal && info->ssi_pid && proc_in_other_pid_namespace((pid_t)info->ssi_pid);

  if (number == SIGCHLD) {
    reap(state);
    return;
  }
  if (number == SIGPIPE)
    return;
  if (number == SIGINT || number == SIGQUIT)
    ask_interrupt(state->supervise->ask);
  else if (number == SIGTERM || number == SIGHUP)
    ask_end(state->supervise->ask);
  else if (number == SIGCONT)
    ask_continued(state->supervise->ask);
  if (!from_terminal && !from_inside)
    pass_on(state, number);
  if (number == SIGTSTP) {
    await_stop(state);
    (void)raise(SIGSTOP);
  }
}

static void read_signals(struct state *state)
{
  struct signalfd_siginfo info;

  while (read(state->supervise->signals, &info, sizeof info) == (ssize_t)sizeof info)
    handle_signal(state, &info);
}

static void start_proxy(struct state *state)
{
  struct proxy *proxy = state->supervise->proxy;
  struct err err = ERR_INIT;

  if (proxy_start(proxy, &err) == 0)
    return;
  log_line(LOG_ERROR, "%s; the sandbox has no network", err.message);
  proxy_give_up(proxy);
}

static int earlier_ms(int a, int b)
{
  return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int wait_ms(const struct state *state)
{
  uint64_t now = clock_mono_ns();
  int asked = earlier_ms(ask_wait_ms(state->supervise->ask), secrets_wait_ms(state->supervise->secrets));

  if (state->has_pending)
    return SUPERVISE_PENDING_MS;
  if (!state->deadline_ns)
    return asked;
  if (state->deadline_ns <= now)
    return 0;
  now = (state->deadline_ns - now) / 1000000;
  return earlier_ms(asked, now > 60000 ? 60000 : (int)now + 1);
}

static void keep_time(struct state *state)
{
  if (!state->deadline_ns || clock_mono_ns() < state->deadline_ns)
    return;
  if (state->clock == SUPERVISE_RUNNING) {
    state->clock = SUPERVISE_TERMINATED;
    state->deadline_ns = clock_mono_ns() + UINT64_C(1000000) * SUPERVISE_GRACE_MS;
    ask_end(state->supervise->ask);
    pass_on(state, SIGTERM);
    pass_on(state, SIGCONT);
  } else {
    state->clock = SUPERVISE_KILLED;
    state->deadline_ns = 0;
    (void)kill(state->supervise->engine->guard, SIGKILL);
  }
}

int supervise_wait(struct supervise *supervise, bool *ret_timed_out)
{
  struct state state = { .supervise = supervise };
  struct proxy *proxy = supervise->proxy;

  sigemptyset(&state.pending);
  if (supervise->timeout_ms)
    state.deadline_ns = clock_mono_ns() + supervise->timeout_ms * UINT64_C(1000000);
  reap(&state);
  while (!state.ended) {
    struct pollfd fds[3 + CONTROL_FRONTS_MAX + SECRETS_POLL_MAX] = {
      { .fd = supervise->signals, .events = POLLIN },
      { .fd = proxy->control, .events = (short)(POLLIN | (proxy->outbox.count > 0 ? POLLOUT : 0)) },
      { .fd = ask_poll_fd(supervise->ask), .events = POLLIN },
    };
    nfds_t listening = 3 + secrets_poll(supervise->secrets, fds + 3);
    nfds_t count = listening;
    bool waiting = false;

    /* While a proxy runs it accepts by itself. */
    for (size_t i = 0; i < proxy->listener_count && proxy->pid < 0; i++)
      fds[count++] = (struct pollfd){ .fd = proxy->listeners[i], .events = POLLIN };
    for (size_t i = 0; i < proxy->publish.count && proxy->pid < 0; i++)
      fds[count++] = (struct pollfd){ .fd = proxy->publish.items[i].fd, .events = POLLIN };
    if (poll(fds, count, wait_ms(&state)) > 0) {
      for (nfds_t i = listening; i < count; i++)
        waiting |= fds[i].revents != 0;
      if (fds[1].revents & POLLOUT)
        proxy_flush(proxy);
      if (fds[1].revents & ~POLLOUT)
        proxy_read(proxy, supervise->summary);
      if (fds[2].revents)
        ask_read(supervise->ask);
      if (waiting)
        start_proxy(&state);
      if (fds[0].revents)
        read_signals(&state);
    }
    secrets_read(supervise->secrets);
    ask_expire(supervise->ask);
    pass_pending(&state);
    keep_time(&state);
  }
  *ret_timed_out = state.clock != SUPERVISE_RUNNING;
  return state.status;
}
