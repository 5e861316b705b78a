/* http_state: the state of one client's HTTP connection; shared by http.c (answers, the life of the connection),
 * http_request.c (what a request asks for), http_judge.c (what may be reached), http_secret.c and http_secret_body.c
 * (credentials), http_keep.c (bodies that are signed), http_reach.c (reaching it) and http_exchange.c (an exchange with
 * an origin), and by nothing else. */
#ifndef SBX_PROXY_HTTP_STATE_H
#define SBX_PROXY_HTTP_STATE_H

#include "proxy/ask.h"
#include "proxy/conn.h"
#include "proxy/http_body.h"
#include "proxy/http_fixed.h"
#include "proxy/inject.h"
#include "proxy/inject_body.h"
#include "proxy/reach.h"
#include "proxy/relay.h"

/* Of a method, and of a path: what the audit and the judgement have of them. */
#define HTTP_LABEL_BYTES LIMITS_REQUEST_PATH_BYTES

/* What a state permits. "client" and "origin" are the two sockets. */
enum http_state {
  HTTP_HEAD, /* read client for a request head; an origin kept from before may only be closed */
  HTTP_ASK, /* the user is asked; what the client sends meanwhile is kept */
  HTTP_SECRET, /* values of credentials are fetched; the same, and a response that is to be judged waits in origin_in */
  HTTP_KEEP, /* read client for the request's body, which is kept (http_keep.c) */
  HTTP_REACH, /* resolving and dialling go on; what the client sends meanwhile is kept */
  HTTP_SECURE, /* TLS with an origin that was dialled anew; what the client sends meanwhile is kept */
  HTTP_EXCHANGE, /* client → origin: the request's body; origin → client: responses */
  HTTP_TUNNEL, /* after a 101: the relay owns both */
  HTTP_CONNECTED, /* the answer to a CONNECT is out: both sockets go to a tunnel of tunnel.h */
  HTTP_LINGER, /* a last answer has been sent: conn_linger() */
  HTTP_END, /* neither; the connection ends as soon as control is back in http_advance() */
};

struct http {
  struct conn *conn;
  struct proxy *proxy;
  enum http_state state;
  bool is_fixed; /* the target stands: fixed */
  struct http_fixed fixed;
  bool told; /* some request has been answered or sent on */
  bool advancing; /* http_advance() is on the stack */
  unsigned reads_left; /* in this turn of the loop, so that one connection cannot hold up the others */
  struct buf in; /* from the client, not consumed yet */
  struct http_scan in_scan;

  struct sock origin; /* kept between the requests for one target */
  struct host origin_host; /* what it was dialled for */
  uint16_t origin_port;
  struct route origin_route;
  const struct upstream *origin_parent; /* it is no origin, but this parent proxy */
  struct verdict once; /* where it allows: the user has allowed once_host and once_port once, for this connection */
  struct host once_host;
  uint16_t once_port;
  struct buf origin_in; /* from the origin, not consumed yet */
  struct http_scan origin_scan;

  /* The exchange; set anew by each request. */
  bool open; /* between the parsing of a request and its line in the audit */
  bool has_host;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  const char *event; /* for the audit */
  bool connect; /* the method is CONNECT */
  bool to_head; /* the method is HEAD */
  bool old_client; /* HTTP/1.0 */
  bool upgrade; /* a 101 is allowed */
  const char *hides; /* what of the request a rule on methods or paths could not see through, or NULL */
  bool can_retry; /* may be sent a second time when a kept origin turns out to be gone */
  bool close_client; /* the client's connection ends after the response */
  bool keep_origin; /* the origin's connection may serve another request */
  bool response_begun; /* the final response's head has gone to the client */
  bool body_refused; /* the origin takes no more of the request's body */
  struct http_body request_body;
  struct http_body response_body;
  struct buf request; /* the rewritten head */
  struct buf label; /* method and path, for the audit */
  size_t method_len;
  inject_set bound; /* credentials that are bound to the target */
  inject_set wanted; /* whose values the request gets */
  inject_set misused; /* whose placeholder stands where it may not */
  const struct inject_fault *fault; /* why it cannot be signed anew; or NULL */
  bool wants_body; /* the request is signed with the hash of its body, which has to be made */
  bool expects; /* the client waits for 100 (Continue) */
  inject_set concerned; /* one of these two, once the request has been allowed: for the audit */
  uint64_t values_version; /* of those that were sent */
  struct buf kept; /* the request's body, framing and all, while it is not sent */
  size_t kept_sent; /* of it */
  struct http_body kept_framing; /* request_body as it was in front of it */
  struct sigv4_digest *digest; /* of its content so far */
  char hash[SIGV4_HEX_BYTES]; /* of all of it */
  bool has_hash;
  bool renewed; /* newer ones have been asked for */
  size_t scrubbed; /* values that the origin has sent back */
  inject_set swaps; /* whose placeholders are swapped in the request's body, which is kept for it */
  enum inject_writing writing; /* of values, there */
  bool resized; /* kept is the body without its framing, and its length goes into the head */
  inject_set in_body; /* whose placeholders have gone in the request's body as they are */
  struct buf watched; /* the end of what has gone, which may begin one */
  inject_set scrubs; /* whose values are taken out of the response's body */
  struct buf scrub_held; /* the end of what has come of it, which may begin one */
  size_t scrub_masked; /* how much of that belongs to a value that began before */
  bool scrub_ended; /* the last chunk has gone */
  struct buf trailer; /* of the response, as far as it has come */
  struct values_waiter *values_waiter;
  const char *fix; /* of a refusal, where the verdict does not say it; or NULL */
  struct ask_waiter *waiter;
  bool has_answer; /* of the user: verdict */
  struct reach *reach;
  struct reach_result reached;
  bool has_reached;
  bool dialled; /* origin_route is how this exchange got there */
  const struct upstream *parent; /* the request goes to this parent proxy in absolute-form; NULL: to the origin */
  uint64_t up;
  uint64_t down;
  uint64_t begun_ns;
  uint64_t active_ms;
  struct relay relay;
};

