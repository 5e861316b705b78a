/* outbox: messages that a socket has no room for now. What they hold may be secret: it is in memory for secrets, and
 * wiped. */
#ifndef SBX_RUN_OUTBOX_H
#define SBX_RUN_OUTBOX_H

#include "sys/secret.h"

#include <stddef.h>

/* What can be asked for at once: the value of each credential, and more answers to questions than a person gives. */
#define OUTBOX_MAX 128

struct outbox {
  struct secret items[OUTBOX_MAX];
  size_t count;
};

/* Sends a message over a SEQPACKET socket, behind those that wait, or keeps it until there is room. Never waits. 0;
 * -ENOBUFS where too many wait, -ENOMEM, or what send(2) says. */
int outbox_send(struct outbox *outbox, int fd, const void *message, size_t size);

/* The socket has room: sends what waits, in its order. */
void outbox_flush(struct outbox *outbox, int fd);

/* Wipes and forgets what waits. */
void outbox_clear(struct outbox *outbox);

#endif
