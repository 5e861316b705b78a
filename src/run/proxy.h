/* proxy: sbx's side of sbx-proxy: started when the first connection waits, and again should it die. */
#ifndef SBX_RUN_PROXY_H
#define SBX_RUN_PROXY_H

#include "run/ask.h"
#include "run/outbox.h"
#include "run/publish.h"
#include "run/run.h"
#include "run/secrets.h"
#include "run/summary.h"

struct proxy {
  const struct run_request *request;
  struct ask *ask; /* whose questions to ask */
  struct secrets *secrets; /* where values come from; NULL where the plan has no TLS */
  struct policy *grown; /* the policy with what the user has allowed meanwhile, or NULL */
  const char *run_id;
  int audit; /* opened before the start because it was asked for by name; else -1. The caller's */
  int *listeners; /* one for each of the plan's, the caller's array; all -1 when the network was given up */
  size_t listener_count;
  struct publish publish; /* listeners on the host; closed with the others */
  const struct netns *netns; /* the sandbox's */
  bool has_v6;
  int control; /* our end of the control socket, or -1 */
  struct outbox outbox; /* what it had no room for: poll for POLLOUT while there is something */
  pid_t pid; /* -1 when none runs */
  bool ready; /* it has confined itself */
  struct err *awaited; /* of proxy_await(): what the proxy says to its failure; else NULL, and that is logged */
  char *certificate; /* of its CA, in PEM; NULL: has not come */
  unsigned starts;
};

#define PROXY_INIT \
  { .request = NULL, .audit = -1, .listeners = NULL, .publish = PUBLISH_INIT, .control = -1, .pid = -1 }

/* Starts sbx-proxy and hands it the policy, the audit and the listeners. 0 or -errno. */
int proxy_start(struct proxy *proxy, struct err *err);

/* Waits until the proxy is ready, and has told the certificate of its CA. 0; -errno where it does not become so. */
int proxy_await(struct proxy *proxy, struct summary *summary, struct err *err);

/* Takes a value, or why there is none (data is the proxy): for secrets_open(). */
void proxy_secret(void *data, const struct control_secret *answer);

/* Takes the answer to a question (data is the proxy): for ask_open(). */
void proxy_answer(void *data, const struct control_answer *answer);

/* Reads what the proxy has to say; call when proxy->control is readable. Denials go to the summary,
 * questions to ask. */
void proxy_read(struct proxy *proxy, struct summary *summary);

/* Sends what had to wait; call when proxy->control is writable. */
void proxy_flush(struct proxy *proxy);

/* The proxy's process has ended, with this waitpid(2) status. Afterwards proxy_start may be called again; past a few
 * starts the listeners are closed instead, so that the command's connections are refused rather than left waiting. */
void proxy_reaped(struct proxy *proxy, struct summary *summary, int status);

/* Closes the listeners: from here on the command's connections, and those to published ports, are refused. */
void proxy_give_up(struct proxy *proxy);

/* Ends the proxy, if there is one: it gets a moment to write its audit, and its last words are read. Closes all. */
void proxy_stop(struct proxy *proxy, struct summary *summary);

/* Frees what it holds, once it is stopped. */
void proxy_free(struct proxy *proxy);

#endif
