#include "config.h"

#include "run/proxy.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "policy/limits.h"
#include "policy/print.h"
#include "policy/validate.h"
#include "run/audit_file.h"
#include "sys/control.h"
#include "sys/memfd.h"
#include "sys/netns.h"
#include "sys/scm.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the proxy may take to write its audit at the end. */
#define PROXY_STOP_MS 1000

/* How long it may take to be ready. */
#define PROXY_READY_MS 10000

union message {
  uint32_t type;
  struct control_failed failed;
  struct control_denied denied;
  struct control_totals totals;
  struct control_listen listen;
  struct control_ask ask;
  struct control_sockets sockets;
  struct control_want want;
  struct control_ca ca;
};

static const char *name_of(const struct proxy *proxy)
{
  return proxy->request->plan->tls ? SBX_PROXY_TLS_NAME : SBX_PROXY_NAME;
}

static int policy_memfd(const struct policy *policy, struct err *err)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  int fd;

  policy_print(policy, true, &text);
  if (buf_error(&text))
    return err_set_errno(err, -buf_error(&text), "policy text");
  fd = memfd_sealed("sbx-policy", buf_span(&text));
  return fd < 0 ? err_set_errno(err, -fd, "policy text") : fd;
}

/* stdin and stdout lead nowhere; stderr is ours, for the proxy's own faults. */
static int spawn(struct proxy *proxy, int theirs, struct err *err)
{
  static char *const no_environment[] = { NULL };
  mem_autofree char *name = mem_strndup(name_of(proxy), strlen(name_of(proxy)));
  char *const argv[] = { name, NULL };
  fd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const struct spawn_fd fds[] = { { .from = null, .to = 0 },
                                  { .from = null, .to = 1 },
                                  { .from = theirs, .to = CONTROL_FD } };
  struct spawn spawn = { .program = proxy->request->proxy_program,
                         .argv = argv,
                         .envp = no_environment,
                         .fds = fds,
                         .fd_count = MEM_COUNT(fds),
                         .new_session = true,
                         .landlock = -1,
                         .cgroup_procs = -1 };

  if (null < 0)
    return err_set_errno(err, errno, "/dev/null");
  if (!name)
    return err_set(err, ENOMEM, "out of memory");
  return spawn_program(&spawn, err, &proxy->pid);
}

static bool has_parents(const struct proxy *proxy)
{
  return proxy->request->plan->upstream.http || proxy->request->plan->upstream.other;
}

/* A proxy that has ended takes no message, and its end is heard of, with the cause, by who reads what it has sent. */
static bool failed_to_send(int r)
{
  return r < 0 && r != -EPIPE && r != -ECONNRESET;
}

static int send_start(struct proxy *proxy, struct err *err)
{
  const struct plan_listeners *plan = &proxy->request->plan->listeners;
  struct control_start start = { .type = CONTROL_START,
                                 .has_v6 = proxy->has_v6,
                                 .generation = proxy->starts - 1,
                                 .parents = has_parents(proxy),
                                 .ask = proxy->request->ask.channel != ASK_NOBODY };
  fd_autoclose int policy = policy_memfd(proxy->grown ? proxy->grown : proxy->request->policy, err);
  fd_autoclose int audit = -1;
  int fds[CONTROL_FRONTS_MAX + 2];
  size_t count = 0;
  int r;

  if (policy < 0)
    return policy;
  if (proxy->audit < 0) {
    audit = audit_file_open(proxy->request, err);
    if (audit < 0)
      return audit;
  }
  fds[count++] = policy;
  fds[count++] = proxy->audit < 0 ? audit : proxy->audit;
  for (size_t i = 0; i < proxy->listener_count; i++) {
    if (proxy->listeners[i] < 0)
      continue;
    start.ports[start.front_count] = plan->items[i].forward_port;
    start.fronts[start.front_count++] = plan->items[i].front;
    fds[count++] = proxy->listeners[i];
  }
  for (size_t i = 0; i < proxy->publish.count; i++) {
    start.ports[start.front_count] = proxy->publish.items[i].port;
    start.fronts[start.front_count++] = CONTROL_FRONT_PUBLISH;
    fds[count++] = proxy->publish.items[i].fd;
  }
  snprintf(start.run_id, sizeof start.run_id, "%s", proxy->run_id);
  r = scm_send(proxy->control, (struct span){ .ptr = (const char *)&start, .len = sizeof start }, fds, count);
  return failed_to_send(r) ? err_set_errno(err, -r, "%s: start message", name_of(proxy)) : 0;
}

