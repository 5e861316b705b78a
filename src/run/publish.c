#include "run/publish.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define PUBLISH_BACKLOG 4096

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

/* A listening socket, or -errno. */
static int listen_on(const union address *address, socklen_t len)
{
  int family = address->any.sa_family;
  fd_autoclose int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int on = 1;

  if (fd < 0)
    return -errno;
  /* Connections of a run before that are still being closed do not keep the port. */
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
      (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
      bind(fd, &address->any, len) < 0 || listen(fd, PUBLISH_BACKLOG) < 0)
    return -errno;
  return fd_steal(&fd);
}

static int fail(const struct plan_publish *wanted, int error, struct err *err)
{
  unsigned port = wanted->host_port;

  if (error == EADDRINUSE)
    return err_set(err, error,
                   "network.publish: port %u is taken on the host; end what listens there, or publish another one: "
                   "--publish OTHER:%u",
                   port, (unsigned)wanted->port);
  if (error == EACCES)
    return err_set(err, error,
                   "network.publish: port %u of the host needs privilege to listen on; publish another one: "
                   "--publish OTHER:%u with OTHER from 1024 on",
                   port, (unsigned)wanted->port);
  return err_set_errno(err, error, "network.publish: port %u of the host", port);
}

static int add(struct publish *publish, const struct plan_publish *wanted, struct err *err)
{
  const union address v4 = {
    .v4 = { .sin_family = AF_INET, .sin_port = htons(wanted->host_port), .sin_addr = { htonl(INADDR_LOOPBACK) } }
  };
  const union address v6 = {
    .v6 = { .sin6_family = AF_INET6, .sin6_port = htons(wanted->host_port), .sin6_addr = IN6ADDR_LOOPBACK_INIT }
  };
  int fd = listen_on(&v4, sizeof v4.v4);

  if (fd < 0)
    return fail(wanted, -fd, err);
  publish->items[publish->count++] = (struct publish_listener){ .fd = fd, .port = wanted->port };
  fd = listen_on(&v6, sizeof v6.v6);
  if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
    return 0;
  if (fd < 0)
    return fail(wanted, -fd, err);
  publish->items[publish->count++] = (struct publish_listener){ .fd = fd, .port = wanted->port };
  return 0;
}

int publish_listen(const struct plan *plan, struct err *err, struct publish *ret_publish)
{
  struct publish publish = PUBLISH_INIT;

  for (size_t i = 0; i < plan->publishes.count; i++) {
    int r = add(&publish, &plan->publishes.items[i], err);

    if (r < 0) {
      publish_close(&publish);
      return r;
    }
  }
  *ret_publish = publish;
  return 0;
}

void publish_close(struct publish *publish)
{
  for (size_t i = 0; i < publish->count; i++)
    fd_close(&publish->items[i].fd);
  publish->count = 0;
}
