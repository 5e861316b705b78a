/* Theory of operation
 *
 * json-c reads the text, but says of no value where it stood, lets the last of two equal names win, and accepts
 * comments only together with a good deal else. So the text is read three times:
 *
 *   1. doc_blank()   checks the bytes and writes spaces over the comments, so that offsets and lines stay;
 *   2. json-c        in strict mode, over the text in ASCII: grammar, escapes, numbers, depth;
 *   3. doc_walk_*()  goes over the text in step with json-c's tree and notes lines and names. It may trust the grammar,
 *                    but not the names: an object's are counted before its members are walked, and where json-c has
 *                    fewer, one stands twice.
 *
 * A text that the two readers see differently is refused.
 */
#include "config.h"

#include "policy/doc.h"

#include "base/buf.h"
#include "policy/doc_fault.h"
#include "policy/limits.h"

#include <errno.h>
#include <json.h>
#include <limits.h>
#include <stdlib.h>

/* Where doc_walk stands. */
struct doc_cursor {
  const char *name; /* of the place */
  struct span text;
  size_t at;
  unsigned line;
  struct err *err;
};

static int doc_walk(struct doc_cursor *cursor, struct json_object *json, struct doc *doc);

static void doc_clear(struct doc *doc)
{
  for (size_t i = 0; i < doc->count; i++)
    doc_clear(&doc->items[i]);
  free(doc->items);
  free(doc->name);
  free(doc->text);
}

void doc_free(struct doc *doc)
{
  if (!doc)
    return;
  doc_clear(doc);
  free(doc);
}

void doc_free_indirect(struct doc **doc)
{
  doc_free(*doc);
}

const struct doc *doc_member(const struct doc *object, const char *name)
{
  for (size_t i = 0; i < object->count; i++)
    if (object->items[i].name && strcmp(object->items[i].name, name) == 0)
      return &object->items[i];
  return NULL;
}

const char *doc_type_name(enum doc_type type)
{
  static const char *const names[] = { "null", "true or false", "a number", "a string", "a list", "an object" };

  return names[type];
}

/* Length of the character at the start of bytes; 0 for NUL and for what is not UTF-8. */
static size_t doc_character(struct span bytes)
{
  return bytes.ptr[0] == '\0' ? 0 : span_utf8(bytes);
}

bool doc_is_utf8(struct span bytes)
{
  for (size_t i = 0; i < bytes.len;) {
    size_t size = doc_character(span_sub(bytes, i, bytes.len));
    if (size == 0)
      return false;
    i += size;
  }
  return true;
}

static unsigned doc_line_at(struct span text, size_t at)
{
  unsigned line = 1;

  for (size_t i = 0; i < at && i < text.len; i++)
    line += text.ptr[i] == '\n';
  return line;
}

/* Offset behind the string that starts at the quote; text.len when it does not end. */
static size_t doc_skip_string(struct span text, size_t at)
{
  for (at++; at < text.len && text.ptr[at] != '"'; at++)
    if (text.ptr[at] == '\\')
      at++;
  return at < text.len ? at + 1 : text.len;
}

/* Offset behind the comment at at; SIZE_MAX when it does not end. at itself when there is no comment. */
static size_t doc_skip_comment(struct span text, size_t at)
{
  char second = at + 1 < text.len ? text.ptr[at + 1] : '\0';

  if (text.ptr[at] != '/' || (second != '/' && second != '*'))
    return at;
  if (second == '/') {
    while (at < text.len && text.ptr[at] != '\n')
      at++;
    return at;
  }
  for (at += 2; at + 1 < text.len; at++)
    if (text.ptr[at] == '*' && text.ptr[at + 1] == '/')
      return at + 2;
  return SIZE_MAX;
}

/* Index of the first control byte, or s.len. Strict JSON forbids them in strings; not every json-c does. */
static size_t doc_find_control(struct span s)
{
  for (size_t i = 0; i < s.len; i++)
    if ((unsigned char)s.ptr[i] < 0x20)
      return i;
  return s.len;
}