static int send_parents(struct proxy *proxy, struct err *err)
{
  const struct plan_upstream *upstream = &proxy->request->plan->upstream;
  struct control_parents parents = { .type = CONTROL_PARENTS };
  int r;

  snprintf(parents.http, sizeof parents.http, "%s", upstream->http ? upstream->http : "");
  snprintf(parents.other, sizeof parents.other, "%s", upstream->other ? upstream->other : "");
  snprintf(parents.no_proxy, sizeof parents.no_proxy, "%s", upstream->no_proxy ? upstream->no_proxy : "");
  r = scm_send(proxy->control, (struct span){ .ptr = (const char *)&parents, .len = sizeof parents }, NULL, 0);
  mem_wipe(&parents, sizeof parents);
  return failed_to_send(r) ? err_set_errno(err, -r, "%s: message of parents", name_of(proxy)) : 0;
}

static int send_placeholders(struct proxy *proxy, struct err *err)
{
  const struct strv *list = &proxy->request->facts->placeholders;
  struct control_placeholders message = { .type = CONTROL_PLACEHOLDERS, .count = (uint32_t)list->count };
  int r = list->count > CONTROL_CREDENTIALS_MAX ? -E2BIG : 0;

  for (size_t i = 0; i < list->count && r == 0; i++)
    snprintf(message.placeholders[i], sizeof message.placeholders[i], "%s", list->items[i]);
  if (r == 0)
    r = scm_send(proxy->control, (struct span){ .ptr = (const char *)&message, .len = sizeof message }, NULL, 0);
  return failed_to_send(r) ? err_set_errno(err, -r, "%s: message of placeholders", name_of(proxy)) : 0;
}

int proxy_start(struct proxy *proxy, struct err *err)
{
  int ends[2];
  int r;

  proxy->starts++;
  proxy->ready = false;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
    return err_set_errno(err, errno, "%s: socketpair", name_of(proxy));
  proxy->control = ends[0];
  r = spawn(proxy, ends[1], err);
  fd_close(&ends[1]);
  if (r == 0)
    r = send_start(proxy, err);
  if (r == 0 && has_parents(proxy))
    r = send_parents(proxy, err);
  if (r == 0 && proxy->request->policy->credentials.count > 0)
    r = send_placeholders(proxy, err);
  if (r == 0)
    r = fd_set_nonblock(proxy->control, true);
  if (r < 0)
    fd_close(&proxy->control); /* the proxy, should it run, ends when it sees that */
  return r;
}

/* Makes sockets in the sandbox's network, IPv4 and IPv6, and sends them to the proxy; or error, where there is one. */
static void answer_sockets(struct proxy *proxy, struct netns_socket sockets[2], int error)
{
  struct control_made answer = { .type = CONTROL_MADE, .error = error };
  struct err err = ERR_INIT;
  int fds[2] = { -1, -1 };
  size_t count = 0;

  if (!answer.error && netns_make(proxy->netns, sockets, proxy->has_v6 ? 2 : 1, &err) < 0)
    answer.error = err.code;
  for (size_t i = 0; i < 2 && !answer.error; i++) {
    if (sockets[i].fd >= 0)
      fds[count++] = sockets[i].fd;
  }
  if (scm_send(proxy->control, (struct span){ .ptr = (const char *)&answer, .len = sizeof answer }, fds, count) < 0)
    log_line(LOG_WARNING, "%s does not take its sockets; a port is out of reach", name_of(proxy));
  for (size_t i = 0; i < 2; i++)
    fd_close(&sockets[i].fd);
}

/* Makes the listeners that the proxy asks for in the sandbox's network. A port below 1024, or one on another address,
 * is not the proxy's to ask for; that it could take a port from a program inside is all that it could do. */
