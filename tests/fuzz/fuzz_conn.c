/* Theory of operation: whole connections through the proxy.
 *
 * The proxy's parts stand in this process as main.c puts them together, with real sockets. Two network namespaces of
 * our own: in the first, the sandbox's, every address is local and the fronts listen; in the second, the host's, every
 * address is local too and one origin listens for all of them. So the proxy dials what it has decided on, whatever
 * that is, and the origin sees which address it was.
 *
 * An input is a script: first byte the front, second what the transparent front takes for the target; then steps of
 * one byte, a length where bytes follow, and the bytes. Of the step's byte the low three bits say what to do, the next
 * two whether calls of the proxy are disturbed meanwhile, the next whether the ends read nothing for now. recv(2),
 * send(2) and splice(2) of the proxy go through wrappers of the linker's, which cut them short or interrupt them.
 *
 * What must hold, beside the sanitizers': only allowed addresses are dialled; what an origin reads first names the host
 * that was allowed, in TLS and in HTTP; and at the end nothing is held any more, no connection and no byte.
 */
#include "fuzz/fuzz.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "policy/print.h"
#include "policy/validate.h"
#include "proxy/ask.h"
#include "proxy/conn.h"
#include "proxy/http_head.h"
#include "proxy/inside.h"
#include "proxy/notify.h"
#include "proxy/stub.h"
#include "proxy/tls_hello.h"
#include "sys/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONN_ORIGINS_MAX 8
#define CONN_STEPS_MAX 200
#define CONN_FIRST_BYTES LIMITS_TLS_HELLO_BYTES

/* origin.test is a name; the other address is allowed as such. evil.test has an address and no rule. */
static const char hosts_text[] = "127.0.0.1 localhost\n192.0.2.10 origin.test\n192.0.2.66 evil.test\n";
static const char policy_text[] = "{\"network\": {\"allow\": [\"origin.test\", \"origin.test:7\", \"192.0.2.20:80\", "
                                  "\"192.0.2.20:7\"], \"deny\": [\"192.0.2.66\"]}}";
static const char *const targets[] = { "192.0.2.10", "192.0.2.20", "192.0.2.66", "127.0.0.1" };

struct origin {
  int fd;
  bool named; /* reached by the name, and by nothing else */
  size_t len;
  char first[CONN_FIRST_BYTES];
};

static struct {
  struct proxy proxy;
  struct policy *policy;
  int control; /* sbx's end */
  int inside; /* the sandbox's network namespace */
  int outside;
  int fronts[3]; /* listeners: HTTP, SOCKS5, transparent on port 7 */
  int tls; /* transparent on port 443 */
  int web; /* transparent on port 80 */
  int listen[3]; /* of the origin: 80, 443, 7 */
  struct origin origins[CONN_ORIGINS_MAX];
  size_t origin_count;
  int client;
  size_t inputs;
  size_t reached; /* connections to an origin, over all inputs */
} world;

/* Disturbances: a generator that the script sets; 0 is off. */
static uint32_t disturbed;

static unsigned next_disturbance(void)
{
  disturbed ^= disturbed << 13;
  disturbed ^= disturbed >> 17;
  disturbed ^= disturbed << 5;
  return disturbed & 7;
}

/* The length to go on with; 0: the call is interrupted. */
static size_t disturb(size_t len)
{
  unsigned what = disturbed ? next_disturbance() : 7;

  if (what == 0) {
    errno = EINTR;
    return 0;
  }
  if (what < 4)
    return len < what ? len : what;
  return len;
}

ssize_t __real_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_splice(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);
ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);

ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags)
{
  size_t now = disturb(len);

  return len && !now ? -1 : __real_recv(fd, bytes, now, flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
  /* A message to sbx goes whole or not at all. */
  size_t now = fd == world.proxy.control ? len : disturb(len);

  return len && !now ? -1 : __real_send(fd, bytes, now, flags);
}

ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags)
{
  size_t now = disturb(len);

  return len && !now ? -1 : __real_splice(in, in_at, out, out_at, now, flags);
}

static void put(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  FUZZ_ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  fd_close(&fd);
}

