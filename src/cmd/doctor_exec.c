#include "cmd/doctor.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Nothing that a check starts takes a second; a machine under load gets patience. */
#define EXEC_NS (20 * UINT64_C(1000000000))
/* What dies with a killed program is dead within a tenth of a second. */
#define EXEC_KILLED_NS (5 * UINT64_C(1000000000))
#define EXEC_PAUSE_NS 5000000

struct stream {
  int fd;
  struct buf *text;
};

struct running {
  const struct doctor_exec *exec;
  struct stream streams[2]; /* output, messages */
  pid_t pid;
  uint64_t deadline;
  bool killed;
};

static void read_stream(struct stream *stream)
{
  char bytes[4096];
  ssize_t n = read(stream->fd, bytes, sizeof bytes);

  if (n > 0)
    buf_append(stream->text, (struct span){ .ptr = bytes, .len = (size_t)n });
  else if (n == 0 || errno != EINTR)
    fd_close(&stream->fd);
}

static void note_signal(struct doctor *doctor)
{
  struct signalfd_siginfo info;

  doctor->signal = read(doctor->signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : SIGTERM;
}

/* Until both streams are at their end, which they are when nobody holds them any more. */
static int read_streams(struct doctor *doctor, struct running *running)
{
  struct stream *out = &running->streams[0];
  struct stream *messages = &running->streams[1];

  while (out->fd >= 0 || messages->fd >= 0) {
    struct pollfd polls[] = { { .fd = out->fd, .events = POLLIN },
                              { .fd = messages->fd, .events = POLLIN },
                              { .fd = doctor->signals, .events = POLLIN } };
    uint64_t now = clock_mono_ns();

    if (now >= running->deadline)
      return -ETIME;
    if (poll(polls, MEM_COUNT(polls), (int)((running->deadline - now) / 1000000 + 1)) < 0) {
      if (errno != EINTR)
        return -errno;
      continue;
    }
    if (polls[2].revents) {
      note_signal(doctor);
      return -EINTR;
    }
    if (polls[0].revents)
      read_stream(out);
    if (polls[1].revents)
      read_stream(messages);
    if (running->exec->kill_after && !running->killed && out->text->data &&
        strstr(out->text->data, running->exec->kill_after)) {
      (void)kill(running->pid, SIGKILL);
      running->killed = true;
      running->deadline = clock_mono_ns() + EXEC_KILLED_NS;
    }
  }
  return 0;
}

static int reap(struct running *running, int *ret_status)
{
  static const struct timespec pause = { .tv_nsec = EXEC_PAUSE_NS };
  pid_t pid;

  while ((pid = waitpid(running->pid, ret_status, WNOHANG)) == 0) {
    if (clock_mono_ns() >= running->deadline)
      return -ETIME;
    nanosleep(&pause, NULL);
  }
  return pid < 0 ? -errno : 0;
}

static int start(const struct doctor_exec *exec, struct running *running, struct err *err)
{
  int out[2] = { -1, -1 };
  int messages[2] = { -1, -1 };
  fd_autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int r = null < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(messages, O_CLOEXEC) < 0 ? -errno : 0;
  const struct spawn_fd fds[] = { { .from = null, .to = STDIN_FILENO },
                                  { .from = out[1], .to = STDOUT_FILENO },
                                  { .from = messages[1], .to = STDERR_FILENO } };
  const struct spawn spawn = { .program = exec->program,
                               .argv = exec->argv,
                               .envp = exec->envp,
                               .fds = fds,
                               .fd_count = MEM_COUNT(fds),
                               .guard = exec->guard,
                               .new_session = true,
                               .landlock = -1,
                               .cgroup_procs = exec->cgroup_procs };

  if (r < 0)
    r = err_set_errno(err, -r, "%s: descriptors", exec->program);
  else
    r = spawn_program(&spawn, err, &running->pid);
  fd_close(&out[1]);
  fd_close(&messages[1]);
  running->streams[0].fd = out[0];
  running->streams[1].fd = messages[0];
  return r;
}

int doctor_exec(struct doctor *doctor, const struct doctor_exec *exec, struct err *err, struct buf *out,
                struct buf *messages, int *ret_status)
{
  struct running running = { .exec = exec,
                             .streams = { { .text = out }, { .text = messages } },
                             .deadline = clock_mono_ns() + EXEC_NS };
  int r = start(exec, &running, err);

  if (r == 0) {
    r = read_streams(doctor, &running);
    if (r == 0)
      r = reap(&running, ret_status);
    if (r < 0) {
      (void)kill(running.pid, SIGKILL);
      (void)waitpid(running.pid, NULL, 0);
      err_set_errno(err, -r, "%s", exec->program);
    }
  }
  fd_close(&running.streams[0].fd);
  fd_close(&running.streams[1].fd);
  return r;
}

struct span doctor_last_line(const struct buf *text)
{
  struct span rest = buf_span(text);
  struct span line;
  struct span last = SPAN("no message");

  if (!rest.len)
    return last;
  while (span_split(&rest, '\n', &line)) {
    if (line.len)
      last = line;
  }
  return last;
}