static void listen_inside(struct proxy *proxy, const struct control_listen *listen)
{
  struct netns_socket sockets[] = {
    { .type = SOCK_STREAM, .fd = -1, .address.v4 = { .sin_family = AF_INET, .sin_port = htons(listen->port) } },
    { .type = SOCK_STREAM,
      .fd = -1,
      .optional = true,
      .address.v6 = { .sin6_family = AF_INET6, .sin6_port = htons(listen->port) } },
  };

  memcpy(&sockets[0].address.v4.sin_addr, listen->v4, sizeof listen->v4);
  memcpy(&sockets[1].address.v6.sin6_addr, listen->v6, sizeof listen->v6);
  answer_sockets(proxy, sockets, listen->port < LIMITS_FREE_PORT ? EACCES : 0);
}

/* Every address that such a socket can be connected to is the sandbox's own: whatever becomes of the proxy, they are no
 * way out. */
static void make_connectors(struct proxy *proxy)
{
  struct netns_socket sockets[] = {
    { .type = SOCK_STREAM, .fd = -1, .unbound = true, .address.any = { .sa_family = AF_INET } },
    { .type = SOCK_STREAM, .fd = -1, .unbound = true, .optional = true, .address.any = { .sa_family = AF_INET6 } },
  };

  answer_sockets(proxy, sockets, 0);
}

/* Another proxy, should this one die, has to know what the user has said. */
static void grow(struct proxy *proxy, const char *rule)
{
  struct policy *grown = NULL;
  struct err err = ERR_INIT;

  if (policy_extend(proxy->grown ? proxy->grown : proxy->request->policy, rule, "--ask", &err, &grown) < 0) {
    log_line(LOG_WARNING, "--ask: %s", err.message);
    return;
  }
  policy_free(proxy->grown);
  proxy->grown = grown;
}

void proxy_answer(void *data, const struct control_answer *answer)
{
  struct proxy *proxy = data;

  if (answer->asked == DECIDE_ASKED_RUN || answer->asked == DECIDE_ASKED_PROJECT)
    grow(proxy, answer->rule);
  if (proxy->control >= 0 && failed_to_send(outbox_send(&proxy->outbox, proxy->control, answer, sizeof *answer)))
    log_line(LOG_WARNING, "%s does not take an answer; connections that wait for it hang", name_of(proxy));
}

void proxy_secret(void *data, const struct control_secret *answer)
{
  struct proxy *proxy = data;
  size_t size = offsetof(struct control_secret, value) + answer->len;

  if (proxy->control >= 0 && failed_to_send(outbox_send(&proxy->outbox, proxy->control, answer, size)))
    log_line(LOG_WARNING, "%s does not take a credential; requests that wait for it fail", name_of(proxy));
}

void proxy_flush(struct proxy *proxy)
{
  if (proxy->control >= 0)
    outbox_flush(&proxy->outbox, proxy->control);
}

/* The CA of the first proxy is the one that programs inside trust. */
static void take_certificate(struct proxy *proxy, const struct control_ca *ca)
{
  if (ca->len > 0 && ca->len <= sizeof ca->pem && !proxy->certificate)
    proxy->certificate = mem_strndup(ca->pem, ca->len);
}

static void take_failure(struct proxy *proxy, const struct control_failed *failed)
{
  int len = (int)strnlen(failed->message, sizeof failed->message);

  if (proxy->awaited)
    err_set(proxy->awaited, EIO, "TLS: %s: %.*s", name_of(proxy), len, failed->message);
  else
    log_line(LOG_ERROR, "%s: %.*s", name_of(proxy), len, failed->message);
}

