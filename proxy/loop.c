#include "proxy/loop.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <uv.h>

struct loop {
  uv_loop_t uv;
  uv_idle_t idle; /* runs while there is one to be told */
  struct loop_io *again; /* to be told in the next turn */
  struct loop_io *telling; /* the same, of this turn */
};

struct loop_io {
  uv_poll_t uv; /* first, so that the handle is the object */
  void (*ready)(void *data, unsigned events);
  void *data;
  unsigned watched;
  bool is_again; /* it is in the list of the loop */
  struct loop_io *prev;
  struct loop_io *next;
};

struct loop_timer {
  uv_timer_t uv; /* first, as above */
  void (*expired)(void *data);
  void *data;
};

int loop_new(struct err *err, struct loop **ret_loop)
{
  struct loop *loop = mem_calloc(1, sizeof *loop);
  int r;

  if (!loop)
    return err_set(err, ENOMEM, "loop: out of memory");
  /* io_uring would carry out system calls that the proxy's filter never sees. */
  setenv("UV_USE_IO_URING", "0", 1);
  r = uv_loop_init(&loop->uv);
  if (r < 0) {
    free(loop);
    return err_set_errno(err, -r, "loop: cannot start");
  }
  uv_idle_init(&loop->uv, &loop->idle);
  *ret_loop = loop;
  return 0;
}

void loop_free(struct loop *loop)
{
  if (!loop)
    return;
  uv_close((uv_handle_t *)&loop->idle, NULL);
  /* Lets the close callbacks run: in the first turn, or the second where a stop from outside the loop is left over. */
  for (int turn = 0; turn < 3; turn++) {
    if (uv_loop_close(&loop->uv) == 0) {
      free(loop);
      return;
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT);
  }
}

void loop_run(struct loop *loop)
{
  uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
  uv_stop(&loop->uv);
}

uint64_t loop_now_ms(const struct loop *loop)
{
  return uv_now(&loop->uv);
}

static void free_closed(uv_handle_t *handle)
{
  free(handle);
}

static void on_poll(uv_poll_t *handle, int status, int events);

static void start(struct loop_io *io)
{
  uv_poll_start(&io->uv, (io->watched & LOOP_READ ? UV_READABLE : 0) | (io->watched & LOOP_WRITE ? UV_WRITABLE : 0),
                on_poll);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
  struct loop_io *io = (struct loop_io *)handle;
  unsigned ready = 0;

  /* A socket error comes as a status, and libuv has stopped the watch then. But bytes that came before it are read
   * first, and who waits for more after them has to hear of it again. */
  if (status < 0) {
    start(io);
    ready = LOOP_READ | LOOP_WRITE;
  }
  if (events & UV_READABLE)
    ready |= LOOP_READ;
  if (events & UV_WRITABLE)
    ready |= LOOP_WRITE;
  io->ready(io->data, ready);
}

int loop_io_new(struct loop *loop, int fd, void (*ready)(void *data, unsigned events), void *data,
                struct loop_io **ret_io)
{
  struct loop_io *io = mem_calloc(1, sizeof *io);
  int r;

  if (!io)
    return -ENOMEM;
  r = uv_poll_init(&loop->uv, &io->uv, fd);
  if (r < 0) {
    free(io);
    return r;
  }
  io->ready = ready;
  io->data = data;
  *ret_io = io;
  return 0;
}

void loop_io_watch(struct loop_io *io, unsigned events)
{
  if (events == io->watched)
    return;
  io->watched = events;
  if (events)
    start(io);
  else
    uv_poll_stop(&io->uv);
}

static void unlist(struct loop_io *io)
{
  struct loop *loop = (struct loop *)io->uv.loop;

  if (!io->is_again)
    return;
  io->is_again = false;
  if (io->prev)
    io->prev->next = io->next;
  else if (loop->telling == io)
    loop->telling = io->next;
  else
    loop->again = io->next;
  if (io->next)
    io->next->prev = io->prev;
}

/* Any of them may be freed while another is told, and those that are listed meanwhile have to wait. */
static void on_idle(uv_idle_t *handle)
{
  struct loop *loop = (struct loop *)handle->loop;

  uv_idle_stop(handle);
  loop->telling = loop->again;
  loop->again = NULL;
  while (loop->telling) {
    struct loop_io *io = loop->telling;

    unlist(io);
    io->ready(io->data, LOOP_READ);
  }
}

void loop_io_again(struct loop_io *io)
{
  struct loop *loop = (struct loop *)io->uv.loop;

  if (io->is_again)
    return;
  io->is_again = true;
  io->prev = NULL;
  io->next = loop->again;
  if (io->next)
    io->next->prev = io;
  loop->again = io;
  uv_idle_start(&loop->idle, on_idle);
}

void loop_io_own(struct loop_io *io, void *data)
{
  io->data = data;
}

void loop_io_free(struct loop_io **io)
{
  if (!*io)
    return;
  unlist(*io);
  uv_close((uv_handle_t *)&(*io)->uv, free_closed);
  *io = NULL;
}

static void on_timer(uv_timer_t *handle)
{
  struct loop_timer *timer = (struct loop_timer *)handle;

  timer->expired(timer->data);
}

int loop_timer_new(struct loop *loop, void (*expired)(void *data), void *data, struct loop_timer **ret_timer)
{
  struct loop_timer *timer = mem_calloc(1, sizeof *timer);

  if (!timer)
    return -ENOMEM;
  uv_timer_init(&loop->uv, &timer->uv);
  timer->expired = expired;
  timer->data = data;
  *ret_timer = timer;
  return 0;
}

void loop_timer_set(struct loop_timer *timer, uint64_t delay_ms)
{
  uv_timer_start(&timer->uv, on_timer, delay_ms, 0);
}

void loop_timer_stop(struct loop_timer *timer)
{
  uv_timer_stop(&timer->uv);
}

void loop_timer_free(struct loop_timer **timer)
{
  if (!*timer)
    return;
  uv_close((uv_handle_t *)&(*timer)->uv, free_closed);
  *timer = NULL;
}
