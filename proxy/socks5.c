#include "proxy/socks5.h"

#include "base/mem.h"
#include "proxy/bytes.h"

#include <errno.h>

#define SOCKS5_VERSION 5
#define SOCKS5_METHOD_NONE 0x00
#define SOCKS5_METHOD_UNUSABLE 0xff
#define SOCKS5_CONNECT 1
#define SOCKS5_BIND 2
#define SOCKS5_UDP_ASSOCIATE 3
#define SOCKS5_IPV4 1
#define SOCKS5_NAME 3
#define SOCKS5_IPV6 4

static int check_version(unsigned version, struct err *err)
{
  if (version == SOCKS5_VERSION)
    return 0;
  if (version == 4)
    return err_set(err, EPROTONOSUPPORT, "SOCKS 4 is not spoken here; use socks5h://");
  return err_set(err, EPROTONOSUPPORT, "not SOCKS 5: the version is %u", version);
}

int socks5_parse_greeting(struct span bytes, struct err *err, bool *ret_usable, size_t *ret_len)
{
  struct span rest = bytes;
  struct span methods;
  unsigned version;
  int r;

  if (!bytes_take_u8(&rest, &version))
    return 0;
  r = check_version(version, err);
  if (r < 0)
    return r;
  if (rest.len > 0 && rest.ptr[0] == 0)
    return err_set(err, EBADMSG, "a greeting that offers no method");
  if (!bytes_take_vector8(&rest, &methods))
    return 0;
  *ret_usable = span_find(methods, SOCKS5_METHOD_NONE) < methods.len;
  *ret_len = bytes.len - rest.len;
  return 1;
}

static int check_command(unsigned command, struct err *err)
{
  if (command == SOCKS5_CONNECT)
    return 0;
  if (command == SOCKS5_BIND)
    return err_set(err, EOPNOTSUPP, "BIND is not supported; only CONNECT is");
  if (command == SOCKS5_UDP_ASSOCIATE)
    return err_set(err, EOPNOTSUPP, "UDP ASSOCIATE is not supported; only CONNECT is");
  return err_set(err, EOPNOTSUPP, "command %u is not supported; only CONNECT is", command);
}

/* A name, judged as it came: no bracket is taken off it, and its length cannot be 0. */
static int parse_name(struct span name, struct err *err, struct host *ret_host)
{
  int r;

  if (name.ptr[0] == '[')
    return err_set(err, EINVAL, "the name of the request is an address in brackets");
  r = host_parse(name, err, ret_host);
  if (r < 0)
    err_wrap(err, "the name of the request");
  return r;
}

/* DST.ADDR. 1, 0 or a negative errno, as the whole request. */
static int take_host(struct span *rest, unsigned type, struct err *err, struct host *ret_host)
{
  bool v4 = type == SOCKS5_IPV4;
  struct addr addr = { .family = v4 ? ADDR_V4 : ADDR_V6 };
  struct span part;
  int r;

  if (type == SOCKS5_NAME) {
    if (rest->len > 0 && rest->ptr[0] == 0)
      return err_set(err, EINVAL, "the name of the request is empty");
    if (!bytes_take_vector8(rest, &part))
      return 0;
    r = parse_name(part, err, ret_host);
    return r < 0 ? r : 1;
  }
  if (!bytes_take(rest, v4 ? 4 : 16, &part))
    return 0;
  memcpy(addr.bytes, part.ptr, part.len);
  host_of_addr(&addr, ret_host);
  return 1;
}

/* VER, CMD, RSV and ATYP, each refused as soon as it is there. 1, 0 or a negative errno. */
static int take_head(struct span *rest, struct err *err, unsigned *ret_type)
{
  unsigned value;
  int r;

  if (!bytes_take_u8(rest, &value))
    return 0;
  r = check_version(value, err);
  if (r < 0)
    return r;
  if (!bytes_take_u8(rest, &value))
    return 0;
  r = check_command(value, err);
  if (r < 0)
    return r;
  if (!bytes_take_u8(rest, &value))
    return 0;
  if (value != 0)
    return err_set(err, EBADMSG, "the reserved byte of the request is %u; it must be 0", value);
  if (!bytes_take_u8(rest, &value))
    return 0;
  if (value != SOCKS5_IPV4 && value != SOCKS5_NAME && value != SOCKS5_IPV6)
    return err_set(err, EAFNOSUPPORT, "address type %u is neither IPv4, name nor IPv6", value);
  *ret_type = value;
  return 1;
}

int socks5_parse_request(struct span bytes, struct err *err, struct socks5_request *ret_request, size_t *ret_len)
{
  struct span rest = bytes;
  struct host host;
  unsigned type = 0;
  unsigned port;
  int r;

  r = take_head(&rest, err, &type);
  if (r <= 0)
    return r;
  r = take_host(&rest, type, err, &host);
  if (r <= 0)
    return r;
  if (!bytes_take_u16(&rest, &port))
    return 0;
  if (port == 0)
    return err_set(err, EINVAL, "the port of the request is 0");
  *ret_request = (struct socks5_request){ .host = host, .port = (uint16_t)port };
  *ret_len = bytes.len - rest.len;
  return 1;
}

