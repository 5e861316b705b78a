/* fetch: one value from its source: a variable, a file, or what a program prints. */
#ifndef SBX_RUN_FETCH_H
#define SBX_RUN_FETCH_H

#include "plan/facts.h"
#include "policy/doc.h"
#include "policy/policy.h"
#include "sys/secret.h"

#include <stdint.h>

/* A program that runs. */
struct fetch {
  pid_t pid; /* -1: none */
  int out; /* -1 when read to its end */
  int err;
  struct secret text; /* what it has printed so far */
  char words[256]; /* the beginning of what it has said on standard error */
  size_t words_len;
  uint64_t deadline_ns;
  bool ended; /* and reaped: the caller sets it, with status */
  int status; /* of waitpid(2) */
};

#define FETCH_INIT { .pid = -1, .out = -1, .err = -1, .text = SECRET_INIT }

/* Errors of this module read "cause; mend" and never hold anything of a value. *value has room for
 * LIMITS_SECRET_BYTES. */

/* Reads the value of a credential from its variables or a file. *ret_valid_ms is how long the value is good by its own
 * word; 0: it has none. 0 or -errno: -EPERM where the command inside could have the path lead elsewhere. */
int fetch_read(const struct policy_credential *credential, const struct policy *policy, const struct facts *facts,
               struct err *err, struct secret *value, uint64_t *ret_valid_ms);

/* Starts the program of a credential: outside of the sandbox, in "/", with what outside.h leaves of the caller's
 * environment, nothing on its standard input and no terminal. One that the command inside may write is refused. 0 or
 * -errno. */
int fetch_start(const struct policy_credential *credential, const struct policy *policy, const struct facts *facts,
                struct err *err, struct fetch *fetch);

/* Reads what is there, and never waits. True when the program has ended, or has to be ended since its time is up or it
 * prints too much: fetch_finish() is next. */
bool fetch_step(struct fetch *fetch);

/* The first line of its standard error, for the user and never for the inside: it may hold anything. Valid up to
 * fetch_finish(). */
struct span fetch_said(const struct fetch *fetch);

/* Makes the value of what was printed, and ends what still runs. *ret_valid_ms as above. 0 or -errno. */
int fetch_finish(const struct policy_credential *credential, struct fetch *fetch, struct err *err, struct secret *value,
                 uint64_t *ret_valid_ms);

/* Reads a member that says when the value ends, or NULL: RFC 3339, or seconds since the epoch; null says nothing. */
int fetch_read_expiry(const struct doc *doc, const char *name, struct err *err, uint64_t *ret_valid_ms);

/* Ends a program and forgets it. Harmless without any. */
void fetch_abort(struct fetch *fetch);

#endif
