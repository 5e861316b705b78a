/* parent_reply: what is said to a parent proxy, and what it answers: CONNECT of HTTP/1 (RFC 9110, 9.3.6), with a Basic
 * login (RFC 7617), and SOCKS 5 (RFC 1928, RFC 1929). Pure.
 *
 * A parent is trusted with the traffic, not with this process: it may be anything that a variable of the host names.
 * One reading only is accepted, within fixed bounds.
 */
#ifndef SBX_PROXY_PARENT_REPLY_H
#define SBX_PROXY_PARENT_REPLY_H

#include "base/buf.h"
#include "policy/decide.h"
#include "policy/upstream.h"

struct parent_answer {
  enum reason reason; /* REASON_ALLOWED: go on; else why not */
  unsigned code; /* HTTP status, SOCKS method, status or reply */
};

/* The messages to a parent, in their order: CONNECT alone; or methods, the login where the parent has chosen it, and
 * the request. */
void parent_append_connect(const struct upstream *upstream, const struct host *host, uint16_t port, struct buf *out);
void parent_append_methods(const struct upstream *upstream, struct buf *out);
void parent_append_login(const struct upstream *upstream, struct buf *out);
void parent_append_request(const struct host *host, uint16_t port, struct buf *out);

/* The field Proxy-Authorization with its line end; nothing where there is no login. */
void parent_append_authorization(const struct upstream *upstream, struct buf *out);

/* The answers. bytes is all that the parent has sent since the message before, and only grows between calls.
 * 1 with the answer and its length (what follows belongs to the tunnel); 0 when more is needed; -EBADMSG. */
int parent_parse_connect(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len);
int parent_parse_method(struct span bytes, bool has_login, struct parent_answer *ret_answer, size_t *ret_len);
int parent_parse_login(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len);
int parent_parse_reply(struct span bytes, struct parent_answer *ret_answer, size_t *ret_len);

#endif
