/* denial: the answer that explains itself (P10): an HTTP response with the reason, the rule and what to type. */
#ifndef SBX_PROXY_DENIAL_H
#define SBX_PROXY_DENIAL_H

#include "base/buf.h"
#include "policy/decide.h"

#define DENIAL_BODY_BYTES (16 * 1024) /* at most */

struct denial {
  struct verdict verdict;
  const struct host *host; /* NULL when the request named none that parses */
  struct span host_text; /* as the client wrote it, when host is NULL; may be empty */
  uint16_t port; /* 0 when unknown */
  unsigned status; /* of the response, where it says more than denial_status() would; else 0 */
  const char *cause; /* what exactly was wrong, or NULL */
  const char *fix; /* what to do about it, where the verdict does not tell; or NULL */
  const struct request *request; /* what was asked for, where it is known; else NULL */
  bool close; /* the connection ends after this answer */
  bool head_only; /* answers a HEAD request: no body */
};

/* The status that goes with a reason: 400, 403, 431, 502, 503 or 504. */
unsigned denial_status(const struct verdict *verdict);

/* Seconds to wait before the next try, or 0 where that would not help. */
unsigned denial_retry_after(const struct denial *denial);

/* What the user can type to let the target pass, one line; "" where nothing helps. */
void denial_fix(const struct denial *denial, struct buf *out);

/* What of a request the verdict is about, one line: its method, or method and path; nothing for a verdict on the target
 * itself. */
void denial_request(const struct denial *denial, struct buf *out);

/* Appends the JSON body {error, host, port, reason, rule, fix}, and method and path where the verdict is about them. */
void denial_body(const struct denial *denial, struct buf *out);

/* Appends the whole response of HTTP/1: a status line that tells, and that body. */
void denial_render(const struct denial *denial, struct buf *out);

#endif
