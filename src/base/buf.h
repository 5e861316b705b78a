/* buf: a growable byte buffer that cannot be made without a ceiling.
 *
 * An append that would pass the ceiling, or that finds no memory, changes nothing and marks the buffer; later appends
 * do nothing. The caller builds a whole text and looks once, with buf_error.
 */
#ifndef SBX_BASE_BUF_H
#define SBX_BASE_BUF_H

#include "base/mem.h"
#include "base/span.h"

struct buf {
  char *data; /* always NUL-terminated once anything was appended; NULL before */
  size_t len;
  size_t cap;
  size_t max; /* ceiling of len, in bytes */
  int error; /* 0, or the negative errno of the first append that failed */
};

/* An empty buffer with a ceiling of max bytes; allocates nothing yet. */
#define BUF_INIT(max_bytes) { .data = NULL, .len = 0, .cap = 0, .max = (max_bytes), .error = 0 }

/* Frees the memory and leaves an empty buffer with the same ceiling. */
void buf_free(struct buf *buf);
#define buf_autofree MEM_CLEANUP(buf_free)

void buf_append(struct buf *buf, struct span bytes);
void buf_append_str(struct buf *buf, const char *string);
void buf_append_byte(struct buf *buf, char byte);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends bytes with everything that is not printable ASCII (and the backslash) written as \xNN: for what came from
 * inside the sandbox and goes to a terminal or a log. */
void buf_append_escaped(struct buf *buf, struct span bytes);

/* The same, but printable UTF-8 (span_printable) stays: for names that the user has given. */
void buf_append_printable(struct buf *buf, struct span bytes);

/* Appends a JSON string (RFC 8259, section 7), quotes included. Bytes from 0x80 are taken as UTF-8 where valid, and
 * escaped as \u00NN otherwise, so the result is always valid JSON. */
void buf_append_json(struct buf *buf, struct span bytes);

/* Makes room for count bytes more, so that appends up to there move nothing: for a secret, which a move would leave a
 * copy of behind, and for spans into the buffer. Fails as an append of them would. */
void buf_reserve(struct buf *buf, size_t count);

/* Overwrites the contents, then as buf_free. */
void buf_wipe(struct buf *buf);
#define buf_autowipe MEM_CLEANUP(buf_wipe)

/* Drops the first count bytes. */
void buf_consume(struct buf *buf, size_t count);

/* 0, -E2BIG (ceiling) or -ENOMEM. */
int buf_error(const struct buf *buf);

/* Hands out the NUL-terminated text ("" when nothing was appended); NULL after an error. Caller frees. */
char *buf_steal(struct buf *buf);

/* The contents as a span, valid until the next append. */
struct span buf_span(const struct buf *buf);

#endif
