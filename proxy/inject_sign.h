/* inject_sign: requests that are signed with a placeholder (inject.h). Pure. */
#ifndef SBX_PROXY_INJECT_SIGN_H
#define SBX_PROXY_INJECT_SIGN_H

#include "proxy/inject.h"

/* How the id of a placeholder's key stands in a request. */
enum inject_id {
  INJECT_ID_NOT,
  INJECT_ID_ECHOED, /* only in fields that clients fill by themselves (inject_is_echoed()) */
  INJECT_ID_SIGNS, /* in Authorization, of a request that can be signed anew */
  INJECT_ID_ELSEWHERE,
};

/* Why a placeholder is refused whose words stand anywhere else. */
const struct inject_fault *inject_sign_misplaced(void);

/* *ret_fault is set with INJECT_ID_ELSEWHERE. */
enum inject_id inject_sign_look(struct span id, const struct http_head *head, const struct inject_fault **ret_fault);

/* Signs anew. sent: the request as it came; head: the same with what else is written into it, and then with the
 * signature, which lies in out. Errors as inject_fields(). */
int inject_sign(const struct inject_secret *secret, const struct inject_signer *signer, const struct http_head *sent,
                struct http_head *head, struct err *err, struct buf *out);

/* The field of that name gets value, and is the only one. 0 or -ENOBUFS. */
int inject_set_field(struct http_head *head, struct span name, struct span value);

#endif
