/* Theory of operation: the self-test.
 *
 * Real sandboxes are made, by running ourselves as a user would: `sbx run ... -- sbx doctor attempt WAY TARGET`. What
 * the attempt says is half of the verdict; the other half is what can be seen from outside: the target's state, the
 * listener's queue, the process's life, the end of everything that held the output. A run that did not come to its
 * attempts proves nothing and counts as failed.
 */
#include "config.h"

#include "cmd/doctor.h"

#include "base/fd.h"
#include "cmd/doctor_place.h"
#include "sys/path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELFTEST_TEXT_BYTES (256 * 1024)
#define SELFTEST_READY "ready\n"
#define SELFTEST_WATCHED 2
/* No process inside has such a number by chance: there are not so many. */
#define SELFTEST_PID_MIN 100

enum listener {
  LISTENER_IPV4,
  LISTENER_IPV6, /* -1 where the host has none */
  LISTENER_ABSTRACT,
  LISTENER_COUNT,
};

struct selftest {
  struct doctor *doctor;
  struct doctor_place place;
  struct strv env;
  int listeners[LISTENER_COUNT];
  pid_t bait; /* a process of the host; -1 */
};

/* What a change of a file or directory cannot leave as it was. */
struct stamp {
  ino_t inode;
  off_t size;
  struct timespec changed;
};

struct trial {
  const char *name;
  const char *promise;
  const char *way;
  const char *target; /* NULL: none */
  const char *watched[SELFTEST_WATCHED]; /* paths that must be afterwards as they were; NULL: none */
  bool (*is_intact)(const struct selftest *selftest, struct err *err); /* what else can be seen; NULL: nothing */
};

static struct stamp stamp_of(const char *path)
{
  struct stat stat_buf = { .st_ino = 0 };

  if (path)
    (void)lstat(path, &stat_buf);
  return (struct stamp){ .inode = stat_buf.st_ino, .size = stat_buf.st_size, .changed = stat_buf.st_ctim };
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
  return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
         a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The caller's environment, but for what would bring his own policy, state and proxies in. */
static int make_environment(struct selftest *selftest)
{
  static const char *const left_out[] = { "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "http_proxy=", "HTTP_PROXY=",
                                          "https_proxy=",    "HTTPS_PROXY=",     "all_proxy=",  "ALL_PROXY=" };
  const struct strv *from = &selftest->doctor->facts.environment;
  int r = strv_addf(&selftest->env, "XDG_STATE_HOME=%s/state", selftest->place.base);

  if (r == 0)
    r = strv_addf(&selftest->env, "XDG_CONFIG_HOME=%s/config", selftest->place.base);
  for (size_t i = 0; i < from->count && r == 0; i++) {
    bool wanted = true;

    for (size_t j = 0; j < MEM_COUNT(left_out); j++)
      wanted &= !span_starts_with(span_of(from->items[i]), span_of(left_out[j]));
    if (wanted)
      r = strv_add(&selftest->env, from->items[i]);
  }
  return r;
}

static int run_trial(struct selftest *selftest, const struct trial *trial, const char *kill_after, struct err *err,
                     struct buf *out, struct buf *messages, int *ret_status)
{
  const char *self = selftest->doctor->self;
  const char *const words[] = { SBX_NAME,
                                "run",
                                "-q",
                                "--summary",
                                "never",
                                "--workspace",
                                selftest->place.work,
                                "--network",
                                "proxy",
                                "--home",
                                "private",
                                "--deny",
                                "sbx-doctor.invalid",
                                "--hide",
                                ".env",
                                "--read",
                                self,
                                "--",
                                self,
                                "doctor",
                                "attempt",
                                trial->way,
                                trial->target };
  strv_autofree struct strv argv = STRV_INIT;
  int r = 0;

  for (size_t i = 0; i < MEM_COUNT(words) && words[i] && r == 0; i++)
    r = strv_add(&argv, words[i]);
  if (r < 0)
    return err_set_errno(err, -r, "command");
  return doctor_exec(selftest->doctor,
                     &(struct doctor_exec){ .program = self,
                                            .argv = argv.items,
                                            .envp = selftest->env.items,
                                            .cgroup_procs = -1,
                                            .kill_after = kill_after },
                     err, out, messages, ret_status);
}

/* The first line that tells of a breach; .ptr NULL where there is none. Counts those that held. */
static struct span find_breach(const struct buf *out, size_t *ret_held)
{
  struct span rest = buf_span(out);
  struct span line;

