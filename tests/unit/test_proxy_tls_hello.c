#include "proxy/tls_hello.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#define NO_EXTENSIONS ((struct span){ NULL, 0 })
#define SNI(length) "\x00\x00\x00" length
#define SNI_X SNI("\x0b") "\x00\x09\x00\x00\x06x.test"
/* Where the lengths stand in a message of make_message(). */
#define AT_SESSION_ID (4 + 2 + 32)
#define AT_SUITES (AT_SESSION_ID + 1)
#define AT_COMPRESSIONS (AT_SUITES + 2 + 2)
#define AT_EXTENSIONS (AT_COMPRESSIONS + 1 + 1)

static char scratch[LIMITS_TLS_HELLO_BYTES];

static void put_number(struct buf *out, size_t size, size_t value)
{
  while (size-- > 0)
    buf_append_byte(out, (char)(value >> 8 * size));
}

/* A message with one cipher suite and no session, its header in front. */
static void make_message(struct span extensions, struct buf *out)
{
  size_t body = 2 + 32 + 1 + 4 + 2 + (extensions.ptr ? 2 + extensions.len : 0);

  buf_append_byte(out, 1);
  put_number(out, 3, body);
  put_number(out, 2, 0x0303);
  for (int i = 0; i < 32; i++)
    buf_append_byte(out, (char)i);
  buf_append(out, SPAN("\x00\x00\x02\x13\x01\x01\x00"));
  if (extensions.ptr) {
    put_number(out, 2, extensions.len);
    buf_append(out, extensions);
  }
}

static void put_record(struct span fragment, struct buf *out)
{
  buf_append(out, SPAN("\x16\x03\x01"));
  put_number(out, 2, fragment.len);
  buf_append(out, fragment);
}

/* The records of a message that is cut into pieces of that size. */
static void make_records(struct span message, size_t piece, struct buf *out)
{
  for (size_t at = 0; at < message.len; at += piece)
    put_record(span_sub(message, at, piece), out);
}

static int scan_whole(struct span bytes, struct err *err, size_t *ret_len)
{
  struct tls_hello_scan scan = { 0 };

  return tls_hello_scan(&scan, bytes, err, ret_len);
}

/* Parses from memory that is exactly as large as the bytes. */
static int parse_copy(struct span bytes, struct err *err, struct tls_hello *ret_hello)
{
  char *copy = malloc(bytes.len ? bytes.len : 1);
  int r;

  assert_non_null(copy);
  if (bytes.len)
    memcpy(copy, bytes.ptr, bytes.len);
  r = tls_hello_parse((struct span){ copy, bytes.len }, scratch, err, ret_hello);
  free(copy);
  return r;
}

static int parse_extensions(struct span extensions, struct err *err, struct tls_hello *ret_hello)
{
  static char kept[2 * LIMITS_TLS_HELLO_BYTES];
  buf_autofree struct buf message = BUF_INIT(LIMITS_TLS_HELLO_BYTES);
  buf_autofree struct buf records = BUF_INIT(LIMITS_TLS_HELLO_BYTES);
  struct tls_hello ignored;

  make_message(extensions, &message);
  put_record(buf_span(&message), &records);
  assert_int_equal(buf_error(&records), 0);
  memcpy(kept, records.data, records.len);
  (void)parse_copy(buf_span(&records), NULL, &ignored);
  return tls_hello_parse((struct span){ kept, records.len }, scratch, err, ret_hello);
}

struct scan_row {
  const char *what;
  struct span text;
  int result;
  const char *cause;
};

