#include "policy/doc_fault.h"

#include "base/buf.h"

#include <errno.h>

#define DOC_FAULT_WORD_BYTES 40 /* of a word that is shown */

static bool is_word(char byte)
{
  return span_is_alpha(byte) || span_is_digit(byte) || byte == '_';
}

/* The byte before at that is no blank; 0 where there is none. */
static char byte_before(struct span text, size_t at)
{
  while (at > 0 && strchr(" \t\r\n", text.ptr[at - 1]))
    at--;
  return at > 0 ? text.ptr[at - 1] : '\0';
}

static size_t begin_of_token(struct span text, size_t at, enum doc_fault fault)
{
  while (fault != DOC_FAULT_STRING && at > 0 && at <= text.len &&
         (is_word(text.ptr[at - 1]) || (fault == DOC_FAULT_NUMBER && strchr("+-.", text.ptr[at - 1]))))
    at--;
  return at;
}

/* In characters from 1, as editors count. */
static void locate(struct span text, size_t at, unsigned *ret_line, size_t *ret_column)
{
  size_t begin = 0;

  *ret_line = 1;
  *ret_column = 1;
  for (size_t i = 0; i < at; i++) {
    if (text.ptr[i] != '\n')
      continue;
    begin = i + 1;
    ++*ret_line;
  }
  while (begin < at) {
    size_t size = span_utf8(span_sub(text, begin, text.len));

    begin += size ? size : 1;
    ++*ret_column;
  }
}

static void say_character(struct span text, size_t at, struct buf *out)
{
  struct span rest = span_sub(text, at, text.len);
  size_t size = span_printable(rest);

  if (size) {
    buf_append_byte(out, '\'');
    buf_append(out, span_sub(rest, 0, size));
    buf_append_byte(out, '\'');
  } else {
    buf_printf(out, "the byte 0x%02x", (unsigned char)text.ptr[at]);
  }
}

static void say_word(struct span text, size_t at, struct buf *out)
{
  size_t end = at;

  while (end < text.len && is_word(text.ptr[end]))
    end++;
  buf_append_str(out, "the word ");
  buf_append(out, span_sub(text, at, end - at < DOC_FAULT_WORD_BYTES ? end - at : DOC_FAULT_WORD_BYTES));
  buf_append_str(out, "; names and strings stand in \"double quotes\", other words are true, false and null");
}

static void explain(struct span text, size_t at, enum doc_fault fault, struct buf *out)
{
  char byte = text.ptr[at];

  if (span_starts_with(span_sub(text, at, text.len), SPAN("\xef\xbb\xbf"))) {
    buf_append_str(out, "a byte order mark; save the file without it");
  } else if (fault == DOC_FAULT_STRING) {
    say_character(text, at, out);
    buf_append_str(out, " cannot stand behind a backslash; write a backslash as \\\\");
  } else if (fault == DOC_FAULT_COLON || fault == DOC_FAULT_COMMA) {
    buf_printf(out, "a %s is missing before ", fault == DOC_FAULT_COLON ? "colon" : "comma");
    say_character(text, at, out);
  } else if ((byte == ']' || byte == '}') && byte_before(text, at) == ',') {
    buf_printf(out, "a comma before %c; take it out", byte);
  } else if (byte == '\'') {
    buf_append_str(out, "a single quote; names and strings stand in \"double quotes\"");
  } else if (fault == DOC_FAULT_NUMBER) {
    buf_append_str(out, "a malformed number, or something behind it; write numbers in decimal");
  } else if (span_is_alpha(byte)) {
    say_word(text, at, out);
  } else {
    say_character(text, at, out);
    buf_append_str(out, " is not expected here");
  }
}

int doc_fault_set(const char *name, struct span text, size_t at, enum doc_fault fault, struct err *err)
{
  buf_autofree struct buf what = BUF_INIT(512);
  unsigned line;
  size_t column;

  if (fault == DOC_FAULT_WORD || fault == DOC_FAULT_NUMBER || (at < text.len && is_word(text.ptr[at])))
    at = begin_of_token(text, at, fault);
  locate(text, at, &line, &column);
  if (at >= text.len)
    return err_set(err, EINVAL, "%s:%u: the text ends too early; close what is open", name, line);
  explain(text, at, fault, &what);
  return err_set(err, EINVAL, "%s:%u: not JSON, column %zu: %s", name, line, column, what.data ? what.data : "");
}
