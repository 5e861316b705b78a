/* rtnl: the little of rtnetlink(7) that a sandbox's network namespace needs, in the namespace of the caller.
 *
 * By hand and not by libnl: two messages and their answers, against two libraries to load at every start.
 */
#ifndef SBX_SYS_RTNL_H
#define SBX_SYS_RTNL_H

/* Waits until `lo` is up. alive_fd: a pipe whose end (POLLHUP) means that nobody will bring it up; -1 for none.
 * 0; -EPIPE; -ETIMEDOUT after some seconds; or -errno. Does not allocate. */
int rtnl_await_loopback(int alive_fd);

/* Adds the route "local default dev lo" for AF_INET or AF_INET6: every address is the namespace's own. 0 or -errno.
 * Does not allocate. */
int rtnl_add_local_default(int family);

#endif
