#include "proxy/tell.h"

#include "base/clock.h"
#include "proxy/notify.h"

/* Whether the cause says more than the reason does. */
static bool is_told(const struct tell *what)
{
  if (!what->verdict.allow)
    return false;
  return (what->route && what->route->upstream) || what->verdict.reason == REASON_CLIENT_TLS;
}

void tell(struct proxy *proxy, const struct tell *what)
{
  const struct verdict *verdict = &what->verdict;
  struct audit_record record = {
    .event = what->event,
    .via = what->via,
    .verdict = !verdict->allow                     ? AUDIT_DENY
               : verdict->reason == REASON_ALLOWED ? AUDIT_ALLOW
                                                   : AUDIT_ERROR,
    .reason = verdict->reason,
    .host = span_of(what->host ? what->host->name : NULL),
    .port = what->port,
    .method = span_of(what->method),
    .ip = what->route && what->route->has_addr ? &what->route->addr : NULL,
    .upstream = what->route ? what->route->upstream : NULL,
    .rule = verdict->rule,
    .asked = verdict->asked,
    .up = what->up,
    .down = what->down,
    .ms = (clock_mono_ns() - what->begun_ns) / 1000000,
  };

  /* A failure, too: a reset or a code is all that a client of these fronts has been told. */
  if (record.verdict != AUDIT_ALLOW && !what->quiet)
    notify_denied(proxy->notify, &(struct denial){ .verdict = *verdict,
                                                   .host = what->host,
                                                   .port = what->port,
                                                   .cause = is_told(what) ? what->cause : NULL });
  audit_write(proxy->audit, &record);
}

struct span tell_alert(void)
{
  /* Record type 21, version 3.1, two bytes: fatal (2), access_denied (49). */
  return SPAN("\x15\x03\x01\x00\x02\x02\x31");
}
