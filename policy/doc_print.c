#include "policy/doc.h"

void doc_print(const struct doc *doc, struct buf *out)
{
  bool object = doc->type == DOC_OBJECT;

  switch (doc->type) {
  case DOC_NULL:
    buf_append_str(out, "null");
    return;
  case DOC_STRING:
    buf_append_json(out, span_of(doc->text));
    return;
  case DOC_BOOL:
  case DOC_NUMBER:
    buf_append_str(out, doc->text);
    return;
  case DOC_ARRAY:
  case DOC_OBJECT:
    break;
  }
  buf_append_byte(out, object ? '{' : '[');
  for (size_t i = 0; i < doc->count; i++) {
    buf_append_str(out, i > 0 ? ", " : "");
    if (object) {
      buf_append_json(out, span_of(doc->items[i].name));
      buf_append_str(out, ": ");
    }
    doc_print(&doc->items[i], out);
  }
  buf_append_byte(out, object ? '}' : ']');
}
