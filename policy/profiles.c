#include "policy/profiles.h"

/* profiles_table[] and profiles_name_list[], made by build-aux/embed.awk. */
#include "policy/profiles.inc"

const struct profile *profiles_find(struct span name)
{
  for (size_t i = 0; i < sizeof profiles_table / sizeof profiles_table[0]; i++)
    if (span_equal_str(name, profiles_table[i].name))
      return &profiles_table[i];
  return NULL;
}

const char *const *profiles_names(void)
{
  return profiles_name_list;
}
