/* Theory of operation
 *
 * sbx starts this program on the first connection of a run, with its control socket as descriptor 3 (sys/control.h).
 * main() calls the stages in order; nothing is read from the sandbox before the last of them is done.
 *
 *   1. confine_start      nothing of the caller is left but descriptors 0-3
 *   2. receive            START: the policy, the audit file, the listeners; PARENTS; PLACEHOLDERS
 *   3. confine_rings      before libuv looks for io_uring
 *   4. set up             every file is read and every object made that needs the file system: policy, resolver, loop,
 *                         and what terminates TLS in sbx-proxy-tls
 *   5. confine_privilege, confine_filter
 *   6. CA and READY, run  until sbx closes the control socket
 */
#include "config.h"

#include "base/fd.h"
#include "base/log.h"
#include "policy/decide.h"
#include "policy/limits.h"
#include "policy/validate.h"
#include "proxy/ask.h"
#include "proxy/confine.h"
#include "proxy/conn.h"
#include "proxy/inside.h"
#include "proxy/listener.h"
#include "proxy/notify.h"
#include "proxy/refused.h"
#include "proxy/stub.h"
#include "proxy/terminator.h"
#include "proxy/values.h"
#include "sys/control.h"
#include "sys/scm.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Descriptors beside those of connections: standard, control, audit, listeners, the loop's, the resolver's. */
#define OWN_DESCRIPTORS 256
#define FDS_PER_CONNECTION 2
#define FDS_PER_LISTENER 2 /* that is made for a name: IPv4 and IPv6 */
#define END_MS 400 /* for the audit's reader, and for sbx, which waits for the end of this program longer than both */

struct program {
  struct control_start start;
  int fds[CONTROL_FRONTS_MAX + 2];
  size_t fd_count;
  struct policy *policy;
  struct proxy proxy;
  bool ending; /* sbx has closed its direction; it reads what is left to be told */
};

/* Answers of sbx, and its end. */
static void read_control(struct program *program)
{
  union {
    uint32_t type;
    struct control_made made;
    struct control_answer answer;
    struct control_secret secret;
  } message = { .type = 0 };
  int fds[2];
  size_t count = MEM_COUNT(fds);
  ssize_t n = scm_recv(CONTROL_FD, &message, sizeof message, fds, &count);

  if (n == 0 || (n < 0 && n != -EAGAIN && n != -EMSGSIZE)) {
    loop_stop(program->proxy.loop);
    return;
  }
  if (n < 0)
    return;
  if ((size_t)n == sizeof message.made && message.type == CONTROL_MADE) {
    inside_answer(program->proxy.inside, message.made.error, fds, count);
    return;
  }
  if ((size_t)n == sizeof message.answer && message.type == CONTROL_ANSWER)
    ask_answer(program->proxy.ask, &message.answer);
  if (n >= (ssize_t)offsetof(struct control_secret, value) && message.type == CONTROL_SECRET &&
      (size_t)n == offsetof(struct control_secret, value) + message.secret.len && program->proxy.values)
    values_answer(program->proxy.values, &message.secret);
  mem_wipe(&message, sizeof message);
  for (size_t i = 0; i < count; i++)
    fd_close(&fds[i]);
}

static void on_control(void *data, unsigned events)
{
  struct program *program = data;

  if (events & LOOP_WRITE) {
    inside_flush(program->proxy.inside);
    if (program->proxy.values)
      values_flush(program->proxy.values);
    if (notify_flush(program->proxy.notify) && program->ending)
      loop_stop(program->proxy.loop);
  }
  if ((events & LOOP_READ) && !program->ending)
    read_control(program);
}

static int receive_start(struct program *program, struct err *err)
{
  ssize_t n;

  program->fd_count = MEM_COUNT(program->fds);
  n = scm_recv(CONTROL_FD, &program->start, sizeof program->start, program->fds, &program->fd_count);
  if (n < 0) {
    program->fd_count = 0;
    return err_set_errno(err, (int)-n, "control: cannot receive");
  }
  if ((size_t)n != sizeof program->start || program->start.type != CONTROL_START ||
      program->start.front_count > CONTROL_FRONTS_MAX || program->start.generation >= LIMITS_PROXY_STARTS ||
      program->fd_count != program->start.front_count + 2)
    return err_set(err, EPROTO, "control: the first message is not a well-formed START");
  program->start.run_id[CONTROL_RUN_ID_BYTES - 1] = '\0';
  return 0;
}

static int take_parent(const char *url, size_t size, struct err *err, struct upstream *ret_upstream)
{
  size_t len = strnlen(url, size);

  return len ? upstream_parse((struct span){ .ptr = url, .len = len }, true, err, ret_upstream) : 0;
}

