/* Theory of operation
 *
 * A socket belongs to the network namespace in which socket(2) was called, wherever its descriptor goes later. A child
 * that shares our memory and our descriptor table (CLONE_VM | CLONE_FILES) joins the user namespace that owns the
 * network namespace, then the network namespace itself, and opens the listeners: they stand in our own table at once,
 * and our own namespaces never changed. CLONE_VFORK suspends us meanwhile.
 *
 * Listeners on the wildcard address do not need `lo` to be up, so there is nothing to wait for: whoever set up the
 * namespace brings `lo` up before it starts the command.
 */
#include "sys/netns.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NETNS_STACK_BYTES (64 * 1024)
#define NETNS_BACKLOG 4096

struct helper {
  int userns;
  int netns;
  struct netns_listener *listeners;
  size_t count;
  const char *volatile step;
  volatile int error;
};

static int fail(struct helper *helper, const char *step)
{
  helper->step = step;
  helper->error = errno;
  return 1;
}

/* Both families on one socket; IPv4 alone where the kernel has no IPv6. */
static int listen_wildcard(uint16_t port)
{
  struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any };
  struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_ANY) } };
  int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int fd = socket(AF_INET6, type, 0);
  int off = 0;
  int r;

  if (fd >= 0) {
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    r = bind(fd, (const struct sockaddr *)&six, sizeof six);
  } else {
    fd = socket(AF_INET, type, 0);
    if (fd < 0)
      return -1;
    r = bind(fd, (const struct sockaddr *)&four, sizeof four);
  }
  if (r < 0 || listen(fd, NETNS_BACKLOG) < 0) {
    fd_close(&fd);
    return -1;
  }
  return fd;
}

static int run_helper(void *argument)
{
  struct helper *helper = argument;

  errno = 0;
  if (setns(helper->userns, CLONE_NEWUSER) < 0)
    return fail(helper, "enter the user namespace");
  if (setns(helper->netns, CLONE_NEWNET) < 0)
    return fail(helper, "enter the network namespace");
  for (size_t i = 0; i < helper->count; i++) {
    helper->listeners[i].fd = listen_wildcard(helper->listeners[i].port);
    if (helper->listeners[i].fd < 0)
      return fail(helper, "listen");
  }
  return 0;
}

static int run_in_helper(struct helper *helper, struct err *err)
{
  char *stack = mmap(NULL, NETNS_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  sigset_t all;
  sigset_t old;
  pid_t pid;

  if (stack == MAP_FAILED)
    return err_set_errno(err, ENOMEM, "network: stack");
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  pid = clone(run_helper, stack + NETNS_STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, helper);
  if (pid < 0)
    (void)fail(helper, "clone");
  else
    (void)waitpid(pid, NULL, 0);
  sigprocmask(SIG_SETMASK, &old, NULL);
  munmap(stack, NETNS_STACK_BYTES);
  return helper->error ? err_set_errno(err, helper->error, "network listeners: %s", helper->step) : 0;
}

int netns_listen(pid_t pid, struct netns_listener *listeners, size_t count, struct err *err)
{
  struct helper helper = { .listeners = listeners, .count = count };
  fd_autoclose int netns = -1;
  fd_autoclose int userns = -1;
  char path[64];
  int r;

  for (size_t i = 0; i < count; i++)
    listeners[i].fd = -1;
  snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
  netns = open(path, O_RDONLY | O_CLOEXEC);
  if (netns < 0)
    return err_set_errno(err, errno, "network listeners: %s", path);
  userns = ioctl(netns, NS_GET_USERNS);
  if (userns < 0)
    return err_set_errno(err, errno, "network listeners: NS_GET_USERNS");
  (void)fd_set_cloexec(userns, true);
  helper.netns = netns;
  helper.userns = userns;
  r = run_in_helper(&helper, err);
  if (r < 0) {
    for (size_t i = 0; i < count; i++)
      fd_close(&listeners[i].fd);
  }
  return r;
}
