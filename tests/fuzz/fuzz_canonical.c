/* The text that the proxy parses: whatever is accepted prints to a text that parses to the same. */
#include "fuzz/fuzz.h"

#include "policy/print.h"
#include "policy/validate.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  policy_autofree struct policy *policy = NULL;
  policy_autofree struct policy *again = NULL;
  buf_autofree struct buf first = BUF_INIT(64 * 1024 * 1024);
  buf_autofree struct buf second = BUF_INIT(64 * 1024 * 1024);

  if (policy_parse((struct span){ (const char *)data, size }, NULL, &policy) < 0)
    return 0;
  policy_print(policy, true, &first);
  FUZZ_ASSERT(policy_parse(buf_span(&first), NULL, &again) == 0);
  policy_print(again, true, &second);
  FUZZ_ASSERT(span_equal(buf_span(&first), buf_span(&second)));
  return 0;
}
