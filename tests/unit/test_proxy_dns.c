#include "proxy/dns.h"
#include "unit/unit.h"

/* The oracle for answers; its old functions, which every version has. */
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <netdb.h>

#define HEAD(flags, counts) "\x12\x34" flags counts
#define ONE "\x00\x01\x00\x00\x00\x00\x00\x00"
#define ONE_OPT "\x00\x01\x00\x00\x00\x00\x00\x01"
#define RD "\x01\x00"
#define X "\x01x\x04test\x00"
#define A_IN "\x00\x01\x00\x01"
#define OPT(size, ttl, data) "\x00\x00\x29" size ttl data
#define OPT_PLAIN OPT("\x10\x00", "\x00\x00\x00\x00", "\x00\x00")
#define L63 \
  "\x3f" \
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static int parse_copy(struct span message, struct err *err, struct dns_query *ret_query)
{
  char *copy = malloc(message.len ? message.len : 1);
  int r;

  assert_non_null(copy);
  if (message.len)
    memcpy(copy, message.ptr, message.len);
  r = dns_parse_query((struct span){ copy, message.len }, err, ret_query);
  free(copy);
  return r;
}

struct query_row {
  const char *what;
  struct span text;
  int rcode; /* -1: not to be answered */
  const char *host; /* NULL: none */
  const char *cause;
};

