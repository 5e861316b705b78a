/* inject: what becomes of credentials in a request that goes to an origin over verified TLS, and in its response.
 *
 * A request names credentials by their placeholders, or a credential is attached by its policy. Two passes, since a
 * value may have to be fetched in between: inject_look() says which credentials the request is about and whether it may
 * go at all; inject_fields() then writes the fields with the values in them. Pure.
 *
 * A placeholder in the head of a request is swapped or refused: swapped where credentials stand (Authorization with any
 * scheme, Basic ones decoded and encoded anew; well-known fields such as X-Api-Key; the field or the query parameter
 * that is the credential's place), if the target is one that its credential is bound to; refused everywhere else, the
 * path and other targets included. In a body it is worthless and passes; as it does in Cookie and Referer to a target
 * that is bound. A method that has the request sent back (TRACE) gets no value at all.
 */
#ifndef SBX_PROXY_INJECT_H
#define SBX_PROXY_INJECT_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"
#include "proxy/http_head.h"

struct inject_secret {
  const struct policy_credential *credential;
  struct span placeholder; /* of 8 bytes at least, unreserved ones (RFC 3986, 2.3) */
  struct span value; /* empty: not known (yet) */
};

/* A bit per credential, in the order of the policy's list. */
typedef uint32_t inject_set;

static inline bool inject_has(inject_set set, size_t index)
{
  return set >> index & 1;
}

enum inject_verdict {
  INJECT_PASS, /* nothing to do with any credential */
  INJECT_WANTS, /* the values of ret_wanted are needed */
  INJECT_MISUSE, /* a placeholder that is not swapped: refuse; *ret_index is whose. Where that one is bound, it stands
                  * where credentials do not: the mend is "place" */
};

/* bound: the credentials whose bind rules name the target (decide_bound); none for cleartext. head: as the client sent
 * it. A placeholder is found in the target and in every field, raw, percent-encoded and in base64. Values are not
 * looked at. */
enum inject_verdict inject_look(const struct inject_secret *secrets, size_t count, inject_set bound,
                                const struct http_head *head, inject_set *ret_wanted, size_t *ret_index);

/* Rewrites the target and the fields of a request of which inject_look() said what is wanted: head's own text stays,
 * fields and target that change lie in out, an empty buffer of LIMITS_HTTP_HEAD_BYTES that is filled here once and must
 * outlive head. 0; -EINVAL where a value is missing or cannot stand in a head (a control byte, white space at an end),
 * with the cause in err, which names the credential and holds nothing of the value; -ENOBUFS where the head would grow
 * past LIMITS_HTTP_HEAD_BYTES or LIMITS_HTTP_FIELDS; -ENOMEM. head is untouched on failure. out is the caller's to wipe
 * (buf_wipe), in any case, and soon: it is large. */
int inject_fields(const struct inject_secret *secrets, size_t count, inject_set wanted, struct http_head *head,
                  struct err *err, struct buf *out);

/* Replaces values that stand in a response's phrase and fields, raw, percent-encoded or in base64, by their
 * placeholders (F70); a field that has one in its name, or no room in out, is dropped. Content-Length and
 * Transfer-Encoding stay. Returns how many were found. out: as above, but allocated only where one is found; it holds
 * no secret afterwards. */
size_t inject_scrub(const struct inject_secret *secrets, size_t count, struct http_head *head, struct buf *out);

/* The same of a text, such as a trailer with its names; empty where there is no room. */
size_t inject_scrub_text(const struct inject_secret *secrets, size_t count, struct span *text, struct buf *out);

#endif
