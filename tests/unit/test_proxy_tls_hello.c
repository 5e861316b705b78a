#include "proxy/tls_hello.h"
#include "unit/tls_make.h"
#include "unit/unit.h"

#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#define NO_EXTENSIONS ((struct span){ NULL, 0 })

static char scratch[LIMITS_TLS_HELLO_BYTES];

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

  tls_make_message(extensions, &message);
  tls_put_record(buf_span(&message), &records);
  assert_int_equal(buf_error(&records), 0);
  memcpy(kept, records.data, records.len);
  (void)parse_copy(buf_span(&records), NULL, &ignored);
  return tls_hello_parse((struct span){ kept, records.len }, scratch, err, ret_hello);
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

    tls_make_message(SPAN(SNI_X), &message);
    assert_int_equal(message.len, AT_EXTENSIONS + 2 + 15);
    message.data[rows[i].at] = rows[i].byte;
    tls_put_record(buf_span(&message), &records);
    unit_assert_row(parse_copy(buf_span(&records), &err, &hello) == -EBADMSG, rows[i].what, "accepted");
    unit_assert_row(strstr(err.message, rows[i].cause), rows[i].what, err.message);
  }
}

/* A session id of 32 bytes, the most there is, and of one more in a message that is otherwise well formed. */
static void test_session_id(void **state)
{
  (void)state;
  for (size_t size = 32; size <= 33; size++) {
    buf_autofree struct buf message = BUF_INIT(1024);
    buf_autofree struct buf records = BUF_INIT(1024);
    struct err err = ERR_INIT;
    struct tls_hello hello;

    buf_append(&message, SPAN("\x01\x00\x00"));
    tls_put_number(&message, 1, 2 + 32 + 1 + size + 4 + 2);
    tls_put_number(&message, 2, 0x0303);
    for (size_t i = 0; i < 32; i++)
      buf_append_byte(&message, 'r');
    tls_put_number(&message, 1, size);
    for (size_t i = 0; i < size; i++)
      buf_append_byte(&message, 's');
    buf_append(&message, SPAN("\x00\x02\x13\x01\x01\x00"));
    tls_put_record(buf_span(&message), &records);
    assert_int_equal(parse_copy(buf_span(&records), &err, &hello), size > 32 ? -EBADMSG : 0);
    assert_true(size == 32 || strstr(err.message, "session id"));
  }
}

/* The message cut short at every byte, with lengths of record and message that say so: only the one without
 * extensions is a hello. */
static void test_cut_message(void **state)
{
  buf_autofree struct buf message = BUF_INIT(1024);

  (void)state;
  tls_make_message(SPAN(SNI_X), &message);
  for (size_t len = 4; len < message.len; len++) {
    buf_autofree struct buf records = BUF_INIT(1024);
    struct tls_hello hello;

    message.data[3] = (char)(len - 4);
    tls_put_record((struct span){ message.data, len }, &records);
    assert_int_equal(parse_copy(buf_span(&records), NULL, &hello), len == AT_EXTENSIONS ? 0 : -EBADMSG);
  }
}

static void test_extension_ceiling(void **state)
{
  struct tls_hello hello;

  (void)state;
  for (size_t count = LIMITS_TLS_EXTENSIONS; count <= LIMITS_TLS_EXTENSIONS + 1; count++) {
    buf_autofree struct buf extensions = BUF_INIT(4096);

    for (size_t i = 0; i < count; i++)
      tls_put_number(&extensions, 4, (0x1000 + i) << 16);
    assert_int_equal(parse_extensions(buf_span(&extensions), NULL, &hello), count > LIMITS_TLS_EXTENSIONS ? -E2BIG : 0);
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
      unit_assert_row(tls_scan_whole((struct span){ text.data, seen }, &err, &len) == 0, rows[i].file, err.message);
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
  tls_make_message(SPAN(SNI_X "\x00\x10\x00\x05\x00\x03\x02h2\x00\x2b\x00\x03\x02\x03\x04"), &message);
  tls_make_records(buf_span(&message), 30, &records);
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
    cmocka_unit_test(test_extensions),
    cmocka_unit_test(test_protocols),
    cmocka_unit_test(test_versions_ech_early),
    cmocka_unit_test(test_fields),
    cmocka_unit_test(test_session_id),
    cmocka_unit_test(test_cut_message),
    cmocka_unit_test(test_extension_ceiling),
    cmocka_unit_test(test_programs),
    cmocka_unit_test(test_random),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
