/* Theory of operation
 *
 * A socket belongs to the network namespace in which socket(2) was called, wherever its descriptor goes later. A child
 * that shares our memory and our descriptor table (CLONE_VM | CLONE_FILES) joins the user namespace that owns the
 * network namespace, then the network namespace itself, and does the work there: the sockets stand in our own table at
 * once, and our own namespaces never changed. CLONE_VFORK suspends us meanwhile. The child mustn't allocate.
 *
 * A route "local default dev lo" needs `lo` to be up, and bubblewrap fails when it is up before it does that itself: so
 * we wait for it. Sockets on the wildcard address need not wait.
 *
 * A connection to a port that nobody listens on is refused by the kernel, which asks nobody and tells nobody but the
 * client. To know of it there is a socket that hears TCP segments, with a filter for the resets that answer a SYN
 * (RFC 9293, 3.10.7.1: RST and ACK, sequence number 0). A program that tries its own loopback until its server is up is
 * no matter. It is a raw socket (raw(7)) where those are kept apart by network namespace. Before Linux 6.3 each segment
 * that the machine receives, in whatever namespace, is held against all of them, before 6.0 under a lock: there it is a
 * packet socket (packet(7)), whose close(2) waits until every processor has passed through the scheduler, 10 ms and
 * more.
 */
#include "sys/netns.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/span.h"
#include "sys/rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78 /* Linux 4.15 */
#endif

#define NETNS_STACK_BYTES (64 * 1024)
#define NETNS_BACKLOG 4096

struct helper {
  const struct netns *netns;
  bool route; /* before the sockets */
  struct netns_socket *sockets;
  size_t count;
  int alive_fd;
  bool v6;
  const char *volatile step;
  volatile int error;
};

static int fail(struct helper *helper, const char *step)
{
  helper->step = step;
  helper->error = errno ? errno : EIO;
  return 1;
}

int netns_open(pid_t pid, struct err *err, struct netns *ret_netns)
{
  struct netns netns = NETNS_INIT;
  char path[64];

  snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
  netns.net = open(path, O_RDONLY | O_CLOEXEC);
  if (netns.net < 0)
    return err_set_errno(err, errno, "sandbox's network: %s", path);
  netns.userns = ioctl(netns.net, NS_GET_USERNS);
  if (netns.userns < 0) {
    fd_close(&netns.net);
    return err_set_errno(err, errno, "sandbox's network: NS_GET_USERNS");
  }
  (void)fd_set_cloexec(netns.userns, true);
  *ret_netns = netns;
  return 0;
}

void netns_close(struct netns *netns)
{
  fd_close(&netns->net);
  fd_close(&netns->userns);
}

static int add_routes(struct helper *helper)
{
  int r = rtnl_await_loopback(helper->alive_fd);

  if (r == 0)
    r = rtnl_add_local_default(AF_INET);
  if (r < 0) {
    errno = -r;
    return fail(helper, "local route");
  }
  helper->v6 = rtnl_add_local_default(AF_INET6) == 0;
  return 0;
}

static bool set_on(int fd, int level, int option)
{
  int on = 1;

  return setsockopt(fd, level, option, &on, sizeof on) == 0;
}

static bool prepare(int fd, const struct netns_socket *wanted, bool v6)
{
  int off = 0;

  if (v6 && wanted->both)
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  else if (v6 && !set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY))
    return false;
  /* IPv6 looks for the address on an interface, where IPv4 takes a local route for one; both to bind and to answer
   * from. */
  if (v6 && !set_on(fd, IPPROTO_IPV6, IPV6_FREEBIND))
    return false;
  if (wanted->type != SOCK_DGRAM)
    return true;
  return v6 ? set_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) : set_on(fd, IPPROTO_IP, IP_PKTINFO);
}

/* clang-format off */
/* From the IP header on. */
static const struct sock_filter refusals_v4[] = {
  BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 10),
  BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 8, 0), /* a later fragment */
  BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 6, 0), /* from 127.0.0.0/8 */
  BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
  BPF_STMT(BPF_LD | BPF_H | BPF_IND, 12), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x0004, 0, 3), /* RST */
  BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
  BPF_STMT(BPF_RET | BPF_K, NETNS_REFUSAL_BYTES),
  BPF_STMT(BPF_RET | BPF_K, 0),
};
static const struct sock_filter refusals_v6[] = {
  BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 9),
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 8), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 20), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 5, 0), /* from ::1 */
  BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 52), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x0004, 0, 3), /* RST */
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 44), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
  BPF_STMT(BPF_RET | BPF_K, NETNS_REFUSAL_BYTES),
  BPF_STMT(BPF_RET | BPF_K, 0),
};
/* From the TCP header on, as a raw socket of IPv6 gives it; the IP header is reached by a name of its own. */
#define V6_SOURCE(word) ((uint32_t)(SKF_NET_OFF + 8 + 4 * (word)))
static const struct sock_filter refusals_raw_v6[] = {
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, V6_SOURCE(0)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, V6_SOURCE(3)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 5, 0), /* from ::1 */
  BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x0004, 0, 3), /* RST */
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
  BPF_STMT(BPF_RET | BPF_K, NETNS_REFUSAL_BYTES),
  BPF_STMT(BPF_RET | BPF_K, 0),
};
/* clang-format on */

