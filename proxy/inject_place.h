/* inject_place: where in a request credentials may stand, and when one is set there. Pure. */
#ifndef SBX_PROXY_INJECT_PLACE_H
#define SBX_PROXY_INJECT_PLACE_H

#include "base/buf.h"
#include "policy/policy.h"
#include "proxy/http_head.h"

/* One parameter of a query, as it is written: NAME, or NAME=VALUE. */
struct inject_parameter {
  struct span all;
  struct span name;
  struct span value;
};

/* The target up to its query, and the query without its mark; its ptr is NULL where there is none. */
struct span inject_path_of(struct span target);
struct span inject_query_of(struct span target);

/* Takes the next parameter off *rest, which begins as inject_query_of() has it. */
bool inject_next_parameter(struct span *rest, struct inject_parameter *ret_parameter);

/* Whether text, percent-encoded or not, is name, in any letter case. */
bool inject_is_named(struct span text, const char *name);

/* Whether a placeholder of the credential that stands in the field, or in the parameter, is swapped there. */
bool inject_is_place(const struct policy_credential *credential, struct span name);
bool inject_is_place_parameter(const struct policy_credential *credential, struct span name);

/* Whether the response has the whole request in its body: of TRACE by its nature (RFC 9110, 9.3.8), of TRACK on some
 * servers. */
bool inject_is_traced(struct span method);

/* Whether clients fill the field by themselves with what a server sent before. */
bool inject_is_echoed(struct span name);

/* Whether the credential is set in this request, with or without a placeholder in it: never beside a signature in the
 * URL (F75). */
bool inject_attaches(const struct policy_credential *credential, const struct http_head *head);

/* Reads Basic credentials (RFC 7617): the scheme with the space behind it, the token, and its bytes, appended to plain.
 * False for anything else. */
bool inject_read_basic(struct span value, struct span *ret_scheme, struct span *ret_token, struct buf *plain);

#endif
