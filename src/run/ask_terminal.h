/* ask_terminal: one question at a time on the controlling terminal (see ask_terminal.c). */
#ifndef SBX_RUN_ASK_TERMINAL_H
#define SBX_RUN_ASK_TERMINAL_H

#include "base/buf.h"
#include "policy/decide.h"
#include "policy/limits.h"
#include "sys/freeze.h"

#include <termios.h>

struct ask_terminal {
  int fd; /* the terminal; the caller's */
  pid_t guard; /* what everything inside is below */
  bool open; /* a question stands on it */
  pid_t foreground; /* the process group that had it */
  struct termios modes; /* as they were */
  struct termios ours; /* as they are for the question */
  struct freeze freeze;
  struct buf question;
  struct buf line; /* of the answer */
};

/* Stops the command, takes the terminal and puts the question. 0; -errno where that cannot be done now: this run is in
 * the background, or the command cannot be stopped. */
int ask_terminal_begin(struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                       uint64_t answer_ms, struct err *err);

/* Puts the question that stands once more. */
void ask_terminal_again(struct ask_terminal *terminal);

/* Reads what was typed. True when that is an answer; *ret_why is a word for the person, or NULL. */
bool ask_terminal_read(struct ask_terminal *terminal, enum decide_asked *ret_asked, const char **ret_why);

/* Gives the terminal back as it was and lets the command go on. why: a word for the person, or NULL. Harmless without
 * an open question. */
void ask_terminal_end(struct ask_terminal *terminal, const char *why);

#endif
