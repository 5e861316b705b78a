/* Theory of operation
 *
 * What servers take for a request line, beyond RFC 9112, as measured:
 *
 *   Python http.server   words between white space of Latin-1 (0x1c-0x1f, 0x85, 0xa0, a lone CR), also in front; "GET"
 *                        and one word alone, whatever that is, and header fields are read all the same
 *   Node                 the same two words where the second is a path; versions of RTSP and ICE
 *   Java httpserver      anything, a space, a path, a space, anything; a lone CR or LF, and CR CR LF, end no line
 *   others               a path alone as HTTP/0.9; one with a scheme in front of it
 *
 * So a line is a request when
 *   - a token comes first and HTTP/ later, or
 *   - GET comes first, or CONNECT with a port, or
 *   - a path or URL is the second word, or comes between the first two spaces, or first behind a blank.
 *
 * A line ends in LF; one of text is judged at a lone CR as well, which some servers take for an end. Where it ends in a
 * bare LF and is nothing, Java reads on: so it goes on and is watched until Java's line ends as well.
 *
 * To wait for the end costs clients that send a few bytes and wait. What begins with bytes that are no text is sent on
 * at once, and watched: most binary protocols are spoken so. Of text, what can no longer become a request passes at
 * once (XML, S-expressions), and so does the first packet of git's own protocol, which has a NUL where others have the
 * line's end.
 */
#include "proxy/first_line.h"

#include "proxy/http_head.h"

#define PART_BYTES_MAX 1024

static bool is_space(char c)
{
  return (c && strchr(" \t\v\f\r\x1c\x1d\x1e\x1f\x85\xa0", c)) != 0;
}

static bool is_graphic(struct span word)
{
  for (size_t i = 0; i < word.len; i++)
    if ((unsigned char)word.ptr[i] <= 0x20 || (unsigned char)word.ptr[i] >= 0x7f)
      return false;
  return true;
}

static bool is_token(struct span word)
{
  for (size_t i = 0; i < word.len; i++)
    if (!http_head_is_token((unsigned char)word.ptr[i]))
      return false;
  return word.len > 0;
}

static bool holds_nocase(struct span line, struct span word)
{
  for (size_t i = 0; i + word.len <= line.len; i++)
    if (span_equal_nocase(span_sub(line, i, word.len), word))
      return true;
  return false;
}

/* A path, plain or escaped, a URL with a path, or the whole server. */
static bool is_target(struct span word)
{
  size_t scheme = 0;

  if (word.len && strchr("/%*", word.ptr[0]) && word.ptr[0])
    return true;
  while (scheme < word.len &&
         (span_is_alpha(word.ptr[scheme]) || span_is_digit(word.ptr[scheme]) || strchr("+-.", word.ptr[scheme])) &&
         word.ptr[scheme])
    scheme++;
  return scheme > 0 && span_starts_with(span_sub(word, scheme, word.len), SPAN(":/"));
}

/* Takes the next word off *rest; a line feed stays. True when something stands behind it. */
static bool take_word(struct span *rest, struct span *ret_word)
{
  size_t start = 0;
  size_t end;

  while (start < rest->len && is_space(rest->ptr[start]))
    start++;
  for (end = start; end < rest->len && rest->ptr[end] != '\n' && !is_space(rest->ptr[end]);)
    end++;
  *ret_word = span_sub(*rest, start, end - start);
  *rest = span_sub(*rest, end, rest->len);
  return rest->len > 0;
}

/* What every server skips, or some. */
static struct span skip_space(struct span bytes, bool *ret_blank)
{
  *ret_blank = false;
  while (bytes.len && (bytes.ptr[0] == '\n' || is_space(bytes.ptr[0]))) {
    *ret_blank = bytes.ptr[0] != '\n' && bytes.ptr[0] != '\r';
    bytes = span_sub(bytes, 1, bytes.len);
  }
  return bytes;
}

/* A control byte or another space of Latin-1: Java takes every other byte for a part of a path. */
static bool is_control(char c)
{
  return (((unsigned char)c & 0x7f) <= 0x20 && c != ' ') || c == 0x7f;
}

/* As Java reads it: whatever the method is, spaces alone count. Bytes only grow between calls. FIRST_LINE_MORE while
 * the line has not ended and can still become a request. */
static enum first_line_answer look_by_spaces(struct first_line *line, struct span bytes)
{
  for (; line->spaced.answer == FIRST_LINE_MORE && line->spaced.seen < bytes.len; line->spaced.seen++) {
    size_t at = line->spaced.seen;
    char c = bytes.ptr[at];

    if (c == '\n' && line->spaced.cr && at == line->spaced.start + 1)
      line->spaced.start = at + 1; /* an empty line in front */
    else if (c == '\n' && line->spaced.cr)
      line->spaced.answer = line->spaced.spaces == 2 ? FIRST_LINE_REQUEST : FIRST_LINE_OTHER;
    else if (line->spaced.spaces == 1 && is_control(c))
      line->spaced.answer = FIRST_LINE_OTHER;
    else if (line->spaced.spaces == 1 && c == ' ' &&
             !is_target(span_sub(bytes, line->spaced.word, at - line->spaced.word)))
      line->spaced.answer = FIRST_LINE_OTHER;
    else if (line->spaced.spaces < 2 && c == ' ')
      line->spaced.spaces++;
    if (line->spaced.spaces == 1 && c == ' ')
      line->spaced.word = at + 1;
    line->spaced.cr = c == '\r' && !line->spaced.cr;
  }
  return line->spaced.answer;
}

