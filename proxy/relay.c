/* Theory of operation
 *
 * Two directions, each a source and a sink. A direction moves one read at a time: from the source into the shared
 * scratch, from there into the sink. What the sink's kernel buffer does not take waits in the sink's queue, and nothing
 * more is read from the source before that queue is empty (back-pressure). An idle relay holds no buffer.
 *
 *   direction   source       sink                 then
 *   open        bytes        takes all            read on, at most ROUNDS reads, then let other connections run
 *   open        bytes        takes a part         wait for the sink to be writable
 *   open        end of file  -                    FIN to the sink after its queue; the direction is closed (half-close)
 *   open        bytes        has failed           closed; what the sink sent before is still passed back, then as below
 *   any         has failed   -                    reset both ends: a cut stream must not look whole
 *
 * The relay is over when both directions are closed and both queues are empty.
 */
#include "proxy/relay.h"

#include <errno.h>

#define ROUNDS 8

/* Moves what there is. 0, or -errno when the source has failed. */
static int move(struct relay *relay, struct sock *from, struct sock *to, uint64_t *count)
{
  for (unsigned round = 0; round < ROUNDS && !sock_pending(to) && !to->finish; round++) {
    ssize_t n = sock_recv(from, relay->proxy->scratch, sizeof relay->proxy->scratch);
    int r;

    if (n == -EAGAIN)
      return 0;
    if (n < 0)
      return (int)n;
    if (n == 0) {
      sock_finish(to);
      return 0;
    }
    *count += (uint64_t)n;
    relay->active_ms = loop_now_ms(relay->proxy->loop);
    r = sock_send(to, (struct span){ .ptr = relay->proxy->scratch, .len = (size_t)n }, false);
    if (r < 0) {
      relay->cut = true;
      to->finish = true;
    }
  }
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
  int r = move(relay, client, origin, &relay->up);

  if (r == 0)
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

void relay_start(struct relay *relay, struct proxy *proxy, struct sock *client, struct sock *origin,
                 void (*done)(void *data), void *data)
{
  *relay = (struct relay){
    .proxy = proxy,
    .client = client,
    .origin = origin,
    .active_ms = loop_now_ms(proxy->loop),
    .done = done,
    .data = data,
  };
  sock_own(client, on_ready, relay);
  sock_own(origin, on_ready, relay);
  advance(relay);
}

uint64_t relay_time_left(const struct relay *relay)
{
  uint64_t limit = relay->client->finish || relay->origin->finish ? LIMITS_HALF_CLOSED_MS : LIMITS_IDLE_MS;
  uint64_t silent = loop_now_ms(relay->proxy->loop) - relay->active_ms;

  return silent < limit ? limit - silent : 0;
}