/* They hold passwords: only what upstream_parse() makes of them is kept. */
static int receive_parents(struct program *program, struct err *err)
{
  struct upstreams *upstreams = &program->proxy.upstreams;
  struct control_parents parents = { .type = 0 };
  size_t count = 0;
  ssize_t n = program->start.parents ? scm_recv(CONTROL_FD, &parents, sizeof parents, NULL, &count) : 0;
  int r;

  if (!program->start.parents)
    return 0;
  if (n != (ssize_t)sizeof parents || parents.type != CONTROL_PARENTS)
    return err_set(err, EPROTO, "control: the second message is not a well-formed PARENTS");
  r = take_parent(parents.http, sizeof parents.http, err, &upstreams->http);
  if (r == 0)
    r = take_parent(parents.other, sizeof parents.other, err, &upstreams->other);
  parents.no_proxy[sizeof parents.no_proxy - 1] = '\0';
  memcpy(upstreams->no_proxy, parents.no_proxy, sizeof upstreams->no_proxy);
  mem_wipe(&parents, sizeof parents);
  return r < 0 ? err_wrap(err, "parent proxy") : 0;
}

static int read_policy(struct program *program, struct err *err)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  int r = fd_read_all(program->fds[0], &text);

  if (r < 0)
    return err_set_errno(err, -r, "policy: cannot read");
  fd_close(&program->fds[0]);
  r = policy_parse(buf_span(&text), err, &program->policy);
  if (r < 0)
    return err_wrap(err, "policy");
  program->proxy.policy = program->policy;
  return 0;
}

/* Without it a target whose requests have to be seen could only be refused: sbx has started the wrong program. */
static int open_terminator(struct program *program, struct err *err)
{
  struct proxy *proxy = &program->proxy;

  proxy->terminator = terminator_get();
  if (proxy->terminator)
    return proxy->terminator->open(program->policy, err, &proxy->terminator_data);
  if (decide_may_terminate(program->policy))
    return err_set(err, EPROTO, "the policy has credentials or rules on requests, which are for " SBX_PROXY_TLS_NAME);
  return 0;
}

static int receive_placeholders(struct program *program, struct err *err)
{
  struct control_placeholders placeholders = { .type = 0 };
  size_t count = 0;
  ssize_t n;

  if (!program->policy->credentials.count)
    return 0;
  n = scm_recv(CONTROL_FD, &placeholders, sizeof placeholders, NULL, &count);
  if (n != (ssize_t)sizeof placeholders || placeholders.type != CONTROL_PLACEHOLDERS)
    return err_set(err, EPROTO, "control: there is no well-formed PLACEHOLDERS");
  return values_new(&program->proxy, &placeholders, err, &program->proxy.values);
}

static int open_listeners(struct program *program, struct err *err)
{
  for (size_t i = 0; i < program->start.front_count; i++) {
    uint32_t front = program->start.fronts[i];
    int r;

    if (front < CONTROL_FRONT_HTTP || front > CONTROL_FRONT_REFUSED)
      return err_set(err, EPROTO, "control: front %u is not one of this program's", front);
    if (front == CONTROL_FRONT_DNS_UDP)
      r = stub_add_udp(program->proxy.stub, fd_steal(&program->fds[i + 2]), err);
    else if (front == CONTROL_FRONT_REFUSED)
      r = refused_new(&program->proxy, fd_steal(&program->fds[i + 2]), err);
    else
      r = listener_new(&program->proxy, front, program->start.ports[i], fd_steal(&program->fds[i + 2]), err);
    if (r < 0)
      return r;
  }
  return 0;
}

/* Names may ask for many listeners, each of them two descriptors for the rest of the run: without a share of their own
 * they would leave none to accept with, and everything would hang. */
static void share_descriptors(struct proxy *proxy)
{
  size_t have = confine_descriptors(LIMITS_CONNECTIONS * FDS_PER_CONNECTION + LIMITS_LISTENERS * FDS_PER_LISTENER +
                                    OWN_DESCRIPTORS);
  size_t spare = have > OWN_DESCRIPTORS + 64 ? have - OWN_DESCRIPTORS : 64;

  proxy->listener_max = spare / 4 / FDS_PER_LISTENER;
  if (proxy->listener_max > LIMITS_LISTENERS)
    proxy->listener_max = LIMITS_LISTENERS;
  proxy->conn_max = (spare - proxy->listener_max * FDS_PER_LISTENER) / FDS_PER_CONNECTION;
  if (proxy->conn_max > LIMITS_CONNECTIONS)
    proxy->conn_max = LIMITS_CONNECTIONS;
}

static int set_up(struct program *program, struct err *err)
{
  struct proxy *proxy = &program->proxy;
  int r = read_policy(program, err);

  if (r == 0)
    r = open_terminator(program, err);
  if (r == 0)
    r = receive_placeholders(program, err);
  proxy->control = CONTROL_FD;
  proxy->budget.max = LIMITS_PROXY_BYTES;
  splice_open(&proxy->splice);
  share_descriptors(proxy);
  /* Each may try several addresses at once. */
  proxy->reach_max = proxy->conn_max / 4 < LIMITS_DIALS ? proxy->conn_max / 4 : LIMITS_DIALS;
  if (r == 0)
    r = confine_rings(err);
  if (r == 0)
    r = loop_new(err, &proxy->loop);
  if (r == 0)
    r = resolve_new(proxy->loop, err, &proxy->resolve);
  if (r == 0 && audit_new(proxy->loop, program->fds[1], program->start.run_id, &proxy->audit) < 0)
    r = err_set(err, ENOMEM, "audit: out of memory");
  if (r == 0) {
    proxy->ask = ask_new(proxy, program->start.ask);
    proxy->inside = inside_new(proxy);
    proxy->notify = notify_new(proxy);
    proxy->stub = stub_new(proxy, program->start.has_v6, program->start.generation);
    if (!proxy->ask || !proxy->inside || !proxy->notify || !proxy->stub)
      r = err_set(err, ENOMEM, "out of memory");
  }
  if (r == 0)
    r = open_listeners(program, err);
  if (r == 0 && (fd_set_nonblock(CONTROL_FD, true) < 0 ||
                 loop_io_new(proxy->loop, CONTROL_FD, on_control, program, &program->proxy.control_io) < 0))
    r = err_set(err, ENOMEM, "control: cannot watch the socket");
  return r;
}

