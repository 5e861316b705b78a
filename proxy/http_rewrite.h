/* http_rewrite: the head that goes on to the other side (RFC 9110, section 7.6). Pure.
 *
 * Dropped: Connection and every field that it names, Keep-Alive, Proxy-* (F61), TE (but "trailers"), Trailer, Upgrade
 * (but one that was asked for, and never h2c), HTTP2-Settings. Host is written anew from the target; in TLS that is
 * terminated, where it has been compared with the target (http_fixed.h), it stays as it is spelled in a request that is
 * signed (AWS Signature Version 4), since it is a part of what is signed. Content-Length and Transfer-Encoding pass,
 * since bodies pass as they are. No Via and no Forwarded is added: an origin need not learn that its client sits in a
 * sandbox.
 */
#ifndef SBX_PROXY_HTTP_REWRITE_H
#define SBX_PROXY_HTTP_REWRITE_H

#include "base/buf.h"
#include "proxy/http_head.h"
#include "proxy/http_target.h"
#include "proxy/parent_reply.h"

/* Checks what the rewriting relies on: exactly one well-formed Host (none is allowed in HTTP/1.0), and a Connection
 * header that neither names a field which frames or routes the message nor has more than 32 elements. 0 or -EBADMSG. */
int http_rewrite_check_request(const struct http_head *head, struct err *err);
int http_rewrite_check_response(const struct http_head *head, struct err *err);

/* Whether a head's Upgrade is to WebSocket and nothing else. */
bool http_rewrite_is_websocket(const struct http_head *head);

/* Whether the request asks for a change of protocol that may be passed on: to WebSocket (RFC 6455). After any other,
 * requests or a ClientHello could follow unjudged (h2c, TLS/1.2). */
bool http_rewrite_wants_upgrade(const struct http_head *head);

/* Whether a proxy on the way may answer the request itself, and with what it was asked: TRACE, TRACK, and what
 * Max-Forwards counts down (RFC 9110, 7.6.2 and 9.3.8). A parent would send back the login that it was given. */
bool http_rewrite_is_reflected(const struct http_head *head);

/* What a rule on methods or paths could not see through: a field by which some servers take another method or path than
 * the request line's, or an upgrade to anything but WebSocket, after which requests could follow unseen. A static text,
 * or NULL. */
const char *http_rewrite_hides(const struct http_head *head);

/* Whether a field is for one hop alone, whatever Connection says. */
bool http_rewrite_is_hop(struct span name);

/* Appends what the request's Host becomes. */
void http_rewrite_authority(const struct http_head *head, const struct http_target *target, struct buf *out);

/* Appends the request for target: in origin-form; or, for a parent proxy, in absolute-form with its login. Look at
 * buf_error afterwards. */
void http_rewrite_request(const struct http_head *head, const struct http_target *target, const struct upstream *parent,
                          struct buf *out);

/* Appends the response head.
 * close     the connection to the client ends after this response: say so
 * upgrade   the response is the 101 that the client asked for */
void http_rewrite_response(const struct http_head *head, bool close, bool upgrade, struct buf *out);

#endif
