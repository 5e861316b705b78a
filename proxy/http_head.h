/* http_head: request and response heads of HTTP/1.x (RFC 9112), strictly. Pure.
 *
 * This is the enforcement point, so one reading only is accepted: lines end in CRLF and hold no other CR, LF or NUL;
 * no obsolete folding; nothing between a field's name and its colon; one space between the parts of a start line
 * (F56). What a lenient server behind the proxy might read in another way is refused here.
 */
#ifndef SBX_PROXY_HTTP_HEAD_H
#define SBX_PROXY_HTTP_HEAD_H

#include "base/err.h"
#include "base/span.h"
#include "policy/limits.h"

struct http_field {
  struct span name; /* a token, as it was written */
  struct span value; /* without the white space around it */
};

/* A parsed head; the spans lie in the text that was parsed. */
struct http_head {
  struct span method; /* request only */
  struct span target; /* request only: visible bytes, not taken apart */
  unsigned status; /* response only: 100..599 */
  struct span phrase; /* response only: may be empty */
  unsigned minor; /* of the version: HTTP/1.0 or HTTP/1.1 */
  size_t field_count;
  struct http_field fields[LIMITS_HTTP_FIELDS];
};

/* How far a head that comes in pieces has been looked at. All zero at the start of each head. */
struct http_scan {
  size_t line; /* where the last line begins */
  size_t seen; /* bytes that hold no further line end */
};

/* Looks for the end of a head in bytes, which start at the head and only grow between calls.
 * 1 with the length of the head, its empty line included; 0 when more is needed; -EBADMSG as soon as a line is not well
 * formed. Each byte is looked at a bounded number of times however small the pieces. */
int http_head_scan(struct http_scan *scan, struct span bytes, size_t *ret_len);

/* Parse a whole head, empty line included. 0; -EBADMSG with the cause in err (which holds no byte of the head); or
 * -E2BIG past LIMITS_HTTP_FIELDS. */
int http_head_parse_request(struct span text, struct err *err, struct http_head *ret_head);
int http_head_parse_response(struct span text, struct err *err, struct http_head *ret_head);

/* The first field of that name (ASCII case ignored) and how many there are; NULL and 0 when there is none.
 * ret_count may be NULL. */
const struct http_field *http_head_find(const struct http_head *head, const char *name, size_t *ret_count);

/* Takes all fields of that name out. */
void http_head_drop(struct http_head *head, const char *name);

/* Whether the comma-separated lists (RFC 9110, 5.6.1) in the fields of that name have token in them; case ignored. */
bool http_head_lists(const struct http_head *head, const char *name, struct span token);

/* tchar of RFC 9110, 5.6.2; and the bytes of a field value (5.5). */
bool http_head_is_token(unsigned char byte);
bool http_head_is_value(unsigned char byte);

#endif