static const struct query_row query_rows[] = {
  { "A", SPAN_INIT(HEAD(RD, ONE) X A_IN), 0, "x.test", NULL },
  { "no recursion", SPAN_INIT(HEAD("\x00\x00", ONE) X A_IN), 0, "x.test", NULL },
  { "AD and CD", SPAN_INIT(HEAD("\x01\x30", ONE) X A_IN), 0, "x.test", NULL },
  { "mixed case", SPAN_INIT(HEAD(RD, ONE) "\x01X\x04tEsT\x00" A_IN), 0, "x.test", NULL },
  { "AAAA", SPAN_INIT(HEAD(RD, ONE) X "\x00\x1c\x00\x01"), 0, "x.test", NULL },
  { "HTTPS", SPAN_INIT(HEAD(RD, ONE) X "\x00\x41\x00\x01"), 0, "x.test", NULL },
  { "any", SPAN_INIT(HEAD(RD, ONE) X "\x00\xff\x00\x01"), 0, "x.test", NULL },
  { "underscore", SPAN_INIT(HEAD(RD, ONE) "\x05_x_y_\x04test\x00" A_IN), 0, "_x_y_.test", NULL },
  { "root", SPAN_INIT(HEAD(RD, ONE) "\x00" A_IN), 0, NULL, NULL },
  { "longest label", SPAN_INIT(HEAD(RD, ONE) L63 "\x00" A_IN), 0,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
  { "longest name",
    SPAN_INIT(HEAD(RD, ONE) L63 L63 L63 "\x3d"
                                        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
                                        "\x00" A_IN),
    0,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    NULL },
  { "F53: a dot within a label", SPAN_INIT(HEAD(RD, ONE) "\x06x.test\x00" A_IN), 0, NULL, NULL },
  { "a dot at the end of a label", SPAN_INIT(HEAD(RD, ONE) "\x01x\x05test.\x00" A_IN), 0, NULL, NULL },
  { "F53: NUL in a label", SPAN_INIT(HEAD(RD, ONE) "\x02x\x00\x04test\x00" A_IN), 0, NULL, NULL },
  { "space in a label", SPAN_INIT(HEAD(RD, ONE) "\x02x \x04test\x00" A_IN), 0, NULL, NULL },
  { "not ASCII", SPAN_INIT(HEAD(RD, ONE) "\x02\xc3\xa9\x04test\x00" A_IN), 0, NULL, NULL },
  { "F52: an address",
    SPAN_INIT(HEAD(RD, ONE) "\x03"
                            "127\x01"
                            "0\x01"
                            "0\x01"
                            "1\x00" A_IN),
    0, NULL, NULL },
  { "F52: an address in short form",
    SPAN_INIT(HEAD(RD, ONE) "\x03"
                            "127\x01"
                            "1\x00" A_IN),
    0, NULL, NULL },
  { "IPv6 in a label", SPAN_INIT(HEAD(RD, ONE) "\x03::1\x00" A_IN), 0, NULL, NULL },
  { "EDNS", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT_PLAIN), 0, "x.test", NULL },
  { "EDNS, DO and a response code", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x02\x00", "\x07\x00\x80\x00", "\x00\x00")),
    0, "x.test", NULL },
  { "EDNS, two options",
    SPAN_INIT(HEAD(RD, ONE_OPT)
                  X A_IN OPT("\x02\x00", "\x00\x00\x00\x00", "\x00\x0a\x00\x0a\x00\x02xy\x00\x0c\x00\x00")),
    0, "x.test", NULL },
  { "empty", SPAN_INIT(""), -1, NULL, "0 bytes" },
  { "header cut", SPAN_INIT("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00"), -1, NULL, "11 bytes" },
  { "an answer", SPAN_INIT(HEAD("\x81\x80", ONE) X A_IN), -1, NULL, "an answer where" },
  { "an answer to another operation", SPAN_INIT(HEAD("\xa8\x00", ONE) X A_IN), -1, NULL, "an answer where" },
  { "IQUERY", SPAN_INIT(HEAD("\x08\x00", ONE) X A_IN), 4, NULL, "operation 1" },
  { "NOTIFY", SPAN_INIT(HEAD("\x20\x00", ONE) X A_IN), 4, NULL, "operation 4" },
  { "UPDATE", SPAN_INIT(HEAD("\x28\x00", ONE) X A_IN), 4, NULL, "operation 5" },
  { "operation 15", SPAN_INIT(HEAD("\x78\x00", ONE)), 4, NULL, "operation 15" },
  { "AA", SPAN_INIT(HEAD("\x05\x00", ONE) X A_IN), 1, NULL, "flags of an answer" },
  { "TC", SPAN_INIT(HEAD("\x03\x00", ONE) X A_IN), 1, NULL, "flags of an answer" },
  { "RA", SPAN_INIT(HEAD("\x01\x80", ONE) X A_IN), 1, NULL, "flags of an answer" },
  { "Z", SPAN_INIT(HEAD("\x01\x40", ONE) X A_IN), 1, NULL, "flags of an answer" },
  { "response code", SPAN_INIT(HEAD("\x01\x03", ONE) X A_IN), 1, NULL, "flags of an answer" },
  { "no question", SPAN_INIT(HEAD(RD, "\0\0\0\0\0\0\0\0")), 1, NULL, "one question" },
  { "two questions", SPAN_INIT(HEAD(RD, "\0\2\0\0\0\0\0\0") X A_IN X A_IN), 1, NULL, "one question" },
  { "an answer in the query", SPAN_INIT(HEAD(RD, "\0\1\0\1\0\0\0\0") X A_IN), 1, NULL, "one question" },
  { "an authority in the query", SPAN_INIT(HEAD(RD, "\0\1\0\0\0\1\0\0") X A_IN), 1, NULL, "one question" },
  { "two EDNS records", SPAN_INIT(HEAD(RD, "\0\1\0\0\0\0\0\2") X A_IN OPT_PLAIN OPT_PLAIN), 1, NULL, "one question" },
  { "a second EDNS record uncounted", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT_PLAIN OPT_PLAIN), 1, "x.test",
    "bytes after" },
  { "compressed name", SPAN_INIT(HEAD(RD, ONE) "\xc0\x0c" A_IN), 1, NULL, "compressed" },
  { "compressed after a label", SPAN_INIT(HEAD(RD, ONE) "\x01x\xc0\x0c" A_IN), 1, NULL, "compressed" },
  { "label of 64 bytes", SPAN_INIT(HEAD(RD, ONE) "\x40" L63 "\x00" A_IN), 1, NULL, "compressed" },
  { "label type 2", SPAN_INIT(HEAD(RD, ONE) "\x80x\x00" A_IN), 1, NULL, "compressed" },
  { "name too long",
    SPAN_INIT(HEAD(RD, ONE) L63 L63 L63 "\x3e"
                                        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
                                        "\x00" A_IN),
    1, NULL, "255 bytes" },
  { "name without an end", SPAN_INIT(HEAD(RD, ONE) "\x01x\x04test"), 1, NULL, "no end" },
  { "label past the end", SPAN_INIT(HEAD(RD, ONE) "\x01x\x05test"), 1, NULL, "no end" },
  { "no type", SPAN_INIT(HEAD(RD, ONE) X), 1, NULL, "ends after its name" },
  { "class cut", SPAN_INIT(HEAD(RD, ONE) X "\x00\x01\x00"), 1, NULL, "ends after its name" },
  { "bytes behind", SPAN_INIT(HEAD(RD, ONE) X A_IN "x"), 1, "x.test", "bytes after" },
  { "EDNS uncounted", SPAN_INIT(HEAD(RD, ONE) X A_IN OPT_PLAIN), 1, "x.test", "bytes after" },
  { "EDNS missing", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN), 1, "x.test", "not EDNS" },
  { "another record", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN "\x00\x00\xfa\x00\xff\0\0\0\0\0\0"), 1, "x.test", "not EDNS" },
  { "EDNS of a name", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN "\x01x\x00\x00\x29\x10\x00\0\0\0\0\0\0"), 1, "x.test",
    "not EDNS" },
  { "EDNS not of the root", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN "\x01\x00\x29\x10\x00\0\0\0\0\0\0"), 1, "x.test",
    "not EDNS" },
  { "EDNS cut", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\0\0\0\0", "\x00")), 1, "x.test",
    "EDNS record is" },
  { "EDNS length too long", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\0\0\0\0", "\x00\x01")), 1, "x.test",
    "EDNS record is" },
  { "EDNS option cut", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\0\0\0\0", "\x00\x03\x00\x0a\x00")), 1,
    "x.test", "EDNS options" },
  { "EDNS option too long", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\0\0\0\0", "\x00\x04\x00\x0a\x00\x01")),
    1, "x.test", "EDNS options" },
  { "EDNS version 1", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\x00\x01\x00\x00", "\x00\x00")), 16, "x.test",
    "EDNS version 1" },
  { "class CH", SPAN_INIT(HEAD(RD, ONE) X "\x00\x10\x00\x03"), 5, "x.test", "class 3" },
  { "any class", SPAN_INIT(HEAD(RD, ONE) X "\x00\x01\x00\xff"), 5, "x.test", "class 255" },
};