/* Checks the bytes of text and overwrites its comments with spaces. */
static int doc_blank(const char *name, char *text, size_t len, struct err *err)
{
  struct span whole = { text, len };

  for (size_t i = 0; i < len;) {
    size_t size = doc_character(span_sub(whole, i, len));
    if (size == 0)
      return err_set(err, EINVAL, "%s:%u: a NUL byte or bytes that are not UTF-8; save the file as UTF-8 text", name,
                     doc_line_at(whole, i));
    i += size;
  }
  for (size_t i = 0; i < len;) {
    if (text[i] == '"') {
      size_t past = doc_skip_string(whole, i);
      size_t control = doc_find_control(span_sub(whole, i, past - i));
      if (control < past - i && text[past - 1] == '"')
        return err_set(err, EINVAL, "%s:%u: a control byte in a string; write it as an escape such as \\n", name,
                       doc_line_at(whole, i + control));
      i = past;
      continue;
    }
    size_t end = doc_skip_comment(whole, i);
    if (end == SIZE_MAX)
      return err_set(err, EINVAL, "%s:%u: a comment without an end; close it with */", name, doc_line_at(whole, i));
    if (end == i)
      i++;
    for (; i < end; i++)
      if (text[i] != '\n')
        text[i] = ' ';
  }
  return 0;
}

/* Steps over blanks and the one byte that the grammar has there, if it is it. */
static bool doc_take(struct doc_cursor *cursor, char byte)
{
  while (cursor->at < cursor->text.len && strchr(" \t\r\n", cursor->text.ptr[cursor->at])) {
    cursor->line += cursor->text.ptr[cursor->at] == '\n';
    cursor->at++;
  }
  if (byte == '\0' || cursor->at >= cursor->text.len || cursor->text.ptr[cursor->at] != byte)
    return false;
  cursor->at++;
  return true;
}

static int doc_refuse(struct doc_cursor *cursor, const char *cause)
{
  return err_set(cursor->err, EINVAL, "%s:%u: %s", cursor->name, cursor->line, cause);
}

/* json-c takes more than the grammar has: here it did. */
static int doc_misread(struct doc_cursor *cursor)
{
  return doc_fault_set(cursor->name, cursor->text, cursor->at, DOC_FAULT_OTHER, cursor->err);
}

static int doc_out_of_memory(struct doc_cursor *cursor)
{
  return err_set(cursor->err, ENOMEM, "%s: out of memory", cursor->name);
}

/* Takes a string token; the span is what stands between the quotes. */
static bool doc_take_string(struct doc_cursor *cursor, struct span *ret_raw)
{
  size_t start = cursor->at;

  if (start >= cursor->text.len || cursor->text.ptr[start] != '"')
    return false;
  cursor->at = doc_skip_string(cursor->text, start);
  *ret_raw = span_sub(cursor->text, start + 1, cursor->at - start - 2);
  return true;
}

/* A lone surrogate would change silently. */
static int doc_walk_string(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  struct span raw;

  if (!doc_take_string(cursor, &raw))
    return doc_misread(cursor);
  for (size_t i = 0; i < raw.len; i++) {
    if (raw.ptr[i] != '\\')
      continue;
    struct span escape = span_sub(raw, i, 4);
    if (span_starts_with(escape, SPAN("\\ud")) || span_starts_with(escape, SPAN("\\uD"))) {
      if (escape.ptr[3] > '7')
        return doc_refuse(cursor, "a surrogate escape in a string; write the character itself");
    }
    i++;
  }
  const char *value = json_object_get_string(json);
  size_t len = (size_t)json_object_get_string_len(json);
  if (!value || memchr(value, '\0', len))
    return doc_refuse(cursor, "a NUL in a string; remove it");
  doc->text = mem_strndup(value, len);
  return doc->text ? 0 : doc_out_of_memory(cursor);
}

/* The number of digits at the start of text. */
static size_t doc_digits(struct span text)
{
  size_t count = 0;

  while (count < text.len && span_is_digit(text.ptr[count]))
    count++;
  return count;
}

/* RFC 8259, section 6. json-c takes NaN and zeros in front as well. */
static bool doc_is_number(struct span text)
{
  size_t digits;

  if (span_starts_with(text, SPAN("-")))
    text = span_sub(text, 1, text.len);
  digits = doc_digits(text);
  if (digits == 0 || (digits > 1 && text.ptr[0] == '0'))
    return false;
  text = span_sub(text, digits, text.len);
  if (span_starts_with(text, SPAN("."))) {
    digits = doc_digits(span_sub(text, 1, text.len));
    if (digits == 0)
      return false;
    text = span_sub(text, 1 + digits, text.len);
  }
  if (text.len == 0)
    return true;
  if (span_lower(text.ptr[0]) != 'e')
    return false;
  text = span_sub(text, 1, text.len);
  if (text.len > 0 && (text.ptr[0] == '+' || text.ptr[0] == '-'))
    text = span_sub(text, 1, text.len);
  return text.len > 0 && doc_digits(text) == text.len;
}

