/* doc_fault: says where a text is no JSON, and what would mend it. Only doc.c uses it. */
#ifndef SBX_POLICY_DOC_FAULT_H
#define SBX_POLICY_DOC_FAULT_H

#include "base/err.h"
#include "base/span.h"

enum doc_fault {
  DOC_FAULT_OTHER,
  DOC_FAULT_STRING, /* within a string */
  DOC_FAULT_COLON, /* a ':' is missing */
  DOC_FAULT_COMMA, /* a ',' is missing */
  DOC_FAULT_WORD, /* at the end of a word that is none */
  DOC_FAULT_NUMBER, /* at the end of a number that is none, or behind one */
};

/* Fills err for a fault at an offset of text, which is UTF-8 without comments. Returns -EINVAL. */
int doc_fault_set(const char *name, struct span text, size_t at, enum doc_fault fault, struct err *err);

#endif
