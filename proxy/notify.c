#include "proxy/notify.h"

#include "sys/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

struct notify {
  struct proxy *proxy;
  struct control_denied *waiting; /* in the order in which they came; at most LIMITS_DENIALS */
  size_t count;
  size_t cap;
  uint64_t more; /* that found no place there */
  uint64_t in_bodies;
  uint64_t scrubbed;
  bool has_totals;
  struct control_totals totals;
};

struct notify *notify_new(struct proxy *proxy)
{
  struct notify *notify = mem_calloc(1, sizeof *notify);

  if (notify)
    notify->proxy = proxy;
  return notify;
}

void notify_free(struct notify *notify)
{
  if (notify)
    free(notify->waiting);
  free(notify);
}

void notify_await_room(struct proxy *proxy, enum notify_waiter who, bool waits)
{
  proxy->control_waiters = waits ? proxy->control_waiters | who : proxy->control_waiters & ~(unsigned)who;
  loop_io_watch(proxy->control_io, LOOP_READ | (proxy->control_waiters ? LOOP_WRITE : 0));
}

/* False when there is no room now. sbx that is gone takes everything. */
static bool tell_sbx(const struct notify *notify, const void *message, size_t size)
{
  return send(notify->proxy->control, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

static bool is_equal(const struct control_denied *a, const struct control_denied *b)
{
  return a->reason == b->reason && a->port == b->port && strcmp(a->host, b->host) == 0 &&
         strcmp(a->request, b->request) == 0;
}

static void keep(struct notify *notify, const struct control_denied *message)
{
  for (size_t i = 0; i < notify->count; i++) {
    if (is_equal(&notify->waiting[i], message)) {
      notify->waiting[i].count++;
      return;
    }
  }
  if (mem_grow(&notify->waiting, notify->count, &notify->cap, sizeof *message, LIMITS_DENIALS) < 0)
    notify->more++;
  else
    notify->waiting[notify->count++] = *message;
}

static bool tell_totals(struct notify *notify)
{
  if (notify->has_totals && !tell_sbx(notify, &notify->totals, sizeof notify->totals))
    return false;
  notify->has_totals = false;
  return true;
}

bool notify_flush(struct notify *notify)
{
  size_t told = 0;
  bool done;

  while (told < notify->count && tell_sbx(notify, &notify->waiting[told], sizeof notify->waiting[told]))
    told++;
  notify->count -= told;
  if (told && notify->count)
    memmove(notify->waiting, notify->waiting + told, notify->count * sizeof *notify->waiting);
  done = notify->count == 0 && tell_totals(notify);
  notify_await_room(notify->proxy, NOTIFY_DENIALS, !done);
  return done;
}

static uint32_t at_most(uint64_t number)
{
  return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

void notify_end(struct notify *notify, uint64_t unaudited, uint64_t unread)
{
  notify->has_totals = notify->more || unaudited || unread || notify->in_bodies || notify->scrubbed;
  notify->totals = (struct control_totals){ .type = CONTROL_TOTALS,
                                            .more = at_most(notify->more),
                                            .unaudited = at_most(unaudited),
                                            .unread = at_most(unread),
                                            .in_bodies = at_most(notify->in_bodies),
                                            .scrubbed = at_most(notify->scrubbed) };
}

void notify_count(struct notify *notify, bool in_body, uint64_t scrubbed)
{
  notify->in_bodies += in_body;
  notify->scrubbed += scrubbed;
}

/* Copies what fits, NUL-terminated; a NUL within would end it. The target is zeroed. */
static void copy_text(char *target, size_t size, struct span text)
{
  for (size_t i = 0; i < text.len && i < size - 1; i++)
    target[i] = text.ptr[i] ? text.ptr[i] : '?';
}

void notify_denied(struct notify *notify, const struct denial *denial)
{
  struct control_denied message = { .type = CONTROL_DENIED, .count = 1 };
  buf_autofree struct buf fix = BUF_INIT(4096);
  buf_autofree struct buf request = BUF_INIT(4096);

  message.reason = denial->verdict.reason;
  /* A limit is the run's: whoever reached it, it is one line of the summary. */
  if (!reason_is_limit(denial->verdict.reason)) {
    message.port = denial->port;
    copy_text(message.host, sizeof message.host, denial->host ? span_of(denial->host->name) : denial->host_text);
  }
  denial_request(denial, &request);
  copy_text(message.request, sizeof message.request, buf_span(&request));
  if (denial->verdict.allow && !reason_is_limit(denial->verdict.reason))
    buf_append_str(&fix, denial->cause ? denial->cause : "");
  else
    denial_fix(denial, &fix);
  copy_text(message.fix, sizeof message.fix, buf_span(&fix));
  if (notify->count || !tell_sbx(notify, &message, sizeof message)) {
    keep(notify, &message);
    notify_await_room(notify->proxy, NOTIFY_DENIALS, true);
  }
}
