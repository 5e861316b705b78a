/* A request or response head, as the proxy gets it from inside or from an origin: however it comes in pieces the
 * scanner says the same; and whatever is accepted goes on as a head that is accepted again, means the same and carries
 * nothing of the hop. */
#include "fuzz/fuzz.h"

#include "proxy/http_body.h"
#include "proxy/http_rewrite.h"

static int scan_in_pieces(struct span text, size_t piece, size_t *ret_len)
{
  struct http_scan scan = { 0 };
  int r = 0;

  for (size_t seen = piece; r == 0; seen += piece) {
    r = http_head_scan(&scan, span_sub(text, 0, seen), ret_len);
    if (seen >= text.len)
      break;
  }
  return r;
}

static void check_no_hop_fields(const struct http_head *head, bool upgrade)
{
  FUZZ_ASSERT(!http_head_find(head, "proxy-authorization", NULL));
  FUZZ_ASSERT(!http_head_find(head, "proxy-connection", NULL));
  FUZZ_ASSERT(!http_head_find(head, "keep-alive", NULL));
  FUZZ_ASSERT(upgrade || !http_head_find(head, "upgrade", NULL));
}

static void check_same_framing(const struct http_body *a, const struct http_body *b)
{
  FUZZ_ASSERT(a->kind == b->kind && a->done == b->done && a->left == b->left);
}

static void check_request(struct span text)
{
  static struct http_head head;
  static struct http_head again;
  buf_autofree struct buf out = BUF_INIT(2 * LIMITS_HTTP_HEAD_BYTES);
  struct http_target target;
  struct http_body body;
  struct http_body body_again;
  size_t hosts;

  if (http_head_parse_request(text, NULL, &head) < 0 || http_rewrite_check_request(&head, NULL) < 0 ||
      http_body_of_request(&head, NULL, &body) < 0 || http_target_parse_absolute(head.target, false, NULL, &target) < 0)
    return;
  http_rewrite_request(&head, &target, NULL, &out);
  if (buf_error(&out))
    return;
  FUZZ_ASSERT(http_head_parse_request(buf_span(&out), NULL, &again) == 0 || again.field_count == LIMITS_HTTP_FIELDS);
  FUZZ_ASSERT(span_equal(again.method, head.method) && again.minor == head.minor);
  FUZZ_ASSERT(again.target.ptr[0] == '/' || span_equal_str(again.target, "*"));
  if (again.field_count == LIMITS_HTTP_FIELDS)
    return;
  (void)http_head_find(&again, "host", &hosts);
  FUZZ_ASSERT(hosts == 1 && http_rewrite_check_request(&again, NULL) == 0);
  FUZZ_ASSERT(http_body_of_request(&again, NULL, &body_again) == 0);
  check_same_framing(&body, &body_again);
  check_no_hop_fields(&again, http_rewrite_wants_upgrade(&head));
}

static void check_response(struct span text)
{
  static struct http_head head;
  static struct http_head again;
  buf_autofree struct buf out = BUF_INIT(2 * LIMITS_HTTP_HEAD_BYTES);
  struct http_body body;
  struct http_body body_again;

  if (http_head_parse_response(text, NULL, &head) < 0 || http_rewrite_check_response(&head, NULL) < 0 ||
      http_body_of_response(&head, false, NULL, &body) < 0 || (head.minor == 0 && body.kind == HTTP_BODY_CHUNKED))
    return;
  http_rewrite_response(&head, false, false, &out);
  if (buf_error(&out))
    return;
  FUZZ_ASSERT(http_head_parse_response(buf_span(&out), NULL, &again) == 0);
  FUZZ_ASSERT(again.status == head.status && span_equal(again.phrase, head.phrase));
  FUZZ_ASSERT(http_body_of_response(&again, false, NULL, &body_again) == 0);
  check_same_framing(&body, &body_again);
  check_no_hop_fields(&again, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size < LIMITS_HTTP_HEAD_BYTES ? size : LIMITS_HTTP_HEAD_BYTES };
  struct http_target target;
  size_t len = 0;
  size_t len_again = 0;
  int r;

  if (!size)
    return 0;
  r = scan_in_pieces(text, text.len, &len);
  FUZZ_ASSERT(scan_in_pieces(text, 1, &len_again) == r && scan_in_pieces(text, 7, &len_again) == r);
  FUZZ_ASSERT(len == len_again);
  if (r == 1) {
    FUZZ_ASSERT(len <= text.len);
    check_request(span_sub(text, 0, len));
    check_response(span_sub(text, 0, len));
  }
  /* Also what no scanner would have let through. */
  check_request(text);
  check_response(text);
  (void)http_target_parse_authority(text, NULL, &target);
  return 0;
}