  *ret_held = 0;
  while (rest.ptr && span_split(&rest, '\n', &line)) {
    if (span_starts_with(line, SPAN("BREACH ")))
      return line;
    *ret_held += span_starts_with(line, SPAN("held "));
  }
  return (struct span){ .ptr = NULL };
}

/* What can be seen from outside. */
static bool has_held(const struct selftest *selftest, const struct trial *trial, const struct stamp *before,
                     const struct buf *out, struct err *err)
{
  if (out->data && strstr(out->data, selftest->place.token)) {
    err_set(err, EACCES, "bytes of a file out of reach came out");
    return false;
  }
  for (size_t i = 0; i < SELFTEST_WATCHED; i++) {
    struct stamp after = stamp_of(trial->watched[i]);

    if (!same_stamp(&before[i], &after)) {
      err_set(err, EACCES, "%s was changed", trial->watched[i]);
      return false;
    }
  }
  return !trial->is_intact || trial->is_intact(selftest, err);
}

static void judge(struct selftest *selftest, const struct trial *trial)
{
  struct stamp before[SELFTEST_WATCHED] = { stamp_of(trial->watched[0]), stamp_of(trial->watched[1]) };
  buf_autofree struct buf out = BUF_INIT(SELFTEST_TEXT_BYTES);
  buf_autofree struct buf messages = BUF_INIT(SELFTEST_TEXT_BYTES);
  struct err err = ERR_INIT;
  struct span breach;
  struct span line;
  size_t held;
  int status = 0;
  int r = run_trial(selftest, trial, NULL, &err, &out, &messages, &status);

  if (r == -EINTR)
    return;
  breach = find_breach(&out, &held);
  line = doctor_last_line(&messages);
  if (breach.ptr)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial->name, NULL, "broke out: %.*s", (int)breach.len, breach.ptr);
  else if (r < 0)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial->name, NULL, "did not end: %s", err.message);
  else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || held == 0)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial->name, NULL, "no sandbox could be made: %.*s", (int)line.len,
               line.ptr);
  else if (!has_held(selftest, trial, before, &out, &err))
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial->name, NULL, "broke out: %s", err.message);
  else
    doctor_say(selftest->doctor, DOCTOR_OK, trial->name, NULL, "%s (%zu attempts)", trial->promise, held);
}

static void test_files(struct selftest *selftest)
{
  const struct doctor_place *place = &selftest->place;

  judge(selftest, &(struct trial){ .name = "self-test: files",
                                   .promise = "a file outside of the workspace can be neither read nor changed",
                                   .way = "files",
                                   .target = place->file,
                                   .watched = { place->file, place->outside } });
}

static void test_protected(struct selftest *selftest)
{
  const struct doctor_place *place = &selftest->place;

  judge(selftest, &(struct trial){ .name = "self-test: protected",
                                   .promise = "a git hook can be neither written, renamed nor replaced",
                                   .way = "protected",
                                   .target = place->hook,
                                   .watched = { place->hook, place->hooks } });
  if (selftest->doctor->signal)
    return;
  judge(selftest, &(struct trial){ .name = "self-test: hidden",
                                   .promise = "a hidden file can be neither read, written, renamed nor replaced",
                                   .way = "hidden",
                                   .target = place->hidden,
                                   .watched = { place->hidden } });
}

static int listen_on(const struct sockaddr *address, socklen_t len)
{
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  if (fd >= 0 && (bind(fd, address, len) < 0 || listen(fd, 8) < 0))
    fd_close(&fd);
  return fd;
}

/* Listens on the host's loopback, and on an abstract socket whose name tells the port. 0 or -errno. */
static int make_listeners(struct selftest *selftest, char *port, size_t size)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  struct sockaddr_un name = { .sun_family = AF_UNIX };
  socklen_t len = sizeof v4;
  int *fds = selftest->listeners;

  fds[LISTENER_IPV4] = listen_on((const struct sockaddr *)&v4, sizeof v4);
  if (fds[LISTENER_IPV4] < 0 || getsockname(fds[LISTENER_IPV4], (struct sockaddr *)&v4, &len) < 0)
    return -errno;
  snprintf(port, size, "%u", ntohs(v4.sin_port));
  v6.sin6_port = v4.sin_port;
  fds[LISTENER_IPV6] = listen_on((const struct sockaddr *)&v6, sizeof v6);
  len = (socklen_t)snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "sbx-doctor-%s", port);
  fds[LISTENER_ABSTRACT] =
      listen_on((const struct sockaddr *)&name, (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + len);
  return fds[LISTENER_ABSTRACT] < 0 ? -errno : 0;
}

static bool is_unreached(const struct selftest *selftest, struct err *err)
{
  struct pollfd polls[LISTENER_COUNT];

  for (size_t i = 0; i < LISTENER_COUNT; i++)
    polls[i] = (struct pollfd){ .fd = selftest->listeners[i], .events = POLLIN };
  if (poll(polls, LISTENER_COUNT, 0) == 0)
    return true;
  err_set(err, EACCES, "a connection came to the host's loopback");
  return false;
}

