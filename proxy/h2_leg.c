/* Theory of operation
 *
 * A leg is one session of nghttp2: as a server with the client, or as a client with the origin. nghttp2 knows frames,
 * header compression, flow control and the states of streams (RFC 9113); it tells of what has come by callbacks, which
 * find their stream as the user data of nghttp2's. Callbacks only submit: reading and writing is h2_advance()'s alone.
 *
 * What a peer can do without end is counted here, since the versions of nghttp2 differ in what they bound:
 *
 *   a header list    past the limits of a head it is not kept; past four times that the connection ends
 *   CONTINUATION     a few frames for each list (CVE-2024-28182)
 *   frames of no use so many in a second: pings, settings, priorities, empty data (CVE-2019-9512, 9515, 9518)
 *   resets           see h2_stream.c (CVE-2023-44487)
 *
 * nghttp2's memory is bounded as a whole (h2_mem.h). Bytes of frames that held values are wiped as soon as they have
 * been handed on: nghttp2 writes its buffer anew for the next frame, and never reads what it has given out.
 */
#include "proxy/h2_state.h"

#include "base/mem.h"

#include <errno.h>

#define MS_PER_S 1000

/* Ends a leg whose peer goes too far. */
static void calm(struct h2_leg *leg, const char *cause)
{
  if (!leg->cause)
    leg->cause = cause;
  (void)nghttp2_session_terminate_session(leg->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Counts a frame that brings nothing. */
static void count_idle(struct h2_leg *leg)
{
  uint64_t now = h2_now_ms(leg->h2);

  if (now - leg->idle_ms >= MS_PER_S) {
    leg->idle_ms = now;
    leg->idle_frames = 0;
  }
  if (++leg->idle_frames > LIMITS_H2_IDLE_FRAMES)
    calm(leg, "it floods the connection with frames of no use");
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *data)
{
  struct h2_leg *leg = data;

  (void)session;
  switch (head->type) {
  case NGHTTP2_CONTINUATION:
    if (++leg->continuations > LIMITS_H2_CONTINUATIONS)
      calm(leg, "its header list comes in too many frames");
    return 0;
  case NGHTTP2_DATA:
    if (head->length == 0 && !(head->flags & NGHTTP2_FLAG_END_STREAM))
      count_idle(leg);
    break;
  case NGHTTP2_HEADERS:
  case NGHTTP2_WINDOW_UPDATE:
  case NGHTTP2_RST_STREAM:
    break;
  default:
    count_idle(leg);
  }
  leg->block_stream = 0;
  leg->continuations = 0;
  return 0;
}

struct h2_stream *h2_leg_stream(const struct h2_leg *leg, int32_t id)
{
  return nghttp2_session_get_stream_user_data(leg->session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
  struct h2_leg *leg = data;
  struct h2_stream *stream;

  h2_block_clear(&leg->block);
  leg->block_stream = frame->hd.stream_id;
  leg->block_ms = h2_now_ms(leg->h2);
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  stream = h2_stream_new(leg->h2, frame->hd.stream_id);
  if (!stream)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  (void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *data)
{
  struct h2_leg *leg = data;

  (void)session;
  (void)frame;
  h2_block_add(&leg->block, (struct span){ (const char *)name, name_len },
               (struct span){ (const char *)value, value_len }, flags & NGHTTP2_NV_FLAG_NO_INDEX);
  if (leg->block.size > 4 * LIMITS_HTTP_HEAD_BYTES || leg->block.count > 4 * LIMITS_HTTP_FIELDS)
    calm(leg, "its header list is far too large");
  return 0;
}

/* A field that is not well formed makes the message so (RFC 9113, 8.1.1). */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                             const uint8_t *value, size_t value_len, uint8_t flags, void *data)
{
  (void)name;
  (void)name_len;
  (void)value;
  (void)value_len;
  (void)flags;
  (void)data;
  (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void take_headers(struct h2_leg *leg, const nghttp2_frame *frame)
{
  struct h2_stream *stream = h2_leg_stream(leg, frame->hd.stream_id);
  bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

  leg->block_stream = 0;
  if (stream && leg->is_origin)
    h2_response_head(stream, &leg->block, ends);
  else if (stream)
    h2_stream_request(stream, &leg->block, ends);
  h2_block_clear(&leg->block);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
  struct h2_leg *leg = data;
  struct h2_stream *stream;

  (void)session;
  switch (frame->hd.type) {
  case NGHTTP2_HEADERS:
    take_headers(leg, frame);
    break;
  case NGHTTP2_DATA:
    stream = frame->hd.flags & NGHTTP2_FLAG_END_STREAM ? h2_leg_stream(leg, frame->hd.stream_id) : NULL;
    if (stream)
      h2_body_end(stream, leg->is_origin);
    break;
  case NGHTTP2_RST_STREAM:
    leg->reset_stream = frame->hd.stream_id;
    break;
  case NGHTTP2_SETTINGS:
    leg->ready = true;
    break;
  case NGHTTP2_GOAWAY:
    h2_close_gracefully(leg->h2, leg->is_origin ? frame->goaway.error_code : NGHTTP2_NO_ERROR);
    break;
  default:
    break;
  }
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len, void *data)
{
  struct h2_leg *leg = data;
  struct h2_stream *stream = h2_leg_stream(leg, id);

  (void)flags;
  (void)nghttp2_session_consume_connection(session, len);
  if (stream)
    h2_body_take(stream, leg->is_origin, (struct span){ (const char *)bytes, len });
  else
    (void)nghttp2_session_consume_stream(session, id, len);
  return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
  struct h2_leg *leg = data;
  bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
              (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
  struct h2_stream *stream = ends && !leg->is_origin ? h2_leg_stream(leg, frame->hd.stream_id) : NULL;

  (void)session;
  if (stream) {
    stream->response_ended = true;
    h2_stream_settle(stream);
  }
  return 0;
}

/* A request that may not be sent any more: its stream is closed after this, and the client may ask again. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *data)
{
  struct h2_leg *leg = data;

  (void)session;
  if (frame->hd.type == NGHTTP2_HEADERS && error == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED)
    leg->unsent_stream = frame->hd.stream_id;
  return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *data)
{
  struct h2_leg *leg = data;
  struct h2_stream *stream = h2_leg_stream(leg, id);
  bool by_us = leg->reset_stream != id;

  (void)session;
  if (leg->block_stream == id)
    leg->block_stream = 0;
  if (stream)
    h2_stream_closed(stream, leg->is_origin, leg->unsent_stream == id ? NGHTTP2_REFUSED_STREAM : code, by_us);
  return 0;
}

/* Sessions. */

static int set_callbacks(nghttp2_session_callbacks **ret_callbacks)
{
  nghttp2_session_callbacks *callbacks;

  if (nghttp2_session_callbacks_new(&callbacks))
    return -ENOMEM;
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, h2_body_write);
  *ret_callbacks = callbacks;
  return 0;
}

static int set_option(nghttp2_option **ret_option)
{
  nghttp2_option *option;

  if (nghttp2_option_new(&option))
    return -ENOMEM;
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_send_header_block_length(option, 2 * LIMITS_HTTP_HEAD_BYTES); /* its bound is a generous one */
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1); /* http_head.h leaves it out */
  *ret_option = option;
  return 0;
}

/* What we tell the peer first. Extended CONNECT (RFC 8441) is not among it: WebSocket goes over HTTP/1.1. */
static int submit_settings(struct h2_leg *leg)
{
  const nghttp2_settings_entry entries[] = {
    { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMITS_HTTP_HEAD_BYTES },
    leg->is_origin ? (nghttp2_settings_entry){ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 }
                   : (nghttp2_settings_entry){ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMITS_H2_STREAMS },
  };

  return nghttp2_submit_settings(leg->session, NGHTTP2_FLAG_NONE, entries, MEM_COUNT(entries)) ||
                 nghttp2_session_set_local_window_size(leg->session, NGHTTP2_FLAG_NONE, 0,
                                                       LIMITS_H2_WIDE_STREAMS * LIMITS_H2_WINDOW_BYTES)
             ? -ENOMEM
             : 0;
}

int h2_leg_open(struct h2_leg *leg, struct h2 *h2, struct sock *sock, bool is_origin)
{
  nghttp2_session_callbacks *callbacks = NULL;
  nghttp2_option *option = NULL;
  int r;

  *leg = (struct h2_leg){ .h2 = h2, .sock = sock, .is_origin = is_origin, .block = H2_BLOCK_INIT };
  r = set_callbacks(&callbacks);
  if (r == 0)
    r = set_option(&option);
  if (r == 0 && (is_origin ? nghttp2_session_client_new3 : nghttp2_session_server_new3)(&leg->session, callbacks, leg,
                                                                                        option, &h2->mem.calls))
    r = -ENOMEM;
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  return r < 0 ? r : submit_settings(leg);
}

void h2_leg_close(struct h2_leg *leg)
{
  nghttp2_session_del(leg->session);
  leg->session = NULL;
  h2_block_clear(&leg->block);
}

bool h2_leg_is_over(const struct h2_leg *leg)
{
  return !nghttp2_session_want_read(leg->session) && !nghttp2_session_want_write(leg->session);
}

/* The peer has gone, or speaks something that is not HTTP/2. */
static void end(struct h2_leg *leg, const char *cause)
{
  leg->lost = true;
  if (!leg->cause)
    leg->cause = cause;
}

bool h2_leg_read(struct h2_leg *leg)
{
  struct proxy *proxy = leg->h2->proxy;
  ssize_t n;
  ssize_t taken;

  if (leg->lost || leg->h2->reads_left == 0)
    return false;
  n = sock_recv(leg->sock, proxy->scratch, sizeof proxy->scratch);
  if (n == -EAGAIN)
    return false;
  leg->h2->reads_left--;
  if (n <= 0) {
    end(leg, NULL);
    return true;
  }
  taken = nghttp2_session_mem_recv(leg->session, (const uint8_t *)proxy->scratch, (size_t)n);
  if (taken < 0)
    end(leg, taken == NGHTTP2_ERR_NOMEM ? "the connection needs too much memory" : nghttp2_strerror((int)taken));
  return true;
}

static void flush(struct h2_leg *leg)
{
  if (leg->out_len && !leg->lost && sock_send(leg->sock, (struct span){ leg->out, leg->out_len }, false) < 0)
    end(leg, NULL);
  if (leg->secret)
    mem_wipe(leg->out, leg->out_len);
  leg->out_len = 0;
}

void h2_leg_put(struct h2_leg *leg, struct span bytes)
{
  while (bytes.len) {
    size_t room = H2_OUT_BYTES - leg->out_len;
    size_t count = bytes.len < room ? bytes.len : room;

    memcpy(leg->out + leg->out_len, bytes.ptr, count);
    leg->out_len += count;
    bytes = span_sub(bytes, count, bytes.len);
    if (leg->out_len == H2_OUT_BYTES)
      flush(leg);
  }
}

bool h2_leg_write(struct h2_leg *leg)
{
  char out[H2_OUT_BYTES];
  const uint8_t *bytes;
  bool any = false;
  ssize_t n = 0;

  leg->out = out;
  while (!leg->lost && !sock_pending(leg->sock)) {
    n = nghttp2_session_mem_send(leg->session, &bytes);
    if (n <= 0)
      break;
    any = true;
    h2_leg_put(leg, (struct span){ (const char *)bytes, (size_t)n });
    if (leg->secret)
      mem_wipe((void *)(uintptr_t)bytes, (size_t)n);
  }
  any = any || leg->out_len;
  if (n < 0)
    end(leg, n == NGHTTP2_ERR_NOMEM ? "the connection needs too much memory" : nghttp2_strerror((int)n));
  flush(leg);
  leg->out = NULL;
  return any;
}
