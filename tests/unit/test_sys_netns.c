#include "sys/netns.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 3128
#define FAR 0xc6120007 /* 198.18.0.7: nobody's */

/* A child with user and network namespaces of its own, lo up, that connects to PORT each time it is told where ("4" and
 * "6": its loopback, "f": FAR), and answers 'y' or 'n'. */
struct inside {
  pid_t pid;
  int talk; /* our end of a socketpair */
};

static bool raise_loopback(void)
{
  struct ifreq request = { .ifr_name = "lo" };
  fd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  request.ifr_flags = IFF_UP;
  return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

static char connect_to(char family)
{
  const struct sockaddr_in four = { .sin_family = AF_INET,
                                    .sin_port = htons(PORT),
                                    .sin_addr = { htonl(family == 'f' ? FAR : INADDR_LOOPBACK) } };
  const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                    .sin6_port = htons(PORT),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  fd_autoclose int fd = socket(family == '6' ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int r = family == '6' ? connect(fd, (const struct sockaddr *)&six, sizeof six)
                        : connect(fd, (const struct sockaddr *)&four, sizeof four);

  return r == 0 ? 'y' : 'n';
}

static void live_inside(int talk)
{
  char byte;

  byte = raise_loopback() ? 'u' : 'd';
  while (write(talk, &byte, 1) == 1 && read(talk, &byte, 1) == 1)
    byte = connect_to(byte);
  _exit(0);
}

static char ask(const struct inside *inside, char question)
{
  char answer = 0;

  if (question)
    assert_int_equal(write(inside->talk, &question, 1), 1);
  assert_int_equal(read(inside->talk, &answer, 1), 1);
  return answer;
}

static int start_inside(void **state)
{
  struct inside *inside = malloc(sizeof *inside);
  int ends[2];
  long pid;

  if (!inside || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return -1;
  pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    close(ends[0]);
    live_inside(ends[1]);
  }
  close(ends[1]);
  *inside = (struct inside){ .pid = (pid_t)pid, .talk = ends[0] };
  *state = inside;
  return pid > 0 && ask(inside, 0) == 'u' ? 0 : -1;
}

static int stop_inside(void **state)
{
  struct inside *inside = *state;

  close(inside->talk);
  (void)kill(inside->pid, SIGKILL);
  (void)waitpid(inside->pid, NULL, 0);
  free(inside);
  return 0;
}

static struct netns_socket wildcard(int type, uint16_t port)
{
  return (struct netns_socket){
    .type = type, .address.v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) }, .both = true, .fd = 77
  };
}

static void open_netns(const struct inside *inside, struct netns *ret_netns)
{
  struct err err = ERR_INIT;

  if (netns_open(inside->pid, &err, ret_netns) < 0)
    fail_msg("%s", err.message);
  assert_int_equal(fcntl(ret_netns->net, F_GETFD), FD_CLOEXEC);
  assert_int_equal(fcntl(ret_netns->userns, F_GETFD), FD_CLOEXEC);
}

static ino_t netns_of_self(void)
{
  struct stat stat_of;

  assert_int_equal(stat("/proc/self/ns/net", &stat_of), 0);
  return stat_of.st_ino;
}

/* The listener is reached from inside by both families, and accepts here. */
static void test_reached_from_inside(void **state)
{
  const struct inside *inside = *state;
  struct netns_socket listener = wildcard(SOCK_STREAM, PORT);
  struct netns netns;
  struct err err = ERR_INIT;
  ino_t before = netns_of_self();

  assert_int_equal(ask(inside, '4'), 'n'); /* nobody listens yet */
  open_netns(inside, &netns);
  if (netns_make(&netns, &listener, 1, &err) < 0)
    fail_msg("%s", err.message);
  netns_close(&netns);
  assert_int_equal(netns.net, -1);
  assert_int_equal(fcntl(listener.fd, F_GETFD), FD_CLOEXEC);
  assert_true(fcntl(listener.fd, F_GETFL) & O_NONBLOCK);
  assert_int_equal(accept(listener.fd, NULL, NULL), -1);
  assert_int_equal(errno, EAGAIN);
  for (const char *family = "46"; *family; family++) {
    int client;

    assert_int_equal(ask(inside, *family), 'y');
    client = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(client >= 0);
    close(client);
  }
  assert_int_equal(netns_of_self(), before);
  assert_int_equal(connect_to('4'), 'n'); /* it is not in our own network */
  close(listener.fd);
  assert_int_equal(ask(inside, '4'), 'n');
}

/* Once every address is local, one that nobody has reaches the listener, which learns it; before, it does not. */
static void test_local_route(void **state)
{
  const struct inside *inside = *state;
  struct netns_socket listener = wildcard(SOCK_STREAM, PORT);
  struct netns netns;
  struct err err = ERR_INIT;
  struct sockaddr_in6 name;
  socklen_t size = sizeof name;
  int alive[2];
  bool v6 = false;
  int client;

  assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
  open_netns(inside, &netns);
  assert_int_equal(netns_make(&netns, &listener, 1, &err), 0);
  assert_int_equal(ask(inside, 'f'), 'n');
  if (netns_set_up(&netns, alive[0], NULL, 0, &err, &v6) < 0)
    fail_msg("%s", err.message);
  assert_true(v6);
  assert_int_equal(ask(inside, 'f'), 'y');
  client = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
  assert_int_equal(getsockname(client, (struct sockaddr *)&name, &size), 0);
  assert_int_equal(ntohl(name.sin6_addr.s6_addr32[3]), FAR);
  close(client);
  close(listener.fd);
  close(alive[0]);
  close(alive[1]);
  netns_close(&netns);
}

