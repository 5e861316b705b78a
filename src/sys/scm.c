#include "sys/scm.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(SCM_FDS_MAX * sizeof(int))];
};

int scm_send(int socket, struct span bytes, const int *fds, size_t count)
{
  union control control = { .bytes = { 0 } };
  struct iovec iov = { .iov_len = bytes.len };
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
  struct cmsghdr *header;
  ssize_t n;

  if (count > SCM_FDS_MAX || bytes.len == 0)
    return -EINVAL;
  memcpy(&iov.iov_base, &bytes.ptr, sizeof iov.iov_base);
  if (count) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  do {
    n = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0)
    return -errno;
  return (size_t)n == bytes.len ? 0 : -EMSGSIZE;
}

/* Moves the descriptors of one control message into fds, and closes those that do not fit. Returns how many did not. */
static size_t take_fds(struct cmsghdr *header, int *fds, size_t room, size_t *taken)
{
  size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  size_t lost = 0;

  for (size_t i = 0; i < count; i++) {
    int fd;

    memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
    if (*taken < room) {
      fds[(*taken)++] = fd;
      continue;
    }
    fd_close(&fd);
    lost++;
  }
  return lost;
}

ssize_t scm_recv(int socket, void *bytes, size_t size, int *fds, size_t *count)
{
  union control control = { .bytes = { 0 } };
  struct iovec iov = { .iov_base = bytes, .iov_len = size };
  struct msghdr message = {
    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
  };
  size_t taken = 0;
  size_t lost = 0;
  ssize_t n;

  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0)
    return -errno;
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
      lost += take_fds(at, fds, *count, &taken);
  }
  if (lost || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
    for (size_t i = 0; i < taken; i++)
      fd_close(&fds[i]);
    return -EMSGSIZE;
  }
  *count = taken;
  return n;
}
