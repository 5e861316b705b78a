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
  pid_t init; /* what everything inside is below */
  bool open; /* a question stands on it */
  pid_t foreground; /* the process group that had it */
  struct termios modes; /* as they were */
  struct freeze freeze;
  struct buf line; /* of the answer */
};

/* Stops the command, takes the terminal and puts the question. 0; -EAGAIN where that cannot be done now: this run is in
 * the background, or the command does not stop. */
int ask_terminal_begin(struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                       uint64_t answer_ms, struct err *err);

/* Reads what was typed. True when that is an answer. */
bool ask_terminal_read(struct ask_terminal *terminal, enum decide_asked *ret_asked);

/* Whatever was continued meanwhile is stopped again. False where that fails. */
bool ask_terminal_hold(struct ask_terminal *terminal);

/* Gives the terminal back as it was and lets the command go on. why: a word for the person, or NULL. Harmless without
 * an open question. */
void ask_terminal_end(struct ask_terminal *terminal, const char *why);

#endif
