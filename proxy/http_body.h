/* http_body: where the body of a message ends (RFC 9112, sections 6 and 7), strictly. Pure.
 *
 * Bodies pass through as they are; this module only follows their framing, so that the proxy and the two ends agree on
 * where each message ends. Anything that two parsers could read differently is refused: Content-Length beside
 * Transfer-Encoding, more than one of either even when equal, any transfer coding but a sole "chunked", chunk sizes
 * that are not plain hexadecimal, bare CR or LF in the framing (F56).
 */
#ifndef SBX_PROXY_HTTP_BODY_H
#define SBX_PROXY_HTTP_BODY_H

#include "proxy/http_head.h"

#include <stdint.h>

/* Most bytes of one chunk's extensions, and of all trailer fields. */
#define HTTP_BODY_EXTENSION_MAX 1024
#define HTTP_BODY_TRAILER_MAX 8192

enum http_body_kind {
  HTTP_BODY_NONE,
  HTTP_BODY_LENGTH,
  HTTP_BODY_CHUNKED,
  HTTP_BODY_CLOSE, /* until the peer closes: responses only */
};

struct http_body {
  enum http_body_kind kind;
  bool done; /* nothing more belongs to the body; stays false for HTTP_BODY_CLOSE */
  uint64_t left; /* bytes to come of the body (LENGTH) or of this chunk (CHUNKED) */
  unsigned step; /* CHUNKED: where in the framing, see http_body.c */
  unsigned digits; /* of this chunk's size */
  unsigned used; /* bytes of this chunk's extensions, then of the trailer */
  size_t
      trailer; /* CHUNKED: how many of the bytes taken last, at their end, are the trailer and the line that ends it */
  unsigned name_len;
  char name[20]; /* start of this trailer field's name, in lower case */
};

/* Sets up the framing of a request's or a response's body. 0, or -EBADMSG with the cause in err.
 * to_head    the response answers a HEAD request */
int http_body_of_request(const struct http_head *head, struct err *err, struct http_body *ret_body);
int http_body_of_response(const struct http_head *head, bool to_head, struct err *err, struct http_body *ret_body);

/* Tells how many of bytes belong to the body (all of them are well formed): 0, or -EBADMSG where the framing is broken.
 * body->done tells whether it is complete after them. */
int http_body_take(struct http_body *body, struct span bytes, size_t *ret_len);

/* How many of bytes, at their beginning, are content and not framing, where the body is not done. */
size_t http_body_content(const struct http_body *body, struct span bytes);

/* Whether bytes can be the beginning of what is left of the body, without taking them. */
bool http_body_fits(const struct http_body *body, struct span bytes);

#endif
