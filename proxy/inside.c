#include "proxy/inside.h"

#include "base/fd.h"
#include "base/log.h"
#include "proxy/listener.h"
#include "proxy/notify.h"
#include "sys/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define QUEUE_MAX 1024

struct wish {
  struct wish *next;
  bool barrier; /* asks for nothing: tells that those before it are done */
  union {
    uint32_t type;
    struct control_listen listen;
    struct control_sockets sockets;
  } message;
  size_t size; /* of the message */
  void (*ready)(void *data);
  void (*take)(void *data, int *fds, size_t count); /* CONTROL_SOCKETS, instead of ready */
  void *data;
};

struct inside {
  struct proxy *proxy;
  struct wish *first; /* the one that sbx is working on */
  struct wish *last;
  size_t queued;
  size_t made; /* listeners asked for in all */
  bool asked; /* sbx has been sent the first one */
  bool unsent; /* or not yet, since the control socket was full of notices */
};

struct inside *inside_new(struct proxy *proxy)
{
  struct inside *inside = mem_calloc(1, sizeof *inside);

  if (inside)
    inside->proxy = proxy;
  return inside;
}

/* Takes the first wish off and tells who waits for it, who may ask for more meanwhile. */
static void finish_first(struct inside *inside)
{
  struct wish *wish = inside->first;

  inside->first = wish->next;
  inside->queued--;
  if (wish->take)
    wish->take(wish->data, NULL, 0);
  else if (wish->ready)
    wish->ready(wish->data);
  free(wish);
}

void inside_free(struct inside *inside)
{
  while (inside && inside->first)
    finish_first(inside);
  free(inside);
}

/* Sends the first wish. */
static void ask(struct inside *inside)
{
  struct proxy *proxy = inside->proxy;

  while (inside->first && inside->first->barrier)
    finish_first(inside);
  if (!inside->first || inside->asked)
    return;
  inside->asked =
      send(proxy->control, &inside->first->message, inside->first->size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
      errno != EAGAIN;
  inside->unsent = !inside->asked;
  notify_await_room(proxy, NOTIFY_WISHES, inside->unsent);
}

void inside_flush(struct inside *inside)
{
  if (inside->unsent)
    ask(inside);
}

static void append(struct inside *inside, struct wish *wish)
{
  inside->queued++;
  if (inside->first) {
    inside->last->next = wish;
    inside->last = wish;
    return;
  }
  inside->first = inside->last = wish;
  ask(inside);
}

bool inside_wait(struct inside *inside, void (*ready)(void *data), void *data)
{
  struct wish *wish = inside->first && inside->queued < QUEUE_MAX ? mem_calloc(1, sizeof *wish) : NULL;

  if (!wish)
    return false;
  *wish = (struct wish){ .barrier = true, .ready = ready, .data = data };
  append(inside, wish);
  return true;
}

int inside_listen(struct inside *inside, const struct names_pair *pair, uint16_t port, void (*ready)(void *data),
                  void *data)
{
  struct wish *wish;

  if (inside->queued >= QUEUE_MAX || inside->made >= inside->proxy->listener_max)
    return -ENOBUFS;
  wish = mem_calloc(1, sizeof *wish);
  if (!wish)
    return -ENOMEM;
  *wish = (struct wish){ .message.listen = { .type = CONTROL_LISTEN, .port = port },
                         .size = sizeof wish->message.listen,
                         .ready = ready,
                         .data = data };
  memcpy(wish->message.listen.v4, pair->v4.bytes, sizeof wish->message.listen.v4);
  memcpy(wish->message.listen.v6, pair->v6.bytes, sizeof wish->message.listen.v6);
  inside->made++;
  append(inside, wish);
  return 0;
}

int inside_connect(struct inside *inside, void (*take)(void *data, int *fds, size_t count), void *data)
{
  struct wish *wish = inside->queued < QUEUE_MAX ? mem_calloc(1, sizeof *wish) : NULL;

  if (!wish)
    return inside->queued < QUEUE_MAX ? -ENOMEM : -ENOBUFS;
  *wish = (struct wish){
    .message.sockets = { .type = CONTROL_SOCKETS }, .size = sizeof wish->message.sockets, .take = take, .data = data
  };
  append(inside, wish);
  return 0;
}

void inside_forget(struct inside *inside, const void *data)
{
  for (struct wish *wish = inside->first; wish; wish = wish->next) {
    if (wish->data != data)
      continue;
    wish->ready = NULL;
    wish->take = NULL;
  }
}

static void add_listeners(struct inside *inside, const struct wish *wish, int error, int *fds, size_t count)
{
  struct err err = ERR_INIT;

  if (error)
    log_line(LOG_WARNING, "port %u cannot be listened on inside: %s", wish->message.listen.port, strerror(error));
  for (size_t i = 0; i < count; i++) {
    /* It takes the descriptor over. */
    if (listener_new(inside->proxy, CONTROL_FRONT_TRANSPARENT, 0, fd_steal(&fds[i]), &err) < 0)
      log_line(LOG_WARNING, "%s", err.message);
  }
}

void inside_answer(struct inside *inside, int error, int *fds, size_t count)
{
  struct wish *wish = inside->first;

  if (wish && wish->message.type == CONTROL_LISTEN) {
    add_listeners(inside, wish, error, fds, count);
  } else if (wish && wish->take && count) {
    void (*take)(void *data, int *fds, size_t count) = wish->take;

    wish->take = NULL;
    take(wish->data, fds, count);
  } else {
    for (size_t i = 0; i < count; i++)
      fd_close(&fds[i]); /* who asked has gone; or nobody did, and sbx answers only what was asked */
  }
  if (!wish)
    return;
  inside->asked = false;
  finish_first(inside);
  ask(inside);
}
