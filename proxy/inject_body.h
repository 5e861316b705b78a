/* inject_body: placeholders in bodies of requests, and values in bodies of responses, while they stream. Pure.
 *
 * Both search what was kept of the body before with what has come behind it, without any framing; both say how much of
 * that is done with, so that the caller keeps the rest for the next call. With end nothing comes any more, and all is.
 */
#ifndef SBX_PROXY_INJECT_BODY_H
#define SBX_PROXY_INJECT_BODY_H

#include "proxy/inject.h"

#include <sys/types.h>

/* The most that is kept of a body between two calls. */
#define INJECT_BODY_REQUEST_MAX (7 * LIMITS_PLACEHOLDER_BYTES)
#define INJECT_BODY_RESPONSE_MAX (7 * LIMITS_SECRET_BYTES)

/* Of the credentials of a set those whose placeholder stands in text, in any form that finder.h has. */
inject_set inject_body_find(const struct inject_secret *secrets, size_t count, inject_set set, struct span text,
                            bool end, size_t *ret_done);

/* Of the credentials that are bound to a target those whose values are taken out of its responses' bodies. */
inject_set inject_body_scrubs(const struct inject_secret *secrets, size_t count, inject_set bound);

/* Whether bodies to or from a target have to be looked into for the credentials that are bound to it. */
bool inject_body_is_looked_into(const struct inject_secret *secrets, size_t count, inject_set bound);

/* Puts '*' in place of each byte of each value of a credential that is scrubbed of bodies (policy.h), in every form
 * that finder.h has: a text keeps its length. known: values, former ones too. *masked is how many bytes at the
 * beginning of text belong to a value that began before, 0 at first. Returns how many values begin in what is done
 * with, and shows that as *ret_text, which lies in text, or in out where anything had to be changed: an empty buffer
 * with room for text. -ENOMEM where out has no memory; -ENOBUFS where more is known than finder.h has room for. */
ssize_t inject_body_scrub(const struct inject_secret *known, size_t count, struct span text, bool end, size_t *masked,
                          struct buf *out, struct span *ret_text);

/* How the value is written in place of a placeholder. */
enum inject_writing {
  INJECT_WRITE_RAW,
  INJECT_WRITE_FORM, /* application/x-www-form-urlencoded */
  INJECT_WRITE_JSON, /* inside of a string */
};

/* Whether a content coding hides the body. */
bool inject_body_is_coded(const struct http_head *head);

/* Of the credentials that are bound to a target those whose placeholders are swapped in the body of this request: none
 * where a content coding hides it, or a signature covers it. */
inject_set inject_body_swaps(const struct inject_secret *secrets, size_t count, inject_set bound,
                             const struct http_head *head);

/* By the type of the content. */
enum inject_writing inject_body_writing(const struct http_head *head);

/* Appends text with the placeholders of a set swapped. Returns 0; -EINVAL where a value is missing or cannot stand in a
 * message, with the cause in err; -ENOBUFS where out has no room, which is allocated once; -ENOMEM. out is the caller's
 * to wipe. */
int inject_body_swap(const struct inject_secret *secrets, size_t count, inject_set set, struct span text,
                     enum inject_writing writing, struct err *err, struct buf *out);

#endif
