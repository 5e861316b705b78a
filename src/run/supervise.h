/* supervise: from the moment the command runs to the moment it has ended. */
#ifndef SBX_RUN_SUPERVISE_H
#define SBX_RUN_SUPERVISE_H

#include "engine/engine.h"
#include "run/proxy.h"

#include <signal.h>

struct supervise {
  struct engine_run *engine;
  struct proxy *proxy;
  struct summary *summary;
  struct ask *ask;
  struct secrets *secrets;
  struct trace *trace; /* or NULL */
  uint64_t timeout_ms; /* 0: none */
  bool own_session; /* the command does not share our session */
  int signals; /* signalfd(2) of supervise_signals() */
};

/* The signals that sbx handles itself: they must be blocked from before the start. Fills set; leaves out what the
 * caller had us ignore, and makes SIGCHLD one that can be waited for. */
void supervise_signals(sigset_t *set);

/* Waits for the guard's end: passes signals on, starts the proxy when a connection waits, keeps the time.
 * Returns the waitpid(2) status of the guard; *ret_timed_out tells that the time was up. */
int supervise_wait(struct supervise *supervise, bool *ret_timed_out);

#endif
