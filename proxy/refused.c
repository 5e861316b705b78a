#include "proxy/refused.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/stub.h"
#include "proxy/tell.h"
#include "sys/netns.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PACKETS_PER_TURN 64
#define DRAIN_MAX 4096 /* a flood has told enough by then */
#define V4_HEADER_MIN 20
#define V6_HEADER_BYTES 40

struct refused {
  struct refused *next;
  struct proxy *proxy;
  int fd;
  struct loop_io *io;
  struct refused_target last; /* a client that has two addresses of a name tries both, and means one connection */
};

/* Length of the IP header, with whose packet it is; 0 where it is none. */
static size_t parse_header(struct span packet, struct addr *ret_addr)
{
  const uint8_t *bytes = (const uint8_t *)packet.ptr;
  unsigned version = packet.len < V4_HEADER_MIN ? 0 : bytes[0] >> 4;
  size_t header = version == 4 ? (size_t)(bytes[0] & 15) * 4 : version == 6 ? V6_HEADER_BYTES : 0;

  if (header < V4_HEADER_MIN || packet.len < header)
    return 0;
  *ret_addr = (struct addr){ .family = version == 4 ? ADDR_V4 : ADDR_V6 };
  if (version == 4)
    memcpy(ret_addr->bytes, bytes + 12, 4);
  else
    memcpy(ret_addr->bytes, bytes + 8, 16);
  return header;
}

bool refused_parse(struct span packet, const struct addr *from, struct refused_target *ret_target)
{
  const uint8_t *bytes = (const uint8_t *)packet.ptr;
  struct refused_target target = { 0 };
  size_t header = 0;

  if (from)
    target.addr = *from;
  else
    header = parse_header(packet, &target.addr);
  if ((!from && header == 0) || packet.len < header + 2)
    return false;
  target.port = (uint16_t)(bytes[header] << 8 | bytes[header + 1]);
  *ret_target = target;
  return target.port != 0;
}

/* The other address of the name that was refused just before. */
static bool is_other_half(const struct proxy *proxy, const struct refused_target *target, const struct host *host)
{
  for (struct refused *refused = proxy->refused; refused; refused = refused->next) {
    struct host before;

    if (refused->last.port != target->port || refused->last.addr.family == target->addr.family)
      continue;
    host_of_addr(&refused->last.addr, &before);
    stub_restore_name(proxy->stub, &before);
    refused->last.port = 0;
    return before.kind == HOST_NAME && strcmp(before.name, host->name) == 0;
  }
  return false;
}

static void tell_target(struct refused *refused, const struct refused_target *target)
{
  struct proxy *proxy = refused->proxy;
  struct verdict verdict;
  struct host host;

  host_of_addr(&target->addr, &host);
  stub_restore_name(proxy->stub, &host);
  if (is_other_half(proxy, target, &host))
    return;
  refused->last = *target;
  verdict = stub_judge_target(proxy->stub, &host, target->port);
  /* A rule has it, and its ports are more than are listened on. */
  if (verdict.allow)
    verdict = (struct verdict){ .reason = REASON_LIMIT_PORTS };
  tell(proxy, &(struct tell){ .event = "connect",
                              .via = "transparent",
                              .verdict = verdict,
                              .host = &host,
                              .port = target->port,
                              .begun_ns = clock_mono_ns() });
}

static void take(struct refused *refused, unsigned count)
{
  char packet[NETNS_REFUSAL_BYTES];

  while (count--) {
    union {
      struct sockaddr any;
      struct sockaddr_in6 v6;
      struct sockaddr_storage other;
    } from = { .any = { .sa_family = AF_UNSPEC } };
    socklen_t len = sizeof from;
    ssize_t n = recvfrom(refused->fd, packet, sizeof packet, MSG_DONTWAIT, &from.any, &len);
    struct addr addr = { .family = ADDR_V6 };
    bool bare = from.any.sa_family == AF_INET6;
    struct refused_target target;

    if (n < 0)
      return;
    if (bare)
      memcpy(addr.bytes, &from.v6.sin6_addr, 16);
    if (refused_parse((struct span){ .ptr = packet, .len = (size_t)n }, bare ? &addr : NULL, &target))
      tell_target(refused, &target);
  }
}

static void on_ready(void *data, unsigned events)
{
  (void)events;
  take(data, PACKETS_PER_TURN);
}

int refused_new(struct proxy *proxy, int fd, struct err *err)
{
  struct refused *refused = mem_calloc(1, sizeof *refused);
  int r = refused ? loop_io_new(proxy->loop, fd, on_ready, refused, &refused->io) : -ENOMEM;

  if (r < 0) {
    free(refused);
    fd_close(&fd);
    return err_set_errno(err, -r, "refused connections: cannot watch the socket");
  }
  refused->proxy = proxy;
  refused->fd = fd;
  refused->next = proxy->refused;
  proxy->refused = refused;
  loop_io_watch(refused->io, LOOP_READ);
  return 0;
}

void refused_free_all(struct proxy *proxy)
{
  while (proxy->refused) {
    struct refused *refused = proxy->refused;

    proxy->refused = refused->next;
    loop_io_free(&refused->io);
    fd_close(&refused->fd);
    free(refused);
  }
}

void refused_drain(struct proxy *proxy)
{
  for (struct refused *refused = proxy->refused; refused; refused = refused->next)
    take(refused, DRAIN_MAX);
}
