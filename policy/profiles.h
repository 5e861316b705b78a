/* profiles: the texts of the built-in profiles, put into the program at build time from policy/profiles/. */
#ifndef SBX_POLICY_PROFILES_H
#define SBX_POLICY_PROFILES_H

#include "base/span.h"

struct profile {
  const char *name;
  const char *text; /* not NUL-terminated */
  size_t len;
};

/* The profile with this name, or NULL. */
const struct profile *profiles_find(struct span name);

/* Names of all profiles, sorted, NULL-terminated. */
const char *const *profiles_names(void);

#endif
