/* h2_head: header lists of HTTP/2 (RFC 9113, 8.2 and 8.3) as heads of HTTP/1.1, and back. Pure.
 *
 * What judges a request and swaps credentials in it reads heads of HTTP/1 (http_head.h). A list that has come is
 * written as the text of such a head, which is kept and parsed as strictly as if it had come as one; a head that is to
 * be sent becomes a list again. Nothing is sent as HTTP/1.
 */
#ifndef SBX_PROXY_H2_HEAD_H
#define SBX_PROXY_H2_HEAD_H

#include "base/buf.h"
#include "base/err.h"
#include "proxy/http_head.h"

#include <nghttp2/nghttp2.h>
#include <stdint.h>

enum h2_pseudo { H2_METHOD, H2_SCHEME, H2_AUTHORITY, H2_PATH, H2_STATUS, H2_PSEUDO_COUNT };

/* A header list while it comes. */
struct h2_block {
  struct buf pseudo; /* the values of the pseudo-header fields, one after the other */
  struct {
    size_t at;
    size_t len;
    bool is_set;
  } values[H2_PSEUDO_COUNT];
  struct buf lines; /* the others, as lines of HTTP/1 */
  size_t count; /* of them */
  size_t size; /* of the whole list, as RFC 9113, 6.5.2 counts; also past the limits */
  uint64_t never; /* which names must never be indexed (RFC 7541, 6.2.3): see h2_head_name_bit() */
};

#define H2_BLOCK_INIT { .pseudo = BUF_INIT(LIMITS_HTTP_HEAD_BYTES), .lines = BUF_INIT(LIMITS_HTTP_HEAD_BYTES) }

/* Adds a field that nghttp2 has found well formed. Past the limits of a head nothing is kept any more. */
void h2_block_add(struct h2_block *block, struct span name, struct span value, bool never);
/* Empty again. */
void h2_block_clear(struct h2_block *block);
bool h2_block_has_status(const struct h2_block *block);

/* Write the head: of a request with :authority as its Host; of a response; or of a trailer, as a response's. 0; -E2BIG
 * past LIMITS_HTTP_HEAD_BYTES or LIMITS_HTTP_FIELDS; -ENOMEM; or
 *   -EBADMSG  the request is not for https, or names no host
 *   -EACCES   its Host and its :authority differ
 * with the cause in err. */
int h2_block_write_request(const struct h2_block *block, struct err *err, struct buf *out);
int h2_block_write_response(const struct h2_block *block, struct err *err, struct buf *out);

/* A bit for a name of a field; names may share one. */
uint64_t h2_head_name_bit(struct span name);

/* A list to be sent; it borrows the head's text. */
struct h2_list {
  size_t count;
  struct buf names; /* those that were not in lower case */
  char status[4];
  nghttp2_nv fields[LIMITS_HTTP_FIELDS + 4];
};

/* Make the list of a request for authority, of a response, or of a trailer: without fields for one hop, and without
 * Host. secret: bytes whose fields must never be indexed, since values of credentials lie in them; never: names of
 * which that holds. Look at buf_error(&list->names). h2_list_clear() ends it. */
void h2_list_request(const struct http_head *head, struct span authority, struct span secret, uint64_t never,
                     struct h2_list *list);
void h2_list_response(const struct http_head *head, uint64_t never, struct h2_list *list);
void h2_list_trailer(const struct http_head *head, uint64_t never, struct h2_list *list);
void h2_list_clear(struct h2_list *list);

#endif
