#include "proxy/sock.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

bool budget_take(struct budget *budget, size_t bytes)
{
  if (bytes > budget->max - budget->used)
    return false;
  budget->used += bytes;
  return true;
}

void budget_give(struct budget *budget, size_t bytes)
{
  budget->used -= bytes;
}

void sock_init(struct sock *sock)
{
  *sock = (struct sock){ .fd = -1, .queue = BUF_INIT(SOCK_QUEUE_MAX) };
}

size_t sock_pending(const struct sock *sock)
{
  return sock->queue.len - sock->queue_sent;
}

/* What was to be encrypted may be a secret. */
static void drop_queue(struct sock *sock)
{
  budget_give(sock->budget, sock_pending(sock));
  if (sock->layer)
    buf_wipe(&sock->queue);
  else
    buf_free(&sock->queue);
  sock->queue_sent = 0;
}

static int fail(struct sock *sock, int error)
{
  if (!sock->error)
    sock->error = error;
  return -error;
}

/* One call. The count, or -errno. */
static ssize_t send_some(const struct sock *sock, struct span bytes, bool more)
{
  ssize_t n;

  if (sock->layer)
    return sock->layer->send(sock->layer_data, bytes);
  do
    n = send(sock->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : n;
}

/* Sends what the kernel takes. The count, or -errno with the error kept. */
static ssize_t send_now(struct sock *sock, struct span bytes, bool more)
{
  size_t sent = 0;

  while (sent < bytes.len) {
    ssize_t n = send_some(sock, span_sub(bytes, sent, bytes.len), more);

    if (n == -EAGAIN)
      break;
    if (n < 0)
      return fail(sock, (int)-n);
    sent += (size_t)n;
  }
  return (ssize_t)sent;
}

/* Our last byte is out. */
static void announce_end(struct sock *sock)
{
  int r = sock->layer && !sock->mute ? sock->layer->finish(sock->layer_data) : 0;

  if (r == -EAGAIN)
    return;
  sock->finished = true;
  shutdown(sock->fd, SHUT_WR);
}

static void flush_queue(struct sock *sock)
{
  ssize_t n = send_now(sock, span_sub(buf_span(&sock->queue), sock->queue_sent, sock->queue.len), false);

  if (n > 0) {
    sock->queue_sent += (size_t)n;
    budget_give(sock->budget, (size_t)n);
  }
  if (n < 0 || sock_pending(sock) == 0)
    drop_queue(sock);
}

/* Sends on what waits, and the end after it. */
static void push(struct sock *sock)
{
  if (sock_pending(sock))
    flush_queue(sock);
  if (sock_pending(sock) == 0 && sock->finish && !sock->finished && !sock->error)
    announce_end(sock);
}

static void watch(struct sock *sock)
{
  bool ending = sock->finish && !sock->finished && !sock->error;
  unsigned events = (sock->reading ? LOOP_READ : 0) | (sock_pending(sock) || ending ? LOOP_WRITE : 0);

  if (sock->layer)
    events |= sock->layer->waits(sock->layer_data);
  if (sock->layer && sock->reading && sock->layer->holds(sock->layer_data))
    loop_io_again(sock->io);
  loop_io_watch(sock->io, events);
}

static void on_ready(void *data, unsigned events)
{
  struct sock *sock = data;

  /* A layer may have waited for room to read on, and for bytes to send on. */
  if ((events & LOOP_READ) || sock->layer)
    sock->readable = true;
  if ((events & LOOP_WRITE) || sock->layer) {
    push(sock);
    watch(sock);
  }
  sock->ready(sock->data);
}

int sock_open(struct sock *sock, struct loop *loop, struct budget *budget, int fd, void (*ready)(void *data),
              void *data)
{
  int on = 1;
  int r;

  sock_init(sock);
  /* Small messages must not wait for acknowledgements; fails only on what is not TCP. */
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  r = loop_io_new(loop, fd, on_ready, sock, &sock->io);
  if (r < 0) {
    fd_close(&fd);
    return r;
  }
  sock->fd = fd;
  sock->budget = budget;
  sock_own(sock, ready, data);
  return 0;
}

void sock_set_layer(struct sock *sock, const struct sock_layer *layer, void *data)
{
  sock->layer = layer;
  sock->layer_data = data;
  sock->bulk = 0;
}

void sock_own(struct sock *sock, void (*ready)(void *data), void *data)
{
  sock->ready = ready;
  sock->data = data;
}

void sock_move(struct sock *from, void (*ready)(void *data), void *data, struct sock *to)
{
  *to = *from;
  sock_init(from);
  loop_io_own(to->io, to);
  sock_own(to, ready, data);
}

void sock_close(struct sock *sock, bool reset)
{
  struct linger linger = { .l_onoff = 1, .l_linger = 0 };

  if (sock->fd < 0)
    return;
  if (reset)
    (void)setsockopt(sock->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  loop_io_free(&sock->io);
  if (sock->layer && !sock->mute && !reset && !sock->finished && !sock->error && sock_pending(sock) == 0)
    (void)sock->layer->finish(sock->layer_data);
  fd_close(&sock->fd);
  drop_queue(sock);
  if (sock->layer)
    sock->layer->free(sock->layer_data);
  sock_init(sock);
}

/* What a read of size bytes has come to: n, or -errno. */
static ssize_t note_read(struct sock *sock, ssize_t n, size_t size)
{
  if (n == -EAGAIN) {
    sock->readable = false;
    return sock->error ? -sock->error : -EAGAIN;
  }
  if (n < 0)
    return fail(sock, (int)-n);
  if (n == 0)
    sock->eof = true;
  else if ((size_t)n < size)
    sock->readable = false; /* drained, most likely; the loop tells when not */
  return n;
}

/* 1: may be read; else what sock_recv() returns. */
static int may_read(const struct sock *sock)
{
  if (sock->fd >= 0 && sock->eof)
    return 0;
  return sock->fd < 0 || (!sock->readable && !sock->error) ? -EAGAIN : 1;
}

static ssize_t recv_layer(struct sock *sock, char *bytes, size_t size)
{
  ssize_t n = sock->layer->recv(sock->layer_data, bytes, size);
  unsigned waits = sock->layer->waits(sock->layer_data);

  /* One record at a time: a whole one is the sign of more. */
  n = note_read(sock, n, size < LIMITS_TLS_RECORD_BYTES ? size : LIMITS_TLS_RECORD_BYTES);
  if (sock->layer->holds(sock->layer_data))
    sock->readable = true;
  if (n == -EAGAIN && waits)
    watch(sock);
  return n;
}

ssize_t sock_recv(struct sock *sock, char *bytes, size_t size)
{
  ssize_t n = may_read(sock);

  if (n <= 0)
    return n;
  if (sock->layer)
    return recv_layer(sock, bytes, size);
  do
    n = recv(sock->fd, bytes, size, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return note_read(sock, n < 0 ? -errno : n, size);
}

bool sock_stirs(struct sock *sock)
{
  if (sock->readable && sock->layer && !sock->error)
    sock->readable = sock->layer->peek(sock->layer_data);
  return sock->readable;
}

bool sock_stirs_now(struct sock *sock)
{
  char byte;

  if (sock->fd >= 0 && !sock->readable)
    sock->readable = recv(sock->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
  return sock_stirs(sock);
}

ssize_t sock_splice_recv(struct sock *sock, int pipe, size_t size)
{
  ssize_t n = may_read(sock);

  if (n <= 0)
    return n;
  do
    n = splice(sock->fd, NULL, pipe, NULL, size, SPLICE_F_NONBLOCK);
  while (n < 0 && errno == EINTR);
  if (n == 0)
    return 0;
  /* Many small segments fill a pipe before its bytes do: having got less than asked for tells nothing, little does. */
  return note_read(sock, n < 0 ? -errno : n, LIMITS_RELAY_BYTES);
}

ssize_t sock_splice_send(struct sock *sock, int pipe, size_t size)
{
  size_t sent = 0;

  if (sock->fd < 0 || sock->error)
    return sock->error ? -sock->error : -ENOTCONN;
  while (sent < size) {
    ssize_t n = splice(pipe, NULL, sock->fd, NULL, size - sent, SPLICE_F_NONBLOCK);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      break;
    if (n <= 0)
      return fail(sock, n ? errno : EIO);
    sent += (size_t)n;
  }
  return (ssize_t)sent;
}

/* What is to be encrypted may be a secret: no copy of it is left behind. 0 or -ENOBUFS. */
static int enqueue(struct sock *sock, struct span bytes)
{
  struct buf grown = BUF_INIT(SOCK_QUEUE_MAX);

  if (!sock->layer || !sock->queue.len) {
    buf_append(&sock->queue, bytes);
    if (!buf_error(&sock->queue))
      return 0;
    sock->queue.error = 0;
    return -ENOBUFS;
  }
  buf_reserve(&grown, sock_pending(sock) + bytes.len);
  buf_append(&grown, span_sub(buf_span(&sock->queue), sock->queue_sent, sock->queue.len));
  buf_append(&grown, bytes);
  if (buf_error(&grown)) {
    buf_wipe(&grown);
    return -ENOBUFS;
  }
  buf_wipe(&sock->queue);
  sock->queue = grown;
  sock->queue_sent = 0;
  return 0;
}

int sock_send(struct sock *sock, struct span bytes, bool more)
{
  ssize_t sent = 0;

  if (sock->fd < 0 || sock->error)
    return sock->error ? -sock->error : -ENOTCONN;
  if (sock_pending(sock) == 0)
    sent = send_now(sock, bytes, more);
  if (sent < 0)
    return (int)sent;
  bytes = span_sub(bytes, (size_t)sent, bytes.len);
  if (bytes.len == 0)
    return 0;
  if (!budget_take(sock->budget, bytes.len))
    return -ENOBUFS;
  if (enqueue(sock, bytes) < 0) {
    budget_give(sock->budget, bytes.len);
    return -ENOBUFS;
  }
  watch(sock);
  return 0;
}

void sock_finish(struct sock *sock)
{
  if (sock->fd < 0 || sock->finish)
    return;
  sock->finish = true;
  if (sock_pending(sock))
    return;
  push(sock);
  watch(sock);
}

void sock_finish_mute(struct sock *sock)
{
  sock->mute = true;
  sock_finish(sock);
}

void sock_watch(struct sock *sock, bool reading)
{
  if (sock->fd < 0)
    return;
  /* An end of file would be told again on every turn: 100 % of a CPU (F57). */
  sock->reading = reading && !sock->eof;
  watch(sock);
}