/* No prefix of a message is answered as if it were whole. */
static void check_prefixes(const struct query_row *row)
{
  for (size_t len = 0; len < row->text.len; len++) {
    struct dns_query query;
    int r = parse_copy((struct span){ row->text.ptr, len }, NULL, &query);

    unit_assert_row(r == -EBADMSG || query.rcode == DNS_FORMERR || query.rcode == DNS_NOTIMP, row->what,
                    "a prefix is whole");
    unit_assert_row(r == -EBADMSG || len >= 12, row->what, "answered without a header");
  }
}

static void test_query(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(query_rows); i++) {
    const struct query_row *row = &query_rows[i];
    struct dns_query query = { .udp_size = 7 };
    struct err err = ERR_INIT;
    int r = parse_copy(row->text, &err, &query);

    unit_assert_row(r == (row->rcode < 0 ? -EBADMSG : 0), row->what, err.message);
    unit_assert_row(r == 0 || query.udp_size == 7, row->what, "outputs changed by a failure");
    unit_assert_row(row->cause ? strstr(err.message, row->cause) != NULL : err.code == 0, row->what, err.message);
    if (row->rcode != 1 && row->rcode != 16)
      check_prefixes(row);
    if (r < 0)
      continue;
    unit_assert_row((int)query.rcode == row->rcode, row->what, "response code");
    unit_assert_row(query.id == 0x1234, row->what, "id");
    unit_assert_row(query.has_host == (row->host != NULL), row->what, "host or none");
    unit_assert_row(!row->host || strcmp(query.host.name, row->host) == 0, row->what, query.host.name);
    unit_assert_row(!row->host || query.name_len == strlen(row->host), row->what, "the name as it was written");
  }
}

