#include "policy/host.h"

#include "base/num.h"

#include <errno.h>

#define HOST_LABEL_MAX_BYTES 63

/* What is wrong with a byte that no name may hold, and what to write instead. */
static int host_refuse_byte(char byte, struct err *err)
{
  if ((unsigned char)byte >= 0x80)
    return err_set(err, EINVAL, "not ASCII; write the name as A-labels (xn--...)");
  if (byte == '/' || byte == '@' || byte == '?' || byte == '#')
    return err_set(err, EINVAL, "a URL or path where a host is wanted; write the host name alone");
  if (byte == '*')
    return err_set(err, EINVAL, "a wildcard where a host name is wanted; write the whole name");
  if ((unsigned char)byte <= 0x20 || byte == 0x7f)
    return err_set(err, EINVAL, "a space or control byte (0x%02x) in a host name; remove it", (unsigned char)byte);
  return err_set(err, EINVAL, "'%c' is not allowed in a host name; use letters, digits, '-' and '_'", byte);
}

/* Whether a label reads as a number in some inet_aton(3): all digits, or 0x and hexadecimal digits. */
static bool host_label_is_number(struct span label)
{
  size_t i = 0;
  bool hex = label.len >= 2 && label.ptr[0] == '0' && label.ptr[1] == 'x';

  for (i = hex ? 2 : 0; i < label.len; i++)
    if (!span_is_digit(label.ptr[i]) && !(hex && label.ptr[i] >= 'a' && label.ptr[i] <= 'f'))
      return false;
  return true;
}

/* Checks the labels of a canonical name. */
static int host_check_labels(struct span name, struct err *err)
{
  struct span rest = name;
  struct span label = { 0 };

  while (span_split(&rest, '.', &label)) {
    if (label.len == 0)
      return err_set(err, EINVAL, "an empty label in a host name; remove the extra dot");
    if (label.len > HOST_LABEL_MAX_BYTES)
      return err_set(err, EINVAL, "a label of more than %d bytes; no such host can exist", HOST_LABEL_MAX_BYTES);
    if (label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
      return err_set(err, EINVAL, "a label begins or ends with '-'; no such host can exist");
  }
  if (host_label_is_number(label))
    return err_set(err, EINVAL,
                   "neither a name nor an address; write IPv4 as four decimal numbers without zeros in front");
  return 0;
}

static int host_parse_name(struct span text, struct err *err, struct host *ret_host)
{
  struct host host = { .kind = HOST_NAME };
  size_t len = text.len;
  int r;

  for (size_t i = 0; i < text.len; i++) {
    char byte = span_lower(text.ptr[i]);
    if (!span_is_alpha(byte) && !span_is_digit(byte) && byte != '-' && byte != '_' && byte != '.')
      return host_refuse_byte(byte, err);
  }
  if (len > 1 && text.ptr[len - 1] == '.')
    len--;
  if (len > HOST_NAME_MAX_BYTES)
    return err_set(err, EINVAL, "host name of %zu bytes; at most %d are allowed", len, HOST_NAME_MAX_BYTES);
  for (size_t i = 0; i < len; i++)
    host.name[i] = span_lower(text.ptr[i]);
  r = host_check_labels((struct span){ host.name, len }, err);
  if (r < 0)
    return r;
  *ret_host = host;
  return 0;
}

void host_of_addr(const struct addr *addr, struct host *ret_host)
{
  struct host host = { .kind = HOST_ADDR, .addr = *addr };
  buf_autofree struct buf text = BUF_INIT(HOST_NAME_MAX_BYTES);

  addr_print(addr, &text);
  if (text.len > 0)
    memcpy(host.name, text.data, text.len);
  *ret_host = host;
}

int host_parse(struct span text, struct err *err, struct host *ret_host)
{
  struct span inner;
  struct addr addr;

  if (text.len == 0)
    return err_set(err, EINVAL, "empty host name; write a name or an address");
  if (text.ptr[0] == '[') {
    inner = span_sub(text, 1, text.len - 2);
    if (text.len < 2 || text.ptr[text.len - 1] != ']' || span_find(inner, ':') == inner.len ||
        addr_parse(inner, &addr) < 0)
      return err_set(err, EINVAL, "not an IPv6 address in brackets; write [ADDRESS]");
    host_of_addr(&addr, ret_host);
    return 0;
  }
  if (addr_parse(text, &addr) == 0) {
    host_of_addr(&addr, ret_host);
    return 0;
  }
  if (span_find(text, ':') < text.len)
    return err_set(err, EINVAL, "neither a host name nor an IPv6 address; a port is a number after one ':'");
  return host_parse_name(text, err, ret_host);
}

/* Splits text into the host and the port's text (ptr NULL when there is none). */
static void host_split_port(struct span text, struct span *ret_host, struct span *ret_port)
{
  size_t colon = span_find_last(text, ':');
  size_t bracket = span_find_last(text, ']');
  bool bracketed = text.len > 0 && text.ptr[0] == '[' && bracket < text.len;

  *ret_host = text;
  *ret_port = (struct span){ NULL, 0 };
  if (colon == text.len || (bracketed && colon != bracket + 1) || (!bracketed && span_find(text, ':') != colon))
    return;
  *ret_host = span_sub(text, 0, colon);
  *ret_port = (struct span){ text.ptr + colon + 1, text.len - colon - 1 };
}

int host_parse_target(struct span text, uint16_t default_port, struct err *err, struct host *ret_host,
                      uint16_t *ret_port)
{
  struct span host_text;
  struct span port_text;
  struct host host;
  uint64_t port = default_port;
  int r;

  host_split_port(text, &host_text, &port_text);
  r = host_parse(host_text, err, &host);
  if (r < 0)
    return r;
  if (port_text.ptr && num_parse_u64(port_text, 1, UINT16_MAX, &port) < 0)
    return err_set(err, EINVAL, "not a port; write a number from 1 to 65535 after the ':'");
  if (port == 0)
    return err_set(err, EINVAL, "no port; write HOST:PORT");
  *ret_host = host;
  *ret_port = (uint16_t)port;
  return 0;
}

void host_print_target(const struct host *host, uint16_t port, struct buf *out)
{
  bool brackets = host->kind == HOST_ADDR && host->addr.family == ADDR_V6;

  buf_printf(out, brackets ? "[%s]:%u" : "%s:%u", host->name, port);
}

bool host_is_subdomain(struct span name, struct span parent)
{
  return name.len > parent.len + 1 && span_ends_with(name, parent) && name.ptr[name.len - parent.len - 1] == '.';
}
