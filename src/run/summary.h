/* summary: what was denied during a run, or failed without a word to the client, told at its end (DESIGN 10). */
#ifndef SBX_RUN_SUMMARY_H
#define SBX_RUN_SUMMARY_H

#include "policy/limits.h"
#include "run/run.h"
#include "sys/control.h"

struct summary_entry {
  char *host;
  char *request; /* "" where the target itself was refused */
  char *fix;
  uint32_t port;
  uint32_t reason;
  unsigned long count;
};

struct summary {
  struct summary_entry *entries; /* at most LIMITS_DENIALS */
  size_t count;
  size_t cap;
  unsigned long more; /* denials beyond the distinct ones that were kept */
  unsigned long unaudited; /* lines that the audit had no room for */
  unsigned long unread; /* lines that the audit's reader did not take in time */
  unsigned long in_bodies; /* requests in whose body a placeholder went as it is */
  unsigned long scrubbed; /* values of credentials that were taken out of responses */
};

#define SUMMARY_INIT { .entries = NULL }

void summary_free(struct summary *summary);

/* Counts denials or failures; equal ones are one entry. The message's texts need not end in NUL. */
void summary_add(struct summary *summary, const struct control_denied *denied);

/* Adds what the proxy has only counted. */
void summary_add_totals(struct summary *summary, const struct control_totals *totals);

/* Prints one line per entry with its count and what to type, on standard error. */
void summary_print(const struct summary *summary, enum run_summary mode, int exit_status, const char *run_id);

#endif
