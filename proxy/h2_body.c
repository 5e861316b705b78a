/* Theory of operation
 *
 * A body passes from one leg to the other through a pipe, which holds what has come and not gone. Flow control (RFC
 * 9113, 5.2) keeps it short: the connection's window is given back to the sender at once, so that one stream never
 * stalls another; a stream's window only as its bytes go out on the other leg. So a pipe holds at most one window, and
 * nothing where the other side keeps up.
 *
 * A window begins small. A stream that has moved that much may be far from its sender: it gets a large one, as long as
 * few of the connection have. No window is allocated before bytes come, and what is held is charged to the budget.
 */
#include "proxy/h2_state.h"
#include "proxy/http_shared.h"
#include "proxy/inject_body.h"

#include <errno.h>

size_t h2_body_held(const struct h2_pipe *pipe)
{
  return pipe->data.len - pipe->taken;
}

static struct h2_leg *from_leg(struct h2_stream *stream, bool is_origin)
{
  return is_origin ? &stream->h2->origin : &stream->h2->client;
}

static void resume(struct h2_stream *stream, bool to_origin)
{
  struct h2_leg *leg = from_leg(stream, to_origin);
  int32_t id = to_origin ? stream->origin_id : stream->client_id;

  if (leg->session && !leg->lost && id)
    (void)nghttp2_session_resume_data(leg->session, id); /* an error: it is not waiting */
}

/* The sender may send as much again. */
static void give_back(struct h2_stream *stream, bool is_origin, size_t count)
{
  struct h2_leg *leg = from_leg(stream, is_origin);
  int32_t id = is_origin ? stream->origin_id : stream->client_id;

  if (leg->session && !leg->lost && id && count)
    (void)nghttp2_session_consume_stream(leg->session, id, count); /* an error: it has ended */
}

static void drop_held(struct h2_stream *stream, struct h2_pipe *pipe)
{
  budget_give(&stream->h2->proxy->budget, h2_body_held(pipe));
  buf_free(&pipe->data);
  pipe->taken = 0;
}

void h2_body_drop(struct h2_stream *stream, struct h2_pipe *pipe)
{
  give_back(stream, pipe == &stream->down, h2_body_held(pipe));
  drop_held(stream, pipe);
  pipe->dropped = true;
  h2_stream_drop(stream, &pipe->trailer);
}

void h2_body_clear(struct h2_stream *stream, struct h2_pipe *pipe)
{
  drop_held(stream, pipe);
  h2_stream_drop(stream, &pipe->trailer);
  if (pipe->wide)
    stream->h2->wide_count--;
  *pipe = (struct h2_pipe){ .data = BUF_INIT(2 * LIMITS_H2_WINDOW_BYTES),
                            .trailer = BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 64) };
}

/* What has gone moves out of the way as soon as it is the larger part: each byte moves once at most. */
static void compact(struct h2_pipe *pipe)
{
  if (pipe->taken == pipe->data.len) {
    buf_free(&pipe->data);
    pipe->taken = 0;
  } else if (pipe->taken > pipe->data.len / 2) {
    buf_consume(&pipe->data, pipe->taken);
    pipe->taken = 0;
  }
}

/* Notes which placeholders go in the request's body; only what may begin one is kept. Without memory a note is missing,
 * and nothing else. */
static void watch(struct h2_stream *stream, struct span bytes, bool end)
{
  const struct values *values = stream->h2->proxy->values;
  buf_autofree struct buf text = BUF_INIT(INJECT_BODY_REQUEST_MAX + bytes.len);
  size_t done;

  if (!http_shared_watches(values, stream->in_body))
    return;
  buf_append(&text, buf_span(&stream->watched));
  buf_append(&text, bytes);
  if (buf_error(&text))
    return;
  stream->in_body = http_shared_watch(values, stream->in_body, buf_span(&text), end, &done);
  h2_stream_drop(stream, &stream->watched);
  buf_append(&stream->watched, span_sub(buf_span(&text), done, text.len));
  (void)h2_stream_hold(stream, &stream->watched);
}