/* Whether raw sockets are kept by network namespace: Linux 6.3. */
static bool has_raw_by_namespace(void)
{
  struct utsname name;
  struct span release;
  size_t dot;
  uint64_t major;
  uint64_t minor;

  if (uname(&name) < 0)
    return false;
  release = span_of(name.release);
  dot = span_find(release, '.');
  if (num_parse_u64(span_sub(release, 0, dot), 0, UINT32_MAX, &major) < 0)
    return false;
  release = span_sub(release, dot + 1, release.len);
  for (dot = 0; dot < release.len && release.ptr[dot] >= '0' && release.ptr[dot] <= '9';)
    dot++;
  return num_parse_u64(span_sub(release, 0, dot), 0, UINT32_MAX, &minor) == 0 &&
         (major > 6 || (major == 6 && minor >= 3));
}

static int attach(int fd, const struct sock_filter *rows, size_t count)
{
  struct sock_filter filter[MEM_COUNT(refusals_v4)];
  struct sock_fprog program = { .len = (unsigned short)count, .filter = filter };

  memcpy(filter, rows, count * sizeof *filter);
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0 ||
                 !set_on(fd, SOL_SOCKET, SO_LOCK_FILTER)
             ? -1
             : 0;
}

static int hear_raw(bool v6)
{
  /* What comes before the filter stands is taken for a refusal; nothing inside has been started yet. */
  int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

  if (fd >= 0 && (v6 ? attach(fd, refusals_raw_v6, MEM_COUNT(refusals_raw_v6))
                     : attach(fd, refusals_v4, MEM_COUNT(refusals_v4))) < 0)
    fd_close(&fd);
  return fd;
}

static int hear_packets(bool v6)
{
  struct sockaddr_ll lo = { .sll_family = AF_PACKET,
                            .sll_protocol = htons(v6 ? ETH_P_IPV6 : ETH_P_IP),
                            .sll_ifindex = (int)if_nametoindex("lo") };
  /* Of no protocol: nothing comes before the filter stands. */
  int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  if (fd >= 0 &&
      ((v6 ? attach(fd, refusals_v6, MEM_COUNT(refusals_v6)) : attach(fd, refusals_v4, MEM_COUNT(refusals_v4))) < 0 ||
       bind(fd, (const struct sockaddr *)&lo, sizeof lo) < 0))
    fd_close(&fd);
  return fd;
}

static int hear_refusals(bool v6)
{
  return has_raw_by_namespace() ? hear_raw(v6) : hear_packets(v6);
}

static int make(const struct netns_socket *wanted)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_ANY) } };
  const struct sockaddr *address = &wanted->address.any;
  socklen_t len = address->sa_family == AF_INET6 ? sizeof wanted->address.v6 : sizeof wanted->address.v4;
  int fd = socket(address->sa_family, wanted->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool v6 = address->sa_family == AF_INET6;

  if (fd < 0 && errno == EAFNOSUPPORT && wanted->both) {
    v4.sin_port = wanted->address.v6.sin6_port;
    address = (const struct sockaddr *)&v4;
    len = sizeof v4;
    v6 = false;
    fd = socket(AF_INET, wanted->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  if (fd < 0 || wanted->unbound)
    return fd;
  if (!prepare(fd, wanted, v6) || bind(fd, address, len) < 0 ||
      (wanted->type == SOCK_STREAM && listen(fd, NETNS_BACKLOG) < 0)) {
    fd_close(&fd);
    return -1;
  }
  return fd;
}

static int make_all(struct helper *helper)
{
  for (size_t i = 0; i < helper->count; i++) {
    struct netns_socket *wanted = &helper->sockets[i];

    wanted->fd = wanted->refusals ? hear_refusals(wanted->address.any.sa_family == AF_INET6) : make(wanted);
    if (wanted->fd < 0 && !wanted->refusals && !(wanted->optional && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)))
      return fail(helper, wanted->unbound ? "socket" : "listen");
  }
  return 0;
}

static int run_helper(void *argument)
{
  struct helper *helper = argument;

  errno = 0;
  if (setns(helper->netns->userns, CLONE_NEWUSER) < 0)
    return fail(helper, "enter the user namespace");
  if (setns(helper->netns->net, CLONE_NEWNET) < 0)
    return fail(helper, "enter the network namespace");
  if (helper->route && add_routes(helper) != 0)
    return 1;
  return make_all(helper);
}

static int run_in_helper(struct helper *helper, struct err *err)
{
  char *stack = mmap(NULL, NETNS_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  sigset_t all;
  sigset_t old;
  pid_t pid;

  for (size_t i = 0; i < helper->count; i++)
    helper->sockets[i].fd = -1;
  if (stack == MAP_FAILED)
    return err_set_errno(err, ENOMEM, "sandbox's network: stack");
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  pid = clone(run_helper, stack + NETNS_STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, helper);
  if (pid < 0)
    (void)fail(helper, "clone");
  else
    (void)waitpid(pid, NULL, 0);
  sigprocmask(SIG_SETMASK, &old, NULL);
  munmap(stack, NETNS_STACK_BYTES);
  if (!helper->error)
    return 0;
  for (size_t i = 0; i < helper->count; i++)
    fd_close(&helper->sockets[i].fd);
  return err_set_errno(err, helper->error, "sandbox's network: %s", helper->step);
}

int netns_make(const struct netns *netns, struct netns_socket *sockets, size_t count, struct err *err)
{
  struct helper helper = { .netns = netns, .sockets = sockets, .count = count };

  return run_in_helper(&helper, err);
}

int netns_set_up(const struct netns *netns, int alive_fd, struct netns_socket *sockets, size_t count, struct err *err,
                 bool *ret_v6)
{
  struct helper helper = { .netns = netns, .route = true, .sockets = sockets, .count = count, .alive_fd = alive_fd };
  int r = run_in_helper(&helper, err);

  if (r == 0)
    *ret_v6 = helper.v6;
  return r;
}
