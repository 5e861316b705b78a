/* Theory of operation
 *
 * Records (RFC 8446, 5.1) are five bytes of header - type, version, length - and a fragment. Until the hello is
 * complete a client has nothing to send but handshake records, none of them empty, and nothing may follow the hello
 * within its last record, since it waits for an answer or changes to other keys. Fragments of one byte are legal, some
 * clients send them to pass by filters, so only the sum is bounded: headers included, by LIMITS_TLS_HELLO_BYTES.
 *
 * The scan keeps the place of the first record that is not whole. Within that record it judges what is there: a wrong
 * type need not wait for the length, nor a message that is too long for its bytes.
 *
 * The message (4.1.2) is a header of four bytes and fixed fields in front of a list of extensions. Those that say where
 * the connection goes are taken apart, all others are only measured.
 */
#include "proxy/tls_hello.h"

#include "base/mem.h"
#include "proxy/bytes.h"

#include <errno.h>

#define RECORD_HEADER_BYTES 5
#define RECORD_MAX_BYTES (1 << 14)
#define RECORD_HANDSHAKE 22
#define MESSAGE_HEADER_BYTES 4
#define MESSAGE_CLIENT_HELLO 1
#define VERSION_SSL3 0x0300
#define VERSION_TLS12 0x0303
#define VERSION_TLS13 0x0304
#define RANDOM_BYTES 32
#define SESSION_ID_MAX_BYTES 32

/* IANA, "TLS ExtensionType Values", and those that drafts of ECH have used. */
enum extension {
  EXTENSION_SERVER_NAME = 0,
  EXTENSION_ALPN = 16,
  EXTENSION_PRE_SHARED_KEY = 41,
  EXTENSION_EARLY_DATA = 42,
  EXTENSION_SUPPORTED_VERSIONS = 43,
  EXTENSION_ECH_OUTER_EXTENSIONS = 0xfd00,
  EXTENSION_ECH_DRAFT_FIRST = 0xfe08,
  EXTENSION_ECH_DRAFT_LAST = 0xfe0c,
  EXTENSION_ECH = 0xfe0d,
  EXTENSION_ESNI = 0xffce,
};

/* Judges what there is of a record's header. 1 with the length of the fragment, 0 or a negative errno. */
static int check_record(struct span rest, struct err *err, unsigned *ret_len)
{
  unsigned value;

  if (!bytes_take_u8(&rest, &value))
    return 0;
  if (value & 0x80)
    return err_set(err, EPROTONOSUPPORT, "a hello in the form of SSL 2");
  if (value != RECORD_HANDSHAKE)
    return err_set(err, EPROTONOSUPPORT, "a record of type %u where the hello is wanted", value);
  if (rest.len > 0 && rest.ptr[0] != VERSION_SSL3 >> 8)
    return err_set(err, EPROTONOSUPPORT, "a record of major version %u", (unsigned char)rest.ptr[0]);
  if (!bytes_take_u16(&rest, &value))
    return 0;
  if (value > VERSION_TLS13)
    return err_set(err, EPROTONOSUPPORT, "a record of version 0x%04x", value);
  if (!bytes_take_u16(&rest, &value))
    return 0;
  if (value == 0)
    return err_set(err, EBADMSG, "an empty record before the hello is complete");
  if (value > RECORD_MAX_BYTES)
    return err_set(err, EBADMSG, "a record of %u bytes; at most %d are allowed", value, RECORD_MAX_BYTES);
  *ret_len = value;
  return 1;
}

/* Judges what there is of the message's header, count bytes. 1 with the length of the whole message, 0 or a negative
 * errno. */
