#include "config.h"

#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "run/ask.h"
#include "run/audit_file.h"
#include "run/credential_file.h"
#include "run/late.h"
#include "run/nss_store.h"
#include "run/passing.h"
#include "run/program.h"
#include "run/proxy.h"
#include "run/publish.h"
#include "run/secrets.h"
#include "run/summary.h"
#include "run/supervise.h"
#include "sys/path.h"
#include "sys/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define NOT_EXECUTED_BYTES (32 * 1024)

/* The directory that stands for hidden ones. */
static int make_closed(const struct facts *facts, struct err *err, char **ret_path)
{
  int r = path_make_all(facts->state_dir, err);

  if (r < 0)
    return err_wrap(err, "state directory");
  *ret_path = path_join(facts->state_dir, "closed");
  if (!*ret_path)
    return err_set(err, ENOMEM, "out of memory");
  if ((mkdir(*ret_path, 0) < 0 && errno != EEXIST) || chmod(*ret_path, 0) < 0)
    return err_set_errno(err, errno, "state directory: %s", *ret_path);
  return 0;
}

/* Directories of ours that the plan mounts, and the mount points in them. */
static int prepare_home(const struct plan *plan, struct err *err)
{
  int r = plan->private_home ? path_make_all(plan->private_home, err) : 0;

  for (size_t i = 0; i < plan->own_dirs.count && r == 0; i++)
    r = path_make_all(plan->own_dirs.items[i], err);
  for (size_t i = 0; i < plan->private_mounts.count && r == 0; i++)
    r = path_make_below(plan->private_home, plan->private_mounts.items[i], 0600, err);
  return r < 0 ? err_wrap(err, "own directories") : 0;
}

/* A short random name for the run, for the audit. */
static void make_run_id(char *id, size_t size)
{
  uint32_t noise = 0;

  if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) < 0)
    noise = (uint32_t)clock_mono_ns();
  snprintf(id, size, "%d-%08x", (int)getpid(), noise);
}

/* The terminal as it was before the run, when we stand in its foreground. */
struct terminal {
  int fd; /* -1: none, or not ours to mend */
  struct termios modes;
};

static struct terminal open_terminal(bool there)
{
  struct terminal terminal = { .fd = there ? open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC) : -1 };

  if (terminal.fd >= 0 && (tcgetpgrp(terminal.fd) != getpgrp() || tcgetattr(terminal.fd, &terminal.modes) < 0))
    fd_close(&terminal.fd);
  return terminal;
}

/* A shell inside makes its jobs the foreground and may end without giving it back; a program that was killed leaves the
 * terminal raw. */
static void restore_terminal(struct terminal *terminal, int exit_status)
{
  sigset_t output;

  if (terminal->fd < 0)
    return;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU); /* from the background it would stop us */
  sigprocmask(SIG_BLOCK, &output, NULL);
  if (tcgetpgrp(terminal->fd) != getpgrp())
    (void)tcsetpgrp(terminal->fd, getpgrp());
  if (exit_status > 128 || exit_status == RUN_EXIT_TIMEOUT)
    (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
  fd_close(&terminal->fd);
}

int run_prepare(const struct run_request *request, struct err *err, struct run *ret_run)
{
  struct run run = RUN_INIT;
  struct engine_inputs inputs = { .keep_fds = request->keep_fds,
                                  .keep_count = request->keep_count,
                                  .file_count = request->plan->data_max,
                                  .late_count = request->plan->late_max };
  int r = limits_prepare(request->plan, err, &run.limits);

  inputs.cgroup_procs = run.limits.procs_fd;
  if (r == 0)
    r = engine_prepare(request->plan, &inputs, err, &run.engine);
  if (r < 0) {
    run_abandon(&run);
    return r;
  }
  *ret_run = run;
  return 0;
}

void run_abandon(struct run *run)
{
  engine_abort(&run->engine);
  limits_release(&run->limits);
}

/* What is there from the making of the sandbox to the end of the command. */
struct session {
  bool open;
  struct proxy proxy;
  struct ask ask;
  struct secrets secrets;
  struct summary summary;
  char run_id[CONTROL_RUN_ID_BYTES];
};

static int open_session(const struct run_request *request, struct engine_run *run, struct publish *publish, int audit,
                        struct err *err, struct session *session)
{
  struct proxy *proxy = &session->proxy;
  int r = request->plan->tls
              ? secrets_open(&session->secrets, request->policy, request->facts, proxy_secret, proxy, err)
              : 0;

