/* h2_state: the state of one connection of HTTP/2; shared by h2.c (its life), h2_leg.c (nghttp2's sessions),
 * h2_stream.c (a request), h2_response.c (its response) and h2_body.c (bodies), and by nothing else. */
#ifndef SBX_PROXY_H2_STATE_H
#define SBX_PROXY_H2_STATE_H

#include "proxy/ask.h"
#include "proxy/conn.h"
#include "proxy/h2_head.h"
#include "proxy/h2_mem.h"
#include "proxy/http_fixed.h"
#include "proxy/inject.h"
#include "proxy/values.h"

#define H2_OUT_BYTES (2 * LIMITS_TLS_RECORD_BYTES) /* collected for one write */

/* One of the two ends, and nghttp2's session with it. */
struct h2_leg {
  struct h2 *h2;
  struct sock *sock;
  nghttp2_session *session;
  bool is_origin;
  bool ready; /* its SETTINGS have come */
  bool lost; /* nothing comes any more, and nothing goes */
  bool secret; /* values of credentials have been sent on it */
  int32_t reset_stream; /* the last that its peer has reset */
  int32_t unsent_stream; /* the last request that could not be sent any more */
  const char *cause; /* of the end, or NULL */
  struct h2_block block; /* the header list that is coming */
  int32_t block_stream; /* on this stream; 0: none is */
  uint64_t block_ms; /* since then */
  unsigned continuations; /* frames of it */
  unsigned idle_frames; /* that brought nothing, */
  uint64_t idle_ms; /* since then */
  char *out; /* while frames are collected: H2_OUT_BYTES */
  size_t out_len;
};

/* A body on its way from one leg to the other: what has come of it and was not taken yet. Charged to the budget. */
struct h2_pipe {
  struct buf data;
  size_t taken; /* bytes at its start that have gone */
  bool ended; /* no more bytes come */
  bool dropped; /* what comes is thrown away */
  bool wide; /* the sender may be far ahead */
  uint64_t moved; /* bytes that have gone */
  struct buf trailer; /* text of a head, to be sent at the end; empty: none */
  bool trailer_told; /* nghttp2 has it */
  uint64_t never; /* as h2_block has it, of the trailer */
};

/* What a state permits. */
enum h2_stream_state {
  H2_HEAD, /* its header list is coming */
  H2_ASK, /* the user is asked; what the client sends meanwhile is kept */
  H2_SECRET, /* values of credentials are fetched; the same, and a response that is to be judged waits in answer */
  H2_EXCHANGE, /* it has been sent to the origin */
  H2_OVER, /* it has been answered here, or been reset: nothing more happens to it */
};

/* One request: a stream of the client's leg, and one of the origin's. */
struct h2_stream {
  struct h2_stream *prev;
  struct h2_stream *next;
  struct h2 *h2;
  enum h2_stream_state state;
  int32_t client_id;
  int32_t origin_id; /* 0: none yet */
  bool client_open;
  bool origin_open;
  bool told; /* its line is in the audit */
  bool to_head; /* the method is HEAD */
  bool response_begun; /* the final response's head has gone to the client */
  bool response_ended; /* all of it has */
  struct buf request; /* its head as text, until it is not needed any more; charged to the budget */
  uint64_t never; /* as h2_block has it */
  struct buf answer; /* the head of a 401 that waits; charged */
  bool answer_ends;
  uint64_t answer_never;
  struct h2_pipe up;
  struct h2_pipe down;

  /* As struct http has them. */
  bool has_host;
  struct host host;
  uint16_t port;
  struct verdict verdict;
  const char *hides;
  struct buf label;
  size_t method_len;
  inject_set bound;
  inject_set wanted;
  inject_set misused;
  const struct inject_fault *fault;
  inject_set concerned;
  uint64_t values_version;
  bool renewed;
  size_t scrubbed;
  inject_set in_body;
  struct buf watched; /* charged */
  struct values_waiter *values_waiter;
  struct ask_waiter *waiter;
  uint64_t begun_ns;
  uint64_t active_ms;
};

