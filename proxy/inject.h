/* inject: what becomes of credentials in a request that goes to an origin over verified TLS, and in its response.
 *
 * A request names credentials by their placeholders, or a credential is attached by its policy. Two passes, since a
 * value may have to be fetched in between: inject_look() says which credentials the request is about and whether it may
 * go at all; inject_fields() then writes the fields with the values in them. Pure.
 *
 * A placeholder in a field, in the query or in the path of a request to a host that its credential is not bound to is
 * misuse and refused; in a body it is worthless and passes.
 */
#ifndef SBX_PROXY_INJECT_H
#define SBX_PROXY_INJECT_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"
#include "proxy/http_head.h"
#include "proxy/http_target.h"

struct inject_secret {
  const struct policy_credential *credential;
  struct span placeholder; /* never empty */
  struct span value; /* empty: not known (yet) */
};

/* A bit per credential, in the order of the policy's list. */
typedef uint32_t inject_set;

enum inject_verdict {
  INJECT_PASS, /* nothing to do with any credential */
  INJECT_WANTS, /* the values of ret_wanted are needed */
  INJECT_MISUSE, /* a placeholder that is not bound to this target: refuse; *ret_index is whose */
};

/* bound: the credentials whose bind rules name the target (decide_bound). head: as the client sent it, to the target.
 * A placeholder is found raw, percent-decoded (query, path), and inside Basic credentials (RFC 7617). */
enum inject_verdict inject_look(const struct inject_secret *secrets, size_t count, inject_set bound,
                                const struct http_head *head, inject_set *ret_wanted, size_t *ret_index);

/* Rewrites the target and the fields of a request: head's own text stays, fields and target that change lie in out,
 * which must outlive head and not move: it is filled here once. Every wanted value must be known. 0; -EINVAL where a
 * value cannot stand at its place (a CR or NUL in a header), with the cause in err, which names the credential and holds
 * nothing of the value; -ENOBUFS where the head would grow past its ceiling. out is the caller's to wipe. */
int inject_fields(const struct inject_secret *secrets, size_t count, inject_set wanted, struct http_head *head,
                  struct err *err, struct buf *out);

/* Replaces values that stand in a response's fields, raw, percent-encoded or in base64, by their placeholders. Returns
 * how many were found. The same buffers' rules as above. */
size_t inject_scrub(const struct inject_secret *secrets, size_t count, struct http_head *head, struct buf *out);

#endif
