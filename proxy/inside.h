/* inside: sockets in the sandbox's network that are wanted only now: listeners, and sockets to connect to a published
 * port. The proxy cannot make them; sbx can, and is asked over the control socket (CONTROL_LISTEN and CONTROL_SOCKETS
 * of sys/control.h), one request at a time.
 */
#ifndef SBX_PROXY_INSIDE_H
#define SBX_PROXY_INSIDE_H

#include "proxy/names.h"
#include "proxy/proxy.h"

struct inside;

/* NULL when memory is short. */
struct inside *inside_new(struct proxy *proxy);
/* Whoever waits is told first. */
void inside_free(struct inside *inside);

/* Asks for a listener of the transparent front on port of both addresses; when it is there, or cannot be had,
 * ready(data) is told, not from within this call. 0; -ENOBUFS past proxy->listener_max or with too many requests open;
 * -ENOMEM. */
int inside_listen(struct inside *inside, const struct names_pair *pair, uint16_t port, void (*ready)(void *data),
                  void *data);

/* Asks for TCP sockets to connect to the sandbox's loopback: take(data, fds, count) gets an IPv4 one and, with count 2,
 * an IPv6 one, which become its own; count 0 when there are none. Not from within this call. 0, -ENOBUFS with too many
 * requests open, or -ENOMEM. */
int inside_connect(struct inside *inside, void (*take)(void *data, int *fds, size_t count), void *data);

/* Tells ready(data) when everything that was asked for before is there. False, and nothing will be told, where nothing
 * is awaited or memory is short. */
bool inside_wait(struct inside *inside, void (*ready)(void *data), void *data);

/* Forgets who asked: neither ready nor take will be called for this data. */
void inside_forget(struct inside *inside, const void *data);

/* The control socket has room again. */
void inside_flush(struct inside *inside);

/* Takes an answer of sbx, count descriptors included. */
void inside_answer(struct inside *inside, int error, int *fds, size_t count);

#endif
