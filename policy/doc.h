/* doc: JSON text → a tree in which every value knows its line and its bytes.
 *
 * The language is RFC 8259 with comments (// and C's), strict: no duplicate or escaped member names, no NUL, valid
 * UTF-8, at most LIMITS_POLICY_DEPTH deep. The only module that knows json-c.
 */
#ifndef SBX_POLICY_DOC_H
#define SBX_POLICY_DOC_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

enum doc_type {
  DOC_NULL,
  DOC_BOOL,
  DOC_NUMBER,
  DOC_STRING,
  DOC_ARRAY,
  DOC_OBJECT,
};

struct doc {
  enum doc_type type;
  unsigned line; /* from 1; of a member, the line of its name */
  char *name; /* a member's name, else NULL */
  char *text; /* DOC_STRING: the value; DOC_NUMBER: as written; DOC_BOOL: "true" or "false"; else NULL */
  struct doc *items; /* DOC_ARRAY, DOC_OBJECT: in the order of the text */
  size_t count;
  size_t cap;
  size_t from; /* the value's place in the text: the offset of its first byte, and of the one behind its last */
  size_t to;
};

/* Parses a whole text. name is what messages call the place. 0, -EINVAL "name:line: cause; fix", or -ENOMEM. */
int doc_parse(const char *name, struct span text, struct err *err, struct doc **ret_doc);

void doc_free(struct doc *doc);
void doc_free_indirect(struct doc **doc);
#define doc_autofree MEM_CLEANUP(doc_free_indirect)

/* The member with this name, or NULL. */
const struct doc *doc_member(const struct doc *object, const char *name);

/* Appends a tree as JSON in one line. Look at buf_error afterwards. */
void doc_print(const struct doc *doc, struct buf *out);

/* "a string", "a list", ... for messages. */
const char *doc_type_name(enum doc_type type);

/* Whether bytes are UTF-8 (RFC 3629: shortest form, no surrogates) without NUL. */
bool doc_is_utf8(struct span bytes);

#endif
