/* inject: what becomes of credentials in a request that goes to an origin over verified TLS, and in its response.
 *
 * A request names credentials by their placeholders, or a credential is attached by its policy. Two passes, since a
 * value may have to be fetched in between: inject_look() says which credentials the request is about and whether it may
 * go at all; inject_fields() then writes the fields with the values in them. Pure.
 *
 * A placeholder in the head of a request is swapped or refused: swapped where credentials stand (Authorization with any
 * scheme, Basic ones decoded and encoded anew; well-known fields such as X-Api-Key; the field or the query parameter or
 * the path that is the credential's place), if the target is one that its credential is bound to; refused everywhere
 * else, other targets included. In a body it is worthless and passes, unless that is its place (inject_body.h); as it
 * does in Cookie and Referer to a target that is bound. A method that has the request sent back (TRACE) gets no value
 * at all.
 *
 * Of a credential with which requests are signed (POLICY_PLACE_SIGV4) placeholder and value are several words
 * (credential_word()). The first, the key's id, stands in the Authorization header of a request that was signed with
 * the second, and such a request is signed anew; anywhere else either is refused.
 */
#ifndef SBX_PROXY_INJECT_H
#define SBX_PROXY_INJECT_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"
#include "proxy/http_head.h"
#include "proxy/sigv4.h"

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
  INJECT_WANTS, /* values are needed */
  INJECT_MISUSE, /* a placeholder that is not swapped: refuse */
};

/* Why a request cannot be signed anew. */
struct inject_fault {
  const char *cause; /* "in a presigned URL" */
  const char *fix;
};

struct inject_look {
  inject_set wanted; /* INJECT_WANTS: whose values */
  bool body; /* INJECT_WANTS: the body is needed too, before anything of the request is sent: its hash goes into the
              * signature, and is not in the head */
  size_t index; /* INJECT_MISUSE: whose placeholder. Where that one is bound, it stands where credentials do not, and
                 * the mend is "place"; or there is a fault */
  const struct inject_fault *fault; /* INJECT_MISUSE: why it cannot be signed anew; or NULL */
};

/* Services accept signatures for 15 minutes from their time, and so a key signs nothing for later. */
#define INJECT_SIGN_SPAN_MS (15 * 60 * 1000)

/* With what requests are signed. */
struct inject_signer {
  const struct sigv4_crypto *crypto;
  struct span body; /* the hash of the body in hex; empty: there is no body, or inject_look() has not asked for it */
  uint64_t now_ms; /* since the epoch: what is signed for a time that is not within INJECT_SIGN_SPAN_MS is refused */
};

/* 0; or -EINVAL where the value of a secret is missing or cannot stand in a head, as inject_fields() has it. */
int inject_check_value(const struct inject_secret *secret, struct err *err);

/* Percent-encodes all that is neither unreserved (RFC 3986, 2.3) nor in kept. */
void inject_append_encoded(struct span value, const char *kept, struct buf *out);

/* bound: the credentials whose bind rules name the target (decide_bound); none for cleartext. head: as the client sent
 * it. A placeholder is found in the target and in every field, raw, percent-encoded and in base64. Values are not
 * looked at. *ret_look is all zero but for what the verdict has. */
enum inject_verdict inject_look(const struct inject_secret *secrets, size_t count, inject_set bound,
                                const struct http_head *head, struct inject_look *ret_look);

/* Rewrites the target and the fields of a request of which inject_look() said what is wanted: head is as it is sent
 * otherwise (http_rewrite.h), with Host; signer may be NULL where nothing is signed. head's own text stays, fields and
 * target that change lie in out, an empty buffer of LIMITS_HTTP_HEAD_BYTES that is filled here once and must outlive
 * head. 0; -EINVAL where a value is missing or cannot stand in a head (a control byte, white space at an end), with the
 * cause in err, which names the credential and holds nothing of the value; -EKEYREJECTED, with the cause, where the
 * request is not signed with the placeholder, as it is sent; -ENOBUFS where the head would grow past
 * LIMITS_HTTP_HEAD_BYTES or LIMITS_HTTP_FIELDS, or the query is too long to be signed; -ENOMEM. head is untouched on
 * failure. out is the caller's to wipe (buf_wipe), in any case, and soon: it is large. */
int inject_fields(const struct inject_secret *secrets, size_t count, inject_set wanted,
                  const struct inject_signer *signer, struct http_head *head, struct err *err, struct buf *out);

/* Replaces values that stand in a response's phrase and fields, raw, percent-encoded or in base64, by their
 * placeholders (F70); a field that has one in its name, or no room in out, is dropped. Content-Length and
 * Transfer-Encoding stay. Returns how many were found. out: as above, but allocated only where one is found; it holds
 * no secret afterwards. */
size_t inject_scrub(const struct inject_secret *secrets, size_t count, struct http_head *head, struct buf *out);

/* The same of a text, such as a trailer with its names; empty where there is no room. */
size_t inject_scrub_text(const struct inject_secret *secrets, size_t count, struct span *text, struct buf *out);

#endif