static void new_user_namespace(void)
{
  char map[64];
  uid_t uid = geteuid();
  gid_t gid = getegid();

  FUZZ_ASSERT(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
  put("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1\n", gid, gid);
  put("/proc/self/gid_map", map);
  snprintf(map, sizeof map, "%u %u 1\n", uid, uid);
  put("/proc/self/uid_map", map);
}

/* A hosts file of ours over the host's, for this process alone. */
static void cover_hosts(void)
{
  char path[] = "/tmp/sbx-fuzz-hosts.XXXXXX";
  int fd = mkstemp(path);

  FUZZ_ASSERT(fd >= 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
  put(path, hosts_text);
  FUZZ_ASSERT(mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0);
  unlink(path);
  fd_close(&fd);
}

static int new_network(void)
{
  struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
  int fd;

  FUZZ_ASSERT(unshare(CLONE_NEWNET) == 0);
  fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  FUZZ_ASSERT(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0);
  fd_close(&fd);
  put("/proc/sys/net/ipv4/tcp_wmem", "4096 4608 8192"); /* so that a slow reader is felt soon */
  put("/proc/sys/net/ipv4/tcp_rmem", "4096 4608 8192");
  put("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0"); /* two thousand inputs in a second would use up the ports */
  FUZZ_ASSERT(rtnl_add_local_default(AF_INET) == 0);
  (void)rtnl_add_local_default(AF_INET6);
  fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  FUZZ_ASSERT(fd >= 0);
  return fd;
}

static int listen_on(uint16_t port)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  FUZZ_ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0);
  return fd;
}

static struct policy *make_policy(void)
{
  struct layers *layers = layers_new();
  struct policy *policy = NULL;
  struct strv notes = STRV_INIT;
  struct err err = ERR_INIT;

  FUZZ_ASSERT(layers && layers_add_text(layers, LAYER_FILE, "fuzz", span_of(policy_text), &err) == 0);
  FUZZ_ASSERT(policy_validate(layers, &err, &notes, &policy) == 0);
  strv_free(&notes);
  layers_free(layers);
  return policy;
}

/* sbx answers nothing here; what it is to be told finds room again. */
static void on_control(void *data, unsigned events)
{
  struct proxy *proxy = data;

  if (!(events & LOOP_WRITE))
    return;
  inside_flush(proxy->inside);
  (void)notify_flush(proxy->notify);
}

static void make_proxy(void)
{
  struct proxy *proxy = &world.proxy;
  struct err err = ERR_INIT;
  int ends[2];

  FUZZ_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  proxy->control = ends[0];
  world.control = ends[1];
  world.policy = make_policy();
  proxy->policy = world.policy;
  proxy->budget.max = LIMITS_PROXY_BYTES;
  proxy->conn_max = 64;
  proxy->reach_max = 64;
  splice_open(&proxy->splice);
  FUZZ_ASSERT(loop_new(&err, &proxy->loop) == 0 && resolve_new(proxy->loop, &err, &proxy->resolve) == 0);
  FUZZ_ASSERT(audit_new(proxy->loop, open("/dev/null", O_WRONLY | O_CLOEXEC), "fuzz", &proxy->audit) == 0);
  proxy->ask = ask_new(proxy, false);
  proxy->listener_max = LIMITS_LISTENERS;
  proxy->inside = inside_new(proxy);
  proxy->notify = notify_new(proxy);
  proxy->stub = stub_new(proxy, true, 0);
  FUZZ_ASSERT(proxy->ask && proxy->inside && proxy->notify && proxy->stub);
  FUZZ_ASSERT(loop_io_new(proxy->loop, proxy->control, on_control, proxy, &proxy->control_io) == 0);
}

/* Before main, and so before libFuzzer has threads: a user namespace is made by a process of one thread only. */
__attribute__((constructor)) static void set_up(void)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };

  FUZZ_ASSERT(sigaction(SIGPIPE, &ignore, NULL) == 0);
  new_user_namespace();
  cover_hosts();
  world.inside = new_network();
  world.fronts[0] = listen_on(3128);
  world.fronts[1] = listen_on(1080);
  world.fronts[2] = listen_on(7);
  world.tls = listen_on(443);
  world.web = listen_on(80);
  world.outside = new_network();
  world.listen[0] = listen_on(80);
  world.listen[1] = listen_on(443);
  world.listen[2] = listen_on(7);
  make_proxy();
}