/* A number, true, false or null: the token as it stands. */
static int doc_walk_word(struct doc_cursor *cursor, struct doc *doc)
{
  size_t start = cursor->at;
  struct span token;

  while (cursor->at < cursor->text.len && !strchr(" \t\r\n,]}", cursor->text.ptr[cursor->at]))
    cursor->at++;
  token = span_sub(cursor->text, start, cursor->at - start);
  bool word = span_equal_str(token, "true") || span_equal_str(token, "false") || span_equal_str(token, "null");
  if (doc->type == DOC_NUMBER ? !doc_is_number(token) : !word)
    return doc_refuse(cursor, "not JSON: a malformed number or word; write numbers in decimal, words in lower case");
  if (doc->type == DOC_NULL)
    return 0;
  doc->text = mem_strndup(token.ptr, token.len);
  return doc->text ? 0 : doc_out_of_memory(cursor);
}

/* A new last item of doc, on the line where the cursor stands. */
static struct doc *doc_add_item(struct doc_cursor *cursor, struct doc *doc)
{
  if (mem_grow(&doc->items, doc->count, &doc->cap, sizeof *doc->items, SIZE_MAX / sizeof *doc->items) < 0)
    return NULL;
  struct doc *item = &doc->items[doc->count++];
  *item = (struct doc){ .line = cursor->line };
  return item;
}

static int doc_walk_array(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  size_t count = json_object_array_length(json);

  if (!doc_take(cursor, '['))
    return doc_misread(cursor);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && !doc_take(cursor, ','))
      return doc_misread(cursor);
    doc_take(cursor, '\0');
    struct doc *item = doc_add_item(cursor, doc);
    if (!item)
      return doc_out_of_memory(cursor);
    int r = doc_walk(cursor, json_object_array_get_idx(json, i), item);
    if (r < 0)
      return r;
  }
  return doc_take(cursor, ']') ? 0 : doc_misread(cursor);
}

/* Steps over a value and what follows it, up to the next ',' or bracket of the object that it stands in. */
static void doc_skip_value(struct doc_cursor *cursor)
{
  size_t depth = 0;

  while (cursor->at < cursor->text.len) {
    char byte = cursor->text.ptr[cursor->at];
    if (depth == 0 && (byte == ',' || byte == '}' || byte == ']'))
      return;
    depth += byte == '[' || byte == '{';
    depth -= byte == ']' || byte == '}';
    cursor->line += byte == '\n';
    cursor->at = byte == '"' ? doc_skip_string(cursor->text, cursor->at) : cursor->at + 1;
  }
}

/* Takes a member's name. */
static int doc_take_name(struct doc_cursor *cursor, struct span *ret_name)
{
  doc_take(cursor, '\0');
  if (!doc_take_string(cursor, ret_name))
    return doc_misread(cursor);
  if (span_find(*ret_name, '\\') < ret_name->len)
    return doc_refuse(cursor, "an escape in a member's name; write the name plainly");
  return 0;
}

/* Looks at the names of the object behind whose '{' the cursor stands. *ret_count is how many there are. Where seen is
 * true each is taken out of json, and one that is not there any more is refused: it stands twice. */
static int doc_scan_names(struct doc_cursor cursor, struct json_object *json, bool seen, size_t *ret_count)
{
  for (size_t count = 0; !doc_take(&cursor, '}'); count++, *ret_count = count) {
    struct span name;
    if (count > 0 && !doc_take(&cursor, ','))
      return doc_misread(&cursor);
    int r = doc_take_name(&cursor, &name);
    if (r < 0)
      return r;
    if (seen) {
      mem_autofree char *copy = mem_strndup(name.ptr, name.len);
      if (!copy)
        return doc_out_of_memory(&cursor);
      if (!json_object_object_get_ex(json, copy, NULL))
        return err_set(cursor.err, EINVAL, "%s:%u: \"%s\" stands twice in the same object; remove one", cursor.name,
                       cursor.line, copy);
      json_object_object_del(json, copy);
    }
    doc_skip_value(&cursor);
  }
  return 0;
}