static void test_network(struct selftest *selftest)
{
  static const char name[] = "self-test: network";
  char port[8] = "";
  int r = make_listeners(selftest, port, sizeof port);

  if (r < 0)
    doctor_say(selftest->doctor, DOCTOR_FAIL, name, NULL, "no listener could be made on 127.0.0.1: %s", strerror(-r));
  else
    judge(selftest,
          &(struct trial){ .name = name,
                           .promise = "the host's loopback cannot be reached, and the proxy refuses what is not "
                                      "allowed",
                           .way = "network",
                           .target = port,
                           .is_intact = is_unreached });
  for (size_t i = 0; i < LISTENER_COUNT; i++)
    fd_close(&selftest->listeners[i]);
}

/* Waits for SIGUSR1, and ends on it. */
static void be_bait(void)
{
  sigset_t set;
  int number;

  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  (void)sigprocmask(SIG_BLOCK, &set, NULL);
  (void)sigwait(&set, &number);
  _exit(1);
}

static pid_t start_bait(void)
{
  for (;;) {
    pid_t pid = fork();

    if (pid == 0)
      be_bait();
    if (pid < 0 || pid >= SELFTEST_PID_MIN)
      return pid;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
  }
}

static bool bait_lives(const struct selftest *selftest, struct err *err)
{
  siginfo_t info = { .si_pid = 0 };

  if (waitid(P_PID, (id_t)selftest->bait, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
    return true;
  err_set(err, EACCES, "a process of the host got a signal from inside");
  return false;
}

static void test_kernel(struct selftest *selftest)
{
  static const char name[] = "self-test: kernel";
  char number[16];

  selftest->bait = start_bait();
  if (selftest->bait < 0) {
    doctor_say(selftest->doctor, DOCTOR_FAIL, name, NULL, "no process could be made: %s", strerror(errno));
    return;
  }
  snprintf(number, sizeof number, "%d", (int)selftest->bait);
  judge(selftest,
        &(struct trial){ .name = name,
                         .promise = "namespaces, mounts, terminal input and the host's processes are out of reach",
                         .way = "kernel",
                         .target = number,
                         .is_intact = bait_lives });
  (void)kill(selftest->bait, SIGKILL);
  (void)waitpid(selftest->bait, NULL, 0);
}

/* sbx is killed while processes inside, which hold its output open, mean to stay. */
static void test_death(struct selftest *selftest)
{
  const struct trial trial = { .name = "self-test: death", .way = "survive" };
  buf_autofree struct buf out = BUF_INIT(SELFTEST_TEXT_BYTES);
  buf_autofree struct buf messages = BUF_INIT(SELFTEST_TEXT_BYTES);
  struct err err = ERR_INIT;
  int status = 0;
  int r = run_trial(selftest, &trial, SELFTEST_READY, &err, &out, &messages, &status);
  struct span line = doctor_last_line(&messages);
  bool ready = out.data && strstr(out.data, SELFTEST_READY);

  if (r == -EINTR)
    return;
  if (!ready)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial.name, NULL, "no sandbox could be made: %.*s", (int)line.len,
               line.ptr);
  else if (r == -ETIME)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial.name, NULL,
               "processes inside outlived the " SBX_NAME " that was killed");
  else if (r < 0)
    doctor_say(selftest->doctor, DOCTOR_FAIL, trial.name, NULL, "%s", err.message);
  else
    doctor_say(selftest->doctor, DOCTOR_OK, trial.name, NULL, "everything inside dies with " SBX_NAME);
}

static void run_all(struct selftest *selftest)
{
  static void (*const tests[])(struct selftest *) = { test_files, test_protected, test_network, test_kernel,
                                                      test_death };

  for (size_t i = 0; i < MEM_COUNT(tests) && !selftest->doctor->signal; i++)
    tests[i](selftest);
}

void doctor_check_enforcement(struct doctor *doctor)
{
  struct selftest selftest = { .doctor = doctor, .listeners = { -1, -1, -1 }, .bait = -1 };
  fd_autoclose int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct err err = ERR_INIT;
  int r;

  if (doctor_has_failed(doctor)) {
    doctor_say(doctor, DOCTOR_FAIL, "self-test", NULL, "not made, for the faults above");
    return;
  }
  r = before < 0 ? -errno : doctor_place_make(doctor->facts.state_dir, &err, &selftest.place);
  if (r == 0)
    r = make_environment(&selftest);
  if (r == 0)
    r = chdir(selftest.place.work) < 0 ? -errno : 0;
  if (r < 0)
    doctor_say(doctor, DOCTOR_FAIL, "self-test", NULL, "its place could not be made: %s",
               err.code ? err.message : strerror(-r));
  else
    run_all(&selftest);
  if (before >= 0 && fchdir(before) < 0)
    doctor->error = -errno;
  doctor_place_remove(&selftest.place);
  strv_free(&selftest.env);
}
