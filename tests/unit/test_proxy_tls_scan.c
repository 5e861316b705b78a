#include "unit/tls_make.h"
#include "unit/unit.h"

static char scratch[LIMITS_TLS_HELLO_BYTES];

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

    unit_assert_row(tls_scan_whole(row->text, &err, &len) == row->result, row->what, err.message);
    unit_assert_row(!row->cause || strstr(err.message, row->cause), row->what, err.message);
    /* Byte by byte the answer is the same, and comes no later. */
    for (size_t seen = 0; seen <= row->text.len && stepwise == 0; seen++)
      stepwise = tls_hello_scan(&scan, span_sub(row->text, 0, seen), NULL, &len);
    unit_assert_row(stepwise == row->result, row->what, "byte by byte");
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

  tls_put_number(&extensions, 2, 51);
  tls_put_number(&extensions, 2, 2 + 4 + 1216);
  tls_put_number(&extensions, 2, 4 + 1216);
  tls_put_number(&extensions, 2, 0x11ec);
  tls_put_number(&extensions, 2, 1216);
  for (int i = 0; i < 1216; i++)
    buf_append_byte(&extensions, (char)i);
  buf_append(&extensions, SPAN("\x00\x15\x01\x80"));
  for (int i = 0; i < 384; i++)
    buf_append_byte(&extensions, 0);
  buf_append(&extensions, SPAN("\x00\x10\x00\x05\x00\x03\x02h2\x00\x2b\x00\x03\x02\x03\x04" SNI_X));
  tls_make_message(buf_span(&extensions), out);
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
  tls_put_record(buf_span(&message), &one);
  assert_int_equal(tls_hello_parse(buf_span(&one), scratch, NULL, &whole), 0);
  assert_string_equal(whole.host.name, "x.test");
  assert_int_equal(whole.max_version, 0x0304);
  for (size_t piece = 1; piece <= message.len; piece += piece < 64 ? 1 : 61) {
    static char other[LIMITS_TLS_HELLO_BYTES];
    buf_autofree struct buf records = BUF_INIT(65536);
    struct tls_hello hello;

    tls_make_records(buf_span(&message), piece, &records);
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
  tls_make_message(SPAN(SNI_X), &message);
  for (size_t at = 1; at < message.len; at++) {
    buf_autofree struct buf records = BUF_INIT(1024);
    struct tls_hello hello;
    size_t len;

    tls_put_record((struct span){ message.data, at }, &records);
    tls_put_record(span_sub(buf_span(&message), at, message.len), &records);
    for (size_t seen = 0; seen < records.len; seen++)
      assert_int_equal(tls_scan_whole((struct span){ records.data, seen }, NULL, &len), 0);
    assert_int_equal(tls_hello_parse(buf_span(&records), scratch, NULL, &hello), 0);
    assert_string_equal(hello.host.name, "x.test");
  }
}

static void test_ceiling(void **state)
{
  struct tls_hello hello;
  size_t room = LIMITS_TLS_HELLO_BYTES - 5 - AT_EXTENSIONS - 2 - 4;

  (void)state;
  for (size_t over = 0; over <= 1; over++) {
    buf_autofree struct buf extensions = BUF_INIT(65536);
    buf_autofree struct buf message = BUF_INIT(65536);
    buf_autofree struct buf records = BUF_INIT(65536);
    size_t len;

    tls_put_number(&extensions, 2, 21);
    tls_put_number(&extensions, 2, room + over);
    while (extensions.len < 4 + room + over)
      buf_append_byte(&extensions, 0);
    tls_make_message(buf_span(&extensions), &message);
    tls_put_record(buf_span(&message), &records);
    assert_int_equal(records.len, LIMITS_TLS_HELLO_BYTES + over);
    assert_int_equal(tls_scan_whole(buf_span(&records), NULL, &len), over ? -E2BIG : 1);
    assert_int_equal(tls_hello_parse(buf_span(&records), scratch, NULL, &hello), over ? -E2BIG : 0);
    /* In records of one byte the same message passes the ceiling long before its end. */
    buf_consume(&records, records.len);
    tls_make_records(buf_span(&message), 1, &records);
    assert_int_equal(tls_scan_whole(buf_span(&records), NULL, &len), -E2BIG);
  }
}

/* A message that has room in one record has none in two where their headers pass the ceiling. */
static void test_ceiling_of_headers(void **state)
{
  (void)state;
  for (size_t over = 0; over <= 1; over++) {
    buf_autofree struct buf extensions = BUF_INIT(65536);
    buf_autofree struct buf message = BUF_INIT(65536);
    buf_autofree struct buf records = BUF_INIT(65536);
    size_t room = LIMITS_TLS_HELLO_BYTES - 10 - AT_EXTENSIONS - 2 - 4 + over;
    struct tls_hello hello;
    size_t len;

    tls_put_number(&extensions, 2, 21);
    tls_put_number(&extensions, 2, room);
    while (extensions.len < 4 + room)
      buf_append_byte(&extensions, 0);
    tls_make_message(buf_span(&extensions), &message);
    tls_make_records(buf_span(&message), message.len - 100, &records);
    assert_int_equal(records.len, LIMITS_TLS_HELLO_BYTES + over);
    assert_int_equal(tls_scan_whole(buf_span(&records), NULL, &len), over ? -E2BIG : 1);
    assert_int_equal(tls_hello_parse(buf_span(&records), scratch, NULL, &hello), over ? -E2BIG : 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scan),
    cmocka_unit_test(test_split),
    cmocka_unit_test(test_split_in_two),
    cmocka_unit_test(test_ceiling),
    cmocka_unit_test(test_ceiling_of_headers),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