static const struct scan_row scan_rows[] = {
  { "nothing yet", SPAN_INIT(""), 0, NULL },
  { "type", SPAN_INIT("\x16"), 0, NULL },
  { "version", SPAN_INIT("\x16\x03\x01"), 0, NULL },
  { "length", SPAN_INIT("\x16\x03\x01\x02\x00"), 0, NULL },
  { "message type", SPAN_INIT("\x16\x03\x01\x02\x00\x01"), 0, NULL },
  { "SSL 3 record", SPAN_INIT("\x16\x03\x00\x02\x00\x01"), 0, NULL },
  { "TLS 1.3 record", SPAN_INIT("\x16\x03\x04\x02\x00\x01"), 0, NULL },
  { "record of one byte", SPAN_INIT("\x16\x03\x01\x00\x01\x01\x16\x03\x01"), 0, NULL },
  { "SSL 2", SPAN_INIT("\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10"), -EPROTONOSUPPORT, "SSL 2" },
  { "HTTP", SPAN_INIT("GET / HTTP/1.1\r\n"), -EPROTONOSUPPORT, "type 71" },
  { "SSH", SPAN_INIT("SSH-2.0-x\r\n"), -EPROTONOSUPPORT, "type 83" },
  { "change of cipher", SPAN_INIT("\x14\x03\x03\x00\x01\x01"), -EPROTONOSUPPORT, "type 20" },
  { "alert", SPAN_INIT("\x15\x03\x01\x00\x02\x02\x28"), -EPROTONOSUPPORT, "type 21" },
  { "application data", SPAN_INIT("\x17\x03\x03\x00\x01x"), -EPROTONOSUPPORT, "type 23" },
  { "alert within the hello", SPAN_INIT("\x16\x03\x01\x00\x01\x01\x15"), -EPROTONOSUPPORT, "type 21" },
  { "data within the hello", SPAN_INIT("\x16\x03\x01\x00\x05\x01\x00\x00\x30\x03\x17"), -EPROTONOSUPPORT, "type 23" },
  { "version 2", SPAN_INIT("\x16\x02"), -EPROTONOSUPPORT, "major version 2" },
  { "version 4", SPAN_INIT("\x16\x04"), -EPROTONOSUPPORT, "major version 4" },
  { "DTLS", SPAN_INIT("\x16\xfe\xff"), -EPROTONOSUPPORT, "major version 254" },
  { "minor version 5", SPAN_INIT("\x16\x03\x05"), -EPROTONOSUPPORT, "version 0x0305" },
  { "empty record", SPAN_INIT("\x16\x03\x01\x00\x00"), -EBADMSG, "empty record" },
  { "empty record within the hello", SPAN_INIT("\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x00"), -EBADMSG,
    "empty record" },
  { "record too long", SPAN_INIT("\x16\x03\x01\x40\x01"), -EBADMSG, "16385 bytes" },
  { "record of the longest length", SPAN_INIT("\x16\x03\x01\x40\x00"), -E2BIG, "records of the hello pass" },
  { "the same with a wrong message", SPAN_INIT("\x16\x03\x01\x40\x00\x02"), -E2BIG, "records of the hello pass" },
  { "a server's hello", SPAN_INIT("\x16\x03\x01\x00\x30\x02"), -EBADMSG, "type 2" },
  { "a request for a hello", SPAN_INIT("\x16\x03\x01\x00\x04\x00"), -EBADMSG, "type 0" },
  { "message too long", SPAN_INIT("\x16\x03\x01\x02\x00\x01\x01\x00\x00"), -E2BIG, "65536 bytes" },
  { "message just too long", SPAN_INIT("\x16\x03\x01\x02\x00\x01\x00\x3f\xf8"), -E2BIG, "16376 bytes" },
  { "message just not too long", SPAN_INIT("\x16\x03\x01\x02\x00\x01\x00\x3f\xf7"), 0, NULL },
  { "bytes behind the hello", SPAN_INIT("\x16\x03\x01\x00\x06\x01\x00\x00\x01"), -EBADMSG, "after the hello" },
  { "the same in a later record", SPAN_INIT("\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x05\x00\x00\x01"), -EBADMSG,
    "after the hello" },
};

static void test_scan(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(scan_rows); i++) {
    const struct scan_row *row = &scan_rows[i];
    struct tls_hello_scan scan = { 0 };
    struct err err = ERR_INIT;
    size_t len = 0;
    int stepwise = 0;

    unit_assert_row(scan_whole(row->text, &err, &len) == row->result, row->what, err.message);
    unit_assert_row(!row->cause || strstr(err.message, row->cause), row->what, err.message);
    /* Byte by byte the answer is the same, and comes no later. */
    for (size_t seen = 0; seen <= row->text.len && stepwise == 0; seen++)
      stepwise = tls_hello_scan(&scan, span_sub(row->text, 0, seen), NULL, &len);
    unit_assert_row(stepwise == row->result, row->what, "byte by byte");
  }
}

