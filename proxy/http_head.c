#include "proxy/http_head.h"

#include "base/mem.h"

#include <errno.h>

bool http_head_is_token(unsigned char byte)
{
  if (span_is_alpha((char)byte) || span_is_digit((char)byte))
    return true;
  return byte && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

bool http_head_is_value(unsigned char byte)
{
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static bool is_token(struct span s)
{
  for (size_t i = 0; i < s.len; i++)
    if (!http_head_is_token((unsigned char)s.ptr[i]))
      return false;
  return s.len > 0;
}

static bool is_value(struct span s)
{
  for (size_t i = 0; i < s.len; i++)
    if (!http_head_is_value((unsigned char)s.ptr[i]))
      return false;
  return true;
}

/* Whether the part of a line that ends in LF at index lf ends in CRLF and holds no other CR, and no NUL. */
static bool is_line(struct span bytes, size_t line, size_t lf)
{
  struct span text;

  if (lf == line || bytes.ptr[lf - 1] != '\r')
    return false;
  text = span_sub(bytes, line, lf - 1 - line);
  return span_find(text, '\r') == text.len && span_find(text, '\0') == text.len;
}

int http_head_scan(struct http_scan *scan, struct span bytes, size_t *ret_len)
{
  for (;;) {
    struct span rest = span_sub(bytes, scan->seen, bytes.len);
    size_t at = span_find(rest, '\n');
    size_t lf = scan->seen + at;

    if (at == rest.len) {
      /* A NUL or a lone CR need not wait for the end of its line; a CR in last place may still get its LF. */
      size_t cr = span_find(rest, '\r');

      if (span_find(rest, '\0') != rest.len || cr + 1 < rest.len)
        return -EBADMSG;
      scan->seen = bytes.len - (cr < rest.len); /* a CR is looked at again with what follows it */
      return 0;
    }
    if (!is_line(bytes, scan->line, lf))
      return -EBADMSG;
    if (lf == scan->line + 1) {
      /* An empty line ends the head; a head that begins with one has no start line. */
      if (scan->line == 0)
        return -EBADMSG;
      *ret_len = lf + 1;
      return 1;
    }
    scan->line = lf + 1;
    scan->seen = lf + 1;
  }
}

/* Takes one line without its CRLF off *rest. */
static bool take_line(struct span *rest, struct span *ret_line)
{
  size_t lf = span_find(*rest, '\n');

  if (lf == rest->len || !is_line(*rest, 0, lf))
    return false;
  *ret_line = span_sub(*rest, 0, lf - 1);
  *rest = span_sub(*rest, lf + 1, rest->len);
  return true;
}

static int parse_version(struct span text, struct err *err, unsigned *ret_minor)
{
  if (span_equal(text, SPAN("HTTP/1.1")))
    *ret_minor = 1;
  else if (span_equal(text, SPAN("HTTP/1.0")))
    *ret_minor = 0;
  else
    return err_set(err, EBADMSG, "the version is neither HTTP/1.1 nor HTTP/1.0");
  return 0;
}

static int parse_fields(struct span rest, struct err *err, struct http_head *head)
{
  struct span line;

  while (take_line(&rest, &line)) {
    size_t colon = span_find(line, ':');
    struct http_field *field;

    if (line.len == 0)
      return rest.len ? err_set(err, EBADMSG, "there are bytes after the head") : 0;
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
      return err_set(err, EBADMSG, "a header field is folded over two lines");
    if (colon == line.len || !is_token(span_sub(line, 0, colon)))
      return err_set(err, EBADMSG, "a header field has no well-formed name");
    if (!is_value(span_sub(line, colon + 1, line.len)))
      return err_set(err, EBADMSG, "a header field has a control byte in its value");
    if (head->field_count == MEM_COUNT(head->fields))
      return err_set(err, E2BIG, "there are more than %d header fields", LIMITS_HTTP_FIELDS);
    field = &head->fields[head->field_count++];
    field->name = span_sub(line, 0, colon);
    field->value = span_trim(span_sub(line, colon + 1, line.len));
  }
  return err_set(err, EBADMSG, "a line of the head is not well formed");
}

int http_head_parse_request(struct span text, struct err *err, struct http_head *ret_head)
{
  struct span rest = text;
  struct span line;
  struct span version;
  int r;

  ret_head->field_count = 0;
  ret_head->status = 0;
  if (!take_line(&rest, &line))
    return err_set(err, EBADMSG, "the request line is not well formed");
  ret_head->method = span_sub(line, 0, span_find(line, ' '));
  if (!is_token(ret_head->method))
    return err_set(err, EBADMSG, "the method is not a token");
  line = span_sub(line, ret_head->method.len + 1, line.len);
  ret_head->target = span_sub(line, 0, span_find(line, ' '));
  version = span_sub(line, ret_head->target.len + 1, line.len);
  if (ret_head->target.len == 0 || !is_value(ret_head->target) ||
      span_find(ret_head->target, '\t') < ret_head->target.len)
    return err_set(err, EBADMSG, "the request target is not well formed");
  r = parse_version(version, err, &ret_head->minor);
  return r < 0 ? r : parse_fields(rest, err, ret_head);
}

int http_head_parse_response(struct span text, struct err *err, struct http_head *ret_head)
{
  struct span rest = text;
  struct span line;
  int r;

  ret_head->field_count = 0;
  ret_head->method = SPAN("");
  ret_head->target = SPAN("");
  if (!take_line(&rest, &line))
    return err_set(err, EBADMSG, "the status line is not well formed");
  r = parse_version(span_sub(line, 0, span_find(line, ' ')), err, &ret_head->minor);
  if (r < 0)
    return r;
  line = span_sub(line, sizeof "HTTP/1.x" - 1, line.len);
  /* " NNN" and, in practice, sometimes no space after it when the phrase is empty. */
  if (line.len < 4 || line.ptr[0] != ' ' || line.ptr[1] < '1' || line.ptr[1] > '5' || !span_is_digit(line.ptr[2]) ||
      !span_is_digit(line.ptr[3]) || (line.len > 4 && line.ptr[4] != ' '))
    return err_set(err, EBADMSG, "the status line has no status from 100 to 599");
  ret_head->status =
      (unsigned)(line.ptr[1] - '0') * 100 + (unsigned)(line.ptr[2] - '0') * 10 + (unsigned)(line.ptr[3] - '0');
  ret_head->phrase = span_sub(line, 5, line.len);
  if (!is_value(ret_head->phrase))
    return err_set(err, EBADMSG, "the status phrase has a control byte");
  return parse_fields(rest, err, ret_head);
}

const struct http_field *http_head_find(const struct http_head *head, const char *name, size_t *ret_count)
{
  const struct http_field *first = NULL;
  struct span wanted = span_of(name);
  size_t count = 0;

  for (size_t i = 0; i < head->field_count; i++) {
    if (!span_equal_nocase(head->fields[i].name, wanted))
      continue;
    if (!first)
      first = &head->fields[i];
    count++;
  }
  if (ret_count)
    *ret_count = count;
  return first;
}

void http_head_drop(struct http_head *head, const char *name)
{
  size_t kept = 0;

  for (size_t i = 0; i < head->field_count; i++)
    if (!span_equal_nocase(head->fields[i].name, span_of(name)))
      head->fields[kept++] = head->fields[i];
  head->field_count = kept;
}

bool http_head_lists(const struct http_head *head, const char *name, struct span token)
{
  struct span wanted = span_of(name);

  for (size_t i = 0; i < head->field_count; i++) {
    struct span rest = head->fields[i].value;
    struct span part;

    if (!span_equal_nocase(head->fields[i].name, wanted))
      continue;
    while (span_split(&rest, ',', &part))
      if (span_equal_nocase(span_trim(part), token))
        return true;
  }
  return false;
}
