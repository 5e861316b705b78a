#include "config.h"

#include "proxy/denial.h"

/* What a client wrote, cut to what a message needs. */
#define TEXT_BYTES_MAX 256
#define SENTENCE_BYTES_MAX 4096
#define RETRY_SECONDS 5u /* a limit was reached: what was asked for may pass when others have ended */

unsigned denial_status(const struct verdict *verdict)
{
  if (verdict->reason == REASON_LIMIT_HEAD)
    return 431;
  if (verdict->reason == REASON_LIMIT_BODY)
    return 413;
  if (reason_is_limit(verdict->reason))
    return verdict->reason == REASON_LIMIT_TIME ? 504 : 503;
  switch ((unsigned)verdict->reason) {
  case REASON_BAD_TARGET:
  case REASON_BAD_REQUEST:
    return 400;
  case REASON_RESOLVE_FAILED:
  case REASON_CONNECT_REFUSED:
  case REASON_CONNECT_FAILED:
  case REASON_PARENT_UNREACHABLE:
  case REASON_PARENT_AUTH:
  case REASON_PARENT_REFUSED:
  case REASON_PARENT_BAD_REPLY:
  case REASON_UPSTREAM_TLS:
  case REASON_CREDENTIAL_UNAVAILABLE:
  case REASON_UPSTREAM_CLOSED:
  case REASON_BAD_RESPONSE:
    return 502;
  case REASON_CONNECT_TIMEOUT:
    return 504;
  default:
    return 403;
  }
}

void denial_fix(const struct denial *denial, struct buf *out)
{
  if (denial->fix) {
    buf_append_str(out, denial->fix);
    return;
  }
  /* A lookup names no port: the likeliest to be meant, as decide_lookup() has it. */
  if (denial->host || reason_is_limit(denial->verdict.reason))
    decide_fix_request(&denial->verdict, denial->host, denial->port ? denial->port : 443, denial->request, out);
}

void denial_request(const struct denial *denial, struct buf *out)
{
  if (!denial->request || !decide_is_about_request(&denial->verdict))
    return;
  buf_append_escaped(out, span_sub(denial->request->method, 0, LIMITS_METHOD_BYTES));
  if (denial->verdict.reason == REASON_METHOD_NOT_ALLOWED)
    return;
  buf_append_byte(out, ' ');
  buf_append_escaped(out, span_sub(denial->request->path, 0, TEXT_BYTES_MAX));
}

static void append_subject(const struct denial *denial, struct buf *out)
{
  size_t before = out->len;

  denial_request(denial, out);
  if (out->len > before)
    buf_append_str(out, " of ");
  if (!denial->host)
    buf_append_escaped(out, span_sub(denial->host_text, 0, TEXT_BYTES_MAX));
  else if (denial->port)
    host_print_target(denial->host, denial->port, out);
  else
    buf_append_str(out, denial->host->name);
}

/* One sentence: "example.com:443 is not allowed". Printable ASCII, since it goes into the status line. */
static void append_sentence(const struct denial *denial, struct buf *out)
{
  if (denial->verdict.reason == REASON_BAD_REQUEST) {
    buf_append_str(out, "malformed request");
  } else if (reason_is_limit(denial->verdict.reason) && !denial->host) {
    buf_append_str(out, reason_text(denial->verdict.reason));
  } else {
    append_subject(denial, out);
    if (denial->verdict.reason == REASON_NOT_ALLOWED || denial->verdict.reason == REASON_PORT_NOT_ALLOWED)
      buf_append_str(out, " is not allowed");
    else
      buf_printf(out, ": %s", reason_text(denial->verdict.reason));
  }
  if (denial->cause && *denial->cause) {
    buf_append_str(out, ": ");
    buf_append_escaped(out, span_of(denial->cause));
  } else if (denial->verdict.detail) {
    buf_printf(out, ": %s", denial->verdict.detail);
  }
}

static void append_member(struct buf *out, const char *key, struct span text)
{
  buf_printf(out, ",\"%s\":", key);
  buf_append_json(out, text);
}

unsigned denial_retry_after(const struct denial *denial)
{
  return (denial->status ? denial->status : denial_status(&denial->verdict)) == 503 ? RETRY_SECONDS : 0;
}

void denial_body(const struct denial *denial, struct buf *out)
{
  buf_autofree struct buf sentence = BUF_INIT(SENTENCE_BYTES_MAX);
  buf_autofree struct buf fix = BUF_INIT(1024);

  append_sentence(denial, &sentence);
  denial_fix(denial, &fix);
  buf_append_str(out, "{\"error\":");
  buf_append_json(out, buf_span(&sentence));
  append_member(out, "host",
                denial->host ? span_of(denial->host->name) : span_sub(denial->host_text, 0, TEXT_BYTES_MAX));
  buf_printf(out, ",\"port\":%u", denial->port);
  if (denial->request && decide_is_about_request(&denial->verdict)) {
    append_member(out, "method", span_sub(denial->request->method, 0, TEXT_BYTES_MAX));
    append_member(out, "path", span_sub(denial->request->path, 0, TEXT_BYTES_MAX));
  }
  append_member(out, "reason", span_of(reason_word(denial->verdict.reason)));
  append_member(out, "rule", span_of(denial->verdict.rule ? denial->verdict.rule->text : NULL));
  append_member(out, "fix", buf_span(&fix));
  buf_append_str(out, "}\n");
}

void denial_render(const struct denial *denial, struct buf *out)
{
  buf_autofree struct buf sentence = BUF_INIT(SENTENCE_BYTES_MAX);
  buf_autofree struct buf body = BUF_INIT(DENIAL_BODY_BYTES);
  unsigned status = denial->status ? denial->status : denial_status(&denial->verdict);

  append_sentence(denial, &sentence);
  denial_body(denial, &body);
  buf_printf(out, "HTTP/1.1 %u %s", status, status == 403 ? "Blocked by " SBX_NAME ": " : SBX_NAME ": ");
  buf_append(out, buf_span(&sentence));
  buf_printf(out, "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", body.len);
  if (denial_retry_after(denial))
    buf_printf(out, "Retry-After: %u\r\n", denial_retry_after(denial));
  buf_append_str(out, denial->close ? "Connection: close\r\n\r\n" : "\r\n");
  if (!denial->head_only)
    buf_append(out, buf_span(&body));
}
