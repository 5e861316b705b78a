/* A path pattern and, behind a NUL, a path: whatever is accepted is canonical, and matching ends. */
#include "fuzz/fuzz.h"

#include "policy/fspath.h"

#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size };
  struct span path = { NULL, 0 };
  mem_autofree char *pattern = NULL;
  mem_autofree char *again = NULL;
  mem_autofree char *absolute = NULL;

  if (span_split(&text, '\0', &path) && fspath_parse(path, true, NULL, &pattern) < 0)
    return 0;
  FUZZ_ASSERT(fspath_parse(span_of(pattern), true, NULL, &again) == 0);
  FUZZ_ASSERT(strcmp(pattern, again) == 0);
  fspath_glob(span_of(pattern), text);
  absolute = mem_strndup(text.ptr ? text.ptr : "", text.len);
  FUZZ_ASSERT(absolute);
  fspath_match(pattern, "/home/user", "/work", absolute);
  return 0;
}