static void test_several(void **state)
{
  const struct inside *inside = *state;
  struct netns_socket sockets[] = {
    wildcard(SOCK_STREAM, 80),
    wildcard(SOCK_STREAM, 65535),
    wildcard(SOCK_DGRAM, 53),
    { .type = SOCK_DGRAM, .address.v4 = { .sin_family = AF_INET, .sin_port = htons(54) } },
    { .type = SOCK_STREAM,
      .address.v4 = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = { htonl(FAR) } },
      .optional = true }
  };
  struct netns netns;
  struct err err = ERR_INIT;

  open_netns(inside, &netns);
  if (netns_make(&netns, sockets, MEM_COUNT(sockets), &err) < 0)
    fail_msg("%s", err.message);
  netns_close(&netns);
  for (size_t i = 0; i + 1 < MEM_COUNT(sockets); i++) {
    struct sockaddr_in6 name;
    socklen_t size = sizeof name;
    int type = 0;
    socklen_t type_size = sizeof type;

    assert_int_equal(getsockname(sockets[i].fd, (struct sockaddr *)&name, &size), 0);
    assert_int_equal(name.sin6_port, sockets[i].address.v6.sin6_port); /* in the same place for both families */
    assert_int_equal(getsockopt(sockets[i].fd, SOL_SOCKET, SO_TYPE, &type, &type_size), 0);
    assert_int_equal(type, sockets[i].type);
    close(sockets[i].fd);
  }
  assert_int_equal(sockets[4].fd, -1); /* no such address there, and nobody needs it */
}

/* A socket without an address is connected by us, and reaches a listener there; not one of our own network. */
static void test_unbound(void **state)
{
  const struct inside *inside = *state;
  const struct sockaddr_in loopback = { .sin_family = AF_INET,
                                        .sin_port = htons(PORT),
                                        .sin_addr = { htonl(INADDR_LOOPBACK) } };
  struct netns_socket sockets[] = { wildcard(SOCK_STREAM, PORT),
                                    { .type = SOCK_STREAM, .unbound = true, .address.any = { .sa_family = AF_INET } },
                                    { .type = SOCK_STREAM, .unbound = true, .address.any = { .sa_family = AF_INET6 } },
                                    { .type = SOCK_STREAM, .unbound = true, .address.any = { .sa_family = AF_INET } } };
  struct sockaddr_in6 name = { 0 };
  socklen_t size = sizeof name;
  struct netns netns;
  struct err err = ERR_INIT;

  open_netns(inside, &netns);
  assert_int_equal(netns_make(&netns, sockets, MEM_COUNT(sockets), &err), 0);
  netns_close(&netns);
  assert_int_equal(getsockname(sockets[2].fd, (struct sockaddr *)&name, &size), 0);
  assert_int_equal(name.sin6_family, AF_INET6);
  assert_int_equal(name.sin6_port, 0);
  assert_true(connect(sockets[1].fd, (const struct sockaddr *)&loopback, sizeof loopback) == 0 || errno == EINPROGRESS);
  assert_true(accept(sockets[0].fd, NULL, NULL) >= 0);
  close(sockets[0].fd);
  assert_int_equal(connect(sockets[3].fd, (const struct sockaddr *)&loopback, sizeof loopback), -1);
  for (size_t i = 1; i < MEM_COUNT(sockets); i++)
    close(sockets[i].fd);
}

/* All or nothing. */
static void test_failure_leaves_nothing(void **state)
{
  const struct inside *inside = *state;
  struct netns_socket taken = wildcard(SOCK_STREAM, PORT);
  struct netns_socket sockets[] = { wildcard(SOCK_STREAM, 80), wildcard(SOCK_STREAM, PORT) };
  struct netns netns;
  struct netns none = NETNS_INIT;
  struct err err = ERR_INIT;
  int next;

  open_netns(inside, &netns);
  assert_int_equal(netns_make(&netns, &taken, 1, &err), 0);
  next = dup(0);
  close(next);
  assert_int_equal(netns_make(&netns, sockets, MEM_COUNT(sockets), &err), -EADDRINUSE);
  assert_non_null(strstr(err.message, "listen"));
  assert_int_equal(sockets[0].fd, -1);
  assert_int_equal(sockets[1].fd, -1);
  assert_int_equal(dup(0), next); /* the lowest free number is what it was */
  close(next);
  close(taken.fd);
  netns_close(&netns);
  assert_int_equal(netns_open(0x7fffffff, &err, &none), -ENOENT);
  assert_int_equal(none.net, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_inside, stop_inside)

int main(void)
{
  const struct CMUnitTest tests[] = { TEST(test_reached_from_inside), TEST(test_local_route), TEST(test_several),
                                      TEST(test_unbound), TEST(test_failure_leaves_nothing) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
