/* notify: tells sbx about denials, and failures that the client has not been told in words, for the summary at the end
 * of the run (CONTROL_DENIED of sys/control.h).
 *
 * sbx may stand still (Ctrl-Z), and a program inside can be denied faster than sbx reads. What the socket has no room
 * for is kept, equal ones as one, until it has; past LIMITS_DENIALS distinct ones they are counted. So a flood of
 * denials cannot push out the one that it is to hide.
 */
#ifndef SBX_PROXY_NOTIFY_H
#define SBX_PROXY_NOTIFY_H

#include "proxy/denial.h"
#include "proxy/proxy.h"

struct notify;

/* NULL when memory is short. */
struct notify *notify_new(struct proxy *proxy);
void notify_free(struct notify *notify);

/* Never blocks. */
void notify_denied(struct notify *notify, const struct denial *denial);

/* Counts for the totals: a request in whose body a placeholder went as it is, and values that were taken out of its
 * response. */
void notify_count(struct notify *notify, bool in_body, uint64_t scrubbed);

/* The control socket has room again. True when nothing is left to be told. */
bool notify_flush(struct notify *notify);

/* Nothing more will be denied: notify_flush() tells the totals, too. The audit lacks lines, as audit_missing() and
 * audit_unread() have it. */
void notify_end(struct notify *notify, uint64_t unaudited, uint64_t unread);

/* Who waits for room in the control socket: it is watched while anybody does. */
enum notify_waiter {
  NOTIFY_DENIALS = 1,
  NOTIFY_WISHES = 2, /* inside.h */
  NOTIFY_WANTS = 4, /* values.h */
};
void notify_await_room(struct proxy *proxy, enum notify_waiter who, bool waits);

#endif
