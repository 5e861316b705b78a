/* http_shared: what is judged and told of a request in the same way whether it came by HTTP/1 (http.c) or HTTP/2
 * (h2.c). */
#ifndef SBX_PROXY_HTTP_SHARED_H
#define SBX_PROXY_HTTP_SHARED_H

#include "proxy/http_fixed.h"
#include "proxy/inject.h"
#include "proxy/values.h"

/* How to mend a request that is not signed as it is sent. */
#define HTTP_SIGN_FIX \
  "sign with both variables of the credential as they are inside, for the time that it is, and change nothing of a " \
  "signed request"

struct http_asked {
  const struct http_fixed *fixed; /* the connection's target, where it stands; or NULL */
  const struct host *host;
  uint16_t port;
  struct request request;
  const char *hides; /* as http_rewrite_hides() has it */
};

/* Judges one request by itself, whose target has been allowed by *target. addr: where it goes, NULL while that is not
 * known. */
struct verdict http_shared_judge(const struct policy *policy, const struct http_asked *asked,
                                 const struct verdict *target, const struct addr *addr);

/* Which credentials a request is about, of those that are bound to its target, or (a set of one) whose placeholder it
 * misuses; as inject_look() has it.
 * values: NULL where the policy has none. */
void http_shared_look(const struct values *values, inject_set bound, const struct http_head *head,
                      struct inject_look *ret_look, inject_set *ret_misused);

/* Searches what is sent of a request's body for placeholders: what was kept of it before, and what has come behind
 * that. found: those that have been seen already. Returns those and the new ones; *ret_done as inject_body.h has it.
 * values: NULL where the policy has none. */
inject_set http_shared_watch(const struct values *values, inject_set found, struct span text, bool end,
                             size_t *ret_done);

/* Whether there is anything left to search for. */
bool http_shared_watches(const struct values *values, inject_set found);

/* What is wrong with a request that misuses a placeholder, and what would mend it. */
struct http_misuse {
  inject_set whose;
  inject_set bound;
  bool tls;
  const struct inject_fault *fault; /* or NULL */
};
void http_shared_explain(const struct values *values, const struct http_misuse *misuse, struct buf *out_cause,
                         struct buf *out_fix);

/* Whether the summary of the run repeats a refusal or failure, whoever else has been told. */
bool http_shared_is_repeated(const struct verdict *verdict);

#endif
