/* credential: one entry of the policy's credentials: its form in JSON and as an option, and the presets. Pure. */
#ifndef SBX_POLICY_CREDENTIAL_H
#define SBX_POLICY_CREDENTIAL_H

#include "base/err.h"
#include "policy/doc.h"
#include "policy/policy.h"

/* What is known of a service. */
struct credential_preset {
  const char *name; /* "github" */
  const char *const *hosts; /* rules: HOST[:PORTS], NULL-terminated */
  const char *const *env; /* variables that its programs read, NULL-terminated; the first is the source's default */
  const char *const *prefixes; /* that its values begin with ("ghp_"), NULL-terminated; the first where none is known */
  size_t length; /* of a value, prefix included: what its programs accept */
  enum policy_inject inject;
  enum policy_place place;
  const char *place_name;
};

/* github, anthropic, openai, npm, pypi, aws, gcp; NULL for another. */
const struct credential_preset *credential_preset_find(struct span name);

/* Reads one entry {"preset", "source", "bind", "env", "file", "inject", "place"}; where there is a preset of the
 * entry's name or of its "preset", what the entry leaves out is filled in from it. 0; or -EINVAL with "cause; mend"
 * after the part that is wrong ("bind[1].host: ..."); -ENOMEM. */
int credential_read(const char *name, const struct doc *doc, struct err *err, struct policy_credential *credential);

/* Reads NAME[=SOURCE] of --credential: SOURCE is env:NAME, file:PATH, exec:COMMAND (split at spaces, no quoting),
 * secret-service:ATTR=VALUE[,ATTR=VALUE]..., op:REFERENCE or pass:NAME. Without SOURCE the preset's variable. */
int credential_read_option(struct span text, struct err *err, struct policy_credential *credential);

/* Appends the entry as canonical JSON, which credential_read() reads to an equal one. */
void credential_print(const struct policy_credential *credential, struct buf *out);

/* Frees what it holds. */
void credential_clear(struct policy_credential *credential);

#endif
