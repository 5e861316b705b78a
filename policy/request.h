/* request: one reading of a request's method and path, and how rules that name methods or paths match it.
 *
 * A path is decoded once, and refused where servers could disagree about what it names: a rule would otherwise judge
 * another resource than the one that is served. Patterns are written decoded; in them '*' stands for any run of bytes,
 * '/' included, so that "/repos/acme/" with a '*' behind it is everything below. All else stands for itself, and the
 * whole path has to match. Pure.
 */
#ifndef SBX_POLICY_REQUEST_H
#define SBX_POLICY_REQUEST_H

#include "base/err.h"
#include "policy/limits.h"
#include "policy/policy.h"

/* What a request asks for, as it was sent. */
struct request {
  struct span method; /* a token (RFC 9110, 9.1) */
  struct span path; /* without the query, empty for "/"; "*" where the server as a whole is asked (RFC 9112, 3.2.4) */
};

/* A path in its one reading. */
struct request_path {
  char bytes[LIMITS_REQUEST_PATH_BYTES];
  size_t len;
};

/* Decodes a path. 0; or -EBADMSG where it can be read in two ways, with the cause (static) in *ret_cause:
 * anything that is not a visible ASCII byte or a well-formed %XX; an encoded '/', '%', '?', '#' or control byte; a '\'
 * or ';', encoded or not; an empty part, "." or ".."; decoded bytes that are not UTF-8 in its shortest form; or more
 * than LIMITS_REQUEST_PATH_BYTES. */
int request_read_path(struct span path, struct request_path *ret_path, const char **ret_cause);

/* Check what a rule may hold. 0 or -EINVAL with "cause; fix". */
int request_check_method(struct span method, struct err *err);
int request_check_pattern(struct span pattern, struct err *err);

/* Whether the rule names the method, or no methods. They are case-sensitive; GET stands for HEAD too, which asks for
 * less of the same (RFC 9110, 9.3.2). */
bool request_matches_method(const struct policy_rule *rule, struct span method);

/* Whether one of the rule's paths is path. True for a rule without paths. slash: a path with a '/' at its end is also
 * taken without it, since many servers serve both alike. */
bool request_matches_path(const struct policy_rule *rule, const struct request_path *path, bool slash);

#endif
