/* listener: accepts clients on the sockets that were made inside the sandbox's network namespace, and on those of
 * published ports. */
#ifndef SBX_PROXY_LISTENER_H
#define SBX_PROXY_LISTENER_H

#include "proxy/proxy.h"
#include "sys/control.h"

/* Starts accepting on fd, which it takes over (also on failure), and adds the listener to the proxy. port: of
 * CONTROL_FRONT_FORWARD and CONTROL_FRONT_PUBLISH. Any front but CONTROL_FRONT_DNS_UDP. 0 or -errno. */
int listener_new(struct proxy *proxy, enum control_front front, uint16_t port, int fd, struct err *err);
void listener_free_all(struct proxy *proxy);

/* A descriptor has become free: listeners that paused for want of one go on. */
void listener_resume_all(struct proxy *proxy);

/* Whether some listener takes the connections to that port of every address. */
bool listener_takes_port(const struct proxy *proxy, uint16_t port);

#endif