/* What never reaches an origin tests half of the proxy. */
__attribute__((destructor)) static void check_reached(void)
{
  FUZZ_ASSERT(world.reached || world.inputs < 1000);
}

/* The loop. */

static void on_turn(void *data)
{
  loop_stop(data);
}

static void turn(unsigned count)
{
  struct loop_timer *timer = NULL;

  FUZZ_ASSERT(loop_timer_new(world.proxy.loop, on_turn, world.proxy.loop, &timer) == 0);
  while (count--) {
    loop_timer_set(timer, 0);
    loop_run(world.proxy.loop);
  }
  loop_timer_free(&timer);
}

/* What an origin reads first names the host that was allowed. */

static void check_hello(struct span bytes)
{
  static char scratch[LIMITS_TLS_HELLO_BYTES];
  struct tls_hello_scan scan = { 0 };
  struct tls_hello hello;
  size_t len;

  if (tls_hello_scan(&scan, bytes, NULL, &len) != 1)
    return;
  FUZZ_ASSERT(tls_hello_parse(span_sub(bytes, 0, len), scratch, NULL, &hello) == 0);
  FUZZ_ASSERT(strcmp(hello.host.name, "origin.test") == 0);
}

static void check_request(struct span bytes)
{
  static struct http_head head;
  struct http_scan scan = { 0 };
  const struct http_field *host;
  size_t count;
  size_t len;

  if (http_head_scan(&scan, bytes, &len) != 1 || http_head_parse_request(span_sub(bytes, 0, len), NULL, &head) < 0)
    return;
  host = http_head_find(&head, "host", &count);
  FUZZ_ASSERT(count <= 1);
  FUZZ_ASSERT(!host || (host->value.len >= 11 && span_equal_str(span_sub(host->value, 0, 11), "origin.test")));
}

static void check_first(const struct origin *origin)
{
  struct span bytes = { origin->first, origin->len };

  if (!origin->named || !bytes.len)
    return;
  if (bytes.ptr[0] == 0x16)
    check_hello(bytes);
  else
    check_request(bytes);
}

