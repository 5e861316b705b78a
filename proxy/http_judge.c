/* Theory of operation
 *
 * Each request is judged by itself: its target first, which the user may be asked about, then its method and path where
 * rules are about them; again when the address is known, since deny rules on requests may be about that.
 *
 * What the user allows once holds for the connection on which it was asked, so that the next request of a kept-alive
 * connection to the same target is no new question; and it comes along with a connection that is allowed already
 * (http_fixed.h).
 */
#include "proxy/http_shared.h"
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

/* A request without TLS is none for a target that a credential is bound to, by its name or by the address. */
static void judge_cleartext(struct http *http)
{
  const struct policy *policy = http->proxy->policy;

  http->verdict = decide_cleartext(policy, &http->verdict, &http->host, http->port);
  if (http->is_fixed)
    http->verdict = decide_cleartext(policy, &http->verdict, &http->fixed.host, http->fixed.port);
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
  if (!http->connect && !http->fixed.tls)
    judge_cleartext(http);
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

/* A name that came along with an address: what stands for the address has to be kept as well. */
static struct verdict judge_literal(const struct policy *policy, const struct http_fixed *fixed,
                                    const struct addr *addr, const struct request *request)
{
  struct verdict target = fixed->once.allow ? fixed->once : decide_target(policy, &fixed->host, fixed->port);

  return decide_request(policy, &target, &fixed->host, addr, fixed->port, request);
}

struct verdict http_shared_judge(const struct policy *policy, const struct http_asked *asked,
                                 const struct verdict *target, const struct addr *addr)
{
  const struct http_fixed *fixed = asked->fixed;
  struct verdict literal = { .allow = true };
  struct verdict verdict = decide_request(policy, target, asked->host, addr, asked->port, &asked->request);

  if (fixed && fixed->host.kind == HOST_ADDR && asked->host->kind == HOST_NAME)
    literal = judge_literal(policy, fixed, addr, &asked->request);
  if (!verdict.allow)
    return verdict;
  if (!literal.allow)
    return literal;
  if (!verdict.request_rule)
    verdict.request_rule = literal.request_rule;
  if (verdict.request_rule && asked->hides)
    return (struct verdict){ .reason = REASON_AMBIGUOUS_REQUEST, .rule = verdict.request_rule, .detail = asked->hides };
  return verdict;
}

void http_judge_request(struct http *http, const struct addr *addr)
{
  struct http_asked asked = { .fixed = http->is_fixed ? &http->fixed : NULL,
                              .host = &http->host,
                              .port = http->port,
                              .request = http_request_of(http),
                              .hides = http->hides };

  if (!http->connect && http->verdict.allow)
    http->verdict = http_shared_judge(http->proxy->policy, &asked, &http->verdict, addr);
}

bool http_ask_step(struct http *http)
{
  if (!http->has_answer)
    return http_listen(http);
  http->has_answer = false;
  http_obey(http, NULL);
  return true;
}