struct extension_row {
  const char *what;
  struct span text;
  int result;
  const char *cause;
  const char *name;
};

static const struct extension_row extension_rows[] = {
  { "no list of extensions", { NULL, 0 }, 0, NULL, NULL },
  { "empty list of extensions", SPAN_INIT(""), 0, NULL, NULL },
  { "name", SPAN_INIT(SNI_X), 0, NULL, "x.test" },
  { "name in upper case", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x06X.TEST"), 0, NULL, "x.test" },
  { "unknown extension", SPAN_INIT("\x0a\x0a\x00\x00" SNI_X), 0, NULL, "x.test" },
  { "F54: two extensions of names", SPAN_INIT(SNI_X SNI_X), -EBADMSG, "extension 0 comes twice", NULL },
  { "an unknown extension twice", SPAN_INIT("\x0a\x0a\x00\x00\x0a\x0a\x00\x00"), -EBADMSG, "comes twice", NULL },
  { "F54: two names", SPAN_INIT(SNI("\x14") "\x00\x12\x00\x00\x06x.test\x00\x00\x06y.test"), -EBADMSG, "more than one",
    NULL },
  { "another type of name behind", SPAN_INIT(SNI("\x0f") "\x00\x0d\x00\x00\x06x.test\x01\x00\x01x"), -EBADMSG,
    "more than one", NULL },
  { "another type of name", SPAN_INIT(SNI("\x0b") "\x00\x09\x01\x00\x06x.test"), -EBADMSG, "name of type 1", NULL },
  { "the server's form", SPAN_INIT(SNI("\x00")), -EBADMSG, "list of server names", NULL },
  { "empty list of names", SPAN_INIT(SNI("\x02") "\x00\x00"), -EBADMSG, "server name is not", NULL },
  { "empty name", SPAN_INIT(SNI("\x05") "\x00\x03\x00\x00\x00"), -EINVAL, "empty host name", NULL },
  { "list longer than the extension", SPAN_INIT(SNI("\x0b") "\x00\x0a\x00\x00\x06x.test"), -EBADMSG,
    "list of server names", NULL },
  { "list shorter than the extension", SPAN_INIT(SNI("\x0b") "\x00\x08\x00\x00\x06x.test"), -EBADMSG,
    "list of server names", NULL },
  { "name longer than the list", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x07x.test"), -EBADMSG, "server name is not",
    NULL },
  { "name shorter than the list", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x05x.test"), -EBADMSG, "more than one",
    NULL },
  { "F53: root's dot", SPAN_INIT(SNI("\x0c") "\x00\x0a\x00\x00\x07x.test."), -EINVAL, "ends in a dot", NULL },
  { "F53: NUL", SPAN_INIT(SNI("\x10") "\x00\x0e\x00\x00\x0bx.test\0.com"), -EINVAL, "control byte", NULL },
  { "IPv4",
    SPAN_INIT(SNI("\x0e") "\x00\x0c\x00\x00\x09"
                          "192.0.2.7"),
    -EINVAL, "is an address", NULL },
  { "IPv6", SPAN_INIT(SNI("\x08") "\x00\x06\x00\x00\x03::1"), -EINVAL, "is an address", NULL },
  { "IPv6 in brackets", SPAN_INIT(SNI("\x0a") "\x00\x08\x00\x00\x05[::1]"), -EINVAL, "is an address", NULL },
  { "decimal address",
    SPAN_INIT(SNI("\x0f") "\x00\x0d\x00\x00\x0a"
                          "2130706433"),
    -EINVAL, "neither a name", NULL },
  { "with a port", SPAN_INIT(SNI("\x0e") "\x00\x0c\x00\x00\x09x.test:80"), -EINVAL, "neither a host", NULL },
  { "wildcard", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x06*.test"), -EINVAL, "wildcard", NULL },
  { "not ASCII", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x06\xc3\xa9test"), -EINVAL, "not ASCII", NULL },
  { "empty label", SPAN_INIT(SNI("\x0b") "\x00\x09\x00\x00\x06x..tes"), -EINVAL, "empty label", NULL },
  { "extension cut in its type", SPAN_INIT("\x00"), -EBADMSG, "an extension is not", NULL },
  { "extension cut in its length", SPAN_INIT("\x0a\x0a\x00"), -EBADMSG, "an extension is not", NULL },
  { "extension cut in its body", SPAN_INIT("\x0a\x0a\x00\x02x"), -EBADMSG, "an extension is not", NULL },
  { "protocols", SPAN_INIT("\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1"), 0, NULL, NULL },
  { "protocols: no list", SPAN_INIT("\x00\x10\x00\x00"), -EBADMSG, "list of protocols", NULL },
  { "protocols: empty list", SPAN_INIT("\x00\x10\x00\x02\x00\x00"), -EBADMSG, "list of protocols", NULL },
  { "protocols: empty name", SPAN_INIT("\x00\x10\x00\x06\x00\x04\x02h2\x00"), -EBADMSG, "name in the list", NULL },
  { "protocols: name too long", SPAN_INIT("\x00\x10\x00\x05\x00\x03\x03h2"), -EBADMSG, "name in the list", NULL },
  { "protocols: list too long", SPAN_INIT("\x00\x10\x00\x05\x00\x04\x02h2"), -EBADMSG, "list of protocols", NULL },
  { "protocols: list too short", SPAN_INIT("\x00\x10\x00\x06\x00\x03\x02h2x"), -EBADMSG, "list of protocols", NULL },
  { "versions: odd", SPAN_INIT("\x00\x2b\x00\x04\x03\x03\x04\x03"), -EBADMSG, "list of versions", NULL },
  { "versions: empty", SPAN_INIT("\x00\x2b\x00\x01\x00"), -EBADMSG, "list of versions", NULL },
  { "versions: no list", SPAN_INIT("\x00\x2b\x00\x00"), -EBADMSG, "list of versions", NULL },
  { "versions: the server's form", SPAN_INIT("\x00\x2b\x00\x02\x03\x04"), -EBADMSG, "list of versions", NULL },
  { "versions: bytes behind", SPAN_INIT("\x00\x2b\x00\x04\x02\x03\x04\x00"), -EBADMSG, "list of versions", NULL },
  { "versions: none known", SPAN_INIT("\x00\x2b\x00\x05\x04\x0a\x0a\x7f\x1c"), -EBADMSG, "no version offered", NULL },
  { "early data with a body", SPAN_INIT("\x00\x2a\x00\x04\x00\x00\x00\x01"), -EBADMSG, "early data", NULL },
  { "pre-shared key last", SPAN_INIT(SNI_X "\x00\x29\x00\x01x"), 0, NULL, "x.test" },
  { "pre-shared key not last", SPAN_INIT("\x00\x29\x00\x01x" SNI_X), -EBADMSG, "after the pre-shared", NULL },
  { "inner form of ECH", SPAN_INIT("\xfe\x0d\x00\x01\x01"), -EBADMSG, "outer form", NULL },
  { "ECH: empty", SPAN_INIT("\xfe\x0d\x00\x00"), -EBADMSG, "outer form", NULL },
  { "ECH: cut", SPAN_INIT("\xfe\x0d\x00\x08\x00\x00\x01\x00\x01\x07\x00\x00"), -EBADMSG, "encrypted hello is", NULL },
  { "ECH: no payload", SPAN_INIT("\xfe\x0d\x00\x0a\x00\x00\x01\x00\x01\x07\x00\x00\x00\x00"), -EBADMSG,
    "encrypted hello is", NULL },
  { "ECH: bytes behind", SPAN_INIT("\xfe\x0d\x00\x0c\x00\x00\x01\x00\x01\x07\x00\x00\x00\x01xy"), -EBADMSG,
    "encrypted hello is", NULL },
  { "list of the inner form", SPAN_INIT("\xfd\x00\x00\x03\x02\x00\x00"), -EBADMSG, "inner hellos", NULL },
};

static void test_extensions(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(extension_rows); i++) {
    const struct extension_row *row = &extension_rows[i];
    struct err err = ERR_INIT;
    struct tls_hello hello = { .max_version = 7 };
    int r = parse_extensions(row->text, &err, &hello);

    unit_assert_row(r == row->result, row->what, err.message);
    unit_assert_row(!row->cause || strstr(err.message, row->cause), row->what, err.message);
    unit_assert_row(r == 0 || hello.max_version == 7, row->what, "outputs changed by a failure");
    if (r == 0) {
      unit_assert_row(hello.has_name == (row->name != NULL), row->what, "name or none");
      unit_assert_row(!row->name || strcmp(hello.host.name, row->name) == 0, row->what, hello.host.name);
    }
  }
}

static void test_protocols(void **state)
{
  struct tls_hello hello;
  struct span protocol;

  (void)state;
  assert_int_equal(parse_extensions(SPAN("\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1"), NULL, &hello), 0);
  assert_true(hello.has_alpn);
  assert_true(tls_hello_next_protocol(&hello.alpn, &protocol));
  assert_true(span_equal_str(protocol, "h2"));
  assert_true(tls_hello_next_protocol(&hello.alpn, &protocol));
  assert_true(span_equal_str(protocol, "http/1.1"));
  assert_false(tls_hello_next_protocol(&hello.alpn, &protocol));
  assert_int_equal(parse_extensions(NO_EXTENSIONS, NULL, &hello), 0);
  assert_false(hello.has_alpn || hello.has_name || hello.has_ech || hello.has_early_data);
}

static void test_versions_ech_early(void **state)
{
  static const struct {
    const char *what;
    struct span text;
    unsigned version;
    bool ech;
    bool early;
  } rows[] = {
    { "none said", SPAN_INIT(""), 0x0303, false, false },
    { "1.3 and 1.2", SPAN_INIT("\x00\x2b\x00\x05\x04\x03\x04\x03\x03"), 0x0304, false, false },
    { "1.2 and 1.3", SPAN_INIT("\x00\x2b\x00\x05\x04\x03\x03\x03\x04"), 0x0304, false, false },
    { "GREASE", SPAN_INIT("\x00\x2b\x00\x07\x06\xfa\xfa\x03\x03\x03\x02"), 0x0303, false, false },
    { "early data", SPAN_INIT("\x00\x2a\x00\x00"), 0x0303, false, true },
    { "ECH", SPAN_INIT("\xfe\x0d\x00\x0b\x00\x00\x01\x00\x01\x07\x00\x00\x00\x01x"), 0x0303, true, false },
    { "ECH, draft 8", SPAN_INIT("\xfe\x08\x00\x01x"), 0x0303, true, false },
    { "ECH, draft 12", SPAN_INIT("\xfe\x0c\x00\x01x"), 0x0303, true, false },
    { "beside them", SPAN_INIT("\xfe\x07\x00\x01x\xfe\x0e\x00\x01x"), 0x0303, false, false },
    { "encrypted SNI", SPAN_INIT("\xff\xce\x00\x01x"), 0x0303, true, false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct tls_hello hello;

    unit_assert_row(parse_extensions(rows[i].text, &err, &hello) == 0, rows[i].what, err.message);
    unit_assert_row(hello.max_version == rows[i].version, rows[i].what, "version");
    unit_assert_row(hello.has_ech == rows[i].ech && hello.has_early_data == rows[i].early, rows[i].what, "flags");
  }
}

/* The fixed fields with one byte of the message changed, the length of all kept. */
static void test_fields(void **state)
{
  static const struct {
    const char *what;
    size_t at;
    char byte;
    const char *cause;
  } rows[] = {
    { "version 2", 4, 2, "version 0x0203" },
    { "version 0x0304", 5, 4, "version 0x0304" },
    { "session id too long", AT_SESSION_ID, 33, "session id" },
    { "session id past the end", AT_SESSION_ID, (char)255, "session id" },
    { "session id over the suites", AT_SESSION_ID, 1, "cipher suites" },
    { "suites: none", AT_SUITES + 1, 0, "cipher suites" },
    { "suites: odd", AT_SUITES + 1, 3, "cipher suites" },
    { "suites: past the end", AT_SUITES, 1, "cipher suites" },
    { "compressions: none", AT_COMPRESSIONS, 0, "compression methods" },
    { "compressions: past the end", AT_COMPRESSIONS, 127, "compression methods" },
    { "compressions: no null", AT_COMPRESSIONS + 1, 1, "compression methods" },
    { "extensions: one byte less", AT_EXTENSIONS + 1, 14, "list of extensions" },
    { "extensions: one byte more", AT_EXTENSIONS + 1, 16, "list of extensions" },
    { "extensions: none", AT_EXTENSIONS + 1, 0, "list of extensions" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf message = BUF_INIT(1024);
    buf_autofree struct buf records = BUF_INIT(1024);
    struct err err = ERR_INIT;
    struct tls_hello hello;

    make_message(SPAN(SNI_X), &message);
    assert_int_equal(message.len, AT_EXTENSIONS + 2 + 15);
    message.data[rows[i].at] = rows[i].byte;
    put_record(buf_span(&message), &records);
    unit_assert_row(parse_copy(buf_span(&records), &err, &hello) == -EBADMSG, rows[i].what, "accepted");
    unit_assert_row(strstr(err.message, rows[i].cause), rows[i].what, err.message);
  }
}

/* The message cut short at every byte, with lengths of record and message that say so: only the one without
 * extensions is a hello. */
static void test_cut_message(void **state)
{
  buf_autofree struct buf message = BUF_INIT(1024);

  (void)state;
  make_message(SPAN(SNI_X), &message);
  for (size_t len = 4; len < message.len; len++) {
    buf_autofree struct buf records = BUF_INIT(1024);
    struct tls_hello hello;

    message.data[3] = (char)(len - 4);
    put_record((struct span){ message.data, len }, &records);
    assert_int_equal(parse_copy(buf_span(&records), NULL, &hello), len == AT_EXTENSIONS ? 0 : -EBADMSG);
  }
}

static void assert_same(const struct tls_hello *a, const struct tls_hello *b)
{
  assert_int_equal(a->has_name, b->has_name);
  assert_string_equal(a->host.name, b->host.name);
  assert_int_equal(a->has_ech, b->has_ech);
  assert_int_equal(a->has_alpn, b->has_alpn);
  assert_true(span_equal(a->alpn, b->alpn));
  assert_int_equal(a->has_early_data, b->has_early_data);
  assert_int_equal(a->max_version, b->max_version);
  assert_true(span_equal(a->random, b->random));
  assert_true(span_equal(a->session_id, b->session_id));
}

/* A hello of which one share is post-quantum: longer than a segment (F55). */
static void make_large(struct buf *out)
{
  buf_autofree struct buf extensions = BUF_INIT(4096);

  put_number(&extensions, 2, 51);
  put_number(&extensions, 2, 2 + 4 + 1216);
  put_number(&extensions, 2, 4 + 1216);
  put_number(&extensions, 2, 0x11ec);
  put_number(&extensions, 2, 1216);
  for (int i = 0; i < 1216; i++)
    buf_append_byte(&extensions, (char)i);
  buf_append(&extensions, SPAN("\x00\x15\x01\x80"));
  for (int i = 0; i < 384; i++)
    buf_append_byte(&extensions, 0);
  buf_append(&extensions, SPAN("\x00\x10\x00\x05\x00\x03\x02h2\x00\x2b\x00\x03\x02\x03\x04" SNI_X));
  make_message(buf_span(&extensions), out);
  assert_int_equal(buf_error(out), 0);
  assert_true(out->len > 1565);
}

/* However the records cut the message, and the segments the records, the answer is the same. */
static void test_split(void **state)
{
  static const size_t segments[] = { 1, 7, 536, 1448, LIMITS_TLS_HELLO_BYTES };
  buf_autofree struct buf message = BUF_INIT(4096);
  buf_autofree struct buf one = BUF_INIT(4096);
  struct tls_hello whole;

  (void)state;
  make_large(&message);
  put_record(buf_span(&message), &one);
  assert_int_equal(tls_hello_parse(buf_span(&one), scratch, NULL, &whole), 0);
  assert_string_equal(whole.host.name, "x.test");
  assert_int_equal(whole.max_version, 0x0304);
  for (size_t piece = 1; piece <= message.len; piece += piece < 64 ? 1 : 61) {
    static char other[LIMITS_TLS_HELLO_BYTES];
    buf_autofree struct buf records = BUF_INIT(65536);
    struct tls_hello hello;

    make_records(buf_span(&message), piece, &records);
    buf_append(&records, SPAN("\x14\x03\x03\x00\x01\x01 what follows"));
    for (size_t i = 0; i < MEM_COUNT(segments); i++) {
      struct tls_hello_scan scan = { 0 };
      size_t expected = records.len - 19;
      size_t len = 0;
      int r = 0;

      for (size_t seen = segments[i]; r == 0 && seen < records.len + segments[i]; seen += segments[i])
        r = tls_hello_scan(&scan, span_sub(buf_span(&records), 0, seen), NULL, &len);
      assert_int_equal(r, 1);
      assert_int_equal(len, expected);
    }
    assert_int_equal(tls_hello_parse(span_sub(buf_span(&records), 0, records.len - 19), other, NULL, &hello), 0);
    assert_same(&whole, &hello);
    /* One byte less or more is not one whole hello. */
    assert_int_equal(tls_hello_parse(span_sub(buf_span(&records), 0, records.len - 20), other, NULL, &hello), -EBADMSG);
    assert_int_equal(tls_hello_parse(span_sub(buf_span(&records), 0, records.len - 18), other, NULL, &hello), -EBADMSG);
  }
}

/* Cut at every place into two records. */
static void test_split_in_two(void **state)
{
  buf_autofree struct buf message = BUF_INIT(1024);

  (void)state;
  make_message(SPAN(SNI_X), &message);
  for (size_t at = 1; at < message.len; at++) {
    buf_autofree struct buf records = BUF_INIT(1024);
    struct tls_hello hello;
    size_t len;

    put_record((struct span){ message.data, at }, &records);
    put_record(span_sub(buf_span(&message), at, message.len), &records);
    for (size_t seen = 0; seen < records.len; seen++)
      assert_int_equal(scan_whole((struct span){ records.data, seen }, NULL, &len), 0);
    assert_int_equal(parse_copy(buf_span(&records), NULL, &hello), 0);
    assert_string_equal(hello.host.name, "x.test");
  }
}

static void test_ceilings(void **state)
{
  struct tls_hello hello;
  size_t room = LIMITS_TLS_HELLO_BYTES - 5 - AT_EXTENSIONS - 2 - 4;

  (void)state;
  for (size_t count = LIMITS_TLS_EXTENSIONS; count <= LIMITS_TLS_EXTENSIONS + 1; count++) {
    buf_autofree struct buf extensions = BUF_INIT(4096);

    for (size_t i = 0; i < count; i++)
      put_number(&extensions, 4, (0x1000 + i) << 16);
    assert_int_equal(parse_extensions(buf_span(&extensions), NULL, &hello), count > LIMITS_TLS_EXTENSIONS ? -E2BIG : 0);
  }
  for (size_t over = 0; over <= 1; over++) {
    buf_autofree struct buf extensions = BUF_INIT(65536);
    buf_autofree struct buf message = BUF_INIT(65536);
    buf_autofree struct buf records = BUF_INIT(65536);
    size_t len;

    put_number(&extensions, 2, 21);
    put_number(&extensions, 2, room + over);
    while (extensions.len < 4 + room + over)
      buf_append_byte(&extensions, 0);
    make_message(buf_span(&extensions), &message);
    put_record(buf_span(&message), &records);
    assert_int_equal(records.len, LIMITS_TLS_HELLO_BYTES + over);
    assert_int_equal(scan_whole(buf_span(&records), NULL, &len), over ? -E2BIG : 1);
    assert_int_equal(tls_hello_parse(buf_span(&records), scratch, NULL, &hello), over ? -E2BIG : 0);
    /* In records of one byte the same message passes the ceiling long before its end. */
    buf_consume(&records, records.len);
    make_records(buf_span(&message), 1, &records);
    assert_int_equal(scan_whole(buf_span(&records), NULL, &len), -E2BIG);
  }
}

/* What programs really send; the files are also seeds of the fuzz target. */
static void test_programs(void **state)
{
  static const struct {
    const char *file;
    const char *name; /* NULL: none */
    unsigned version;
    const char *protocol; /* the first one, or NULL */
    bool early;
  } rows[] = {
    { "openssl", "openssl.example", 0x0304, NULL, false },
    { "openssl-noname", NULL, 0x0304, NULL, false },
    { "openssl-upper", "upper.example", 0x0304, NULL, false },
    { "openssl-tls12", "tls12.example", 0x0303, NULL, false },
    { "openssl-tls1", "tls1.example", 0x0301, NULL, false },
    { "openssl-alpn", "alpn.example", 0x0304, "h2", false },
    { "openssl-early", "early.example", 0x0304, NULL, true },
    { "python", "python.example", 0x0304, "h2", false },
    { "python-plain", "python.example", 0x0304, NULL, false },
    { "python-ip", NULL, 0x0304, NULL, false },
    { "curl", "curl.example", 0x0304, "h2", false },
    { "wget", "localhost", 0x0304, NULL, false },
    { "node", "node.example", 0x0304, "http/1.1", false },
    { "java", "java.example", 0x0304, "h2", false },
    { "git", "localhost", 0x0304, "h2", false },
    { "cargo", "localhost", 0x0304, "h2", false },
  };
  int dir = open(CORPUS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  (void)state;
  assert_true(dir >= 0);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autofree struct buf text = BUF_INIT(LIMITS_TLS_HELLO_BYTES);
    struct span protocol = { 0 };
    struct err err = ERR_INIT;
    struct tls_hello hello;
    size_t len;

    unit_assert_row(fd_read_file(dir, rows[i].file, &text) == 0, rows[i].file, "cannot be read");
    for (size_t seen = 0; seen < text.len; seen++)
      unit_assert_row(scan_whole((struct span){ text.data, seen }, &err, &len) == 0, rows[i].file, err.message);
    unit_assert_row(tls_hello_parse(buf_span(&text), scratch, &err, &hello) == 0, rows[i].file, err.message);
    unit_assert_row(hello.has_name == (rows[i].name != NULL), rows[i].file, "name or none");
    unit_assert_row(!rows[i].name || strcmp(hello.host.name, rows[i].name) == 0, rows[i].file, hello.host.name);
    unit_assert_row(hello.max_version == rows[i].version && hello.random.len == 32, rows[i].file, "version");
    unit_assert_row(hello.has_early_data == rows[i].early && !hello.has_ech, rows[i].file, "early data or ECH");
    if (hello.has_alpn)
      unit_assert_row(tls_hello_next_protocol(&hello.alpn, &protocol), rows[i].file, "no protocol");
    unit_assert_row(span_equal(protocol, span_of(rows[i].protocol)), rows[i].file, "first protocol");
  }
  close(dir);
}

/* Changed anywhere, a hello is refused or still names one host in canonical form. */
static void test_random(void **state)
{
  struct unit_random random = unit_seed("tls_hello");
  buf_autofree struct buf message = BUF_INIT(1024);
  buf_autofree struct buf records = BUF_INIT(1024);
  size_t accepted = 0;

  (void)state;
  make_message(SPAN(SNI_X "\x00\x10\x00\x05\x00\x03\x02h2\x00\x2b\x00\x03\x02\x03\x04"), &message);
  make_records(buf_span(&message), 30, &records);
  for (int round = 0; round < 50000; round++) {
    char copy[256];
    struct tls_hello hello;
    struct host again;

    assert_true(records.len <= sizeof copy);
    memcpy(copy, records.data, records.len);
    for (size_t i = 0; i <= unit_below(&random, 3); i++)
      copy[unit_below(&random, records.len)] = (char)unit_next(&random);
    if (parse_copy((struct span){ copy, records.len }, NULL, &hello) < 0)
      continue;
    accepted++;
    if (hello.has_name) {
      assert_int_equal(host_parse(span_of(hello.host.name), NULL, &again), 0);
      assert_int_equal(again.kind, HOST_NAME);
      assert_string_equal(again.name, hello.host.name);
    }
  }
  assert_true(accepted > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scan),      cmocka_unit_test(test_extensions),
    cmocka_unit_test(test_protocols), cmocka_unit_test(test_versions_ech_early),
    cmocka_unit_test(test_fields),    cmocka_unit_test(test_cut_message),
    cmocka_unit_test(test_split),     cmocka_unit_test(test_split_in_two),
    cmocka_unit_test(test_ceilings),  cmocka_unit_test(test_programs),
    cmocka_unit_test(test_random),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
