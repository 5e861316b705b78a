/* ask: the user is asked about a target that no rule names, while the connection to it waits (see ask.c). */
#ifndef SBX_PROXY_ASK_H
#define SBX_PROXY_ASK_H

#include "policy/decide.h"
#include "proxy/proxy.h"
#include "sys/control.h"

struct ask;
struct ask_waiter;

/* on: there is somebody to ask. NULL when memory is short. */
struct ask *ask_new(struct proxy *proxy, bool on);
/* Frees the rules and policies that verdicts point to: nobody may hold one any more. */
void ask_free(struct ask *ask);

/* Asks about a target that was denied with *verdict. True: *slot is set while it waits, and done(data, verdict) is told
 * later what became of it, never from within this call. False: nobody is asked, and the denial stands; verdict->asked
 * tells where the user has said so before. */
bool ask_start(struct ask *ask, const struct host *host, uint16_t port, struct verdict *verdict,
               void (*done)(void *data, const struct verdict *verdict), void *data, struct ask_waiter **slot);

/* Gives up waiting; done is not called. The question stands: its answer counts for those that come later. */
void ask_cancel(struct ask_waiter **slot);

/* Whether ask_start() would ask, or wait with others. */
bool ask_would(const struct ask *ask, const struct host *host, uint16_t port, const struct verdict *verdict);

/* Takes an answer of sbx. */
void ask_answer(struct ask *ask, const struct control_answer *answer);

#endif
