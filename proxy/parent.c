/* Theory of operation
 *
 *   CONNECT ── 2xx ──> done                          (http://)
 *   METHODS ── login wanted ──> LOGIN ── taken ──> REQUEST ── 0 ──> done      (socks5://, socks5h://)
 *      └──────── none wanted ─────────────────────────┘
 *
 * Each state has sent its message and waits for the answer to it; the next message goes out only then. Any other
 * answer, a malformed one or the end of the stream ends it. The deadline is the caller's.
 *
 * Nothing behind the last answer is taken off the socket, since it is the tunnel's: in many protocols the server speaks
 * first, and its first bytes may come together with the parent's. So bytes are looked at (MSG_PEEK) before they are
 * taken: of an answer that is not whole yet all, of the last one as many as it has.
 */
#include "proxy/parent.h"

#include "base/fd.h"
#include "proxy/parent_reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define OUT_BYTES_MAX 4096
#define PEEK_BYTES 2048

enum parent_state {
  PARENT_CONNECT,
  PARENT_METHODS,
  PARENT_LOGIN,
  PARENT_REQUEST,
};

struct parent {
  struct loop *loop;
  const struct upstream *upstream;
  struct host host;
  uint16_t port;
  int fd;
  struct loop_io *io;
  enum parent_state state;
  struct buf out; /* the message of this state */
  size_t sent;
  struct buf in; /* the beginning of the answer */
  void (*done)(void *data, const struct parent_result *result);
  void *data;
  struct parent **slot;
};

static void parent_free(struct parent *parent)
{
  loop_io_free(&parent->io);
  fd_close(&parent->fd);
  if (parent->out.data)
    mem_wipe(parent->out.data, parent->out.len);
  buf_free(&parent->out);
  buf_free(&parent->in);
  free(parent);
}

static void finish(struct parent *parent, const struct parent_result *result)
{
  void (*done)(void *data, const struct parent_result *result) = parent->done;
  void *data = parent->data;

  *parent->slot = NULL;
  parent_free(parent);
  done(data, result);
}

static void fail(struct parent *parent, enum reason reason, const char *cause)
{
  struct parent_result result = { .fd = -1, .reason = reason };

  snprintf(result.cause, sizeof result.cause, "%s", cause);
  finish(parent, &result);
}

static void send_out(struct parent *parent)
{
  struct span rest = span_sub(buf_span(&parent->out), parent->sent, parent->out.len);
  ssize_t n = send(parent->fd, rest.ptr, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);

  if (n > 0)
    parent->sent += (size_t)n;
  /* After an error there may be an answer to read that came before it. */
  loop_io_watch(parent->io,
                n >= 0 || errno == EAGAIN ? parent->sent < parent->out.len ? LOOP_WRITE : LOOP_READ : LOOP_READ);
}

/* Sends the message of a state. */
static void enter(struct parent *parent, enum parent_state state)
{
  parent->state = state;
  if (parent->out.data)
    mem_wipe(parent->out.data, parent->out.len);
  buf_free(&parent->out);
  buf_free(&parent->in);
  parent->sent = 0;
  if (state == PARENT_CONNECT)
    parent_append_connect(parent->upstream, &parent->host, parent->port, &parent->out);
  else if (state == PARENT_METHODS)
    parent_append_methods(parent->upstream, &parent->out);
  else if (state == PARENT_LOGIN)
    parent_append_login(parent->upstream, &parent->out);
  else
    parent_append_request(&parent->host, parent->port, &parent->out);
  send_out(parent);
}

static int parse(const struct parent *parent, struct parent_answer *ret_answer, size_t *ret_len)
{
  struct span bytes = buf_span(&parent->in);

  switch (parent->state) {
  case PARENT_CONNECT:
    return parent_parse_connect(bytes, ret_answer, ret_len);
  case PARENT_METHODS:
    return parent_parse_method(bytes, parent->upstream->has_login, ret_answer, ret_len);
  case PARENT_LOGIN:
    return parent_parse_login(bytes, ret_answer, ret_len);
  case PARENT_REQUEST:
  default:
    return parent_parse_reply(bytes, ret_answer, ret_len);
  }
}

static void take_answer(struct parent *parent, const struct parent_answer *answer)
{
  struct parent_result result = { .fd = -1, .reason = answer->reason };

  if (answer->reason != REASON_ALLOWED) {
    snprintf(result.cause, sizeof result.cause, "it answered %u", answer->code);
    finish(parent, &result);
    return;
  }
  if (parent->state == PARENT_METHODS) {
    enter(parent, answer->code ? PARENT_LOGIN : PARENT_REQUEST);
  } else if (parent->state == PARENT_LOGIN) {
    enter(parent, PARENT_REQUEST);
  } else {
    loop_io_free(&parent->io);
    result.fd = fd_steal(&parent->fd);
    finish(parent, &result);
  }
}

static void read_answer(struct parent *parent)
{
  char bytes[PEEK_BYTES];
  struct parent_answer answer;
  size_t before = parent->in.len;
  size_t len = 0;
  ssize_t n = recv(parent->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
  int r;

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n < 0) {
    fail(parent, REASON_PARENT_UNREACHABLE, strerror(errno));
    return;
  }
  if (n == 0) {
    fail(parent, REASON_PARENT_BAD_REPLY, "it closed without an answer");
    return;
  }
  buf_append(&parent->in, (struct span){ .ptr = bytes, .len = (size_t)n });
  r = buf_error(&parent->in) ? -EBADMSG : parse(parent, &answer, &len);
  if (r < 0) {
    fail(parent, REASON_PARENT_BAD_REPLY, "");
    return;
  }
  /* What was looked at is there: this takes no less. */
  if (recv(parent->fd, bytes, r ? len - before : (size_t)n, MSG_DONTWAIT) < 0)
    fail(parent, REASON_PARENT_UNREACHABLE, strerror(errno));
  else if (r)
    take_answer(parent, &answer);
}

static void on_ready(void *data, unsigned events)
{
  struct parent *parent = data;

  if (parent->sent < parent->out.len && (events & LOOP_WRITE))
    send_out(parent);
  else if (events & LOOP_READ)
    read_answer(parent);
}

int parent_start(struct loop *loop, const struct upstream *upstream, const struct host *host, uint16_t port, int fd,
                 void (*done)(void *data, const struct parent_result *result), void *data, struct parent **slot)
{
  struct parent *parent = mem_calloc(1, sizeof *parent);

  if (!parent) {
    fd_close(&fd);
    return -ENOMEM;
  }
  *parent = (struct parent){ .loop = loop,
                             .upstream = upstream,
                             .host = *host,
                             .port = port,
                             .fd = fd,
                             .out = BUF_INIT(OUT_BYTES_MAX),
                             .in = BUF_INIT(LIMITS_PARENT_BYTES + PEEK_BYTES),
                             .done = done,
                             .data = data,
                             .slot = slot };
  if (loop_io_new(loop, fd, on_ready, parent, &parent->io) < 0) {
    parent_free(parent);
    return -ENOMEM;
  }
  *slot = parent;
  enter(parent, upstream->kind == UPSTREAM_HTTP ? PARENT_CONNECT : PARENT_METHODS);
  return 0;
}

void parent_cancel(struct parent **slot)
{
  if (!*slot)
    return;
  parent_free(*slot);
  *slot = NULL;
}
