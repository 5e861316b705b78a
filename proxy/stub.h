/* stub: the DNS server of the sandbox, at whatever address the command asks (see stub.c). */
#ifndef SBX_PROXY_STUB_H
#define SBX_PROXY_STUB_H

#include "proxy/dns.h"
#include "proxy/inside.h"
#include "proxy/names.h"
#include "proxy/proxy.h"

struct stub;

/* has_v6: IPv6 addresses are local to the sandbox as well. generation: as names.h has it. NULL when memory is short. */
struct stub *stub_new(struct proxy *proxy, bool has_v6, unsigned generation);
void stub_free(struct stub *stub);

/* Answers on a UDP socket that tells the address of each datagram (netns.h). Takes fd over, also on failure. */
int stub_add_udp(struct stub *stub, int fd, struct err *err);

/* A synthetic address as a target becomes the name that it stands for: a client may look a name up itself and then ask
 * a proxy for the address. Any other target stays. */
void stub_restore_name(const struct stub *stub, struct host *host);

/* decide_target(), but for an address of names that stands for none where another proxy has died: it may be one of that
 * proxy's. A rule for the address would help nobody. */
struct verdict stub_judge_target(const struct stub *stub, const struct host *host, uint16_t port);

/* Judges one query and makes the answer. done(data, query, answer) is told, maybe within this call, unless the question
 * is forgotten first. query and its bytes must live until then. Returns an object to forget it by where the answer has
 * to wait, else NULL. */
struct stub_question;
struct stub_question *stub_ask(struct stub *stub, const struct dns_query *query,
                               void (*done)(void *data, const struct dns_query *query, const struct dns_answer *answer),
                               void *data);
void stub_forget(struct stub_question *question);

/* A client that came over TCP; takes the accepted socket over. */
void stub_accept(struct stub *stub, int fd);
void stub_end_clients(struct proxy *proxy);

/* For stub_tcp.c. */
void stub_tell_limit(struct stub *stub, enum reason reason);
struct proxy *stub_proxy(const struct stub *stub);

#endif