void proxy_read(struct proxy *proxy, struct summary *summary)
{
  for (;;) {
    union message message = { .type = 0 };
    size_t count = 0;
    ssize_t n = scm_recv(proxy->control, &message, sizeof message, NULL, &count);

    if (n == -EAGAIN)
      return;
    if (n <= 0) {
      fd_close(&proxy->control);
      return;
    }
    if (message.type == CONTROL_DENIED && (size_t)n == sizeof message.denied)
      summary_add(summary, &message.denied);
    else if (message.type == CONTROL_TOTALS && (size_t)n == sizeof message.totals)
      summary_add_totals(summary, &message.totals);
    else if (message.type == CONTROL_LISTEN && (size_t)n == sizeof message.listen)
      listen_inside(proxy, &message.listen);
    else if (message.type == CONTROL_SOCKETS && (size_t)n == sizeof message.sockets)
      make_connectors(proxy);
    else if (message.type == CONTROL_ASK && (size_t)n == sizeof message.ask)
      ask_take(proxy->ask, &message.ask);
    else if (message.type == CONTROL_CA && (size_t)n == sizeof message.ca)
      take_certificate(proxy, &message.ca);
    else if (message.type == CONTROL_WANT && (size_t)n == sizeof message.want && proxy->secrets)
      secrets_want(proxy->secrets, message.want.index, message.want.stale);
    else if (message.type == CONTROL_READY)
      proxy->ready = true;
    else if (message.type == CONTROL_FAILED && (size_t)n == sizeof message.failed)
      take_failure(proxy, &message.failed);
  }
}

int proxy_await(struct proxy *proxy, struct summary *summary, struct err *err)
{
  uint64_t deadline = clock_mono_ns() + PROXY_READY_MS * UINT64_C(1000000);
  uint64_t now = 0;

  err->code = 0;
  proxy->awaited = err;
  while (!proxy->ready && proxy->control >= 0 && (now = clock_mono_ns()) < deadline) {
    struct pollfd poller = { .fd = proxy->control, .events = POLLIN };

    if (poll(&poller, 1, (int)((deadline - now) / 1000000) + 1) > 0)
      proxy_read(proxy, summary);
  }
  proxy->awaited = NULL;
  if (err->code)
    return -err->code;
  if (now >= deadline)
    return err_set(err, ETIME, "TLS: %s is not ready after %d s", name_of(proxy), PROXY_READY_MS / 1000);
  if (!proxy->ready || !proxy->certificate)
    return err_set(err, EIO, "TLS: %s ended before it was ready", name_of(proxy));
  return 0;
}

void proxy_reaped(struct proxy *proxy, struct summary *summary, int status)
{
  if (proxy->control >= 0)
    proxy_read(proxy, summary);
  fd_close(&proxy->control);
  outbox_clear(&proxy->outbox);
  ask_forget(proxy->ask);
  if (proxy->secrets)
    secrets_forget(proxy->secrets);
  proxy->pid = -1;
  if (WIFSIGNALED(status))
    log_line(LOG_ERROR, "%s was killed by signal %d; connections through it are cut", name_of(proxy), WTERMSIG(status));
  else
    log_line(LOG_ERROR, "%s ended with status %d; connections through it are cut", name_of(proxy), WEXITSTATUS(status));
  if (proxy->request->plan->tls)
    log_line(LOG_ERROR, "TLS: programs inside trusted that proxy, and no other; requests to hosts where TLS is "
                        "terminated fail from here on");
  if (proxy->starts >= LIMITS_PROXY_STARTS) {
    log_line(LOG_ERROR, "%s ended %u times; the sandbox has no network from here on", name_of(proxy), proxy->starts);
    proxy_give_up(proxy);
  }
}

void proxy_give_up(struct proxy *proxy)
{
  for (size_t i = 0; i < proxy->listener_count; i++)
    fd_close(&proxy->listeners[i]);
  publish_close(&proxy->publish);
}

void proxy_stop(struct proxy *proxy, struct summary *summary)
{
  struct pollfd poller = { .fd = proxy->control, .events = POLLIN };

  proxy_give_up(proxy);
  if (proxy->pid < 0)
    return;
  if (proxy->control >= 0) {
    (void)shutdown(proxy->control, SHUT_WR);
    while (proxy->control >= 0 && poll(&poller, 1, PROXY_STOP_MS) > 0)
      proxy_read(proxy, summary);
  }
  (void)kill(proxy->pid, SIGKILL);
  (void)waitpid(proxy->pid, NULL, 0);
  proxy->pid = -1;
  fd_close(&proxy->control);
}

void proxy_free(struct proxy *proxy)
{
  outbox_clear(&proxy->outbox);
  policy_free(proxy->grown);
  free(proxy->certificate);
  *proxy = (struct proxy)PROXY_INIT;
}
