/* credential: one entry of the policy's credentials: its form in JSON and as an option, and the presets. Pure. */
#ifndef SBX_POLICY_CREDENTIAL_H
#define SBX_POLICY_CREDENTIAL_H

#include "base/err.h"
#include "policy/doc.h"
#include "policy/policy.h"

/* What is known of a service. */
struct credential_preset {
  const char *name; /* "github" */
  const char *const *hosts; /* in the form of bind, NULL-terminated */
  const char *const *env; /* variables that its programs read, NULL-terminated */
  const char *const *source; /* variables that are the source where none is given, NULL-terminated */
  const char *const *prefixes; /* that its values begin with ("ghp_"), NULL-terminated; placeholders have the first */
  size_t length; /* of a value, prefix included: what its programs accept */
  enum policy_inject inject;
  enum policy_place place;
  const char *place_name;
};

/* github, anthropic, openai, npm, pypi, aws, gcp; NULL for another. */
const struct credential_preset *credential_preset_find(struct span name);

/* All of them; the last has no name. */
const struct credential_preset *credential_presets(void);

/* Reads one entry {"preset", "source", "bind", "env", "file", "inject",
 * "place", "scrub"}; where there is a preset of the entry's name
 * or of its "preset", what the entry leaves out is filled in from it ("preset": null is none). A host of bind is a
 * HOST[:PORTS] of rule.h (RULE_BIND) or {"host": HOST[:PORTS]}. The origin is left empty; credential_clear() frees the
 * rest. 0; or -EINVAL with "cause; mend" after the part that is wrong ("bind[1].host: ..."); -ENOMEM. */
int credential_read(const char *name, const struct doc *doc, struct err *err, struct policy_credential *ret_credential);

/* The same from the text of the object. */
int credential_parse(const char *name, const char *text, struct err *err, struct policy_credential *ret_credential);

/* Reads NAME[=SOURCE] of --credential: SOURCE is env:NAME (env:NAME,NAME... where a value is made of several),
 * file:PATH, exec:COMMAND (split at spaces, no quoting), or one of credential_tool.h. Without SOURCE the preset's
 * variables. */
int credential_read_option(struct span text, struct err *err, struct policy_credential *ret_credential);

/* Appends the entry as canonical JSON in one line, which credential_read() reads to an equal one. */
void credential_print(const struct policy_credential *credential, struct buf *out);

/* Appends what of the entry says where its value comes from, for a person: "variable GITHUB_TOKEN". */
void credential_print_source(const struct policy_source *source, struct buf *out);

/* Appends where the value goes: "Authorization: Bearer". */
void credential_print_place(const struct policy_credential *credential, struct buf *out);

/* Whether both would be set on some request at the same place. */
bool credential_clashes(const struct policy_credential *a, const struct policy_credential *b);

/* Frees what it holds, origin included. */
void credential_clear(struct policy_credential *credential);

#endif
