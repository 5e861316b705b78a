/* What a parent proxy answers, by the first byte to one of the parsers: each beginning is undecided, or has the answer
 * of the whole; nothing is taken behind the answer, and an answer has a ceiling. */
#include "fuzz/fuzz.h"

#include "proxy/parent_reply.h"

static int parse(unsigned which, struct span bytes, struct parent_answer *ret_answer, size_t *ret_len)
{
  switch (which & 7) {
  case 0:
    return parent_parse_method(bytes, false, ret_answer, ret_len);
  case 1:
    return parent_parse_method(bytes, true, ret_answer, ret_len);
  case 2:
    return parent_parse_login(bytes, ret_answer, ret_len);
  case 3:
    return parent_parse_reply(bytes, ret_answer, ret_len);
  default:
    return parent_parse_connect(bytes, ret_answer, ret_len);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span bytes = { (const char *)data + 1, size ? size - 1 : 0 };
  struct parent_answer answer;
  size_t len = 0;
  /* Past some length each beginning by itself takes too long. */
  size_t step = bytes.len / 256 + 1;
  int r;

  if (!size || bytes.len > 2 * LIMITS_PARENT_BYTES)
    return 0;
  r = parse(data[0], bytes, &answer, &len);
  FUZZ_ASSERT(r <= 1);
  FUZZ_ASSERT(r != 1 || (len >= 2 && len <= bytes.len && len <= LIMITS_PARENT_BYTES));
  FUZZ_ASSERT(r != 0 || bytes.len < LIMITS_PARENT_BYTES);
  for (size_t seen = 0; seen < bytes.len; seen += step) {
    struct parent_answer early;
    size_t early_len = 0;
    int early_r = parse(data[0], span_sub(bytes, 0, seen), &early, &early_len);

    FUZZ_ASSERT(early_r == 0 || early_r == r);
    FUZZ_ASSERT(early_r != 1 || (early.reason == answer.reason && early.code == answer.code && early_len <= seen));
  }
  return 0;
}
