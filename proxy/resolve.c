#include "proxy/resolve.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "proxy/hosts.h"

#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>

#define HOSTS_FILE "/etc/hosts"
/* Lists that block advertisers run to a few MiB. */
#define HOSTS_BYTES_MAX (16 * 1024 * 1024)
/* One server's first try; c-ares lengthens it with every round. */
#define TRY_MS 2000
#define TRIES 3
#define LATE "no answer in time"

struct resolve {
  struct loop *loop;
  /* c-ares spells this type ares_channel up to 1.22 and ares_channel_t * from then on: it is this pointer in both. */
  struct ares_channeldata *channel;
  struct loop_timer *timer; /* c-ares' own timeouts */
  struct watch *watches;
  struct buf hosts;
};

/* A socket of c-ares. */
struct watch {
  struct watch *next;
  struct resolve *resolve;
  ares_socket_t fd;
  struct loop_io *io;
};

/* Lives until c-ares has called back, though its owner may have gone before: done is NULL then. */
struct resolve_query {
  struct loop_timer *deadline;
  void (*done)(void *data, const struct resolve_answer *answer);
  void *data;
  struct resolve_query **slot;
};

static void arm(struct resolve *resolve)
{
  struct timeval left;

  if (ares_timeout(resolve->channel, NULL, &left))
    loop_timer_set(resolve->timer, (uint64_t)left.tv_sec * 1000 + (uint64_t)left.tv_usec / 1000 + 1);
  else
    loop_timer_stop(resolve->timer);
}