static int doc_walk_member(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  struct json_object *value;
  struct doc *item;
  struct span name;
  int r = doc_take_name(cursor, &name);

  if (r < 0)
    return r;
  item = doc_add_item(cursor, doc);
  if (!item || !(item->name = mem_strndup(name.ptr, name.len)))
    return doc_out_of_memory(cursor);
  if (!json_object_object_get_ex(json, item->name, &value) || !doc_take(cursor, ':'))
    return doc_misread(cursor);
  doc_take(cursor, '\0');
  return doc_walk(cursor, value, item);
}

static int doc_walk_object(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  size_t count = 0;
  int r;

  if (!doc_take(cursor, '{'))
    return doc_misread(cursor);
  r = doc_scan_names(*cursor, json, false, &count);
  if (r == 0 && count != (size_t)json_object_object_length(json))
    r = doc_scan_names(*cursor, json, true, &count);
  while (r == 0 && !doc_take(cursor, '}')) {
    if (doc->count > 0 && !doc_take(cursor, ','))
      return doc_misread(cursor);
    r = doc_walk_member(cursor, json, doc);
  }
  if (r == 0 && doc->count != count)
    return doc_misread(cursor);
  return r;
}

static int doc_walk_value(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  switch (json_object_get_type(json)) {
  case json_type_null:
    doc->type = DOC_NULL;
    return doc_walk_word(cursor, doc);
  case json_type_boolean:
    doc->type = DOC_BOOL;
    return doc_walk_word(cursor, doc);
  case json_type_double:
  case json_type_int:
    doc->type = DOC_NUMBER;
    return doc_walk_word(cursor, doc);
  case json_type_string:
    doc->type = DOC_STRING;
    return doc_walk_string(cursor, json, doc);
  case json_type_array:
    doc->type = DOC_ARRAY;
    return doc_walk_array(cursor, json, doc);
  case json_type_object:
    doc->type = DOC_OBJECT;
    return doc_walk_object(cursor, json, doc);
  }
  return doc_misread(cursor);
}

/* One value; the depth is json-c's, so LIMITS_POLICY_DEPTH at most. */
static int doc_walk(struct doc_cursor *cursor, struct json_object *json, struct doc *doc)
{
  int r;

  doc->from = cursor->at;
  r = doc_walk_value(cursor, json, doc);
  doc->to = cursor->at;
  return r;
}

/* The character of the valid sequence of two to four bytes as JSON escapes. */
static void doc_escape(struct span sequence, struct buf *out)
{
  uint32_t code = (unsigned char)sequence.ptr[0] & (0xffu >> (sequence.len + 1));

  for (size_t i = 1; i < sequence.len; i++)
    code = code << 6 | ((unsigned char)sequence.ptr[i] & 0x3fu);
  if (code < 0x10000) {
    buf_printf(out, "\\u%04x", code);
    return;
  }
  code -= 0x10000;
  buf_printf(out, "\\u%04x\\u%04x", 0xd800 | code >> 10, 0xdc00 | (code & 0x3ff));
}

/* The text in ASCII, its lines where they were: json-c 0.18 takes other bytes for control characters in strict mode.
 * What stands behind a backslash stays, so that a bad escape does not become a good one. */
static void doc_to_ascii(struct span text, struct buf *out)
{
  bool escaped = false;

  for (size_t i = 0; i < text.len;) {
    struct span sequence = span_sub(text, i, span_utf8(span_sub(text, i, text.len)));
    if (sequence.len > 1 && !escaped)
      doc_escape(sequence, out);
    else
      buf_append(out, sequence);
    escaped = !escaped && text.ptr[i] == '\\';
    i += sequence.len;
  }
}

static bool doc_is_blank(struct span text)
{
  for (size_t i = 0; i < text.len; i++)
    if (!strchr(" \t\r\n", text.ptr[i]))
      return false;
  return true;
}

