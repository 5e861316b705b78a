/* publish: the listeners of published ports, on the host's loopback. */
#ifndef SBX_RUN_PUBLISH_H
#define SBX_RUN_PUBLISH_H

#include "base/err.h"
#include "plan/plan.h"

struct publish {
  struct publish_listener {
    int fd;
    uint16_t port; /* inside */
  } items[CONTROL_FRONTS_MAX];
  size_t count;
};

#define PUBLISH_INIT { .count = 0 }

/* Listens on 127.0.0.1, and on ::1 where the host has it, for each port that the plan publishes; the kernel queues what
 * connects. 0; or -errno, with the port and what to do in err and nothing left open: -EADDRINUSE where somebody else
 * listens there. */
int publish_listen(const struct plan *plan, struct err *err, struct publish *ret_publish);

void publish_close(struct publish *publish);
#define publish_autoclose MEM_CLEANUP(publish_close)

#endif
