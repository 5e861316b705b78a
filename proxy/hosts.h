/* hosts: the host's /etc/hosts (hosts(5)), looked up in memory. Pure.
 *
 * The proxy may open no file once it is confined, so the text is read before and searched as it is: it is a few hundred
 * bytes on most machines, and an index would cost more memory than it saves time.
 */
#ifndef SBX_PROXY_HOSTS_H
#define SBX_PROXY_HOSTS_H

#include "policy/addr.h"

/* Addresses of name (canonical, see host.h) in the order of the lines, each once, at most max. Their count, 0 when the
 * text does not have the name. Lines that are not well formed are passed over. */
size_t hosts_lookup(struct span text, struct span name, struct addr *ret_addrs, size_t max);

#endif
