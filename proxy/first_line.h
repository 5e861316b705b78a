/* first_line: whether the first line of a stream is a request to some server of HTTP/1 (F54). Pure.
 *
 * A server that is more lenient than the proxy must not take for a request what the proxy has passed for something
 * else. So what is asked here is not what a request is, but what any known server takes for one.
 */
#ifndef SBX_PROXY_FIRST_LINE_H
#define SBX_PROXY_FIRST_LINE_H

#include "base/span.h"

enum first_line_answer {
  FIRST_LINE_MORE, /* the line has to be seen whole before any of it goes on */
  FIRST_LINE_STREAM, /* the same, but it hardly is text: it need not be held back, only cut off in time */
  FIRST_LINE_REQUEST,
  FIRST_LINE_OTHER,
};

/* How far the bytes have been looked at. All zero at the start. */
struct first_line {
  size_t start; /* blank bytes in front, empty lines included */
  size_t seen; /* bytes that hold no end of the line */
  bool cr; /* a lone CR has been judged */
  enum first_line_answer last;
  bool settled; /* `last` stands until the line ends */
  bool ended; /* it has, and is no request by its words */
  struct {
    size_t seen;
    size_t start; /* of the line: it may hold a lone CR or LF */
    size_t word; /* where its second word begins, once spaces is 1 */
    unsigned spaces; /* 2: with a path between them */
    bool cr; /* the byte before is a CR that may end the line */
    enum first_line_answer answer; /* FIRST_LINE_MORE: not known yet */
  } spaced; /* the reading by spaces alone */
};

/* Looks at bytes, which only grow between calls. end: no more will come; the answer is one of the last two then.
 * Each byte is looked at a bounded number of times however small the pieces, but for the first PART_BYTES_MAX. */
enum first_line_answer first_line_look(struct first_line *line, struct span bytes, bool end);

/* The same where a protocol other than HTTP is at home or the server has spoken first: only a line that can be nothing
 * but a request is one: a token, and HTTP/ in what follows. There is no FIRST_LINE_STREAM. */
enum first_line_answer first_line_look_plainly(struct span bytes, bool end);

#endif
