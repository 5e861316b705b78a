/* Responses: values of credentials that stand in their heads and trailers become placeholders again, and a 401 may be a
 * sign of a value that is too old, as http_secret.c has it: once per request, and where no byte of its body has gone to
 * the origin, newer values are asked for, and the request is sent again on the same connection. */
#include "proxy/h2_state.h"

#include <errno.h>

void h2_response_scrub(struct h2_stream *stream, struct http_head *head, struct buf *out)
{
  const struct values *values = stream->h2->proxy->values;
  const struct inject_secret *list;
  size_t count;

  if (!values)
    return;
  list = values_known(values, &count);
  stream->scrubbed += inject_scrub(list, count, head, out);
}

/* Passes a response's head on. */
static void pass(struct h2_stream *stream, struct http_head *head, uint64_t never, bool ends)
{
  buf_autofree struct buf scrubbed = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  nghttp2_session *session = stream->h2->client.session;
  nghttp2_data_provider provider = h2_body_provider();
  struct h2_list list;
  int r;

  h2_response_scrub(stream, head, &scrubbed);
  h2_list_response(head, never, &list);
  if (head->status < 200) {
    r = nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, stream->client_id, NULL, list.fields, list.count, NULL);
  } else {
    stream->response_begun = true;
    stream->down.ended = stream->down.ended || ends;
    r = nghttp2_submit_response(session, stream->client_id, list.fields, list.count, ends ? NULL : &provider);
  }
  h2_list_clear(&list);
  if (r)
    h2_stream_fail(stream, REASON_LIMIT, NULL);
}

static void pass_text(struct h2_stream *stream, struct span text, uint64_t never, bool ends)
{
  struct http_head head;

  if (http_head_parse_response(text, NULL, &head) == 0)
    pass(stream, &head, never, ends);
  else
    h2_stream_fail(stream, REASON_BAD_RESPONSE, "its head is not well formed");
}

/* The request once more, in place of the one that was refused. */
static void send_again(struct h2_stream *stream)
{
  nghttp2_session *session = stream->h2->origin.session;

  if (stream->origin_open) {
    (void)nghttp2_session_set_stream_user_data(session, stream->origin_id, NULL);
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->origin_id, NGHTTP2_CANCEL);
  }
  stream->origin_open = false;
  stream->origin_id = 0;
  stream->up.trailer_told = false;
  h2_stream_drop(stream, &stream->answer);
  h2_body_clear(stream, &stream->down);
  h2_stream_send(stream);
}

static void on_renewed(void *data, const char *error)
{
  struct h2_stream *stream = data;
  struct h2 *h2 = stream->h2;

  stream->state = H2_EXCHANGE;
  if (!error && values_version(h2->proxy->values, stream->wanted) != stream->values_version) {
    send_again(stream);
  } else {
    if (!stream->origin_open)
      h2_body_drop(stream, &stream->up);
    pass_text(stream, buf_span(&stream->answer), stream->answer_never,
              stream->answer_ends && !stream->down.trailer.len && !h2_body_held(&stream->down));
    h2_stream_drop(stream, &stream->answer);
  }
  h2_advance(h2);
}

/* True where the 401 waits, or is forgotten; else it is the answer. */
static bool renew(struct h2_stream *stream, struct span text, uint64_t never, bool ends)
{
  struct values *values = stream->h2->proxy->values;

  if (!stream->wanted || stream->renewed || stream->up.moved)
    return false;
  stream->renewed = true;
  if (values_version(values, stream->wanted) != stream->values_version) {
    send_again(stream);
    return true;
  }
  buf_append(&stream->answer, text);
  if (!h2_stream_hold(stream, &stream->answer))
    return false;
  if (values_renew(values, stream->wanted, on_renewed, stream, &stream->values_waiter) < 0) {
    h2_stream_drop(stream, &stream->answer);
    return false;
  }
  stream->answer_never = never;
  stream->answer_ends = ends;
  stream->down.ended = ends;
  stream->state = H2_SECRET;
  return true;
}

static void take(struct h2_stream *stream, struct span text, uint64_t never, bool ends)
{
  struct http_head head;

  if (http_head_parse_response(text, NULL, &head) < 0)
    h2_stream_fail(stream, REASON_BAD_RESPONSE, "its head is not well formed");
  else if (head.status != 401 || !renew(stream, text, never, ends))
    pass(stream, &head, never, ends);
}

void h2_response_head(struct h2_stream *stream, const struct h2_block *block, bool ends)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 64);
  bool is_trailer = !h2_block_has_status(block);

  if (stream->state != H2_EXCHANGE && stream->state != H2_SECRET)
    return;
  stream->active_ms = h2_now_ms(stream->h2);
  if (h2_block_write_response(block, NULL, &text) < 0) {
    h2_stream_fail(stream, REASON_BAD_RESPONSE, "its head is too large");
    return;
  }
  if (!is_trailer) {
    take(stream, buf_span(&text), block->never, ends);
    return;
  }
  buf_append(&stream->down.trailer, buf_span(&text));
  stream->down.never = block->never;
  if (h2_stream_hold(stream, &stream->down.trailer))
    h2_body_end(stream, true);
  else
    h2_stream_fail(stream, REASON_LIMIT, "the proxy's memory is used up");
}
