/* Theory of operation
 *
 * Each request is judged by itself. What the user allows once holds for the connection on which it was asked, so that
 * the next request of a kept-alive connection to the same target is no new question; and it comes along with a
 * connection that is allowed already (http_fixed.h).
 */
#include "proxy/http_state.h"

static bool is_allowed_once(const struct http *http)
{
  return http->once.allow && http->once_port == http->port && strcmp(http->once_host.name, http->host.name) == 0;
}

static void on_asked(void *data, const struct verdict *verdict)
{
  struct http *http = data;

  http->verdict = *verdict;
  http->has_answer = true;
  if (verdict->allow && verdict->asked == DECIDE_ASKED_ONCE) {
    http->once = *verdict;
    http->once_host = http->host;
    http->once_port = http->port;
  }
  http_advance(http);
}

void http_judge(struct http *http)
{
  struct proxy *proxy = http->proxy;

  if (http->fixed.refused) {
    http->verdict = http->fixed.refusal;
    http_obey(http, http->fixed.cause);
    return;
  }
  http->verdict = decide_target(proxy->policy, &http->host, http->port);
  if (decide_may_ask(&http->verdict, &http->host) && is_allowed_once(http))
    http->verdict = http->once;
  if (http->verdict.allow ||
      !ask_start(proxy->ask, &http->host, http->port, &http->verdict, on_asked, http, &http->waiter)) {
    http_obey(http, NULL);
    return;
  }
  http->has_answer = false;
  http->state = HTTP_ASK;
  loop_timer_stop(http->conn->timer); /* the question has its own deadline */
}

bool http_ask_step(struct http *http)
{
  if (!http->has_answer)
    return http_listen(http);
  http->has_answer = false;
  http_obey(http, NULL);
  return true;
}
