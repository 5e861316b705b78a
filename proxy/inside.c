#include "proxy/inside.h"

#include "base/fd.h"
#include "base/log.h"
#include "proxy/listener.h"
#include "sys/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define QUEUE_MAX 1024

struct wish {
  struct wish *next;
  struct control_listen message;
  void (*ready)(void *data);
  void *data;
};

struct inside {
  struct proxy *proxy;
  struct wish *first; /* the one that sbx is working on */
  struct wish *last;
  size_t queued;
  size_t made; /* listeners asked for in all */
};

struct inside *inside_new(struct proxy *proxy)
{
  struct inside *inside = mem_calloc(1, sizeof *inside);

  if (inside)
    inside->proxy = proxy;
  return inside;
}

void inside_free(struct inside *inside)
{
  while (inside && inside->first) {
    struct wish *wish = inside->first;

    inside->first = wish->next;
    free(wish);
  }
  free(inside);
}

/* The socket holds one small message at a time: it is not full. */
static void ask(struct inside *inside)
{
  if (inside->first)
    (void)send(inside->proxy->control, &inside->first->message, sizeof inside->first->message, MSG_NOSIGNAL);
}

int inside_listen(struct inside *inside, const struct names_pair *pair, uint16_t port, void (*ready)(void *data),
                  void *data)
{
  struct wish *wish;

  if (inside->queued >= QUEUE_MAX || inside->made >= LIMITS_LISTENERS)
    return -ENOBUFS;
  wish = mem_calloc(1, sizeof *wish);
  if (!wish)
    return -ENOMEM;
  *wish = (struct wish){ .message = { .type = CONTROL_LISTEN, .port = port }, .ready = ready, .data = data };
  memcpy(wish->message.v4, pair->v4.bytes, sizeof wish->message.v4);
  memcpy(wish->message.v6, pair->v6.bytes, sizeof wish->message.v6);
  inside->queued++;
  inside->made++;
  if (inside->first) {
    inside->last->next = wish;
    inside->last = wish;
    return 0;
  }
  inside->first = inside->last = wish;
  ask(inside);
  return 0;
}

void inside_forget(struct inside *inside, const void *data)
{
  for (struct wish *wish = inside->first; wish; wish = wish->next) {
    if (wish->data == data)
      wish->ready = NULL;
  }
}

void inside_answer(struct inside *inside, int error, int *fds, size_t count)
{
  struct wish *wish = inside->first;
  struct err err = ERR_INIT;

  for (size_t i = 0; i < count; i++) {
    /* It takes the descriptor over. */
    if (listener_new(inside->proxy, CONTROL_FRONT_TRANSPARENT, 0, fds[i], &err) < 0)
      log_line(LOG_WARNING, "%s", err.message);
  }
  if (!wish)
    return; /* sbx answers only what was asked */
  if (error)
    log_line(LOG_WARNING, "port %u cannot be listened on inside: %s", wish->message.port, strerror(error));
  inside->first = wish->next;
  inside->queued--;
  ask(inside);
  if (wish->ready)
    wish->ready(wish->data);
  free(wish);
}