void h2_body_take(struct h2_stream *stream, bool is_origin, struct span bytes)
{
  struct h2_pipe *pipe = is_origin ? &stream->down : &stream->up;
  struct budget *budget = &stream->h2->proxy->budget;

  stream->active_ms = h2_now_ms(stream->h2);
  if (pipe->dropped) {
    give_back(stream, is_origin, bytes.len);
    return;
  }
  if (budget_take(budget, bytes.len)) {
    buf_append(&pipe->data, bytes);
    if (!buf_error(&pipe->data)) {
      resume(stream, !is_origin);
      return;
    }
    budget_give(budget, bytes.len);
    pipe->data.error = 0;
  }
  h2_stream_fail(stream, REASON_LIMIT, "the proxy's memory is used up");
}

void h2_body_end(struct h2_stream *stream, bool is_origin)
{
  struct h2_pipe *pipe = is_origin ? &stream->down : &stream->up;

  pipe->ended = true;
  stream->active_ms = h2_now_ms(stream->h2);
  resume(stream, !is_origin);
}

/* A stream that has moved its first window may be far ahead from now on. */
static void widen(struct h2_stream *stream, struct h2_pipe *pipe)
{
  bool is_origin = pipe == &stream->down;
  struct h2_leg *leg = from_leg(stream, is_origin);

  if (pipe->wide || pipe->ended || pipe->moved < LIMITS_H2_WINDOW_BYTES / 32 ||
      stream->h2->wide_count >= LIMITS_H2_WIDE_STREAMS)
    return;
  pipe->wide = true;
  stream->h2->wide_count++;
  (void)nghttp2_session_set_local_window_size(
      leg->session, NGHTTP2_FLAG_NONE, is_origin ? stream->origin_id : stream->client_id, LIMITS_H2_WINDOW_BYTES);
}

static bool send_trailer(nghttp2_session *session, int32_t id, struct h2_stream *stream, struct h2_pipe *pipe)
{
  buf_autofree struct buf scrubbed = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct http_head head;
  struct h2_list list;
  int r = http_head_parse_response(buf_span(&pipe->trailer), NULL, &head);

  if (r < 0)
    return false;
  if (pipe == &stream->down)
    h2_response_scrub(stream, &head, &scrubbed);
  h2_list_trailer(&head, pipe->never, &list);
  r = nghttp2_submit_trailer(session, id, list.fields, list.count);
  h2_list_clear(&list);
  pipe->trailer_told = r == 0;
  return r == 0;
}

/* nghttp2 asks how much of a body there is for a frame. */
static ssize_t provide(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len, uint32_t *flags,
                       nghttp2_data_source *source, void *data)
{
  const struct h2_leg *leg = data;
  struct h2_stream *stream = h2_leg_stream(leg, id);
  struct h2_pipe *pipe;
  size_t held;

  (void)bytes;
  (void)source;
  if (!stream)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* one that another has taken the place of */
  pipe = leg->is_origin ? &stream->up : &stream->down;
  held = h2_body_held(pipe);
  if (!held && !pipe->ended)
    return NGHTTP2_ERR_DEFERRED;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (held > len || !pipe->ended)
    return (ssize_t)(held < len ? held : len);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (pipe->trailer.len && (pipe->trailer_told || send_trailer(session, id, stream, pipe)))
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  return (ssize_t)held;
}

nghttp2_data_provider h2_body_provider(void)
{
  return (nghttp2_data_provider){ .read_callback = provide };
}

int h2_body_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t len,
                  nghttp2_data_source *source, void *data)
{
  struct h2_leg *leg = data;
  struct h2_stream *stream = h2_leg_stream(leg, frame->hd.stream_id);
  struct h2_pipe *pipe;

  (void)session;
  (void)source;
  /* It was announced before its body was thrown away, or its stream was replaced, and may be freed: its reset is under
   * way. */
  if (!stream)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  pipe = leg->is_origin ? &stream->up : &stream->down;
  if (len > h2_body_held(pipe))
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  /* A frame is never padded: no callback of ours asks for it. */
  if (sock_pending(leg->sock))
    return NGHTTP2_ERR_WOULDBLOCK;
  h2_leg_put(leg, (struct span){ (const char *)head, 9 });
  h2_leg_put(leg, span_sub(buf_span(&pipe->data), pipe->taken, len));
  if (leg->is_origin)
    watch(stream, span_sub(buf_span(&pipe->data), pipe->taken, len), pipe->ended && len == h2_body_held(pipe));
  pipe->taken += len;
  pipe->moved += len;
  budget_give(&stream->h2->proxy->budget, len);
  stream->active_ms = h2_now_ms(stream->h2);
  give_back(stream, !leg->is_origin, len);
  widen(stream, pipe);
  compact(pipe);
  return 0;
}
