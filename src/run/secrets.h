/* secrets: the values of a policy's credentials: read from their sources when the proxy wants them, outside of the
 * sandbox, and kept for as long as they are good. */
#ifndef SBX_RUN_SECRETS_H
#define SBX_RUN_SECRETS_H

#include "plan/facts.h"
#include "policy/limits.h"
#include "run/fetch.h"
#include "sys/control.h"
#include "sys/secret.h"

#include <poll.h>

/* What is known of one credential. */
struct secrets_entry {
  struct secret value; /* len 0: none */
  uint64_t fetched_ns; /* when the value came, or the error; 0: never */
  uint64_t until_ns; /* CLOCK_MONOTONIC; 0: to the end of the run */
  char error[sizeof(((struct control_secret *)NULL)->error)]; /* why there is none; "" */
  char said[256]; /* what the program said when it failed last, for the user alone; "" */
  unsigned failures; /* in a row, up to LIMITS_SECRET_RETRY_DOUBLES */
  bool wanted; /* somebody waits for the answer */
  struct fetch fetch;
};

struct secrets {
  const struct policy *policy;
  const struct facts *facts;
  void (*answered)(void *data, const struct control_secret *answer);
  void *data;
  struct secrets_entry *entries; /* one for each of the policy's credentials, in their order */
  size_t count;
};

#define SECRETS_INIT { .entries = NULL, .count = 0 }

#define SECRETS_POLL_MAX (2 * LIMITS_CREDENTIALS)

/* answered(data, answer) is told once for each secrets_want(); the answer is wiped afterwards. policy and facts must
 * outlive the object. 0 or -ENOMEM. */
int secrets_open(struct secrets *secrets, const struct policy *policy, const struct facts *facts,
                 void (*answered)(void *data, const struct control_secret *answer), void *data, struct err *err);
/* Ends what runs, and wipes everything. Tells the user what programs that failed have said. */
void secrets_close(struct secrets *secrets);

/* Asks for a value; may answer at once. index need not be one of the policy's: that is answered with an error. stale:
 * the one that was sent last does not do; it is asked for anew, unless it came a moment ago. */
void secrets_want(struct secrets *secrets, uint32_t index, bool stale);

/* Asks every source now, and waits for the answers, which go to nobody: for what is made of values before the proxy
 * wants them. The values stay, as those that were wanted do. Whether there is one is said by the next two. 0; or -EINTR
 * where a signal came that ends the run. */
int secrets_gather(struct secrets *secrets, struct err *err);

/* A value, valid up to the next call that may change it; empty where there is none, and why there is none. */
struct span secrets_value(const struct secrets *secrets, size_t index);
const char *secrets_error(const struct secrets *secrets, size_t index);

/* Waits until no program runs any more, or for a signal that ends the run: true then. Reaps nobody else's children. */
bool secrets_await(struct secrets *secrets);

/* Nobody waits for an answer any more. */
void secrets_forget(struct secrets *secrets);

/* What to wait for with poll(2): fills at most SECRETS_POLL_MAX descriptors; and how long (-1: for ever). */
size_t secrets_poll(const struct secrets *secrets, struct pollfd *fds);
int secrets_wait_ms(const struct secrets *secrets);

/* Reads what programs print, and ends those whose time is up. Never waits. */
void secrets_read(struct secrets *secrets);

/* A child has ended with this waitpid(2) status: whether it was one of these. */
bool secrets_reaped(struct secrets *secrets, pid_t pid, int status);

#endif