struct h2 {
  struct conn *conn;
  struct proxy *proxy;
  struct http_fixed fixed;
  struct verdict once; /* as struct http has it; for the fixed target */
  struct sock origin_sock;
  struct h2_mem mem;
  struct h2_leg client;
  struct h2_leg origin; /* session NULL: there is none */
  struct h2_stream *streams;
  size_t stream_count;
  size_t wide_count; /* pipes that are */
  unsigned resets; /* of the client, */
  uint64_t resets_ms; /* as of then */
  bool advancing;
  bool told; /* some request has been */
  bool closing; /* no new request is taken; ends with the last one */
  bool dying; /* the last frame to the client has been queued */
  unsigned reads_left;
  uint64_t begun_ms;
  uint64_t active_ms; /* when the last stream ended */
};

/* h2.c */

/* Goes on with what there is to do. May free h2. */
void h2_advance(struct h2 *h2);
uint64_t h2_now_ms(const struct h2 *h2);
/* The origin's leg has ended, or is to; its streams are answered or reset. */
void h2_origin_lost(struct h2 *h2, const char *cause);
/* Ends the client's leg with a last frame. */
void h2_die(struct h2 *h2, uint32_t code);
/* No new requests: the client is told so, with that code. The origin is told at the end. */
void h2_close_gracefully(struct h2 *h2, uint32_t code);

/* h2_leg.c */

/* 0 or -ENOMEM. */
int h2_leg_open(struct h2_leg *leg, struct h2 *h2, struct sock *sock, bool is_origin);
void h2_leg_close(struct h2_leg *leg);
/* Read, and write, what there is, a bounded amount. True when it did something. */
bool h2_leg_read(struct h2_leg *leg);
bool h2_leg_write(struct h2_leg *leg);
/* Collects bytes to be written. */
void h2_leg_put(struct h2_leg *leg, struct span bytes);
/* The request that a stream of the leg's session stands for; NULL: none any more. */
struct h2_stream *h2_leg_stream(const struct h2_leg *leg, int32_t id);
/* Whether the session has nothing more to say or to hear. */
bool h2_leg_is_over(const struct h2_leg *leg);

/* h2_stream.c */

/* NULL when memory is short. */
struct h2_stream *h2_stream_new(struct h2 *h2, int32_t client_id);
void h2_stream_free(struct h2_stream *stream);
/* A header list has come from the client: a request, or the trailer of one. */
void h2_stream_request(struct h2_stream *stream, const struct h2_block *block, bool ends);
/* Sends the request to the origin, with values of credentials where it wants some. */
void h2_stream_send(struct h2_stream *stream);
/* Answers here, or cuts the response off. cause and fix may be NULL. */
void h2_stream_refuse(struct h2_stream *stream, const struct verdict *verdict, const char *cause, const char *fix);
void h2_stream_fail(struct h2_stream *stream, enum reason reason, const char *cause);
/* Resets what is open of it. */
void h2_stream_cut(struct h2_stream *stream, uint32_t code);
/* Its stream on a leg has ended; by_us: it was not the peer who reset it, where it was reset. May free it. */
void h2_stream_closed(struct h2_stream *stream, bool is_origin, uint32_t code, bool by_us);
/* A complete response has been written, or the origin has done with it: what is left of the request is not wanted. */
void h2_stream_settle(struct h2_stream *stream);
/* Writes its line, once. */
void h2_stream_record(struct h2_stream *stream, const struct verdict *verdict);
/* What h2_stream has of memory beside its bodies. */
bool h2_stream_hold(struct h2_stream *stream, struct buf *text);
void h2_stream_drop(struct h2_stream *stream, struct buf *text);

/* h2_response.c */

/* A header list has come from the origin: a response of any kind, or a trailer. */
void h2_response_head(struct h2_stream *stream, const struct h2_block *block, bool ends);
/* Replaces values in a head of the origin's by placeholders, as http_secret_scrub() does. */
void h2_response_scrub(struct h2_stream *stream, struct http_head *head, struct buf *out);

/* h2_body.c */

/* Bytes of a body have come on a leg; the same at its end. */
void h2_body_take(struct h2_stream *stream, bool is_origin, struct span bytes);
void h2_body_end(struct h2_stream *stream, bool is_origin);
/* Throws away what is held, and what will come. */
void h2_body_drop(struct h2_stream *stream, struct h2_pipe *pipe);
/* Forgets all, as new. */
void h2_body_clear(struct h2_stream *stream, struct h2_pipe *pipe);
size_t h2_body_held(const struct h2_pipe *pipe);
/* What gives nghttp2 the body that goes to a leg. */
nghttp2_data_provider h2_body_provider(void);
/* A callback of nghttp2: writes a frame of it. */
int h2_body_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t len,
                  nghttp2_data_source *source, void *data);

#endif