/* git://: four hexadecimal digits, "git-", a command; a path; a NUL behind it (gitprotocol-pack(5)). No server takes a
 * NUL in the path of a method that is not GET. */
static bool is_git(struct span first, struct span second)
{
  for (size_t i = 0; i < 4 && i < first.len; i++)
    if (!span_is_digit(first.ptr[i]) && !(first.ptr[i] >= 'a' && first.ptr[i] <= 'f'))
      return false;
  return span_starts_with(span_sub(first, 4, first.len), SPAN("git-")) && is_token(first) && second.len &&
         second.ptr[0] == '/' && span_find(second, '\0') < second.len;
}

/* As others do, by words. */
static bool is_worded(struct span text)
{
  bool blank;
  struct span rest = skip_space(text, &blank);
  struct span first;
  struct span second;

  (void)take_word(&rest, &first);
  (void)take_word(&rest, &second);
  if (!is_graphic(first))
    return false;
  if (blank && is_target(first))
    return true;
  if (!second.len || is_git(first, second))
    return false;
  if (span_equal(first, SPAN("GET")) || is_target(second))
    return true;
  if (span_equal(first, SPAN("CONNECT")) && second.ptr[0] != '{' && span_find(second, ':') < second.len)
    return true;
  return is_token(first) && holds_nocase(span_sub(text, (size_t)(first.ptr - text.ptr), text.len), SPAN("HTTP/"));
}

/* What ends in some way at the end of text. */
static bool is_request(struct first_line *line, struct span text)
{
  (void)look_by_spaces(line, text);
  return is_worded(text) || line->spaced.spaces == 2;
}

/* The line has not ended yet. */
static enum first_line_answer look_at_part(struct first_line *line, struct span bytes)
{
  bool blank;
  struct span rest = skip_space(bytes, &blank);
  struct span first;
  struct span second;
  bool first_whole = take_word(&rest, &first);
  bool second_whole = take_word(&rest, &second);
  enum first_line_answer nothing =
      look_by_spaces(line, bytes) == FIRST_LINE_OTHER ? FIRST_LINE_OTHER : FIRST_LINE_STREAM;

  line->settled = bytes.len > PART_BYTES_MAX;
  if (!is_graphic(first)) {
    line->settled = true;
    return FIRST_LINE_STREAM;
  }
  if (is_git(first, second))
    return nothing;
  if (!first_whole || !second_whole || blank)
    return FIRST_LINE_MORE;
  line->settled = true;
  return is_token(first) || is_target(second) ? FIRST_LINE_MORE : nothing;
}

static enum first_line_answer look_by_words(struct first_line *line, struct span bytes, bool end)
{
  struct span rest;
  size_t lf;
  size_t cr;

  while (line->start < bytes.len && (bytes.ptr[line->start] == '\n' || is_space(bytes.ptr[line->start])))
    line->start++;
  if (line->seen < line->start)
    line->seen = line->start;
  rest = span_sub(bytes, line->seen, bytes.len);
  lf = span_find(rest, '\n');
  if (lf < rest.len || end)
    return is_request(line, span_sub(bytes, 0, line->seen + lf)) ? FIRST_LINE_REQUEST : FIRST_LINE_OTHER;
  /* A CR in last place may still get its LF, and is looked at again. */
  cr = line->cr ? rest.len : span_find(rest, '\r');
  line->seen += cr + 1 == rest.len ? cr : rest.len;
  if (cr + 1 < rest.len) {
    line->cr = true;
    if (is_request(line, span_sub(bytes, 0, (size_t)(rest.ptr - bytes.ptr) + cr)))
      return FIRST_LINE_REQUEST;
  }
  if (!line->settled)
    line->last = look_at_part(line, bytes);
  return line->last;
}

enum first_line_answer first_line_look(struct first_line *line, struct span bytes, bool end)
{
  enum first_line_answer answer = line->ended ? FIRST_LINE_OTHER : look_by_words(line, bytes, end);

  if (answer == FIRST_LINE_REQUEST || look_by_spaces(line, bytes) == FIRST_LINE_REQUEST)
    return FIRST_LINE_REQUEST;
  if (answer != FIRST_LINE_OTHER)
    return answer;
  line->ended = true;
  return line->spaced.answer == FIRST_LINE_MORE && !end ? FIRST_LINE_STREAM : FIRST_LINE_OTHER;
}

enum first_line_answer first_line_look_plainly(struct span bytes, bool end)
{
  bool blank;
  struct span text = skip_space(bytes, &blank);
  size_t len = span_find(text, '\n');
  struct span rest = span_sub(text, 0, len);
  struct span first;
  bool whole = take_word(&rest, &first);

  if (first.len && (!is_token(first) || span_find(rest, '\0') < rest.len))
    return FIRST_LINE_OTHER;
  if (len == text.len && !end)
    return FIRST_LINE_MORE;
  return whole && holds_nocase(rest, SPAN("HTTP/")) ? FIRST_LINE_REQUEST : FIRST_LINE_OTHER;
}
