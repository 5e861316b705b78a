/* tls_hello: the ClientHello that a TLS connection begins with (RFC 8446, RFC 5246), strictly. Pure.
 *
 * What it names decides where the connection may go, so one reading only is accepted: every length matches exactly, no
 * extension comes twice, one host name at most. What a lenient server behind the proxy might read in another way is
 * refused here (F54, F55).
 *
 * The hello may be split over records anywhere, and the records over segments. tls_hello_scan() finds its end while
 * the bytes come; tls_hello_parse() then takes it apart. Bytes after it (early data) are the tunnel's.
 */
#ifndef SBX_PROXY_TLS_HELLO_H
#define SBX_PROXY_TLS_HELLO_H

#include "policy/host.h"
#include "policy/limits.h"

/* How far a hello that comes in pieces has been looked at. All zero at the start. */
struct tls_hello_scan {
  size_t record; /* where the first record begins that is not whole yet */
  size_t held; /* bytes of the message in the records before it */
  unsigned char head[4]; /* the first of them: type and length of the message */
};

/* A parsed hello; the spans lie in the bytes that were parsed, or in the scratch. */
struct tls_hello {
  bool has_name;
  struct host host; /* server_name (RFC 6066), canonical, HOST_NAME; with ech, the outer one */
  bool has_ech; /* Encrypted Client Hello in any draft, or encrypted SNI; servers may follow a name that is not seen */
  bool has_alpn;
  struct span alpn; /* the protocols offered, for tls_hello_next_protocol() */
  bool has_early_data;
  unsigned max_version; /* the highest offered that is known: 0x0300 (SSL 3.0) .. 0x0304 (TLS 1.3) */
  struct span random; /* 32 bytes */
  struct span session_id; /* 0..32 bytes */
};

/* Looks for the end of the hello in bytes, which start at its first record and only grow between calls.
 * 1 with the length of its records in *ret_len; 0 when more is needed; or, as soon as a byte is wrong, with the cause
 * in err:
 *   -EPROTONOSUPPORT  not TLS, or a hello in the form of SSL 2
 *   -EBADMSG          a record or the message's header is not well formed, or the record holds more than the hello
 *   -E2BIG            past LIMITS_TLS_HELLO_BYTES
 * Each record is looked at a bounded number of times however small the pieces. */
int tls_hello_scan(struct tls_hello_scan *scan, struct span bytes, struct err *err, size_t *ret_len);

/* Parses a whole hello: what tls_hello_scan() measured, no byte less or more. scratch holds the message where it is
 * split over records, and must live as long as *ret_hello.
 * 0; an error of tls_hello_scan(); -EBADMSG with the cause in err; -EINVAL when the server name is no host name; -E2BIG
 * past LIMITS_TLS_EXTENSIONS. */
int tls_hello_parse(struct span bytes, char scratch[static LIMITS_TLS_HELLO_BYTES], struct err *err,
                    struct tls_hello *ret_hello);

/* Takes the next protocol (RFC 7301), 1..255 bytes of any value, off *alpn. False at the end. */
bool tls_hello_next_protocol(struct span *alpn, struct span *ret_protocol);

#endif
