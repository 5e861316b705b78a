/* Theory of operation
 *
 * Two directions, each a source and a sink. A direction moves one read at a time: from the source into the shared
 * scratch, from there into the sink. What the sink's kernel buffer does not take waits in the sink's queue, and nothing
 * more is read from the source before that queue is empty (back-pressure). An idle relay holds no buffer.
 *
 *   direction   source       sink                 then
 *   open        bytes        takes all            read on, at most ROUNDS reads or TURN_BYTES, then let others run
 *   open        bytes        takes a part         wait for the sink to be writable
 *   open        end of file  -                    FIN to the sink after its queue; the direction is closed (half-close)
 *   open        bytes        has failed           closed; what the sink sent before is still passed back, then as below
 *   any         has failed   -                    reset both ends: a cut stream must not look whole
 *
 * With look(), the client's first bytes are held until it has judged them (F54, F55); a bounded amount, charged to the
 * budget. The other direction flows, since in some protocols the server speaks first; hear() sees it before it does.
 *
 * A read that fills the scratch is taken for a part of a long stream. From then on the direction's bytes go by
 * splice(2) (splice.h), and the amount grows while the sink takes all and falls to what it took when it does not, so
 * that little has to be copied for a slow one. When little comes, copying is cheaper, and the direction returns to it.
 * It also does when splice(2) has nothing where there was said to be something: it stops in front of an urgent byte
 * (TCP's URG) as if there were no more, or as at an end of file, and only recv(2) steps over it. Taken at its word the
 * loop would turn for ever (F57), or the rest would be lost.
 *
 * The relay is over when both directions are closed and both queues are empty.
 */
#include "proxy/relay.h"

#include <errno.h>

#define ROUNDS 8
#define TURN_BYTES ((size_t)LIMITS_SPLICE_BYTES)
#define GONE 1

/* The sink has failed: r is what sending to it has come to. */
static void note_sent(struct relay *relay, struct sock *to, int r)
{
  if (r < 0) {
    relay->cut = true;
    to->finish = true;
  }
}

static void send_on(struct relay *relay, struct sock *to, struct span bytes)
{
  note_sent(relay, to, sock_send(to, bytes, false));
}

/* One read, copied. Its size, or what sock_recv() returns. */
static ssize_t copy(struct relay *relay, struct sock *from, struct sock *to)
{
  struct proxy *proxy = relay->proxy;
  ssize_t n = sock_recv(from, proxy->scratch, sizeof proxy->scratch);

  if (n <= 0)
    return n;
  send_on(relay, to, (struct span){ .ptr = proxy->scratch, .len = (size_t)n });
  if ((size_t)n == sizeof proxy->scratch && !from->layer && !to->layer)
    from->bulk = sizeof proxy->scratch;
  return n;
}

/* The same by splice(2). */
static ssize_t pass(struct relay *relay, struct sock *from, struct sock *to)
{
  struct proxy *proxy = relay->proxy;
  size_t rest;
  ssize_t n;
  int r;

  /* What a slow sink leaves over is held: not much of it once bytes are short. */
  if (proxy->budget.used > proxy->budget.max / 8)
    from->bulk = LIMITS_RELAY_BYTES;
  n = splice_move(&proxy->splice, from, to, from->bulk, proxy->scratch, sizeof proxy->scratch, &r);
  note_sent(relay, to, r);
  if (n == 0) {
    from->bulk = 0;
    return copy(relay, from, to);
  }
  if (n < 0)
    return n;
  rest = sock_pending(to);
  if (n < LIMITS_RELAY_BYTES)
    from->bulk = 0;
  else if (rest)
    from->bulk = (size_t)n - rest > LIMITS_RELAY_BYTES ? (size_t)n - rest : LIMITS_RELAY_BYTES;
  else if (from->bulk < LIMITS_SPLICE_BYTES)
    from->bulk *= 2;
  return n;
}

/* Moves what there is. 0, or -errno when the source has failed. */
static int move(struct relay *relay, struct sock *from, struct sock *to, uint64_t *count)
{
  size_t moved = 0;

  for (unsigned round = 0; round < ROUNDS && moved < TURN_BYTES && !sock_pending(to) && !to->finish; round++) {
    ssize_t n = from->bulk && relay->proxy->splice.size ? pass(relay, from, to) : copy(relay, from, to);

    if (n == -EAGAIN) {
      if (!moved)
        from->bulk = 0;
      return 0;
    }
    if (n < 0)
      return (int)n;
    if (n == 0) {
      sock_finish(to);
      return 0;
    }
    moved += (size_t)n;
    *count += (uint64_t)n;
    relay->active_ms = loop_now_ms(relay->proxy->loop);
  }
  return 0;
}

void relay_clear(struct relay *relay)
{
  budget_give(&relay->proxy->budget, relay->held.len);
  buf_free(&relay->held);
}

static int hold(struct relay *relay, struct span bytes)
{
  if (!budget_take(&relay->proxy->budget, bytes.len))
    return -ENOBUFS;
  buf_append(&relay->held, bytes);
  if (!buf_error(&relay->held))
    return 0;
  budget_give(&relay->proxy->budget, bytes.len);
  return -ENOBUFS;
}

