/* sock: one end of a connection: a non-blocking TCP socket in the loop, and the bytes that it has not taken yet.
 *
 * Bytes are sent at once where the kernel takes them; the rest waits here, and the owner reads nothing more for this
 * end until sock_pending() is 0 again. So an end holds memory only while its peer is slower than the other side, and
 * never more than SOCK_QUEUE_MAX; the sum over all ends is bounded by a budget.
 *
 * A layer may stand between an end's owner and its socket: TLS (tls.h). The owner sees the same stream of bytes, and
 * the end that the peer has announced is the end of file; a socket that closes without is an error (ECONNABORTED).
 */
#ifndef SBX_PROXY_SOCK_H
#define SBX_PROXY_SOCK_H

#include "base/buf.h"
#include "policy/limits.h"
#include "proxy/loop.h"

#include <sys/types.h>

/* What one move leaves over, and a head with what the proxy adds to it. */
#define SOCK_QUEUE_MAX (LIMITS_SPLICE_BYTES + 2 * LIMITS_HTTP_HEAD_BYTES)

/* Bytes that all connections together hold. */
struct budget {
  size_t used;
  size_t max;
};

/* False, and nothing taken, where the budget does not have that much left. */
bool budget_take(struct budget *budget, size_t bytes);
void budget_give(struct budget *budget, size_t bytes);

/* What the layer that data is does in place of recv(2), send(2) and shutdown(2). */
struct sock_layer {
  /* A count; of recv 0 at the announced end; -EAGAIN; -ECONNABORTED at an end that was not announced; or -errno. */
  ssize_t (*recv)(void *data, char *bytes, size_t size);
  ssize_t (*send)(void *data, struct span bytes); /* may have to be called with the same bytes again after -EAGAIN */
  /* Announces the end of our direction. 0, -EAGAIN or -errno. */
  int (*finish)(void *data);
  /* Whether recv() would answer anything but -EAGAIN. */
  bool (*peek)(void *data);
  /* Whether it holds bytes to be read, of which the socket does not tell any more. */
  bool (*holds)(const void *data);
  /* LOOP_READ, LOOP_WRITE: what it waits for, whatever its owner waits for. */
  unsigned (*waits)(const void *data);
  void (*free)(void *data);
};

struct sock {
  int fd; /* -1: closed */
  const struct sock_layer *layer; /* NULL: none */
  void *layer_data;
  bool readable; /* there may be bytes, or an end of file, for us */
  bool eof; /* the peer has sent its last byte */
  bool finish; /* our last byte has been queued */
  bool finished; /* and our end been announced */
  bool mute; /* it is not to be announced through the layer */
  bool reading; /* the owner waits for bytes */
  size_t bulk; /* how much a relay moves of it at once by splice(2); 0: little comes, and is copied */
  int error; /* the first error of the socket, as a positive errno */
  struct buf queue;
  size_t queue_sent; /* bytes of the queue that the kernel has taken */
  struct budget *budget;
  struct loop_io *io;
  void (*ready)(void *data); /* told after any event; queued bytes have been sent on by then as far as possible */
  void *data;
};

/* A closed end; all other functions but sock_open may be called on it without effect. */
void sock_init(struct sock *sock);

/* Takes fd (a non-blocking TCP socket) over, also on failure. 0 or -errno. */
int sock_open(struct sock *sock, struct loop *loop, struct budget *budget, int fd, void (*ready)(void *data),
              void *data);

/* Puts a layer on an open end of which nothing waits. The end owns it from here on. */
void sock_set_layer(struct sock *sock, const struct sock_layer *layer, void *data);

/* Hands the end to another owner. */
void sock_own(struct sock *sock, void (*ready)(void *data), void *data);

/* Moves an open end to another place; the old one is closed then, and the new one has another owner. */
void sock_move(struct sock *from, void (*ready)(void *data), void *data, struct sock *to);

/* Closes at once; queued bytes are lost, and wiped where a layer was to encrypt them. With reset the peer gets RST
 * instead of an orderly end, so that it does not take a cut stream for a whole one. */
void sock_close(struct sock *sock, bool reset);

/* Reads at most size bytes. Their count; 0 at the end of the stream (also set in eof); -EAGAIN when there is nothing
 * now; -errno (also set in error). After an error of sending, what the peer had sent before can still be read. */
ssize_t sock_recv(struct sock *sock, char *bytes, size_t size);

/* Sends or queues all of bytes. more: further bytes follow at once, so let them share a segment. 0; -ENOBUFS when the
 * queue or the budget is full; -errno (also set in error). */
int sock_send(struct sock *sock, struct span bytes, bool more);

/* Whether something has come: bytes, an end, or an error. */
bool sock_stirs(struct sock *sock);

/* The same of one that nobody has waited for meanwhile: asks the system. */
bool sock_stirs_now(struct sock *sock);

/* The same two by splice(2), with a pipe in between (splice.h), for ends without a layer: bytes go to the pipe, or come
 * from there. The first returns what sock_recv() returns, but 0 may also be an urgent byte in front: sock_recv() tells.
 * The second needs an empty queue and queues nothing: it returns how many bytes the kernel has taken, or -errno (also
 * set in error). */
ssize_t sock_splice_recv(struct sock *sock, int pipe, size_t size);
ssize_t sock_splice_send(struct sock *sock, int pipe, size_t size);

/* Ends our direction (FIN) once the queue is empty. */
void sock_finish(struct sock *sock);

/* The same, but through a layer our end is not announced, as another's was not whose bytes these were: how much a peer
 * trusts in that is its own affair. */
void sock_finish_mute(struct sock *sock);

/* Bytes that wait in the queue. */
size_t sock_pending(const struct sock *sock);

/* Waits, or no longer waits, for bytes; the wait for room follows the queue by itself. */
void sock_watch(struct sock *sock, bool reading);

#endif
