#include "proxy/notify.h"

#include "sys/control.h"

#include <sys/socket.h>

/* Copies what fits, NUL-terminated. The target is zeroed. */
static void copy_text(char *target, size_t size, struct span text)
{
  if (text.len)
    memcpy(target, text.ptr, text.len < size - 1 ? text.len : size - 1);
}

void notify_denied(int control, const struct denial *denial)
{
  struct control_denied message = { .type = CONTROL_DENIED };
  buf_autofree struct buf fix = BUF_INIT(4096);
  buf_autofree struct buf request = BUF_INIT(4096);

  message.reason = denial->verdict.reason;
  /* A limit is the run's: whoever reached it, it is one line of the summary. */
  if (!reason_is_limit(denial->verdict.reason)) {
    message.port = denial->port;
    copy_text(message.host, sizeof message.host, denial->host ? span_of(denial->host->name) : denial->host_text);
  }
  denial_request(denial, &request);
  copy_text(message.request, sizeof message.request, buf_span(&request));
  if (denial->verdict.allow && !reason_is_limit(denial->verdict.reason))
    buf_append_str(&fix, denial->cause ? denial->cause : "");
  else
    denial_fix(denial, &fix);
  copy_text(message.fix, sizeof message.fix, buf_span(&fix));
  (void)send(control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}
