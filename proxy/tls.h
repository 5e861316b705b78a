/* tls: TLS on one end of a connection (RFC 8446, RFC 5246), as a layer of its sock: towards an origin, which has to
 * prove who it is, and towards a client, which is shown a certificate of our own CA.
 *
 * TLS 1.2 and 1.3; no renegotiation, no tickets, no early data. An end that was not announced (close_notify) is an
 * error of the sock, so that a stream that somebody has cut is never taken for a whole one.
 */
#ifndef SBX_PROXY_TLS_H
#define SBX_PROXY_TLS_H

#include "policy/host.h"
#include "proxy/ca.h"
#include "proxy/sock.h"

/* What all connections share. */
struct tls;

/* Protocols that are offered or chosen (RFC 7301): a bit each. */
typedef unsigned tls_protocols;
#define TLS_HTTP_1_1 1u
#define TLS_HTTP_2 2u
#define TLS_HTTP_2_FIRST 4u /* of both: HTTP/2 is offered in front */

/* Trusts nobody yet. 0, -ENOMEM or -EIO. */
int tls_new(struct err *err, struct tls **ret_tls);
void tls_free(struct tls *tls);

/* Takes all certificates of a text in PEM for those that origins may be vouched for by, whether they vouch for
 * themselves or not. Their number, or -EINVAL with the number of the one that cannot be read. Each takes about
 * 0.1 ms. */
int tls_trust(struct tls *tls, struct span pem, struct err *err);

/* Appends the first file of the host's that holds such certificates: the distributions' bundles, and what OpenSSL was
 * built to look at. No variable is asked. 0; -ENOENT where there is none; -errno. */
int tls_read_host(struct err *err, struct buf *out);

/* Puts TLS on an open end of which nothing waits; tls_shake() then carries out the handshake. The end must be a sock
 * whose budget has LIMITS_TLS_END_BYTES left.
 * Client: host is what the origin's certificate must be for, as a whole name or address and by its subject alternative
 * names alone; and is the server name where it is a name. offered: one protocol at least.
 * Server: first is what the client has sent already, the beginning of its ClientHello; it is copied. chosen: what the
 * client is answered, which it must have offered; 0: nothing, where it has offered HTTP at all or no protocol.
 * 0, -ENOBUFS, -ENOMEM or -EIO; the end stays as it was then. */
int tls_client(struct tls *tls, struct sock *sock, const struct host *host, tls_protocols offered);
int tls_server(struct tls *tls, struct sock *sock, const struct ca_leaf *leaf, struct span first, tls_protocols chosen);

/* What the peer of an end whose handshake is done has chosen; 0: nothing. */
tls_protocols tls_chosen(const struct sock *sock);

/* Goes on with the handshake; to be called again after each event of the sock, which is watched for what is needed.
 * 1: done; the sock can be read and written; 0: not yet; or why it failed:
 *   -EACCES  one side does not trust the other's certificate
 *   -errno   anything else
 * with the cause in err, in a few words. */
int tls_shake(struct sock *sock, struct err *err);

#endif
