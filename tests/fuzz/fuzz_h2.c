/* Theory of operation: both legs of a connection of HTTP/2.
 *
 * The proxy's parts stand in this process; a client and an origin are sockets without TLS, whose sessions have been
 * opened. An input is a script of steps: one byte says what is sent by whom, the next ones the details; whole frames
 * that make sense are as short as frames that make none. Two bits of the step's byte disturb calls of the proxy
 * meanwhile (short and interrupted), and keep the ends from reading, so that their sockets fill.
 *
 * What must hold, beside the sanitizers': a value goes only to an origin, in a request that names the host that was
 * verified; in no head that the client gets does it stand, although the origin sends it back; and at the end nothing is
 * held any more, no connection and no byte.
 */
#include "fuzz/fuzz.h"

#include "base/fd.h"
#include "policy/limits.h"
#include "policy/validate.h"
#include "proxy/ask.h"
#include "proxy/conn.h"
#include "proxy/h2.h"
#include "proxy/inside.h"
#include "proxy/notify.h"
#include "proxy/stub.h"
#include "proxy/values.h"

#include <errno.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define H2_STEPS_MAX 200
#define H2_HEAD_BYTES 9
#define PLACEHOLDER "placeholder0123456789"
#define VALUE "value-that-nobody-inside-may-see"
#define VALUE_TOO "value-that-takes-its-place-later"
#define MAX_READ (256 * 1024)

static const char policy_text[] =
    "{\"network\": {\"allow\": [\"h2.test\"]}, \"credentials\": {\"lab\": {\"source\": {\"env\": \"K\"}, "
    "\"env\": \"K\", \"bind\": [\"h2.test\"]}}}";

/* One peer of the proxy, and what it has been sent. */
struct peer {
  int fd;
  struct buf in;
  struct buf block; /* a header list that is not whole */
  nghttp2_hd_inflater *inflater; /* NULL: what it gets cannot be read any more */
};

static struct {
  struct proxy proxy;
  struct policy *policy;
  int control; /* sbx's end */
  struct peer client;
  struct peer origin;
  uint32_t next_stream;
  size_t inputs;
  size_t values_seen; /* over all inputs */
} world;

static uint32_t disturbed;

static size_t disturb(size_t len)
{
  unsigned what = 7;

  if (disturbed) {
    disturbed ^= disturbed << 13;
    disturbed ^= disturbed >> 17;
    disturbed ^= disturbed << 5;
    what = disturbed & 7;
  }
  if (what == 0) {
    errno = EINTR;
    return 0;
  }
  return what < 4 && len > what ? what : len;
}

ssize_t __real_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);

ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags)
{
  size_t now = disturb(len);

  return len && !now ? -1 : __real_recv(fd, bytes, now, flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
  size_t now = fd == world.proxy.control ? len : disturb(len);

  return len && !now ? -1 : __real_send(fd, bytes, now, flags);
}

/* The proxy. */

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

static void on_control(void *data, unsigned events)
{
  struct proxy *proxy = data;

  if (!(events & LOOP_WRITE))
    return;
  (void)notify_flush(proxy->notify);
  values_flush(proxy->values);
}

static void make_values(void)
{
  static struct control_placeholders placeholders = { .type = CONTROL_PLACEHOLDERS, .count = 1 };
  struct err err = ERR_INIT;

  snprintf(placeholders.placeholders[0], sizeof placeholders.placeholders[0], "%s", PLACEHOLDER);
  FUZZ_ASSERT(values_new(&world.proxy, &placeholders, &err, &world.proxy.values) == 0);
}

__attribute__((constructor)) static void set_up(void)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };
  struct proxy *proxy = &world.proxy;
  struct err err = ERR_INIT;
  int ends[2];

  FUZZ_ASSERT(sigaction(SIGPIPE, &ignore, NULL) == 0);
  FUZZ_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  proxy->control = ends[0];
  world.control = ends[1];
  world.policy = make_policy();
  proxy->policy = world.policy;
  proxy->budget.max = LIMITS_PROXY_BYTES;
  proxy->conn_max = proxy->reach_max = 64;
  FUZZ_ASSERT(loop_new(&err, &proxy->loop) == 0 && resolve_new(proxy->loop, &err, &proxy->resolve) == 0);
  FUZZ_ASSERT(audit_new(proxy->loop, open("/dev/null", O_WRONLY | O_CLOEXEC), "fuzz", &proxy->audit) == 0);
  proxy->ask = ask_new(proxy, false);
  proxy->inside = inside_new(proxy);
  proxy->notify = notify_new(proxy);
  proxy->stub = stub_new(proxy, true, 0);
  FUZZ_ASSERT(proxy->ask && proxy->inside && proxy->notify && proxy->stub);
  FUZZ_ASSERT(loop_io_new(proxy->loop, proxy->control, on_control, proxy, &proxy->control_io) == 0);
}