  if (r < 0)
    return r;
  make_run_id(session->run_id, sizeof session->run_id);
  ask_open(&session->ask, &request->ask, run->guard, proxy_answer, proxy);
  session->open = true;
  *proxy = (struct proxy)PROXY_INIT;
  proxy->ask = &session->ask;
  proxy->secrets = request->plan->tls ? &session->secrets : NULL;
  proxy->request = request;
  proxy->run_id = session->run_id;
  proxy->audit = audit;
  proxy->listeners = run->listeners;
  proxy->listener_count = run->listener_count;
  proxy->publish = *publish;
  publish->count = 0; /* they are the proxy's */
  proxy->netns = &run->netns;
  proxy->has_v6 = run->has_v6;
  return 0;
}

static void close_session(struct session *session)
{
  if (!session->open)
    return;
  ask_close(&session->ask);
  proxy_stop(&session->proxy, &session->summary);
  proxy_free(&session->proxy);
  secrets_close(&session->secrets);
  session->open = false;
}

/* A browser that does not trust the CA is no reason not to start. */
static void tell_no_database(const char *certutil, const struct err *err)
{
  log_line(LOG_WARNING, "TLS: %s: %s; browsers inside will not trust the connections that are terminated", certutil,
           err->message);
}

/* certutil takes its time to get ready; so it is started first of all. */
static void begin_database(const struct plan *plan, struct nss_store *nss)
{
  struct err err = ERR_INIT;

  if (!plan->certutil || nss_store_begin(plan->certutil, &err, nss) == 0)
    return;
  tell_no_database(plan->certutil, &err);
  nss_store_free(nss);
}

static void finish_database(const struct plan *plan, struct span certificate, struct nss_store *nss)
{
  struct err err = ERR_INIT;

  if (nss->pid > 0 && nss_store_finish(nss, certificate, &err) < 0)
    tell_no_database(plan->certutil, &err);
}

/* Where TLS is terminated: the proxy makes a CA, and the sandbox is not whole without its certificate. */
static int start_proxy(const struct run_request *request, struct engine_run *run, struct nss_store *nss,
                       struct err *err, struct session *session)
{
  late_autofree struct late late = LATE_INIT;
  int r = proxy_start(&session->proxy, err);

  if (r == 0 && credential_file_wanted(request->plan))
    r = secrets_gather(&session->secrets, err);
  if (r == 0)
    r = proxy_await(&session->proxy, &session->summary, err);
  if (r == 0)
    finish_database(request->plan, span_of(session->proxy.certificate), nss);
  if (r == 0)
    r = late_make(request, span_of(session->proxy.certificate), nss, &session->secrets, err, &late);
  return r < 0 ? r : engine_complete(request->plan, late.texts, err, run);
}

/* Everything up to the start of the command. The caller closes the session, also after a failure. */
static int start(const struct run_request *request, struct run *run, struct publish *publish, int audit,
                 struct err *err, struct session *session)
{
  const struct plan_limits *limits = &request->plan->limits;
  nss_store_autofree struct nss_store nss = NSS_STORE_INIT;
  mem_autofree char *closed = NULL;
  int r = make_closed(request->facts, err, &closed);

  if (r == 0)
    begin_database(request->plan, &nss);

  if (r == 0)
    r = prepare_home(request->plan, err);
  if (r == 0)
    r = passing_make(request->plan, request->facts, err, &run->passing_lock);
  if (r == 0 && (limits->memory_bytes || limits->cpu_milli || limits->pids))
    log_line(LOG_DETAIL, "limits are held by %s", limits_means(&run->limits));
  if (r == 0)
    r = engine_start(request->plan, closed, err, &run->engine);
  if (r == 0)
    r = open_session(request, &run->engine, publish, audit, err, session);
  if (r == 0 && request->plan->tls)
    r = start_proxy(request, &run->engine, &nss, err, session);
  if (r == 0)
    r = engine_settle(request->plan, &run->engine, err);
  if (r == 0)
    r = limits_apply(request->plan, &run->limits, run->engine.init, err);
  if (r == 0)
    r = request->trace ? trace_attach(request->trace, run->engine.init, err) : 0;
  if (r == 0)
    r = engine_release(&run->engine, err);
  return r;
}

/* Whether path still leads to where it led. */
static void tell_link(const char *path, const char *real)
{
  path_object_autofree struct path_object now = { .real = NULL };

  if (path_resolve(path, &now) < 0 || strcmp(now.real, real) != 0)
    log_line(LOG_WARNING, "%s, a protected name, led to %s when the command started and no longer does: look at it",
             path, real);
}

/* Whether the directory above was a mount point or read-only, so that nothing inside could rename it. */
static bool is_pinned(const struct plan *plan, const char *path)
{
  mem_autofree char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path));

  for (size_t i = plan->ops.count; dir && i > 0; i--) {
    const struct plan_op *op = &plan->ops.items[i - 1];

    if (op->stage < PLAN_STAGE_PROTECT && path_is_within(dir, op->target))
      return op->kind != PLAN_BIND_RW || strcmp(op->target, dir) == 0;
  }
  return true;
}