static void pass_held(struct relay *relay)
{
  struct span rest = span_sub(buf_span(&relay->held), relay->passed, relay->held.len);

  relay->up += rest.len;
  relay->passed = relay->held.len;
  if (rest.len)
    send_on(relay, relay->origin, rest);
}

/* Asks about what is held. 0; or GONE. */
static int ask(struct relay *relay, bool end)
{
  switch (relay->look(relay->data, buf_span(&relay->held), end)) {
  case RELAY_GONE:
    return GONE;
  case RELAY_PASS:
    pass_held(relay);
    relay->look = NULL;
    relay_clear(relay);
    return 0;
  case RELAY_TRICKLE:
    pass_held(relay);
    return 0;
  case RELAY_MORE:
  default:
    if (relay->passed)
      pass_held(relay);
    return 0;
  }
}

/* Takes in what the client has sent, until it has been judged. 0; GONE; or -errno when the client has failed. */
static int look_up(struct relay *relay)
{
  struct proxy *proxy = relay->proxy;
  int r = 0;

  for (unsigned round = 0; round < ROUNDS && r == 0 && relay->look && !sock_pending(relay->origin); round++) {
    ssize_t n = sock_recv(relay->client, proxy->scratch, LIMITS_HTTP_HEAD_BYTES - relay->held.len);

    if (n == -EAGAIN)
      return 0;
    if (n < 0)
      return (int)n;
    relay->active_ms = loop_now_ms(proxy->loop);
    r = n ? hold(relay, (struct span){ .ptr = proxy->scratch, .len = (size_t)n }) : 0;
    if (r == 0)
      r = ask(relay, n == 0);
  }
  return r;
}

/* Takes one piece from the origin, which has to be judged before it goes to the client. 0; GONE; or -errno when the
 * origin has failed. */
static int hear_out(struct relay *relay)
{
  struct proxy *proxy = relay->proxy;
  enum relay_look answer;
  struct span bytes;
  ssize_t n;

  if (sock_pending(relay->client) || relay->client->finish)
    return 0;
  n = sock_recv(relay->origin, proxy->scratch, sizeof proxy->scratch);
  if (n == -EAGAIN)
    return 0;
  if (n < 0)
    return (int)n;
  if (n == 0) {
    sock_finish(relay->client);
    return 0;
  }
  bytes = (struct span){ .ptr = proxy->scratch, .len = (size_t)n };
  answer = relay->hear(relay->data, bytes);
  if (answer == RELAY_GONE)
    return GONE;
  if (answer == RELAY_PASS)
    relay->hear = NULL;
  relay->down += bytes.len;
  relay->active_ms = loop_now_ms(proxy->loop);
  send_on(relay, relay->client, bytes);
  return 0;
}

static void end(struct relay *relay, bool reset)
{
  sock_close(relay->client, reset);
  sock_close(relay->origin, reset);
  relay->done(relay->data);
}

static void advance(struct relay *relay)
{
  struct sock *client = relay->client;
  struct sock *origin = relay->origin;
  int r = relay->look ? look_up(relay) : 0;

  if (r == GONE)
    return;
  if (r == 0 && !relay->look)
    r = move(relay, client, origin, &relay->up);
  if (r == 0 && relay->hear)
    r = hear_out(relay);
  if (r == GONE)
    return;
  if (r == 0 && !relay->hear)
    r = move(relay, origin, client, &relay->down);
  if (r < 0) {
    end(relay, true);
    return;
  }
  if (client->finish && origin->finish && !sock_pending(client) && !sock_pending(origin)) {
    end(relay, relay->cut || client->error || origin->error);
    return;
  }
  sock_watch(client, !origin->finish && !sock_pending(origin));
  sock_watch(origin, !client->finish && !sock_pending(client));
}

static void on_ready(void *data)
{
  advance(data);
}

static void set_up(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                   void (*done)(void *data), void *data)
{
  *relay = (struct relay){
    .proxy = proxy,
    .client = client,
    .origin = origin,
    .active_ms = loop_now_ms(proxy->loop),
    .held = BUF_INIT(LIMITS_HTTP_HEAD_BYTES),
    .done = done,
    .data = data,
  };
  sock_own(client, on_ready, relay);
  sock_own(origin, on_ready, relay);
}

void relay_start(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                 void (*done)(void *data), void *data)
{
  set_up(relay, proxy, client, origin, done, data);
  advance(relay);
}

void relay_start_held(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                      struct span first, enum relay_look (*look)(void *data, struct span held, bool end),
                      enum relay_look (*hear)(void *data, struct span bytes), void (*done)(void *data), void *data)
{
  set_up(relay, proxy, client, origin, done, data);
  relay->look = look;
  relay->hear = hear;
  if (hold(relay, first) < 0) {
    end(relay, true);
    return;
  }
  if (first.len && ask(relay, false) == GONE)
    return;
  advance(relay);
}

void relay_trickle(struct relay *relay)
{
  pass_held(relay);
  advance(relay);
}

uint64_t relay_time_left(const struct relay *relay)
{
  uint64_t limit = relay->client->finish || relay->origin->finish ? LIMITS_HALF_CLOSED_MS : LIMITS_IDLE_MS;
  uint64_t silent = loop_now_ms(relay->proxy->loop) - relay->active_ms;

  return silent < limit ? limit - silent : 0;
}