void socks5_encode_method(bool usable, char out[static SOCKS5_METHOD_BYTES])
{
  out[0] = SOCKS5_VERSION;
  out[1] = (char)(usable ? SOCKS5_METHOD_NONE : SOCKS5_METHOD_UNUSABLE);
}

size_t socks5_encode_reply(enum socks5_reply reply, const struct addr *bound, uint16_t port,
                           char out[static SOCKS5_REPLY_MAX_BYTES])
{
  static const struct addr none = { .family = ADDR_V4 };
  const struct addr *addr = bound ? bound : &none;
  size_t size = addr->family == ADDR_V4 ? 4 : 16;

  out[0] = SOCKS5_VERSION;
  out[1] = (char)reply;
  out[2] = 0;
  out[3] = addr->family == ADDR_V4 ? SOCKS5_IPV4 : SOCKS5_IPV6;
  memcpy(out + 4, addr->bytes, size);
  out[4 + size] = (char)(port >> 8);
  out[5 + size] = (char)(port & 0xff);
  return 6 + size;
}

/* A reason without a line here is 0 in the table, which stands for a general failure. */
static const enum socks5_reply reply_of_reason[REASON_COUNT] = {
  [REASON_DENY_RULE] = SOCKS5_NOT_ALLOWED,
  [REASON_NOT_ALLOWED] = SOCKS5_NOT_ALLOWED,
  [REASON_PORT_NOT_ALLOWED] = SOCKS5_NOT_ALLOWED,
  [REASON_METHOD_NOT_ALLOWED] = SOCKS5_NOT_ALLOWED,
  [REASON_PATH_NOT_ALLOWED] = SOCKS5_NOT_ALLOWED,
  [REASON_AMBIGUOUS_REQUEST] = SOCKS5_NOT_ALLOWED,
  [REASON_NOT_HTTP] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_LOOPBACK] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_UNSPECIFIED] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_PRIVATE] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_CGNAT] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_LINK_LOCAL] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_METADATA] = SOCKS5_NOT_ALLOWED,
  [REASON_ADDRESS_MULTICAST] = SOCKS5_NOT_ALLOWED,
  [REASON_BAD_TARGET] = SOCKS5_GENERAL_FAILURE,
  [REASON_BAD_REQUEST] = SOCKS5_GENERAL_FAILURE,
  [REASON_IDENTITY_MISMATCH] = SOCKS5_NOT_ALLOWED,
  [REASON_NOT_TERMINATED] = SOCKS5_NOT_ALLOWED,
  [REASON_CREDENTIAL_MISUSE] = SOCKS5_NOT_ALLOWED,
  [REASON_CREDENTIAL_SIGNATURE] = SOCKS5_NOT_ALLOWED,
  [REASON_RESOLVE_FAILED] = SOCKS5_HOST_UNREACHABLE,
  [REASON_CONNECT_REFUSED] = SOCKS5_CONNECTION_REFUSED,
  [REASON_CONNECT_TIMEOUT] = SOCKS5_TTL_EXPIRED,
  [REASON_CONNECT_FAILED] = SOCKS5_NETWORK_UNREACHABLE,
  [REASON_PARENT_UNREACHABLE] = SOCKS5_GENERAL_FAILURE,
  [REASON_PARENT_AUTH] = SOCKS5_GENERAL_FAILURE,
  [REASON_PARENT_REFUSED] = SOCKS5_GENERAL_FAILURE,
  [REASON_PARENT_BAD_REPLY] = SOCKS5_GENERAL_FAILURE,
  [REASON_UPSTREAM_TLS] = SOCKS5_GENERAL_FAILURE,
  [REASON_CLIENT_TLS] = SOCKS5_GENERAL_FAILURE,
  [REASON_CREDENTIAL_UNAVAILABLE] = SOCKS5_GENERAL_FAILURE,
  [REASON_UPSTREAM_CLOSED] = SOCKS5_GENERAL_FAILURE,
  [REASON_BAD_RESPONSE] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_CONNECTIONS] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_DIALS] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_HEAD] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_BODY] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_TIME] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_LOOKUPS] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_NAMES] = SOCKS5_GENERAL_FAILURE,
  [REASON_LIMIT_PORTS] = SOCKS5_GENERAL_FAILURE,
  [REASON_NETWORK_NONE] = SOCKS5_NOT_ALLOWED,
};

enum socks5_reply socks5_reply_of_reason(enum reason reason)
{
  if (reason == REASON_ALLOWED)
    return SOCKS5_SUCCEEDED;
  if ((size_t)reason >= MEM_COUNT(reply_of_reason) || reply_of_reason[reason] == SOCKS5_SUCCEEDED)
    return SOCKS5_GENERAL_FAILURE;
  return reply_of_reason[reason];
}

enum socks5_reply socks5_reply_of_error(int error)
{
  switch (error) {
  case -EOPNOTSUPP:
    return SOCKS5_COMMAND_NOT_SUPPORTED;
  case -EAFNOSUPPORT:
    return SOCKS5_ADDRESS_TYPE_NOT_SUPPORTED;
  default:
    return SOCKS5_GENERAL_FAILURE;
  }
}