static void test_udp_size(void **state)
{
  static const struct {
    const char *what;
    struct span text;
    unsigned size;
  } rows[] = {
    { "none", SPAN_INIT(HEAD(RD, ONE) X A_IN), 512 },
    { "0", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x00\x00", "\0\0\0\0", "\0\0")), 512 },
    { "511", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x01\xff", "\0\0\0\0", "\0\0")), 512 },
    { "513", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x02\x01", "\0\0\0\0", "\0\0")), 513 },
    { "1232", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x04\xd0", "\0\0\0\0", "\0\0")), 1232 },
    { "65535", SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\xff\xff", "\0\0\0\0", "\0\0")), 1232 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct dns_query query;

    unit_assert_row(dns_parse_query(rows[i].text, NULL, &query) == 0, rows[i].what, "refused");
    unit_assert_row(query.rcode == DNS_NOERROR && query.udp_size == rows[i].size, rows[i].what, "size");
    unit_assert_row(query.has_edns == (i > 0), rows[i].what, "EDNS");
  }
}

/* The whole answer, byte for byte. */
static void test_answer_bytes(void **state)
{
  static const struct addr v4 = { .family = ADDR_V4, .bytes = { 198, 18, 0, 5 } };
  static const struct addr v6 = { .family = ADDR_V6, .bytes = { 0xfd, [15] = 5 } };
  static const struct {
    const char *what;
    struct span query;
    struct dns_answer answer;
    struct span expected;
  } rows[] = {
    { "A",
      SPAN_INIT(HEAD(RD, ONE) "\x01X\x04tEsT\x00" A_IN),
      { DNS_NOERROR, &v4, 1, 0x010203 },
      SPAN_INIT("\x12\x34\x81\x80\0\1\0\1\0\0\0\0\x01X\x04tEsT\x00" A_IN
                "\xc0\x0c\0\1\0\1\x00\x01\x02\x03\0\4\xc6\x12\0\5") },
    { "AAAA with EDNS",
      SPAN_INIT(HEAD("\x00\x10", ONE_OPT) X "\x00\x1c\x00\x01" OPT_PLAIN),
      { DNS_NOERROR, &v6, 1, 60 },
      SPAN_INIT("\x12\x34\x80\x90\0\1\0\1\0\0\0\1" X "\x00\x1c\x00\x01"
                "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5"
                "\0\0\x29\x04\xd0\0\0\0\0\0\0") },
    { "HTTPS, none",
      SPAN_INIT(HEAD(RD, ONE) X "\x00\x41\x00\x01"),
      { DNS_NOERROR, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" X "\x00\x41\x00\x01") },
    { "NXDOMAIN",
      SPAN_INIT(HEAD(RD, ONE) X A_IN),
      { DNS_NXDOMAIN, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x83\0\1\0\0\0\0\0\0" X A_IN) },
    { "REFUSED",
      SPAN_INIT(HEAD(RD, ONE) X A_IN),
      { DNS_REFUSED, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x85\0\1\0\0\0\0\0\0" X A_IN) },
    { "SERVFAIL",
      SPAN_INIT(HEAD(RD, ONE) X A_IN),
      { DNS_SERVFAIL, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x82\0\1\0\0\0\0\0\0" X A_IN) },
    { "NOTIMP: the operation given back, no question",
      SPAN_INIT(HEAD("\x21\x00", ONE) X A_IN),
      { DNS_NOTIMP, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\xa1\x84\0\0\0\0\0\0\0\0") },
    { "FORMERR without a question",
      SPAN_INIT(HEAD(RD, ONE) "\xc0\x0c" A_IN),
      { DNS_FORMERR, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x81\0\0\0\0\0\0\0\0") },
    { "FORMERR with a question",
      SPAN_INIT(HEAD(RD, ONE) X A_IN "x"),
      { DNS_FORMERR, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x81\0\1\0\0\0\0\0\0" X A_IN) },
    { "BADVERS",
      SPAN_INIT(HEAD(RD, ONE_OPT) X A_IN OPT("\x10\x00", "\x00\x01\x00\x00", "\x00\x00")),
      { DNS_BADVERS, NULL, 0, 0 },
      SPAN_INIT("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" X A_IN "\0\0\x29\x04\xd0\x01\0\0\0\0\0") },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct dns_query query;
    char out[512];
    int len;

    unit_assert_row(dns_parse_query(rows[i].query, NULL, &query) == 0, rows[i].what, "query");
    len = dns_build_answer(&query, &rows[i].answer, out, sizeof out);
    unit_assert_row(len == (int)rows[i].expected.len, rows[i].what, "length");
    unit_assert_row(memcmp(out, rows[i].expected.ptr, rows[i].expected.len) == 0, rows[i].what, "bytes");
  }
}

static void test_answer_misuse(void **state)
{
  static const struct addr both[2] = { { .family = ADDR_V4 }, { .family = ADDR_V6 } };
  static const struct span queries[] = {
    SPAN_INIT(HEAD(RD, ONE) X A_IN),
    SPAN_INIT(HEAD(RD, ONE) X "\x00\x1c\x00\x01"),
    SPAN_INIT(HEAD(RD, ONE) X "\x00\x41\x00\x01"),
    SPAN_INIT(HEAD(RD, ONE) "\xc0\x0c" A_IN),
  };
  struct dns_answer answer = { DNS_NOERROR, both, 2, 0 };
  char out[512];

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(queries); i++) {
    struct dns_query query;

    assert_int_equal(dns_parse_query(queries[i], NULL, &query), 0);
    assert_int_equal(dns_build_answer(&query, &answer, out, sizeof out), -EINVAL);
  }
}

static struct dns_query longest_query(char text[static 300], bool edns, unsigned type)
{
  struct span head = edns ? SPAN(HEAD(RD, ONE_OPT)) : SPAN(HEAD(RD, ONE));
  struct dns_query query;
  size_t len = head.len;

  memcpy(text, head.ptr, head.len);
  for (size_t label = 0; label < 4; label++) {
    size_t size = label < 3 ? 63 : 61;

    text[len++] = (char)size;
    memset(text + len, 'q', size);
    len += size;
  }
  memcpy(text + len, "\x00\x00\x00\x00\x01" OPT_PLAIN, 16);
  text[len + 2] = (char)type;
  assert_int_equal(dns_parse_query((struct span){ text, len + (edns ? 16 : 5) }, NULL, &query), 0);
  assert_int_equal(query.rcode, DNS_NOERROR);
  assert_int_equal(query.question.len, 255 + 4);
  return query;
}

/* At every size of buffer: whole, or cut with TC, or refused; never a byte past the end. */
static void test_truncation(void **state)
{
  static const struct addr addrs[40];
  struct dns_answer answer = { DNS_NOERROR, addrs, MEM_COUNT(addrs), 1 };
  char text[300];

  (void)state;
  for (int edns = 0; edns <= 1; edns++) {
    struct dns_query query = longest_query(text, edns, DNS_TYPE_A);
    size_t least = 12 + 259 + (edns ? 11 : 0);
    size_t whole = least + 16 * MEM_COUNT(addrs);

    assert_true(least <= DNS_ANSWER_MIN_BYTES);
    for (size_t size = 0; size <= whole + 1; size++) {
      char *out = malloc(size + 1);
      int len;

      assert_non_null(out);
      out[size] = 0x5a;
      len = dns_build_answer(&query, &answer, out, size);
      if (size < least)
        assert_int_equal(len, -ENOSPC);
      else
        assert_int_equal(len, size < whole ? least : whole);
      if (len > 0) {
        assert_int_equal(out[2] & 2, size < whole ? 2 : 0);
        assert_int_equal(out[7], size < whole ? 0 : MEM_COUNT(addrs));
        assert_int_equal(out[11], edns);
      }
      assert_int_equal(out[size], 0x5a);
      free(out);
    }
  }
}

/* c-ares reads what was written: name as it was asked, addresses, TTL. */
static void check_with_ares(const struct dns_query *query, const struct dns_answer *answer, const char *name)
{
  unsigned char out[LIMITS_DNS_UDP_BYTES];
  struct ares_addr6ttl v6[8];
  struct ares_addrttl v4[8];
  struct hostent *host = NULL;
  int count = 8;
  int len = dns_build_answer(query, answer, (char *)out, sizeof out);
  bool is_v4 = query->type == DNS_TYPE_A;

  assert_true(len > 0);
  if (is_v4)
    assert_int_equal(ares_parse_a_reply(out, len, &host, v4, &count), ARES_SUCCESS);
  else
    assert_int_equal(ares_parse_aaaa_reply(out, len, &host, v6, &count), ARES_SUCCESS);
  assert_int_equal(count, answer->count);
  assert_string_equal(host->h_name, name);
  for (size_t i = 0; i < answer->count; i++) {
    assert_memory_equal(host->h_addr_list[i], answer->addrs[i].bytes, is_v4 ? 4 : 16);
    assert_int_equal(is_v4 ? v4[i].ttl : v6[i].ttl, answer->ttl);
  }
  assert_null(host->h_addr_list[answer->count]);
  ares_free_hostent(host);
}

static void test_oracle(void **state)
{
  static const char alphabet[] = "abcXYZ019-_";
  struct unit_random random = unit_seed("dns");

  (void)state;
  for (int round = 0; round < 2000; round++) {
    struct addr addrs[3] = { 0 };
    char message[300] = HEAD(RD, ONE);
    char name[256] = "";
    size_t labels = 1 + unit_below(&random, 4);
    bool v6 = unit_below(&random, 2);
    struct dns_answer answer = { .addrs = addrs, .count = 1 + unit_below(&random, 3) };
    struct dns_query query;
    size_t len = 12;
    size_t at = 0;

    for (size_t i = 0; i < labels; i++) {
      size_t size = 1 + unit_below(&random, 60);

      message[len++] = (char)size;
      for (size_t j = 0; j < size; j++)
        name[at++] = message[len++] = alphabet[unit_below(&random, sizeof alphabet - 1)];
      name[at++] = i + 1 < labels ? '.' : '\0';
    }
    memcpy(message + len, v6 ? "\0\0\x1c\0\1" : "\0\0\1\0\1", 5);
    for (size_t i = 0; i < answer.count; i++) {
      addrs[i].family = v6 ? ADDR_V6 : ADDR_V4;
      for (size_t j = 0; j < (v6 ? 16 : 4); j++)
        addrs[i].bytes[j] = (uint8_t)unit_next(&random);
    }
    answer.ttl = (uint32_t)unit_below(&random, 0x7fffffff);
    assert_int_equal(parse_copy((struct span){ message, len + 5 }, NULL, &query), 0);
    assert_int_equal(dns_parse_query((struct span){ message, len + 5 }, NULL, &query), 0);
    assert_int_equal(query.rcode, DNS_NOERROR);
    check_with_ares(&query, &answer, name);
  }
}

/* And what c-ares asks is understood. */
static void test_oracle_asks(void **state)
{
  (void)state;
  for (int edns = 0; edns <= 4096; edns += 4096) {
    unsigned char *text = NULL;
    int len = 0;
    struct dns_query query;

    assert_int_equal(ares_create_query("wWw.Example", 1, DNS_TYPE_AAAA, 0x4321, 1, &text, &len, edns), ARES_SUCCESS);
    assert_int_equal(dns_parse_query((struct span){ (const char *)text, (size_t)len }, NULL, &query), 0);
    assert_int_equal(query.rcode, DNS_NOERROR);
    assert_int_equal(query.id, 0x4321);
    assert_int_equal(query.type, DNS_TYPE_AAAA);
    assert_string_equal(query.host.name, "www.example");
    assert_int_equal(query.has_edns, edns > 0);
    ares_free_string(text);
  }
}

static void test_frame(void **state)
{
  static const struct {
    const char *what;
    struct span text;
    int result;
    size_t len;
  } rows[] = {
    { "nothing", SPAN_INIT(""), 0, 0 },
    { "half a length", SPAN_INIT("\x00"), 0, 0 },
    { "length", SPAN_INIT("\x00\x0c"), 0, 0 },
    { "a byte is missing",
      SPAN_INIT("\x00\x0c"
                "01234567890"),
      0, 0 },
    { "whole",
      SPAN_INIT("\x00\x0c"
                "012345678901"),
      1, 14 },
    { "with the next one",
      SPAN_INIT("\x00\x0c"
                "012345678901"
                "\x00"),
      1, 14 },
    { "length 0", SPAN_INIT("\x00\x00"), -EBADMSG, 0 },
    { "shorter than a header", SPAN_INIT("\x00\x0b"), -EBADMSG, 0 },
    { "longest", SPAN_INIT("\x10\x00"), 0, 0 },
    { "too long", SPAN_INIT("\x10\x01"), -E2BIG, 0 },
    { "far too long", SPAN_INIT("\xff\xff"), -E2BIG, 0 },
  };
  char out[2];

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct span message = { 0 };
    size_t len = 0;
    int r = dns_frame_scan(rows[i].text, &err, &message, &len);

    unit_assert_row(r == rows[i].result, rows[i].what, err.message);
    unit_assert_row(len == rows[i].len && message.len == (len ? len - 2 : 0), rows[i].what, "length");
  }
  dns_frame_encode(0x1234, out);
  assert_memory_equal(out, "\x12\x34", 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_query),         cmocka_unit_test(test_udp_size),   cmocka_unit_test(test_answer_bytes),
    cmocka_unit_test(test_answer_misuse), cmocka_unit_test(test_truncation), cmocka_unit_test(test_oracle),
    cmocka_unit_test(test_oracle_asks),   cmocka_unit_test(test_frame),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
