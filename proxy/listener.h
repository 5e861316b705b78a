/* listener: accepts clients on the sockets that were made inside the sandbox's network namespace. */
#ifndef SBX_PROXY_LISTENER_H
#define SBX_PROXY_LISTENER_H

#include "proxy/proxy.h"

/* Starts accepting on fd, which it takes over (also on failure), and adds the listener to the proxy. 0 or -errno. */
int listener_new(struct proxy *proxy, int fd, struct err *err);
void listener_free_all(struct proxy *proxy);

/* A descriptor has become free: listeners that paused for want of one go on. */
void listener_resume_all(struct proxy *proxy);

#endif