static int prepare(struct program *program, struct err *err)
{
  int r = receive_start(program, err);

  if (r == 0)
    r = receive_parents(program, err);
  if (r == 0)
    r = set_up(program, err);
  if (r == 0)
    r = confine_privilege(err);
  if (r == 0)
    r = confine_filter(err);
  return r;
}

static void on_patience(void *data)
{
  loop_stop(data);
}

static void tell_failed(const struct err *err)
{
  struct control_failed message = { .type = CONTROL_FAILED };

  snprintf(message.message, sizeof message.message, "%s", err->message);
  (void)send(CONTROL_FD, &message, sizeof message, MSG_NOSIGNAL);
}

/* The last denials may be as many as the control socket has no room for. sbx reads them, but not for ever. */
static void tell_the_rest(struct program *program)
{
  struct proxy *proxy = &program->proxy;
  struct loop_timer *patience = NULL;

  program->ending = true;
  audit_end(proxy->audit, END_MS);
  notify_end(proxy->notify, audit_missing(proxy->audit), audit_unread(proxy->audit));
  if (!notify_flush(proxy->notify) && loop_timer_new(proxy->loop, on_patience, proxy->loop, &patience) == 0) {
    loop_timer_set(patience, END_MS);
    loop_io_watch(proxy->control_io, LOOP_WRITE);
    loop_run(proxy->loop);
  }
  loop_timer_free(&patience);
}

static bool tell_ca(const struct proxy *proxy)
{
  struct control_ca message = { .type = CONTROL_CA };
  struct span pem;

  if (!proxy->terminator)
    return true;
  pem = proxy->terminator->certificate(proxy->terminator_data);
  message.len = (uint32_t)pem.len;
  memcpy(message.pem, pem.ptr, pem.len);
  return send(CONTROL_FD, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

static void run(struct program *program)
{
  uint32_t ready = CONTROL_READY;

  loop_io_watch(program->proxy.control_io, LOOP_READ);
  if (tell_ca(&program->proxy) && send(CONTROL_FD, &ready, sizeof ready, MSG_NOSIGNAL) == (ssize_t)sizeof ready) {
    if (program->proxy.terminator)
      program->proxy.terminator->warm(program->proxy.terminator_data);
    loop_run(program->proxy.loop);
  }
  refused_drain(&program->proxy);
  conn_end_all(&program->proxy);
  stub_end_clients(&program->proxy);
  listener_free_all(&program->proxy);
  tell_the_rest(program);
  if (audit_error(program->proxy.audit))
    log_line(LOG_WARNING, "audit: the file could not be written: %s", strerror(-audit_error(program->proxy.audit)));
}

static void program_free(struct program *program)
{
  inside_free(program->proxy.inside);
  stub_free(program->proxy.stub);
  listener_free_all(&program->proxy);
  refused_free_all(&program->proxy);
  loop_io_free(&program->proxy.control_io);
  resolve_free(program->proxy.resolve);
  splice_close(&program->proxy.splice);
  audit_free(program->proxy.audit);
  values_free(program->proxy.values);
  loop_free(program->proxy.loop);
  ask_free(program->proxy.ask);
  notify_free(program->proxy.notify);
  if (program->proxy.terminator)
    program->proxy.terminator->close(program->proxy.terminator_data);
  policy_free(program->policy);
  for (size_t i = 0; i < program->fd_count; i++)
    fd_close(&program->fds[i]);
  mem_wipe(&program->proxy.upstreams, sizeof program->proxy.upstreams);
  free(program);
}

int main(void)
{
  struct program *program;
  struct err err = ERR_INIT;
  int r;

  log_open(SBX_PROXY_NAME, LOG_NOTICE);
  clearenv();
  if (confine_start(CONTROL_FD + 1, &err) < 0) {
    log_line(LOG_ERROR, "%s", err.message);
    return EXIT_FAILURE;
  }
#ifdef SBX_NO_SELF_CONFINE
  log_line(LOG_WARNING, "built with --disable-self-confine: without Landlock and seccomp, for tests only");
#endif
  program = mem_calloc(1, sizeof *program);
  r = program ? prepare(program, &err) : err_set(&err, ENOMEM, "out of memory");
  if (r == 0)
    run(program);
  else
    tell_failed(&err);
  if (program)
    program_free(program);
  return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