/* Where no value ever goes out nothing of them is tested. */
__attribute__((destructor)) static void check_values(void)
{
  FUZZ_ASSERT(world.values_seen || world.inputs < 1000);
}

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

/* What the proxy sends. */

static bool has_value(struct span text)
{
  static const char *const values[] = { VALUE, VALUE_TOO };

  for (size_t i = 0; i < MEM_COUNT(values); i++)
    if (memmem(text.ptr, text.len, values[i], strlen(values[i])))
      return true;
  return false;
}

static void check_block(struct peer *peer)
{
  const uint8_t *at = (const uint8_t *)peer->block.data;
  size_t left = peer->block.len;
  bool named = false;
  bool value = false;
  int flags = 0;

  while (peer->inflater && !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
    nghttp2_nv nv;
    ssize_t n = nghttp2_hd_inflate_hd2(peer->inflater, &nv, &flags, at, left, 1);

    if (n < 0) {
      nghttp2_hd_inflate_del(peer->inflater);
      peer->inflater = NULL;
      return;
    }
    at += n;
    left -= (size_t)n;
    if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
      continue;
    named |= span_equal_str((struct span){ (char *)nv.name, nv.namelen }, ":authority") &&
             span_equal_str((struct span){ (char *)nv.value, nv.valuelen }, "h2.test");
    value |= has_value((struct span){ (char *)nv.value, nv.valuelen }) ||
             has_value((struct span){ (char *)nv.name, nv.namelen });
  }
  if (peer->inflater)
    nghttp2_hd_inflate_end_headers(peer->inflater);
  FUZZ_ASSERT(!value || (peer == &world.origin && named));
  world.values_seen += value;
  buf_free(&peer->block);
}

static void check_frames(struct peer *peer)
{
  if (peer == &world.origin && peer->in.len >= 24 && memcmp(peer->in.data, "PRI ", 4) == 0)
    buf_consume(&peer->in, 24);
  while (peer->in.len >= H2_HEAD_BYTES) {
    const unsigned char *head = (const unsigned char *)peer->in.data;
    size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint8_t type = head[3];
    uint8_t flags = head[4];

    if (peer->in.len < H2_HEAD_BYTES + len)
      return;
    if (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) {
      FUZZ_ASSERT(!(flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)));
      buf_append(&peer->block, span_sub(buf_span(&peer->in), H2_HEAD_BYTES, len));
      if (flags & NGHTTP2_FLAG_END_HEADERS)
        check_block(peer);
    }
    buf_consume(&peer->in, H2_HEAD_BYTES + len);
  }
}

static void read_peer(struct peer *peer)
{
  char bytes[65536];
  ssize_t n;

  while (peer->fd >= 0 && peer->in.len < MAX_READ && (n = read(peer->fd, bytes, sizeof bytes)) > 0) {
    buf_append(&peer->in, (struct span){ bytes, (size_t)n });
    check_frames(peer);
  }
}

static void look_around(bool slow)
{
  char drop[65536];

  turn(2);
  if (!slow) {
    read_peer(&world.client);
    read_peer(&world.origin);
  }
  while (read(world.control, drop, sizeof drop) > 0)
    ;
}

/* What its peers send. */

static void put(const struct peer *peer, struct span bytes)
{
  if (peer->fd >= 0)
    (void)!write(peer->fd, bytes.ptr, bytes.len);
}

