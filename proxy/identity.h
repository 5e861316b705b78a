/* identity: whether the first bytes of a tunnel name its target (DESIGN 8, "One identity"; F54, F55). Pure.
 *
 * A tunnel was allowed for a name; what is sent through it must be for that name, or an allowed host would be the door
 * to another one behind the same addresses.
 */
#ifndef SBX_PROXY_IDENTITY_H
#define SBX_PROXY_IDENTITY_H

#include "policy/decide.h"
#include "proxy/first_line.h"
#include "proxy/tls_hello.h"

enum identity_answer {
  IDENTITY_MORE, /* too few bytes to tell */
  IDENTITY_STREAM, /* the same, but what has come need not be held back */
  IDENTITY_PASS, /* names the target, or names nothing that could differ */
  IDENTITY_HTTP, /* what may be cleartext HTTP/1: each request has to be judged by itself */
  IDENTITY_REFUSE, /* names another host, or cannot be told to name this one: err has the cause */
};

struct identity {
  struct tls_hello_scan scan;
  struct first_line line;
  bool spoken; /* the origin has spoken first, which no server of TLS or HTTP does; set by the caller */
};

/* Looks at the bytes that a client has sent first through a tunnel to host:port. bytes only grow between calls; end: no
 * more will come, and IDENTITY_MORE is not an answer then, nor from LIMITS_HTTP_HEAD_BYTES on.
 * TLS: the whole ClientHello is read. Its server name must be the target, or at an address one that is allowed by
 * itself, whose rules count then too; none is right only for an address or for `localhost`. Of an encrypted ClientHello
 * the outer name counts. What servers skip or take in place of that hello is refused: another record, a hello in the
 * form of SSL 2.
 * HTTP/2 in the clear is refused where the target is a name, since its requests cannot be judged here; and so is a
 * header of the PROXY protocol, since a server that reads it would take what follows for another client's first bytes.
 * HTTP/1 is what any known server may take for a request (first_line.h); but on ports of protocols that begin in the
 * same way, and once the origin has spoken, only what can be nothing else. Anything else passes. */
enum identity_answer identity_look(struct identity *identity, const struct policy *policy, const struct host *host,
                                   uint16_t port, struct span bytes, bool end, struct err *err);

/* The name in a whole ClientHello that identity_look() has let pass. False, and *ret_host untouched, where it has
 * none. */
bool identity_name(struct span bytes, struct host *ret_host);

/* Whether bytes begin as a TLS connection does. */
bool identity_is_tls(struct span bytes);

/* Whether the first bytes of an origin are those of a server of TLS or HTTP/1. Where what it answers to was none to us,
 * it was to the server: a way to be lenient that is not known here. */
bool identity_is_answer(struct span bytes);

#endif
