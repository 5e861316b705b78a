#include "run/outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int try_send(int fd, const void *message, size_t size)
{
  return send(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int outbox_send(struct outbox *outbox, int fd, const void *message, size_t size)
{
  struct secret *kept = &outbox->items[outbox->count];
  int r = outbox->count ? -EAGAIN : try_send(fd, message, size);

  if (r != -EAGAIN)
    return r;
  if (outbox->count == OUTBOX_MAX)
    return -ENOBUFS;
  r = secret_new(size, NULL, kept);
  if (r < 0)
    return r;
  memcpy(kept->bytes, message, size);
  kept->len = size;
  outbox->count++;
  return 0;
}

void outbox_flush(struct outbox *outbox, int fd)
{
  size_t sent = 0;

  /* An error that is no want of room is the socket's end, of which who reads it hears. */
  while (sent < outbox->count && try_send(fd, outbox->items[sent].bytes, outbox->items[sent].len) != -EAGAIN)
    secret_free(&outbox->items[sent++]);
  outbox->count -= sent;
  memmove(outbox->items, outbox->items + sent, outbox->count * sizeof *outbox->items);
}

void outbox_clear(struct outbox *outbox)
{
  while (outbox->count > 0)
    secret_free(&outbox->items[--outbox->count]);
}