/* A mask or a read-only mount is tied to the object under a name. When somebody outside puts another object there (an
 * editor that saves by renaming, `git config`), the kernel takes the mount away in every namespace. Nothing inside can
 * do that, and nothing here can prevent it; but it must not pass in silence. */
static void tell_replaced(const struct plan *plan)
{
  for (size_t i = 0; i + 1 < plan->links.count; i += 2)
    tell_link(plan->links.items[i], plan->links.items[i + 1]);
  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];
    bool hidden = op->stage == PLAN_STAGE_HIDE || op->kind == PLAN_TMPFS || op->late == PLAN_LATE_CREDENTIAL;
    bool guarded = hidden || (op->stage == PLAN_STAGE_PROTECT && op->kind == PLAN_BIND_RO);
    path_object_autofree struct path_object now = { .real = NULL };

    if (!guarded || !op->inode)
      continue;
    if (path_resolve(op->target, &now) == 0 && now.inode == op->inode && now.device == op->device)
      continue;
    /* What a pattern has found may have gone elsewhere with its directory, and is masked there. */
    if (!is_pinned(plan, op->target) && now.real)
      log_line(LOG_WARNING,
               "%s is another file than the one that was hidden when the command started; unless a directory above it "
               "was renamed inside, it was replaced from outside, and from then on no longer hidden inside",
               op->target);
    else if (is_pinned(plan, op->target))
      log_line(LOG_WARNING, "%s was replaced from outside during the run; from then on it was no longer %s inside",
               op->target, hidden ? "hidden" : "protected");
  }
}

/* The engine gave up after it was released: over the program, or over the last steps of the isolation (P1). It has no
 * word for the difference, so we look whether the program explains it. */
static int tell_not_executed(const struct plan *plan)
{
  buf_autofree struct buf why = BUF_INIT(NOT_EXECUTED_BYTES);

  if (program_is_broken(plan, &why) && why.data) {
    log_line(LOG_ERROR, "%s: could not be executed inside: %s", plan->program, why.data);
    return RUN_EXIT_NOT_EXECUTABLE;
  }
  log_line(LOG_ERROR,
           "isolation: the sandbox was not finished, and %s was not started (the cause stands above); "
           "`" SBX_NAME " doctor` tells more",
           plan->program);
  return RUN_EXIT_FAILED;
}

static int report_end(const struct run_request *request, struct engine_run *run, int status, bool timed_out,
                      bool *ret_started)
{
  int exit_status = RUN_EXIT_FAILED;
  bool executed = engine_finish(run, status, &exit_status);

  *ret_started = executed || timed_out || exit_status > 128;
  if (timed_out) {
    log_line(LOG_NOTICE, "the command was ended after its time limit (limits.timeout)");
    return RUN_EXIT_TIMEOUT;
  }
  if (executed || exit_status > 128) /* or a signal was quicker than the command's execve */
    return exit_status;
  return tell_not_executed(request->plan);
}

static int run_started(const struct run_request *request, struct engine_run *run, struct session *session, int signals,
                       bool *ret_started)
{
  struct supervise supervise = { .engine = run,
                                 .proxy = &session->proxy,
                                 .summary = &session->summary,
                                 .ask = &session->ask,
                                 .secrets = &session->secrets,
                                 .trace = request->trace,
                                 .timeout_ms = request->plan->limits.timeout_ms,
                                 .own_session = request->plan->new_session,
                                 .signals = signals };
  bool timed_out;
  int status = supervise_wait(&supervise, &timed_out);

  close_session(session);
  status = report_end(request, run, status, timed_out, ret_started);
  tell_replaced(request->plan);
  summary_print(&session->summary, request->summary, status, session->run_id);
  return status;
}

int run_command(const struct run_request *request, struct run *run, bool *ret_started)
{
  struct err err = ERR_INIT;
  struct terminal terminal = open_terminal(request->facts->terminal);
  struct session session = { .open = false, .secrets = SECRETS_INIT, .summary = SUMMARY_INIT };
  publish_autoclose struct publish publish = PUBLISH_INIT;
  sigset_t handled;
  fd_autoclose int signals = -1;
  fd_autoclose int audit = -1;
  int status = RUN_EXIT_FAILED;

  *ret_started = false;
  supervise_signals(&handled);
  sigprocmask(SIG_BLOCK, &handled, NULL);
  signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0 || (audit_is_named(request) && (audit = audit_file_open(request, &err)) < 0) ||
      publish_listen(request->plan, &err, &publish) < 0 || start(request, run, &publish, audit, &err, &session) < 0)
    log_line(LOG_ERROR, "%s", err.code ? err.message : "signalfd failed");
  else
    status = run_started(request, &run->engine, &session, signals, ret_started);
  close_session(&session);
  run_abandon(run);
  summary_free(&session.summary);
  passing_remove(request->plan, &run->passing_lock);
  restore_terminal(&terminal, status);
  return status;
}