static int check_message(const unsigned char head[static MESSAGE_HEADER_BYTES], size_t count, struct err *err,
                         size_t *ret_len)
{
  size_t len;

  if (count > 0 && head[0] != MESSAGE_CLIENT_HELLO)
    return err_set(err, EBADMSG, "a handshake message of type %u where the hello is wanted", head[0]);
  if (count < MESSAGE_HEADER_BYTES)
    return 0;
  len = (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
  if (len > LIMITS_TLS_HELLO_BYTES - RECORD_HEADER_BYTES - MESSAGE_HEADER_BYTES)
    return err_set(err, E2BIG, "a hello of %zu bytes; at most %d are allowed with its records", len,
                   LIMITS_TLS_HELLO_BYTES);
  *ret_len = MESSAGE_HEADER_BYTES + len;
  return 1;
}

/* Copies of the fragment what is still missing of the message's header. Returns how much of the header there is. */
static size_t fill_head(const struct tls_hello_scan *scan, struct span fragment,
                        unsigned char head[static MESSAGE_HEADER_BYTES])
{
  size_t count = scan->held < MESSAGE_HEADER_BYTES ? scan->held : MESSAGE_HEADER_BYTES;

  memcpy(head, scan->head, MESSAGE_HEADER_BYTES);
  for (size_t i = 0; i < fragment.len && count < MESSAGE_HEADER_BYTES; i++)
    head[count++] = (unsigned char)fragment.ptr[i];
  return count;
}

/* One record. 1: it is whole and ends the message; 0: it is not whole; 2: it is whole and more records follow. */
static int scan_record(struct tls_hello_scan *scan, struct span bytes, struct err *err)
{
  struct span fragment;
  unsigned char head[MESSAGE_HEADER_BYTES];
  size_t message_len = 0;
  size_t end;
  unsigned len = 0;
  int known;
  int r;

  r = check_record(span_sub(bytes, scan->record, bytes.len), err, &len);
  if (r <= 0)
    return r;
  end = scan->record + RECORD_HEADER_BYTES + len;
  /* Before the fragment is looked at: the answer must not depend on how much of it is there. */
  if (end > LIMITS_TLS_HELLO_BYTES)
    return err_set(err, E2BIG, "the records of the hello pass %d bytes", LIMITS_TLS_HELLO_BYTES);
  fragment = span_sub(bytes, scan->record + RECORD_HEADER_BYTES, len);
  known = check_message(head, fill_head(scan, fragment, head), err, &message_len);
  if (known < 0)
    return known;
  if (known && scan->held + len > message_len)
    return err_set(err, EBADMSG, "bytes after the hello in its record");
  if (bytes.len < end)
    return 0;
  memcpy(scan->head, head, sizeof head);
  scan->record = end;
  scan->held += len;
  return known && scan->held == message_len ? 1 : 2;
}

int tls_hello_scan(struct tls_hello_scan *scan, struct span bytes, struct err *err, size_t *ret_len)
{
  int r;

  do
    r = scan_record(scan, bytes, err);
  while (r == 2);
  if (r == 1)
    *ret_len = scan->record;
  return r;
}

/* The message without its header, of records that have been scanned. */
static struct span glue(struct span bytes, char *scratch)
{
  struct span rest = bytes;
  struct span header;
  struct span fragment = { 0 };
  size_t len = 0;

  while (bytes_take(&rest, RECORD_HEADER_BYTES - 2, &header) && bytes_take_vector16(&rest, &fragment)) {
    /* One record, as nearly always: no copy. */
    if (len == 0 && rest.len == 0)
      return span_sub(fragment, MESSAGE_HEADER_BYTES, fragment.len);
    memcpy(scratch + len, fragment.ptr, fragment.len);
    len += fragment.len;
  }
  return (struct span){ scratch + MESSAGE_HEADER_BYTES, len - MESSAGE_HEADER_BYTES };
}

/* server_name (RFC 6066, 3): a list of one host_name. Servers differ in what they make of two. */
static int parse_server_name(struct span body, struct err *err, struct tls_hello *hello)
{
  struct span list;
  struct span name;
  unsigned type;
  int r;

  if (!bytes_take_vector16(&body, &list) || body.len > 0)
    return err_set(err, EBADMSG, "the list of server names is not well formed");
  if (!bytes_take_u8(&list, &type) || !bytes_take_vector16(&list, &name))
    return err_set(err, EBADMSG, "a server name is not well formed");
  if (type != 0)
    return err_set(err, EBADMSG, "a server name of type %u", type);
  if (list.len > 0)
    return err_set(err, EBADMSG, "more than one server name");
  r = host_parse(name, err, &hello->host);
  if (r < 0) {
    err_wrap(err, "the server name");
    return r;
  }
  if (hello->host.kind != HOST_NAME)
    return err_set(err, EINVAL, "the server name is an address");
  if (name.ptr[name.len - 1] == '.')
    return err_set(err, EINVAL, "the server name ends in a dot");
  hello->has_name = true;
  return 0;
}

static int parse_alpn(struct span body, struct err *err, struct tls_hello *hello)
{
  struct span list;
  struct span rest;
  struct span protocol;

  if (!bytes_take_vector16(&body, &list) || body.len > 0 || list.len == 0)
    return err_set(err, EBADMSG, "the list of protocols is not well formed");
  for (rest = list; rest.len > 0;)
    if (!bytes_take_vector8(&rest, &protocol) || protocol.len == 0)
      return err_set(err, EBADMSG, "a name in the list of protocols is not well formed");
  hello->has_alpn = true;
  hello->alpn = list;
  return 0;
}

/* supported_versions (RFC 8446, 4.2.1), which replaces the version in front. Values that are not known, GREASE (RFC
 * 8701) among them, are passed over. */
static int parse_versions(struct span body, struct err *err, struct tls_hello *hello)
{
  struct span list;
  unsigned version;
  unsigned max = 0;

  if (!bytes_take_vector8(&body, &list) || body.len > 0 || list.len == 0 || list.len % 2)
    return err_set(err, EBADMSG, "the list of versions is not well formed");
  while (bytes_take_u16(&list, &version))
    if (version >= VERSION_SSL3 && version <= VERSION_TLS13 && version > max)
      max = version;
  if (max == 0)
    return err_set(err, EBADMSG, "no version offered is one of TLS");
  hello->max_version = max;
  return 0;
}

/* encrypted_client_hello (RFC 9849, 5): the outer form. The inner one never stands in a hello that can be read. */
static int parse_ech(struct span body, struct err *err, struct tls_hello *hello)
{
  struct span part;
  uint32_t suite;
  unsigned value;

  if (!bytes_take_u8(&body, &value) || value != 0)
    return err_set(err, EBADMSG, "an encrypted hello that is not of the outer form");
  if (!bytes_take_u32(&body, &suite) || !bytes_take_u8(&body, &value) || !bytes_take_vector16(&body, &part) ||
      !bytes_take_vector16(&body, &part) || part.len == 0 || body.len > 0)
    return err_set(err, EBADMSG, "the encrypted hello is not well formed");
  hello->has_ech = true;
  return 0;
}

static int parse_extension(unsigned type, struct span body, struct err *err, struct tls_hello *hello)
{
  switch (type) {
  case EXTENSION_SERVER_NAME:
    return parse_server_name(body, err, hello);
  case EXTENSION_ALPN:
    return parse_alpn(body, err, hello);
  case EXTENSION_SUPPORTED_VERSIONS:
    return parse_versions(body, err, hello);
  case EXTENSION_EARLY_DATA:
    if (body.len > 0)
      return err_set(err, EBADMSG, "the early data extension is not empty");
    hello->has_early_data = true;
    return 0;
  case EXTENSION_ECH_OUTER_EXTENSIONS:
    return err_set(err, EBADMSG, "an extension of inner hellos only");
  case EXTENSION_ECH:
    return parse_ech(body, err, hello);
  default:
    if ((type >= EXTENSION_ECH_DRAFT_FIRST && type <= EXTENSION_ECH_DRAFT_LAST) || type == EXTENSION_ESNI)
      hello->has_ech = true;
    return 0;
  }
}

static int parse_extensions(struct span rest, struct err *err, struct tls_hello *hello)
{
  unsigned seen[LIMITS_TLS_EXTENSIONS];
  size_t count = 0;
  struct span body;
  int r;

  while (rest.len > 0) {
    unsigned type;

    if (!bytes_take_u16(&rest, &type) || !bytes_take_vector16(&rest, &body))
      return err_set(err, EBADMSG, "an extension is not well formed");
    if (count == MEM_COUNT(seen))
      return err_set(err, E2BIG, "more than %d extensions", LIMITS_TLS_EXTENSIONS);
    for (size_t i = 0; i < count; i++)
      if (seen[i] == type)
        return err_set(err, EBADMSG, "extension %u comes twice", type);
    seen[count++] = type;
    /* RFC 8446, 4.2.11: the keys are bound to everything in front of them. */
    if (type == EXTENSION_PRE_SHARED_KEY && rest.len > 0)
      return err_set(err, EBADMSG, "an extension after the pre-shared keys");
    r = parse_extension(type, body, err, hello);
    if (r < 0)
      return r;
  }
  return 0;
}

/* The fields in front of the extensions. */
static int parse_fields(struct span *rest, struct err *err, struct tls_hello *hello)
{
  struct span suites;
  struct span compressions;

  if (!bytes_take_u16(rest, &hello->max_version) || !bytes_take(rest, RANDOM_BYTES, &hello->random))
    return err_set(err, EBADMSG, "the hello ends before its session id");
  if (hello->max_version < VERSION_SSL3 || hello->max_version > VERSION_TLS12)
    return err_set(err, EBADMSG, "a hello of version 0x%04x", hello->max_version);
  if (!bytes_take_vector8(rest, &hello->session_id) || hello->session_id.len > SESSION_ID_MAX_BYTES)
    return err_set(err, EBADMSG, "the session id is not well formed");
  if (!bytes_take_vector16(rest, &suites) || suites.len == 0 || suites.len % 2)
    return err_set(err, EBADMSG, "the list of cipher suites is not well formed");
  if (!bytes_take_vector8(rest, &compressions) || span_find(compressions, '\0') == compressions.len)
    return err_set(err, EBADMSG, "the list of compression methods lacks the null method");
  return 0;
}

int tls_hello_parse(struct span bytes, char scratch[static LIMITS_TLS_HELLO_BYTES], struct err *err,
                    struct tls_hello *ret_hello)
{
  struct tls_hello_scan scan = { 0 };
  struct tls_hello hello = { 0 };
  struct span rest;
  struct span extensions;
  size_t len = 0;
  int r;

  r = tls_hello_scan(&scan, bytes, err, &len);
  if (r < 0)
    return r;
  if (r == 0 || len != bytes.len)
    return err_set(err, EBADMSG, "not one whole hello");
  rest = glue(bytes, scratch);
  r = parse_fields(&rest, err, &hello);
  if (r < 0)
    return r;
  /* Before TLS 1.3 a hello may have no extensions at all. */
  if (rest.len > 0) {
    if (!bytes_take_vector16(&rest, &extensions) || rest.len > 0)
      return err_set(err, EBADMSG, "the list of extensions is not well formed");
    r = parse_extensions(extensions, err, &hello);
    if (r < 0)
      return r;
  }
  *ret_hello = hello;
  return 0;
}

bool tls_hello_next_protocol(struct span *alpn, struct span *ret_protocol)
{
  return bytes_take_vector8(alpn, ret_protocol);
}