static void put_frame(const struct peer *peer, uint8_t type, uint8_t flags, uint32_t stream, struct span payload)
{
  struct buf out = BUF_INIT(H2_HEAD_BYTES + 70000);
  const unsigned char head[H2_HEAD_BYTES] = {
    (unsigned char)(payload.len >> 16),
    (unsigned char)(payload.len >> 8),
    (unsigned char)payload.len,
    type,
    flags,
    (unsigned char)(stream >> 24),
    (unsigned char)(stream >> 16),
    (unsigned char)(stream >> 8),
    (unsigned char)stream,
  };

  buf_append(&out, (struct span){ (const char *)head, sizeof head });
  buf_append(&out, payload);
  put(peer, buf_span(&out));
  buf_free(&out);
}

/* A literal that is not indexed (RFC 7541, 6.2.2). */
static void add_field(struct buf *out, const char *name, const char *value)
{
  buf_append_byte(out, 0);
  buf_append_byte(out, (char)strlen(name));
  buf_append_str(out, name);
  buf_append_byte(out, (char)strlen(value));
  buf_append_str(out, value);
}

static void put_request(uint8_t kind)
{
  static const char *const fields[][2] = {
    { "authorization", "Bearer " PLACEHOLDER }, { "x-own", PLACEHOLDER }, { "host", "evil.test" }, { "accept", "*/*" }
  };
  buf_autofree struct buf block = BUF_INIT(4096);

  add_field(&block, ":method", kind & 1 ? "POST" : kind & 0x40 ? "HEAD" : "GET");
  add_field(&block, ":scheme", "https");
  add_field(&block, ":authority", kind & 2 ? "evil.test" : "h2.test");
  add_field(&block, ":path", kind & 0x20 ? "/a?key=" PLACEHOLDER : "/");
  add_field(&block, fields[kind >> 2 & 3][0], fields[kind >> 2 & 3][1]);
  put_frame(&world.client, NGHTTP2_HEADERS, kind & 0x10 ? 4 : 5, world.next_stream, buf_span(&block));
  world.next_stream += 2;
}

static uint32_t stream_of(uint8_t which)
{
  return 2 * (uint32_t)(which & 7) + 1;
}

/* The value, where the proxy has it: no other can be known in what comes back. */
static const char *known(const char *value)
{
  size_t count;
  const struct inject_secret *list = values_known(world.proxy.values, &count);

  for (size_t i = 0; i < count; i++)
    if (span_equal_str(list[i].value, value))
      return value;
  return "nothing";
}

static void put_response(uint8_t kind, uint8_t which)
{
  static const char *const statuses[] = { "200", "401", "103", "204" };
  buf_autofree struct buf block = BUF_INIT(4096);

  if (!(kind & 0x10))
    add_field(&block, ":status", statuses[kind & 3]);
  add_field(&block, "x-back", kind & 4 ? known(VALUE) : "plain");
  if (kind & 0x20)
    add_field(&block, known(VALUE), "a name");
  put_frame(&world.origin, NGHTTP2_HEADERS, kind & 8 ? 5 : 4, stream_of(which), buf_span(&block));
}

static void put_data(const struct peer *peer, uint8_t kind, uint8_t which)
{
  static char zeros[16384];

  put_frame(peer, NGHTTP2_DATA, kind & 1, stream_of(which), (struct span){ zeros, (size_t)(kind >> 1) * 128 });
}

static void put_trailer(const struct peer *peer, uint8_t which)
{
  buf_autofree struct buf block = BUF_INIT(4096);

  add_field(&block, "x-late", peer == &world.origin ? known(VALUE_TOO) : PLACEHOLDER);
  put_frame(peer, NGHTTP2_HEADERS, 5, stream_of(which), buf_span(&block));
}

static void answer_value(uint8_t kind)
{
  struct control_secret message = { .type = CONTROL_SECRET };

  if (!(kind & 1)) {
    message.len = sizeof VALUE - 1;
    memcpy(message.value, kind & 2 ? VALUE_TOO : VALUE, message.len);
  }
  values_answer(world.proxy.values, &message);
}

static void reset_end(struct peer *peer)
{
  if (peer->fd >= 0)
    shutdown(peer->fd, SHUT_RDWR);
  fd_close(&peer->fd);
}

