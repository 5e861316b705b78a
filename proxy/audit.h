/* audit: what was asked for and what came of it: one JSON object per line, see sbx-proxy(8).
 *
 * A line is written when its exchange ends, so that it has the byte counts; with one write(2), but for long ones to a
 * pipe. Everything that comes from inside the sandbox is escaped.
 */
#ifndef SBX_PROXY_AUDIT_H
#define SBX_PROXY_AUDIT_H

#include "policy/decide.h"
#include "policy/upstream.h"
#include "proxy/loop.h"

struct audit;

enum audit_verdict {
  AUDIT_ALLOW,
  AUDIT_DENY, /* by the policy, or since the request was malformed or over a limit */
  AUDIT_ERROR, /* the policy allows it, the network does not */
};

struct audit_record {
  const char *event; /* "connect", "request" or "upgrade" */
  const char *via; /* the front: "http" */
  enum audit_verdict verdict;
  enum reason reason;
  struct span host; /* as the client named it; canonical where it could be parsed; empty when unknown */
  uint16_t port; /* 0 when unknown */
  const struct addr *ip; /* the origin's, as far as it was resolved here, or NULL */
  const struct upstream *upstream; /* the parent proxy that was used, or NULL */
  struct span method; /* requests only */
  struct span path; /* without the query; requests only */
  const struct policy_rule *rule; /* the rule that decided, or NULL */
  enum decide_asked asked; /* what came of asking the user */
  struct span credential; /* names of those that the request has used or misused, separated by commas */
  struct span in_body; /* names of those whose placeholder went in the request's body as it is */
  uint64_t scrubbed; /* values that were taken out of the response */
  uint64_t up; /* bytes of body or tunnel to the origin */
  uint64_t down; /* bytes of body or tunnel from it */
  uint64_t ms;
};

/* Writes to fd, which stays the caller's, flags included. loop and run_id must outlive the object. 0 or -errno. */
int audit_new(struct loop *loop, int fd, const char *run_id, struct audit **ret_audit);
void audit_free(struct audit *audit);

/* Appends a line; of what a limit has turned away, only of the first of each kind. Never waits for a reader: lines do,
 * up to LIMITS_AUDIT_QUEUE_BYTES. Past LIMITS_AUDIT_RUN_BYTES (LIMITS_AUDIT_BYTES where it is no file) a last line says
 * so and nothing more is written. Errors of the file are not the connection's: they are counted out, and the object
 * says so by audit_error. */
void audit_write(struct audit *audit, const struct audit_record *record);

/* Nothing more will be appended: gives the reader so long to take what is left. */
void audit_end(struct audit *audit, unsigned patience_ms);

/* How many lines were not written for want of room in the run's share, and since nobody read. */
uint64_t audit_missing(const struct audit *audit);
uint64_t audit_unread(const struct audit *audit);

/* 0, or the negative errno of the first write that failed. */
int audit_error(const struct audit *audit);

#endif
