/* ask: the user's word on targets that no rule names (--ask): questions of the proxy, answers of a person or an IDE. */
#ifndef SBX_RUN_ASK_H
#define SBX_RUN_ASK_H

#include "base/buf.h"
#include "policy/decide.h"
#include "policy/limits.h"
#include "run/ask_terminal.h"
#include "run/run.h"
#include "sys/control.h"

struct ask_question {
  uint32_t number; /* ours, never used twice in a run */
  uint32_t id; /* the proxy's */
  struct host host;
  uint16_t port;
  enum reason reason;
  char rule[sizeof(((struct control_answer *)NULL)->rule)];
  bool shown;
  uint64_t deadline_ns; /* once shown */
};

struct ask {
  const struct ask_setup *setup;
  void (*answered)(void *data, const struct control_answer *answer);
  void *data;
  struct ask_question questions[LIMITS_ASK_PENDING]; /* in the order in which they came */
  size_t count;
  uint32_t last_number;
  bool gone; /* nobody is there any more */
  uint64_t paid_ns; /* until then the questions of LIMITS_ASK_EVERY_MS each are spent; in the past: none are */
  struct buf line; /* the beginning of one, of an IDE */
  struct ask_terminal terminal;
};

/* answered(data, answer) is told once for each question; the texts of setup must outlive the object. guard is our
 * child that everything inside is below. */
void ask_open(struct ask *ask, const struct ask_setup *setup, pid_t guard,
              void (*answered)(void *data, const struct control_answer *answer), void *data);
/* Refuses what is open, and lets the terminal go. */
void ask_close(struct ask *ask);

/* A question of the proxy, which is not trusted to be well formed. May answer at once. */
void ask_take(struct ask *ask, const struct control_ask *message);

/* The proxy has gone, and its questions with it. */
void ask_forget(struct ask *ask);

/* What to wait for with poll(2): a descriptor that answers come from (-1: none), and how long (-1: for ever). */
int ask_poll_fd(const struct ask *ask);
int ask_wait_ms(const struct ask *ask);

/* The descriptor is ready, or the time is up. */
void ask_read(struct ask *ask);
void ask_expire(struct ask *ask);

/* Ctrl-C: we go on without an answer. What stands on the terminal is refused, and what waits behind it goes unasked,
 * since the command has to hear of it now. */
void ask_interrupt(struct ask *ask);
/* We were told to end: the same, and nothing is put on the terminal any more. A question would hold the command, which
 * has to end. */
void ask_end(struct ask *ask);
/* We were stopped and go on: what stands on the terminal is put again. */
void ask_continued(struct ask *ask);
/* A child of ours that is nobody else's was waited for. */
void ask_reaped(struct ask *ask, pid_t pid);

#endif
