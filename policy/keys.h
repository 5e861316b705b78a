/* keys: the one table of every policy key, for load, merge, validate, print, the options of `sbx run`, the schema test
 * and the man page check. */
#ifndef SBX_POLICY_KEYS_H
#define SBX_POLICY_KEYS_H

#include "base/span.h"

enum key_id {
  KEY_EXTENDS,
  KEY_READ,
  KEY_WRITE,
  KEY_HIDE,
  KEY_PROTECT,
  KEY_UNPROTECT,
  KEY_HOME,
  KEY_TMP,
  KEY_NETWORK_MODE,
  KEY_ALLOW,
  KEY_DENY,
  KEY_FORWARD,
  KEY_PUBLISH,
  KEY_UNIX_SOCKETS,
  KEY_UPSTREAM_PROXY,
  KEY_CREDENTIALS,
  KEY_ENV_PASS,
  KEY_ENV_SET,
  KEY_MEMORY,
  KEY_CPUS,
  KEY_PIDS,
  KEY_TIMEOUT,
  KEY_NESTING,
  KEY_PTRACE,
  KEY_I386,
  KEY_AUDIT_FILE,
  KEY_COUNT,
};

enum key_type {
  KEY_TYPE_PROFILE, /* name of a built-in profile */
  KEY_TYPE_PATH, /* fspath.h, no pattern */
  KEY_TYPE_PATTERN, /* fspath.h, patterns allowed */
  KEY_TYPE_WORD, /* one of words */
  KEY_TYPE_RULE, /* rule.h */
  KEY_TYPE_PORT_MAP, /* PORT (a JSON number or text) or "HOSTPORT:PORT" */
  KEY_TYPE_UPSTREAM, /* one of words, or a URL of upstream.h */
  KEY_TYPE_ENV_NAME, /* NAME or PREFIX* */
  KEY_TYPE_ENV_VALUE, /* text without NUL, under a NAME */
  KEY_TYPE_SIZE, /* bytes (a JSON number) or "4g" */
  KEY_TYPE_CPUS, /* a JSON number or text with up to three decimals */
  KEY_TYPE_NUMBER, /* a whole JSON number or text */
  KEY_TYPE_DURATION, /* seconds (a JSON number) or "1h" */
  KEY_TYPE_BOOL, /* a JSON true or false; as option text the words of the same name */
  KEY_TYPE_CREDENTIAL, /* a JSON object of credential.h, under a NAME */
  KEY_TYPE_FILE, /* absolute path, "~/x", or (options only) "fd:N" */
};

enum key_merge {
  KEY_LIST, /* the layers' lists add up */
  KEY_SCALAR, /* the last layer wins */
  KEY_MAP, /* an object of names; per name the last layer wins */
};

/* What a policy file inside the workspace may do with a key. */
enum key_trust {
  KEY_TAKEN, /* taken always: it can only narrow */
  KEY_IF_NARROWER, /* untrusted: where it narrows; after `sbx trust`: taken */
  KEY_IF_LOWER, /* trusted or not, only where it narrows */
  KEY_IF_TRUSTED, /* only after `sbx trust` */
  KEY_NEVER, /* never, trusted or not */
};

struct key {
  enum key_id id;
  const char *path; /* "network.allow" */
  enum key_type type;
  enum key_merge merge;
  enum key_trust trust;
  const char *const *words; /* NULL-terminated, from the narrowest to the widest; NULL where any text may stand */
  const char *never; /* the word that no workspace file may set, trusted or not; NULL for none */
  bool nullable; /* null is accepted and means "none" or "the default" */
  const char *option; /* option of `sbx run` that adds to the key ("--allow"), NULL for none. Two keys may share one. */
  const char *argument; /* what the option's argument is called in help ("RULE") */
  const char *help; /* one line without a full stop */
};

/* The key with this id. */
const struct key *keys_at(enum key_id id);

/* The key with this path ("network.allow"); NULL when there is none. */
const struct key *keys_find(struct span path);

/* Whether path is a key, or an object that holds keys ("network"). */
bool keys_is_object(struct span path);

/* The child of object parent ("" for the top) whose name is nearest to name, for "did you mean". False when none is
 * near (more than two edits, or about a third of the name). *ret_name borrows from the table. */
bool keys_suggest(struct span parent, struct span name, struct span *ret_name);

#endif