static void on_timer(void *data)
{
  struct resolve *resolve = data;

  ares_process_fd(resolve->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  arm(resolve);
}

static void on_ready(void *data, unsigned events)
{
  struct watch *watch = data;
  struct resolve *resolve = watch->resolve;
  ares_socket_t fd = watch->fd;

  /* This may free the watch. */
  ares_process_fd(resolve->channel, events & LOOP_READ ? fd : ARES_SOCKET_BAD,
                  events & LOOP_WRITE ? fd : ARES_SOCKET_BAD);
  arm(resolve);
}

static struct watch *watch_new(struct resolve *resolve, ares_socket_t fd)
{
  struct watch *watch = mem_calloc(1, sizeof *watch);

  if (!watch)
    return NULL;
  if (loop_io_new(resolve->loop, fd, on_ready, watch, &watch->io) < 0) {
    free(watch);
    return NULL;
  }
  watch->resolve = resolve;
  watch->fd = fd;
  watch->next = resolve->watches;
  resolve->watches = watch;
  return watch;
}

/* c-ares tells what it waits for on a socket, and, with neither, that it is about to close it. Where memory is short
 * the socket goes unwatched, and the query ends by its timeout. */
static void on_socket(void *data, ares_socket_t fd, int readable, int writable)
{
  struct resolve *resolve = data;
  struct watch **at = &resolve->watches;
  struct watch *watch;

  while (*at && (*at)->fd != fd)
    at = &(*at)->next;
  watch = *at;
  if (!readable && !writable) {
    if (!watch)
      return;
    *at = watch->next;
    loop_io_free(&watch->io);
    free(watch);
    return;
  }
  if (!watch)
    watch = watch_new(resolve, fd);
  if (watch)
    loop_io_watch(watch->io, (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0));
}

static int open_channel(struct resolve *resolve, struct err *err)
{
  char lookups[] = "b"; /* DNS only: c-ares would open the hosts file on every query */
  struct ares_options options = {
    .timeout = TRY_MS,
    .tries = TRIES,
    .lookups = lookups,
    .sock_state_cb = on_socket,
    .sock_state_cb_data = resolve,
  };
  int r = ares_library_init(ARES_LIB_INIT_ALL);

  if (r == ARES_SUCCESS)
    r = ares_init_options(&resolve->channel, &options,
                          ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
  return r == ARES_SUCCESS ? 0 : err_set(err, EIO, "resolve: cannot start c-ares: %s", ares_strerror(r));
}

int resolve_new(struct loop *loop, struct err *err, struct resolve **ret_resolve)
{
  struct resolve *resolve = mem_calloc(1, sizeof *resolve);
  int r;

  if (!resolve || loop_timer_new(loop, on_timer, resolve, &resolve->timer) < 0) {
    free(resolve);
    return err_set(err, ENOMEM, "resolve: out of memory");
  }
  resolve->loop = loop;
  resolve->hosts = (struct buf)BUF_INIT(HOSTS_BYTES_MAX);
  r = fd_read_file(AT_FDCWD, HOSTS_FILE, &resolve->hosts);
  if (r < 0 && r != -ENOENT)
    err_set_errno(err, -r, "resolve: cannot read %s", HOSTS_FILE);
  else
    r = open_channel(resolve, err);
  if (r < 0) {
    resolve_free(resolve);
    return r;
  }
  *ret_resolve = resolve;
  return 0;
}

void resolve_free(struct resolve *resolve)
{
  if (!resolve)
    return;
  if (resolve->channel)
    ares_destroy(resolve->channel);
  ares_library_cleanup();
  loop_timer_free(&resolve->timer);
  buf_free(&resolve->hosts);
  free(resolve);
}

/* Tells the owner, if it is still there. */
static void tell(struct resolve_query *query, const struct resolve_answer *answer)
{
  void (*done)(void *data, const struct resolve_answer *answer) = query->done;

  loop_timer_free(&query->deadline);
  query->done = NULL;
  if (!done)
    return;
  *query->slot = NULL;
  done(query->data, answer);
}

static void on_deadline(void *data)
{
  tell(data, &(struct resolve_answer){ .cause = LATE });
}

static bool addr_of_node(const struct ares_addrinfo_node *node, struct addr *ret_addr)
{
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;

  *ret_addr = (struct addr){ .family = ADDR_V4 };
  if (node->ai_family == AF_INET && node->ai_addrlen >= sizeof v4) {
    memcpy(&v4, node->ai_addr, sizeof v4);
    memcpy(ret_addr->bytes, &v4.sin_addr, 4);
    return true;
  }
  if (node->ai_family == AF_INET6 && node->ai_addrlen >= sizeof v6) {
    memcpy(&v6, node->ai_addr, sizeof v6);
    memcpy(ret_addr->bytes, &v6.sin6_addr, 16);
    ret_addr->family = ADDR_V6;
    return true;
  }
  return false;
}

/* In the same words whoever notices it, and whatever c-ares calls it in one version or another. */
static const char *cause_of(int status)
{
  switch (status) {
  case ARES_SUCCESS:
  case ARES_ENODATA:
    return "the name has no address";
  case ARES_ENOTFOUND:
    return "no such name";
  case ARES_ETIMEOUT:
    return LATE;
  default:
    return ares_strerror(status);
  }
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *result)
{
  struct resolve_query *query = arg;
  struct addr addrs[LIMITS_ADDRESSES];
  struct resolve_answer answer = { .addrs = addrs, .cause = cause_of(status) };

  (void)timeouts;
  for (struct ares_addrinfo_node *node = result ? result->nodes : NULL; node; node = node->ai_next)
    if (answer.count < LIMITS_ADDRESSES && addr_of_node(node, &addrs[answer.count]))
      answer.count++;
  if (result)
    ares_freeaddrinfo(result);
  tell(query, &answer);
  free(query);
}

/* What is known without asking anybody. */
static size_t lookup_local(const struct resolve *resolve, const char *name, struct addr *ret_addrs)
{
  static const struct addr loopback[] = {
    { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } },
    { .family = ADDR_V6, .bytes = { [15] = 1 } },
  };

  if (strcmp(name, "localhost") == 0) {
    memcpy(ret_addrs, loopback, sizeof loopback);
    return MEM_COUNT(loopback);
  }
  return hosts_lookup(buf_span(&resolve->hosts), span_of(name), ret_addrs, LIMITS_ADDRESSES);
}

static int ask(struct resolve *resolve, const char *name, struct resolve_query *query)
{
  struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT };
  char absolute[256];
  size_t len = strlen(name);

  if (len + 2 > sizeof absolute)
    return -EINVAL;
  memcpy(absolute, name, len + 1);
  /* The name was judged as it stands: a search domain must not make another one of it. */
  if (strchr(name, '.'))
    memcpy(absolute + len, ".", 2);
  ares_getaddrinfo(resolve->channel, absolute, NULL, &hints, on_answer, query);
  arm(resolve);
  return 0;
}

int resolve_start(struct resolve *resolve, const char *name,
                  void (*done)(void *data, const struct resolve_answer *answer), void *data,
                  struct resolve_query **slot)
{
  struct addr addrs[LIMITS_ADDRESSES];
  size_t count = lookup_local(resolve, name, addrs);
  struct resolve_query *query;
  int r;

  if (count) {
    done(data, &(struct resolve_answer){ .addrs = addrs, .count = count });
    return 0;
  }
  query = mem_calloc(1, sizeof *query);
  if (!query || loop_timer_new(resolve->loop, on_deadline, query, &query->deadline) < 0) {
    free(query);
    return -ENOMEM;
  }
  query->done = done;
  query->data = data;
  query->slot = slot;
  *slot = query;
  loop_timer_set(query->deadline, LIMITS_RESOLVE_MS);
  r = ask(resolve, name, query);
  if (r < 0) {
    *slot = NULL;
    loop_timer_free(&query->deadline);
    free(query);
  }
  return r;
}

void resolve_cancel(struct resolve_query **slot)
{
  if (!*slot)
    return;
  loop_timer_free(&(*slot)->deadline);
  (*slot)->done = NULL;
  *slot = NULL;
}