/* The offset in the text of what stands at an offset of its form in ASCII. */
static size_t doc_origin(struct span text, size_t ascii)
{
  bool escaped = false;
  size_t at = 0;

  for (size_t i = 0; i < text.len;) {
    size_t size = span_utf8(span_sub(text, i, text.len));
    at += size < 2 || escaped ? size : size < 4 ? strlen("\\uXXXX") : strlen("\\uXXXX\\uXXXX");
    if (ascii < at)
      return i;
    escaped = !escaped && text.ptr[i] == '\\';
    i += size;
  }
  return text.len;
}

static enum doc_fault doc_fault_of(enum json_tokener_error error)
{
  switch ((unsigned)error) {
  case json_tokener_error_parse_string:
    return DOC_FAULT_STRING;
  case json_tokener_error_parse_object_key_sep:
    return DOC_FAULT_COLON;
  case json_tokener_error_parse_object_value_sep:
  case json_tokener_error_parse_array:
    return DOC_FAULT_COMMA;
  case json_tokener_error_parse_null:
  case json_tokener_error_parse_boolean:
    return DOC_FAULT_WORD;
  case json_tokener_error_parse_number:
    return DOC_FAULT_NUMBER;
  default:
    return DOC_FAULT_OTHER;
  }
}

/* Grammar by json-c. original is UTF-8 without NUL. *ret_json may be NULL: the text "null". */
static int doc_parse_json(const char *name, struct span original, struct err *err, struct json_object **ret_json)
{
  buf_autofree struct buf ascii = BUF_INIT((size_t)LIMITS_POLICY_PRINT_BYTES * 3);
  struct json_tokener *tokener = json_tokener_new_ex(LIMITS_POLICY_DEPTH);
  enum json_tokener_error error;
  struct json_object *json;
  struct span text;
  size_t end;

  doc_to_ascii(original, &ascii);
  text = buf_span(&ascii);
  if (!tokener || buf_error(&ascii)) {
    if (tokener)
      json_tokener_free(tokener);
    return err_set(err, ENOMEM, "%s: out of memory", name);
  }
  json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
  /* With the NUL behind the text, which tells json-c that a number or word at its end is complete. */
  json = json_tokener_parse_ex(tokener, text.ptr, (int)text.len + 1);
  error = json_tokener_get_error(tokener);
  end = json_tokener_get_parse_end(tokener);
  json_tokener_free(tokener);
  if (error == json_tokener_success) {
    *ret_json = json;
    return 0;
  }
  json_object_put(json);
  if (doc_is_blank(original))
    return err_set(err, EINVAL, "%s:1: there is nothing in it; the least policy is {}", name);
  if (error == json_tokener_continue || error == json_tokener_error_parse_eof)
    return err_set(err, EINVAL, "%s:%u: the text ends too early; close what is open", name,
                   doc_line_at(text, text.len > 0 ? text.len - 1 : 0));
  if (error == json_tokener_error_depth)
    return err_set(err, EINVAL, "%s:%u: nested more than %d deep; see " SBX_POLICY_PAGE "(5) for the form", name,
                   doc_line_at(text, end), LIMITS_POLICY_DEPTH);
  return doc_fault_set(name, original, doc_origin(original, end), doc_fault_of(error), err);
}

int doc_parse(const char *name, struct span text, struct err *err, struct doc **ret_doc)
{
  mem_autofree char *copy = mem_strndup(text.ptr, text.len);
  doc_autofree struct doc *doc = mem_calloc(1, sizeof *doc);
  struct json_object *json = NULL;
  struct doc_cursor cursor = { .name = name, .text = { copy, text.len }, .line = 1, .err = err };
  int r;

  if (!copy || !doc)
    return doc_out_of_memory(&cursor);
  if (text.len > LIMITS_POLICY_PRINT_BYTES)
    return err_set(err, EINVAL, "%s: more than %d bytes", name, LIMITS_POLICY_PRINT_BYTES);
  r = doc_blank(name, copy, text.len, err);
  if (r == 0)
    r = doc_parse_json(name, cursor.text, err, &json);
  if (r < 0)
    return r;
  doc_take(&cursor, '\0');
  doc->line = cursor.line;
  r = doc_walk(&cursor, json, doc);
  json_object_put(json);
  doc_take(&cursor, '\0');
  if (r == 0 && cursor.at != cursor.text.len)
    r = doc_refuse(&cursor, "text after the end of the policy; remove it");
  if (r < 0)
    return r;
  *ret_doc = mem_steal(doc);
  return 0;
}
