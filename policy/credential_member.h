/* credential_member: the members of an entry, one by one. Internal to this directory. */
#ifndef SBX_POLICY_CREDENTIAL_MEMBER_H
#define SBX_POLICY_CREDENTIAL_MEMBER_H

#include "policy/credential.h"

/* Members that were there. */
struct credential_given {
  bool preset;
  bool source;
  bool bind;
  bool env;
  bool file;
  bool inject;
  bool place;
  bool scrub;
};

/* Reads one member of an entry into the credential and notes that it was there. 0; -EINVAL with its name in front of
 * "cause; mend"; -ENOMEM. err must not be NULL. */
int credential_read_member(const struct doc *doc, struct err *err, struct credential_given *given,
                           struct policy_credential *credential);

/* Set or add one part. 0, -EINVAL with "cause; mend", or -ENOMEM. */
int credential_set_source(enum policy_source_kind kind, const char *word, struct err *err,
                          struct policy_source *source);
int credential_add_host(const char *text, struct err *err, struct policy_rules *bind);
int credential_add_env(const char *name, struct err *err, struct strv *env);
int credential_copy(const char *text, struct err *err, char **ret_copy);

/* Says that there is no such preset, and which there are; for an option also what to do without. Returns -EINVAL. */
int credential_no_preset(struct span name, bool option, struct err *err);

#endif
