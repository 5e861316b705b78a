/* http_secret_body: credentials in the bodies of the HTTP machine (http_state.h), a part of it. */
#ifndef SBX_PROXY_HTTP_SECRET_BODY_H
#define SBX_PROXY_HTTP_SECRET_BODY_H

#include "proxy/http_head.h"

#include <stddef.h>

struct http;
struct http_body;

/* Forgets what was kept of the exchange's bodies for a search. */
void http_secret_body_drop(struct http *http);

/* Notes which placeholders stand in a part of the request's body that is sent. framing: the body in front of it, which
 * is moved on. 0 or -ENOBUFS. */
int http_secret_body_watch(struct http *http, struct http_body *framing, struct span bytes);

/* The request's body is whole, and kept without its framing: swaps placeholders in it, which may take fetching values,
 * and goes on with http_go_on(). */
void http_secret_body_kept(struct http *http);

/* Changes a request's head so that the response can be searched, where it will be. */
void http_secret_body_ask(struct http *http, struct http_head *head);

/* Why the response, which is final, cannot be searched though it should be; or NULL. */
const char *http_secret_body_hides(const struct http *http, const struct http_head *head);

/* Takes what of bytes belongs to the response's body, and sends what has been searched of it. 0; -EBADMSG where the
 * framing is broken; or as sock_send(). */
int http_secret_body_scrub(struct http *http, struct span bytes, size_t *ret_len);

/* The same where the body ends with its connection. */
int http_secret_body_end(struct http *http);

#endif
