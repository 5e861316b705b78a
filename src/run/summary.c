#include "run/summary.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void summary_free(struct summary *summary)
{
  for (size_t i = 0; i < summary->count; i++) {
    free(summary->entries[i].host);
    free(summary->entries[i].request);
    free(summary->entries[i].fix);
  }
  free(summary->entries);
  *summary = (struct summary)SUMMARY_INIT;
}

static bool is_text(const char *text, struct span other)
{
  return strlen(text) == other.len && memcmp(text, other.ptr, other.len) == 0;
}

static struct summary_entry *find(struct summary *summary, const struct control_denied *denied, struct span host,
                                  struct span request)
{
  for (size_t i = 0; i < summary->count; i++) {
    struct summary_entry *entry = &summary->entries[i];

    if (entry->port == denied->port && entry->reason == denied->reason && is_text(entry->host, host) &&
        is_text(entry->request, request))
      return entry;
  }
  return NULL;
}

void summary_add(struct summary *summary, const struct control_denied *denied)
{
  struct span host = { denied->host, strnlen(denied->host, sizeof denied->host) };
  struct span request = { denied->request, strnlen(denied->request, sizeof denied->request) };
  struct summary_entry *entry = find(summary, denied, host, request);

  if (entry) {
    entry->count += denied->count;
    return;
  }
  if (mem_grow(&summary->entries, summary->count, &summary->cap, sizeof *entry, LIMITS_DENIALS) < 0) {
    summary->more += denied->count;
    return;
  }
  entry = &summary->entries[summary->count];
  *entry = (struct summary_entry){ .host = mem_strndup(host.ptr, host.len),
                                   .request = mem_strndup(request.ptr, request.len),
                                   .fix = mem_strndup(denied->fix, strnlen(denied->fix, sizeof denied->fix)),
                                   .port = denied->port,
                                   .reason = denied->reason,
                                   .count = denied->count };
  if (entry->host && entry->request && entry->fix) {
    summary->count++;
    return;
  }
  free(entry->host);
  free(entry->request);
  free(entry->fix);
  summary->more += denied->count;
}

void summary_add_totals(struct summary *summary, const struct control_totals *totals)
{
  summary->more += totals->more;
  summary->unaudited += totals->unaudited;
  summary->unread += totals->unread;
  summary->in_bodies += totals->in_bodies;
  summary->scrubbed += totals->scrubbed;
}

/* What the policy allows and the network does not. */
static bool is_failure(enum reason reason)
{
  return reason >= REASON_RESOLVE_FAILED && reason <= REASON_BAD_RESPONSE;
}

void summary_print(const struct summary *summary, enum run_summary mode, int exit_status, const char *run_id)
{
  size_t denials = 0;

  if (mode == RUN_SUMMARY_NEVER)
    return;
  for (size_t i = 0; i < summary->count; i++) {
    const struct summary_entry *entry = &summary->entries[i];
    enum reason reason = entry->reason < REASON_COUNT ? (enum reason)entry->reason : REASON_BAD_REQUEST;
    buf_autofree struct buf host = BUF_INIT(4 * sizeof(struct control_denied));
    bool v6 = entry->port && strchr(entry->host, ':');
    char port[16] = "";

    if (*entry->request) {
      buf_append_escaped(&host, span_of(entry->request));
      buf_append_str(&host, " of ");
    }
    if (v6)
      buf_append_byte(&host, '[');
    if (*entry->host)
      buf_append_escaped(&host, span_of(entry->host));
    else
      buf_append_str(&host, "a connection"); /* ended before it named its target */
    if (v6)
      buf_append_byte(&host, ']');
    if (entry->port)
      snprintf(port, sizeof port, ":%u", (unsigned)entry->port);
    if (reason_is_limit(reason)) {
      log_line(LOG_NOTICE, "reached %lux %s (%s); %s", entry->count, reason_word(reason), reason_text(reason),
               entry->fix);
      continue;
    }
    denials += !is_failure(reason);
    log_line(LOG_NOTICE, "%s %lux %s%s (%s: %s)%s%s", is_failure(reason) ? "failed" : "denied", entry->count,
             host.data ? host.data : "", port, reason_word(reason), reason_text(reason),
             !*entry->fix         ? ""
             : is_failure(reason) ? "; "
                                  : "; to allow it: ",
             entry->fix);
  }
  if (summary->more)
    log_line(LOG_NOTICE, "denied %lux more", summary->more);
  if (summary->unaudited)
    log_line(LOG_NOTICE, "the audit lacks the last %lu lines of this run: a run has room for %d MiB there",
             summary->unaudited, LIMITS_AUDIT_RUN_BYTES / (1024 * 1024));
  if (summary->unread)
    log_line(LOG_NOTICE, "the audit lacks %lu lines of this run: its descriptor was full, and nobody read from it",
             summary->unread);
  if (summary->in_bodies)
    log_line(LOG_NOTICE,
             "passed %lux a placeholder in the body of a request, as it is, which is no login there; the audit has it "
             "(placeholder_in_body), and a credential with \"place\": \"body\" is swapped there",
             summary->in_bodies);
  if (summary->scrubbed)
    log_line(LOG_NOTICE, "took %lux a value of a credential out of a response; the audit has it (scrubbed)",
             summary->scrubbed);
  if (mode == RUN_SUMMARY_ALWAYS)
    log_line(LOG_NOTICE, "run %s: exit status %d, %zu distinct denials", run_id, exit_status, denials);
}
