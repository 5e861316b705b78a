#include "policy/credential_word.h"

struct span credential_word(struct span text, enum credential_word word)
{
  struct span part = SPAN("");

  for (int i = 0; i <= (int)word; i++)
    if (!span_split(&text, ' ', &part))
      return SPAN("");
  return part;
}
