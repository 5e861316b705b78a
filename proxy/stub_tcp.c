/* The stub over TCP (RFC 7766): queries one after the other, each answered before the next is looked at. */
#include "proxy/stub.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWER_BYTES 4096

struct stub_client {
  struct stub_client *next;
  struct stub_client *prev;
  struct stub *stub;
  struct proxy *proxy;
  struct sock sock;
  struct loop_timer *timer;
  struct buf in;
  struct dns_query query;
  size_t query_len; /* its bytes in in, with the frame */
  struct stub_question *question; /* an answer is awaited */
  bool busy; /* stub_ask() is on the stack */
  bool broken;
};

static void client_end(struct stub_client *client)
{
  struct proxy *proxy = client->proxy;

  stub_forget(client->question);
  sock_close(&client->sock, false);
  loop_timer_free(&client->timer);
  budget_give(&proxy->budget, client->in.len);
  buf_free(&client->in);
  if (client->prev)
    client->prev->next = client->next;
  else
    proxy->stub_clients = client->next;
  if (client->next)
    client->next->prev = client->prev;
  proxy->stub_client_count--;
  free(client);
}

static void advance(struct stub_client *client);

static void on_answer(void *data, const struct dns_query *query, const struct dns_answer *answer)
{
  struct stub_client *client = data;
  char out[2 + ANSWER_BYTES];
  int len = dns_build_answer(query, answer, out + 2, ANSWER_BYTES);

  client->question = NULL;
  if (len > 0) {
    dns_frame_encode((size_t)len, out);
    client->broken = sock_send(&client->sock, (struct span){ .ptr = out, .len = (size_t)len + 2 }, false) < 0;
  }
  budget_give(&client->proxy->budget, client->query_len);
  buf_consume(&client->in, client->query_len);
  if (!client->busy)
    advance(client);
}

/* Takes the query up whose bytes, len with the frame, in begins with. It keeps them until the query is answered. */
static void take(struct stub_client *client, struct span message, size_t len)
{
  struct err err = ERR_INIT;

  client->query_len = len;
  if (dns_parse_query(message, &err, &client->query) < 0) {
    client->broken = true;
    return;
  }
  client->busy = true;
  client->question = stub_ask(client->stub, &client->query, on_answer, client);
  client->busy = false;
}

static bool fill(struct stub_client *client)
{
  struct proxy *proxy = client->proxy;
  ssize_t n = sock_recv(&client->sock, proxy->scratch, LIMITS_DNS_QUERY_BYTES);

  if (n == -EAGAIN)
    return false;
  if (n <= 0 || !budget_take(&proxy->budget, (size_t)n)) {
    client->broken = true;
    return false;
  }
  buf_append(&client->in, (struct span){ .ptr = proxy->scratch, .len = (size_t)n });
  if (buf_error(&client->in)) {
    budget_give(&proxy->budget, (size_t)n);
    client->broken = true;
  }
  loop_timer_set(client->timer, LIMITS_HEAD_MS);
  return !client->broken;
}

/* May free the client. */
static void advance(struct stub_client *client)
{
  struct err err = ERR_INIT;

  while (!client->broken && !client->question && !sock_pending(&client->sock)) {
    struct span message;
    size_t len = 0;
    int r = dns_frame_scan(buf_span(&client->in), &err, &message, &len);

    if (r < 0) {
      client->broken = true;
    } else if (r == 0) {
      if (!fill(client))
        break;
    } else {
      take(client, message, len);
    }
  }
  if (client->broken)
    client_end(client);
  else
    sock_watch(&client->sock, !client->question && !sock_pending(&client->sock));
}

static void on_ready(void *data)
{
  struct stub_client *client = data;

  if (!client->busy)
    advance(client);
}

static void on_timer(void *data)
{
  client_end(data);
}

void stub_accept(struct stub *stub, int fd)
{
  struct proxy *proxy = stub_proxy(stub);
  bool over = proxy->stub_client_count >= LIMITS_DNS_CLIENTS;
  struct stub_client *client = over ? NULL : mem_calloc(1, sizeof *client);

  if (!client || loop_timer_new(proxy->loop, on_timer, client, &client->timer) < 0) {
    stub_tell_limit(stub, over ? REASON_LIMIT_LOOKUPS : REASON_LIMIT);
    free(client);
    fd_close(&fd);
    return;
  }
  client->stub = stub;
  client->proxy = proxy;
  client->in = (struct buf)BUF_INIT(2 * LIMITS_DNS_QUERY_BYTES);
  sock_init(&client->sock);
  client->next = proxy->stub_clients;
  if (client->next)
    client->next->prev = client;
  proxy->stub_clients = client;
  proxy->stub_client_count++;
  if (sock_open(&client->sock, proxy->loop, &proxy->budget, fd, on_ready, client) < 0) {
    client_end(client);
    return;
  }
  loop_timer_set(client->timer, LIMITS_HEAD_MS);
  advance(client);
}

void stub_end_clients(struct proxy *proxy)
{
  struct stub_client *next;

  for (struct stub_client *client = proxy->stub_clients; client; client = next) {
    next = client->next;
    client_end(client);
  }
}