static void step(uint8_t what, uint8_t kind, uint8_t which, struct span bytes)
{
  switch (what & 15) {
  case 0:
    put(&world.client, bytes);
    break;
  case 1:
    put(&world.origin, bytes);
    break;
  case 2:
    put_request(kind);
    break;
  case 3:
    put_response(kind, which);
    break;
  case 4:
    put_data(&world.client, kind, which);
    break;
  case 5:
    put_data(&world.origin, kind, which);
    break;
  case 6:
    put_trailer(&world.client, which);
    break;
  case 7:
    put_trailer(&world.origin, which);
    break;
  case 8:
    answer_value(kind);
    break;
  case 9:
    put_frame(&world.client, kind & 15, which >> 4, kind & 0x10 ? 0 : stream_of(which), bytes);
    break;
  case 10:
    put_frame(&world.origin, kind & 15, which >> 4, kind & 0x10 ? 0 : stream_of(which), bytes);
    break;
  case 11:
    shutdown(world.client.fd, SHUT_WR);
    break;
  case 12:
    shutdown(world.origin.fd, SHUT_WR);
    break;
  case 13:
    reset_end(&world.client);
    break;
  case 14:
    reset_end(&world.origin);
    break;
  default: /* only time passes */
    break;
  }
}

static uint8_t take_byte(struct span *script)
{
  uint8_t byte = script->len ? (uint8_t)script->ptr[0] : 0;

  *script = span_sub(*script, 1, script->len);
  return byte;
}

static bool take_step(struct span *script)
{
  uint8_t what = take_byte(script);
  uint8_t kind = take_byte(script);
  uint8_t which = take_byte(script);
  size_t len = (what & 15) < 2 || (what & 15) == 9 || (what & 15) == 10 ? take_byte(script) : 0;

  len = len < script->len ? len : script->len;
  disturbed = what & 0x10 ? 0x9e3779b9u + what + kind : 0;
  step(what, kind, which, span_sub(*script, 0, len));
  *script = span_sub(*script, len, script->len);
  look_around(what & 0x20);
  disturbed = 0;
  return script->len > 0;
}

static int open_peer(struct peer *peer)
{
  int small = 4096;
  int ends[2];

  *peer = (struct peer){ .in = BUF_INIT(MAX_READ * 2), .block = BUF_INIT(MAX_READ * 2) };
  FUZZ_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  FUZZ_ASSERT(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  FUZZ_ASSERT(nghttp2_hd_inflate_new(&peer->inflater) == 0);
  peer->fd = ends[1];
  return ends[0];
}

static void close_peer(struct peer *peer)
{
  fd_close(&peer->fd);
  nghttp2_hd_inflate_del(peer->inflater);
  buf_free(&peer->in);
  buf_free(&peer->block);
}

static void not_ready(void *data)
{
  (void)data;
}

static void open_connection(bool refused)
{
  struct proxy *proxy = &world.proxy;
  struct http_fixed fixed = { .port = 443, .tls = true, .via = "http", .refused = refused };
  struct sock origin;

  FUZZ_ASSERT(host_parse(SPAN("h2.test"), NULL, &fixed.host) == 0);
  fixed.name = fixed.host;
  fixed.refusal = (struct verdict){ .allow = true, .reason = REASON_UPSTREAM_TLS };
  conn_new(proxy, CONTROL_FRONT_HTTP, 0, open_peer(&world.client));
  FUZZ_ASSERT(proxy->conns);
  FUZZ_ASSERT(sock_open(&origin, proxy->loop, &proxy->budget, open_peer(&world.origin), not_ready, NULL) == 0);
  if (refused)
    sock_close(&origin, false);
  put(&world.client, SPAN(NGHTTP2_CLIENT_MAGIC));
  put_frame(&world.client, NGHTTP2_SETTINGS, 0, 0, SPAN(""));
  put_frame(&world.origin, NGHTTP2_SETTINGS, 0, 0, SPAN(""));
  world.next_stream = 1;
  h2_start(proxy->conns, &fixed, refused ? NULL : &origin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span script = { (const char *)data, size };
  unsigned steps = 0;

  world.inputs++;
  make_values();
  open_connection(take_byte(&script) & 1);
  look_around(false);
  while (steps++ < H2_STEPS_MAX && take_step(&script))
    ;
  look_around(false);
  close_peer(&world.client);
  close_peer(&world.origin);
  turn(2);
  conn_end_all(&world.proxy);
  values_free(world.proxy.values);
  world.proxy.values = NULL;
  FUZZ_ASSERT(world.proxy.conn_count == 0 && world.proxy.budget.used == 0);
  return 0;
}
