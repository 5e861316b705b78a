/* The first line of a stream, as the proxy gets it from inside: what is a request in one piece is one however it comes
 * in pieces, and what HTTP's own parser takes for one always is. */
#include "fuzz/fuzz.h"

#include "proxy/first_line.h"
#include "proxy/http_head.h"

static enum first_line_answer look_in_pieces(struct span bytes, size_t piece)
{
  struct first_line line = { 0 };
  enum first_line_answer answer = FIRST_LINE_MORE;

  for (size_t seen = piece; seen < bytes.len; seen += piece) {
    answer = first_line_look(&line, span_sub(bytes, 0, seen), false);
    if (answer == FIRST_LINE_REQUEST || answer == FIRST_LINE_OTHER)
      return answer;
  }
  return first_line_look(&line, bytes, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span bytes = { (const char *)data, size };
  struct first_line line = { 0 };
  struct http_head head;
  enum first_line_answer whole;

  if (size == 0)
    return 0;
  whole = first_line_look(&line, bytes, true);
  FUZZ_ASSERT(whole == FIRST_LINE_REQUEST || whole == FIRST_LINE_OTHER);
  if (whole == FIRST_LINE_REQUEST) {
    FUZZ_ASSERT(look_in_pieces(bytes, 1) == FIRST_LINE_REQUEST);
    FUZZ_ASSERT(look_in_pieces(bytes, 1 + size / 3) == FIRST_LINE_REQUEST);
  }
  FUZZ_ASSERT(first_line_look_plainly(bytes, true) == FIRST_LINE_OTHER || whole == FIRST_LINE_REQUEST);
  if (http_head_parse_request(bytes, NULL, &head) == 0)
    FUZZ_ASSERT(whole == FIRST_LINE_REQUEST);
  return 0;
}
