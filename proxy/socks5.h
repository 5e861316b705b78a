/* socks5: the server's side of SOCKS 5 (RFC 1928), without authentication and with CONNECT alone. Pure.
 *
 * The client sends a greeting and a request, maybe both at once; each parser takes one of them off the front of what
 * came, so the bytes after it are those of the next step, and after the request they are the tunnel's.
 *
 * The parsers return 1 when the message is whole, with its length in *ret_len; 0 when more is needed; and a negative
 * errno as soon as a byte is wrong, with the cause in err:
 *   -EPROTONOSUPPORT  another protocol, SOCKS 4 included: nothing of SOCKS 5 may be answered
 *   -EBADMSG          not well formed
 *   -EINVAL           the target is no host, or its port is 0
 *   -EOPNOTSUPP       a command other than CONNECT
 *   -EAFNOSUPPORT     an address type that is none of RFC 1928's
 */
#ifndef SBX_PROXY_SOCKS5_H
#define SBX_PROXY_SOCKS5_H

#include "policy/decide.h"

#define SOCKS5_METHOD_BYTES 2
#define SOCKS5_REPLY_MAX_BYTES 22

/* RFC 1928, section 6. */
enum socks5_reply {
  SOCKS5_SUCCEEDED = 0,
  SOCKS5_GENERAL_FAILURE = 1,
  SOCKS5_NOT_ALLOWED = 2,
  SOCKS5_NETWORK_UNREACHABLE = 3,
  SOCKS5_HOST_UNREACHABLE = 4,
  SOCKS5_CONNECTION_REFUSED = 5,
  SOCKS5_TTL_EXPIRED = 6, /* what clients show as a timeout */
  SOCKS5_COMMAND_NOT_SUPPORTED = 7,
  SOCKS5_ADDRESS_TYPE_NOT_SUPPORTED = 8,
};

struct socks5_request {
  struct host host; /* canonical; a name that reads as an address is HOST_ADDR */
  uint16_t port; /* 1..65535 */
};

/* The greeting (section 3). *ret_usable: whether the client offers "no authentication", the only method there is. */
int socks5_parse_greeting(struct span bytes, struct err *err, bool *ret_usable, size_t *ret_len);

/* The request (section 4). */
int socks5_parse_request(struct span bytes, struct err *err, struct socks5_request *ret_request, size_t *ret_len);

/* The answer to a greeting: method 0, or 0xff where none is usable, after which the connection ends. */
void socks5_encode_method(bool usable, char out[static SOCKS5_METHOD_BYTES]);

/* The answer to a request: its length. bound and port are the address that the tunnel was dialled from; NULL and 0
 * where there is none, which is said as 0.0.0.0:0. */
size_t socks5_encode_reply(enum socks5_reply reply, const struct addr *bound, uint16_t port,
                           char out[static SOCKS5_REPLY_MAX_BYTES]);

/* What to reply for a reason; and for an error of socks5_parse_request other than -EPROTONOSUPPORT. A reason or error
 * that is not known is a general failure, never a success. */
enum socks5_reply socks5_reply_of_reason(enum reason reason);
enum socks5_reply socks5_reply_of_error(int error);

#endif
