/* why: the answers of `sbx why`, about a host (why.c) and about a path (why_path.c). Only these two use it. */
#ifndef SBX_CMD_WHY_H
#define SBX_CMD_WHY_H

#include "cmd/context.h"
#include "policy/limits.h"

#define WHY_TEXT_BYTES (64 * 1024)

/* An answer, for a person and as JSON. */
struct why_answer {
  bool yes;
  struct buf target;
  const char *word; /* "allowed", a reason, or what a path is */
  struct buf text; /* the sentence */
  struct buf rule;
  struct buf place; /* where the rule stands */
  struct buf fix;
};

#define WHY_ANSWER_INIT \
  { .target = BUF_INIT(WHY_TEXT_BYTES), \
    .text = BUF_INIT(WHY_TEXT_BYTES), \
    .rule = BUF_INIT(LIMITS_POLICY_BYTES), \
    .place = BUF_INIT(WHY_TEXT_BYTES), \
    .fix = BUF_INIT(WHY_TEXT_BYTES) }

void why_answer_free(struct why_answer *answer);
#define why_answer_autofree MEM_CLEANUP(why_answer_free)

/* Names the rule that decided. */
void why_say_rule(const char *text, const struct policy_origin *origin, struct why_answer *answer);

/* Whether .sbx.json is there and not trusted, so that `sbx trust` may be what is lacking. */
bool why_may_trust(const struct context *context);

/* What is to be done where that is so. */
void why_say_trust(const struct context *context, struct why_answer *answer);

/* The policy of a run with one more setting, or with .sbx.json trusted: an advice is given only where the same question
 * has the other answer then. more may be NULL. 0 or -errno. */
int why_suppose(const struct opts *opts, const struct opts_setting *more, bool trusted, struct err *err,
                struct context *context);

/* Answers about a path. 0 or -errno; a "no" is 0 too. */
int why_path(const struct opts *opts, const char *argument, struct context *context, struct err *err,
             struct why_answer *answer);

#endif
