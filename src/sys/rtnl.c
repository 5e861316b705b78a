#include "sys/rtnl.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define RTNL_WAIT_MS 10000
#define RTNL_LOOPBACK 1 /* index of `lo` in every network namespace */

static int open_rtnl(unsigned groups)
{
  struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = groups };
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

  if (fd < 0)
    return -errno;
  if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
    int saved = errno;

    fd_close(&fd);
    return -saved;
  }
  return fd;
}

/* 1, 0 or -errno. */
static int is_up(void)
{
  struct ifreq request = { .ifr_name = "lo" };
  fd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
    return -errno;
  return request.ifr_flags & IFF_UP ? 1 : 0;
}

int rtnl_await_loopback(int alive_fd)
{
  fd_autoclose int news = open_rtnl(RTMGRP_LINK); /* before the first look, so that no change falls in between */
  struct pollfd fds[] = { { .fd = news, .events = POLLIN }, { .fd = alive_fd, .events = 0 } };
  char drop[4096];

  if (news < 0)
    return news;
  for (;;) {
    int up = is_up();
    int n;

    if (up)
      return up < 0 ? up : 0;
    n = poll(fds, 2, RTNL_WAIT_MS);
    if (n == 0)
      return -ETIMEDOUT;
    if (n < 0 && errno != EINTR)
      return -errno;
    if (n > 0 && fds[1].revents)
      return -EPIPE;
    if (n > 0 && recv(news, drop, sizeof drop, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ENOBUFS)
      return -errno;
  }
}

struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr oif;
  int index;
};

int rtnl_add_local_default(int family)
{
  struct request request = {
    .header = { .nlmsg_len = sizeof request,
                .nlmsg_type = RTM_NEWROUTE,
                .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
                .nlmsg_seq = 1 },
    .route = { .rtm_family = (unsigned char)family,
               .rtm_table = RT_TABLE_LOCAL,
               .rtm_protocol = RTPROT_STATIC,
               .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
               .rtm_type = RTN_LOCAL },
    .oif = { .rta_len = sizeof request.oif + sizeof request.index, .rta_type = RTA_OIF },
    .index = RTNL_LOOPBACK,
  };
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
  } answer;
  fd_autoclose int fd = open_rtnl(0);
  ssize_t n;

  if (fd < 0)
    return fd;
  if (send(fd, &request, sizeof request, 0) != (ssize_t)sizeof request)
    return -errno;
  n = recv(fd, &answer, sizeof answer, 0);
  if (n < 0)
    return -errno;
  if (n < (ssize_t)sizeof answer || answer.header.nlmsg_type != NLMSG_ERROR)
    return -EPROTO;
  return answer.error.error == -EEXIST ? 0 : answer.error.error;
}