static void accept_origin(int listener)
{
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  struct origin *origin = &world.origins[world.origin_count];
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  char text[INET_ADDRSTRLEN];

  if (fd < 0)
    return;
  FUZZ_ASSERT(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
  FUZZ_ASSERT(inet_ntop(AF_INET, &address.sin_addr, text, sizeof text));
  FUZZ_ASSERT(strcmp(text, "192.0.2.10") == 0 || (strcmp(text, "192.0.2.20") == 0 && ntohs(address.sin_port) != 443));
  if (world.origin_count == CONN_ORIGINS_MAX) {
    close(fd);
    return;
  }
  world.origin_count++;
  world.reached++;
  origin->fd = fd;
  origin->named = strcmp(text, "192.0.2.10") == 0;
  origin->len = 0;
}

static void read_origin(struct origin *origin)
{
  char drop[65536];
  ssize_t n;

  while (origin->fd >= 0 && (n = read(origin->fd, drop, sizeof drop)) > 0) {
    size_t keep = (size_t)n < sizeof origin->first - origin->len ? (size_t)n : sizeof origin->first - origin->len;

    memcpy(origin->first + origin->len, drop, keep);
    origin->len += keep;
    check_first(origin);
  }
}

/* slow: whoever is sent to does not read for now. */
static void look_around(bool slow)
{
  char drop[65536];

  turn(2);
  for (size_t i = 0; i < MEM_COUNT(world.listen); i++)
    accept_origin(world.listen[i]);
  for (size_t i = 0; i < world.origin_count && !slow; i++)
    read_origin(&world.origins[i]);
  while (!slow && world.client >= 0 && read(world.client, drop, sizeof drop) > 0)
    ;
  while (read(world.control, drop, sizeof drop) > 0)
    ;
}

/* The script. */

/* A client that has connected to the front that two bytes choose, and the proxy's end of it. */
static void open_client(uint8_t front, uint8_t target)
{
  static const enum control_front kinds[] = { CONTROL_FRONT_HTTP, CONTROL_FRONT_SOCKS5, CONTROL_FRONT_TRANSPARENT,
                                              CONTROL_FRONT_TRANSPARENT, CONTROL_FRONT_TRANSPARENT };
  const int listeners[] = { world.fronts[0], world.fronts[1], world.fronts[2], world.tls, world.web };
  static const uint16_t ports[] = { 3128, 1080, 7, 443, 80 };
  size_t which = front % MEM_COUNT(kinds);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(ports[which]) };
  int fd;

  FUZZ_ASSERT(inet_pton(AF_INET, targets[target % MEM_COUNT(targets)], &address.sin_addr) == 1);
  FUZZ_ASSERT(setns(world.inside, CLONE_NEWNET) == 0);
  world.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FUZZ_ASSERT(world.client >= 0 && connect(world.client, (struct sockaddr *)&address, sizeof address) == 0);
  FUZZ_ASSERT(setns(world.outside, CLONE_NEWNET) == 0);
  FUZZ_ASSERT(fd_set_nonblock(world.client, true) == 0);
  fd = accept4(listeners[which], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  FUZZ_ASSERT(fd >= 0);
  conn_new(&world.proxy, kinds[which], 0, fd);
}

static void reset_end(int *fd)
{
  struct linger linger = { .l_onoff = 1, .l_linger = 0 };

  if (*fd >= 0)
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  fd_close(fd);
}

static void step(uint8_t what, struct span bytes)
{
  struct origin *origin = world.origin_count ? &world.origins[world.origin_count - 1] : NULL;

  switch (what & 7) {
  case 0:
  case 1:
    if (world.client >= 0)
      (void)!write(world.client, bytes.ptr, bytes.len);
    break;
  case 2:
    if (origin && origin->fd >= 0)
      (void)!write(origin->fd, bytes.ptr, bytes.len);
    break;
  case 3:
    if (world.client >= 0)
      shutdown(world.client, SHUT_WR);
    break;
  case 4:
    if (origin && origin->fd >= 0)
      shutdown(origin->fd, SHUT_WR);
    break;
  case 5:
    reset_end(&world.client);
    break;
  case 6:
    if (origin)
      reset_end(&origin->fd);
    break;
  default: /* only time passes */
    break;
  }
}

static bool take_step(struct span *script)
{
  uint8_t what;
  size_t len = 0;

  if (!script->len)
    return false;
  what = (uint8_t)script->ptr[0];
  *script = span_sub(*script, 1, script->len);
  if ((what & 7) < 3 && script->len >= 2) {
    len = (size_t)(uint8_t)script->ptr[0] << 8 | (uint8_t)script->ptr[1];
    *script = span_sub(*script, 2, script->len);
    len = len < script->len ? len : script->len;
  }
  disturbed = what & 0x18 ? 0x9e3779b9u + what : 0;
  step(what, span_sub(*script, 0, len));
  *script = span_sub(*script, len, script->len);
  look_around(what & 0x20);
  return true;
}

static void close_origins(void)
{
  for (size_t i = 0; i < world.origin_count; i++)
    fd_close(&world.origins[i].fd);
  world.origin_count = 0;
}

static void clear(void)
{
  disturbed = 0;
  fd_close(&world.client);
  close_origins();
  conn_end_all(&world.proxy);
  look_around(false);
  close_origins();
  FUZZ_ASSERT(!world.proxy.conns && !world.proxy.conn_count && !world.proxy.budget.used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span script = { (const char *)data, size };

  if (size < 3)
    return 0;
  world.inputs++;
  open_client(data[0], data[1]);
  script = span_sub(script, 2, size);
  for (unsigned steps = 0; steps < CONN_STEPS_MAX && take_step(&script); steps++)
    continue;
  clear();
  return 0;
}