/* http.c */

/* Refuses or fails the exchange with an answer to the client, or cuts the client off where a response has begun.
 * cause may be NULL. status 0: by the reason. */
void http_refuse(struct http *http, const struct verdict *verdict, unsigned status, const char *cause);
void http_fail(struct http *http, enum reason reason, const char *cause);

/* The same where the budget is used up. Bytes of the client may be lost by that, and what comes after them cannot be
 * read any more: its connection ends. */
void http_fail_memory(struct http *http);

/* The exchange is over: ends what it waits for, writes its line, and frees what it held. */
void http_record(struct http *http, const struct verdict *verdict);

/* The response is complete: next request, or end. */
void http_done(struct http *http);

/* Obeys the exchange's verdict. cause: of a refusal, or NULL. */
void http_obey(struct http *http, const char *cause);

/* The request may go, and there is all that it needs: over the connection that is open, or over a new one. */
void http_go_on(struct http *http);

/* Goes on with what there is to do. May free http. */
void http_advance(struct http *http);

/* http_secret.c */

/* Notes which credentials a request is about. Its target is known. */
void http_secret_look(struct http *http, const struct http_head *head);
/* Goes on with a request that is allowed: refuses it where it misuses a placeholder, fetches values, http_go_on(). */
void http_secret_allow(struct http *http);
/* Sends the head of a request that wants values. As sock_send(); or -ECANCELED where the exchange is over. */
int http_secret_send(struct http *http, bool more);
/* Takes values out of a response's head. What takes their place lies in out, which is empty and has room for a whole
 * head. */
void http_secret_scrub(struct http *http, struct http_head *head, struct buf *out);
/* Sends bytes of a response's trailer, scrubbed as a whole: what has come of it is kept up to its end. As
 * sock_send(). */
int http_secret_trailer(struct http *http, struct span bytes);
/* A 401 has come. True where newer values are asked for, or the request is sent once more; else it is the answer. */
bool http_secret_renew(struct http *http);

/* http_keep.c */

/* Goes on with a request whose values are there: keeps its body first where that is wanted, then http_go_on(). */
void http_keep(struct http *http);
/* What there is to do in HTTP_KEEP. True when it did something. */
bool http_keep_step(struct http *http);
/* Forgets the body that is kept. */
void http_keep_drop(struct http *http);

/* http_reach.c */

/* Resolves and dials the exchange's target, and goes on with the exchange. */
void http_reach(struct http *http);
/* What there is to do in HTTP_REACH and HTTP_SECURE. True when it did something. */
bool http_reach_step(struct http *http);
bool http_secure_step(struct http *http);

/* http_judge.c */

/* Judges the exchange's target, and obeys, or asks the user. */
void http_judge(struct http *http);
/* Judges the exchange's request by itself, where its target has been allowed; addr: where it goes, NULL while that is
 * not known. */
void http_judge_request(struct http *http, const struct addr *addr);
/* Waits for the user's answer. True when it did something. */
bool http_ask_step(struct http *http);

/* http_request.c */

/* Everything about a parsed request that can be wrong. 0, or the error with the reason in *ret_reason. */
int http_request_check(struct http *http, const struct http_head *head, struct err *err, struct http_target *ret_target,
                       enum reason *ret_reason);
/* Takes over what is needed of the head. */
void http_request_note(struct http *http, const struct http_head *head, const struct http_target *target);
/* What the exchange asks for; borrowed from http. */
struct request http_request_of(const struct http *http);

/* http_exchange.c */

/* Reads into in (at most up to LIMITS_HTTP_HEAD_BYTES). 1; 0 nothing now; -ENODATA at the end; -ENOBUFS; -errno. */
int http_fill(struct http *http, struct sock *sock, struct buf *in);
/* Appends bytes to in, charged to the budget. False, and nothing appended, where that is not possible. */
bool http_hold(struct http *http, struct buf *in, struct span bytes);
/* Takes in what the client sends ahead while its request is under way, so that a reset is noticed at once. Its end of
 * file is not: it may wait for the response all the same. True when it did something. */
bool http_listen(struct http *http);
/* Drops consumed bytes of in. */
void http_drop(struct http *http, struct buf *in, size_t count);

/* The parent proxy that gets the request as it is, in absolute-form; or NULL. Many refuse CONNECT to other ports than
 * 443, and serve http:// URLs only when they see the request. One that asks for another protocol is better off in a
 * tunnel, which no parent has to understand; and what http_rewrite_is_reflected() must be in one. */
const struct upstream *http_exchange_parent(const struct http *http);
/* Whether the connection that is open serves the request too. */
bool http_exchange_serves(const struct http *http);
/* Sends the request's head to the origin. */
void http_exchange_begin(struct http *http);
/* Moves what there is to move, a bounded amount. True when it did something. */
bool http_exchange_step(struct http *http);
/* Makes both sockets one tunnel, with what has already been read. */
void http_tunnel(struct http *http);

#endif
