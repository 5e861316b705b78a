#include "proxy/digest.h"
#include "proxy/inject.h"
#include "unit/unit.h"

#include <errno.h>

#define ID "AKIAPLACEHOLDERAAAAA"
#define KEY "PlaceholderSecretKeyOfFortyLettersAAAAAA"
#define SCOPE "20150830/us-east-1/service/aws4_request"
#define REAL "AKIDEXAMPLE wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define HASH_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EMPTY_SIGNATURE "0000000000000000000000000000000000000000000000000000000000000000"
#define SIGNED(names) \
  "Authorization: AWS4-HMAC-SHA256 Credential=" ID "/" SCOPE ", SignedHeaders=" names ", Signature=" EMPTY_SIGNATURE \
  "\r\n"
#define NOW_MS UINT64_C(1440938160000) /* of VANILLA */
#define VANILLA "Host: example.amazonaws.com\r\nX-Amz-Date: 20150830T123600Z\r\n"

static char name_of_credential[] = "aws";
static char name_of_other[] = "other";
static const struct policy_credential credential = { .name = name_of_credential, .place = POLICY_PLACE_SIGV4 };
static const struct policy_credential other = { .name = name_of_other, .place = POLICY_PLACE_BEARER };
static const struct inject_secret secrets[] = {
  { &other, SPAN_INIT("ghp_TTTTplaceholder"), SPAN_INIT("value") },
  { &credential, SPAN_INIT(ID " " KEY), SPAN_INIT(REAL) },
};
static char text[LIMITS_HTTP_HEAD_BYTES];

static void parse(const char *line, const char *fields, struct http_head *head)
{
  struct err err = ERR_INIT;

  snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s\r\n", line, fields);
  if (http_head_parse_request(span_of(text), &err, head) < 0)
    fail_msg("%s: %s", fields, err.message);
}

/* The same as a client would sign it with the placeholder, or with another key. */
static void sign(struct http_head *head, struct span body, const char *key)
{
  struct sigv4_auth auth;
  const struct http_field *field = http_head_find(head, "authorization", NULL);

  assert_true(sigv4_read(field->value, &auth));
  assert_int_equal(sigv4_sign(digest_crypto(), head, &auth, body, span_of(key), text + (auth.signature.ptr - text)), 0);
}

static void test_hashes(void **state)
{
  static const struct sigv4_crypto *crypto;
  unsigned char hash[SIGV4_HASH_BYTES];
  char hex[SIGV4_HEX_BYTES];
  struct sigv4_digest *digest;

  (void)state;
  crypto = digest_crypto();
  assert_true(crypto->hash(SPAN(""), hash));
  sigv4_print_hex(hash, hex);
  assert_memory_equal(hex, HASH_OF_NOTHING, sizeof hex);
  digest = crypto->begin();
  assert_true(crypto->add(digest, SPAN("a")) && crypto->add(digest, SPAN("bc")) && crypto->end(&digest, hash));
  assert_null(digest);
  sigv4_print_hex(hash, hex);
  assert_memory_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", sizeof hex);
  assert_false(crypto->end(&digest, hash) || crypto->add(NULL, SPAN("")));
  /* RFC 4231, test case 2 */
  assert_true(crypto->mac(SPAN("Jefe"), SPAN("what do ya want for nothing?"), hash));
  sigv4_print_hex(hash, hex);
  assert_memory_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", sizeof hex);
}

/* The signature of AWS's own simplest example. */
static void test_example(void **state)
{
  buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct inject_signer signer = { .crypto = digest_crypto(), .now_ms = NOW_MS };
  struct err err = ERR_INIT;
  struct inject_look look;
  struct http_head head;

  (void)state;
  parse("GET /", VANILLA SIGNED("host;x-amz-date"), &head);
  sign(&head, SPAN(HASH_OF_NOTHING), KEY);
  assert_int_equal(inject_look(secrets, 2, 3, &head, &look), INJECT_WANTS);
  assert_true(look.wanted == 2 && look.body && !look.fault);
  assert_int_equal(inject_fields(secrets, 2, look.wanted, &signer, &head, &err, &out), 0);
  assert_int_equal(head.field_count, 3);
  assert_true(span_equal_str(http_head_find(&head, "authorization", NULL)->value,
                             "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" SCOPE
                             ", SignedHeaders=host;x-amz-date, Signature="
                             "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
}

/* The token goes with the key: signed where it stands among the names, and nobody else's stays. */
static void test_token(void **state)
{
  static const struct {
    const char *names;
    const char *fields;
    const char *token; /* of the key; NULL: it has none */
    const char *expected;
  } rows[] = {
    { "host;x-amz-date", "", "t0k/en==", "host;x-amz-date;x-amz-security-token" },
    { "host;x-amz-date;x-amz-security-token-too;x-amz-target", "x-amz-target: a\r\nx-amz-security-token-too: b\r\n",
      "t", "host;x-amz-date;x-amz-security-token;x-amz-security-token-too;x-amz-target" },
    { "host;x-amz-date;x-amz-security-token;zeta", "zeta: a\r\nX-Amz-Security-Token: own\r\n", "t",
      "host;x-amz-date;x-amz-security-token;zeta" },
    { "host;x-amz-date;x-amz-security-token", "X-Amz-Security-Token: own\r\n", NULL, "host;x-amz-date" },
    { "host;x-amz-date", "X-Amz-Security-Token: own\r\n", NULL, "host;x-amz-date" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    struct inject_signer signer = { .crypto = digest_crypto(), .now_ms = NOW_MS };
    char value[256];
    char fields[1024];
    struct inject_secret secret = secrets[1];
    const struct http_field *token;
    struct err err = ERR_INIT;
    struct sigv4_auth auth;
    struct http_head head;

    snprintf(value, sizeof value, REAL "%s%s", rows[i].token ? " " : "", rows[i].token ? rows[i].token : "");
    snprintf(fields, sizeof fields,
             VANILLA "%sAuthorization: AWS4-HMAC-SHA256 Credential=" ID "/" SCOPE
                     ", SignedHeaders=%s, Signature=" EMPTY_SIGNATURE "\r\n",
             rows[i].fields, rows[i].names);
    secret.value = span_of(value);
    parse("GET /", fields, &head);
    sign(&head, SPAN(HASH_OF_NOTHING), KEY);
    unit_assert_row(inject_fields(&secret, 1, 1, &signer, &head, &err, &out) == 0, rows[i].names, err.message);
    assert_true(sigv4_read(http_head_find(&head, "authorization", NULL)->value, &auth));
    unit_assert_row(span_equal_str(auth.signed_names, rows[i].expected), rows[i].names, rows[i].expected);
    token = http_head_find(&head, "x-amz-security-token", NULL);
    unit_assert_row(rows[i].token ? token && span_equal_str(token->value, rows[i].token) : !token, rows[i].names,
                    "token");
  }
}

/* What is refused, and what of it is said. */
static void test_faults(void **state)
{
  static const struct {
    const char *line;
    const char *fields;
    const char *cause; /* NULL: it is fine */
  } rows[] = {
    { "GET /", VANILLA SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n" SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n" SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "x-amz-content-sha256: " HASH_OF_NOTHING "\r\n" SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "Cookie: " ID "\r\n" SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "Referer: " KEY "\r\n" SIGNED("host;x-amz-date"), NULL },
    { "GET /", VANILLA "x-amz-content-sha256: E" HASH_OF_NOTHING "\r\n" SIGNED("host;x-amz-date"), "not signed as" },
    { "GET /",
      VANILLA
      "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n" SIGNED("host;x-amz-date"),
      "not signed as" },
    { "PUT /", VANILLA "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n" SIGNED("host;x-amz-date"),
      "chunk by chunk" },
    { "PUT /", VANILLA "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER\r\n" SIGNED("host;x-amz-date"),
      "chunk by chunk" },
    { "GET /", VANILLA SIGNED("x-amz-date"), "not signed as" },
    { "GET /", VANILLA SIGNED("x-amz-date;host"), "not signed as" },
    { "GET /", VANILLA SIGNED("host;host;x-amz-date"), "not signed as" },
    { "GET /", VANILLA SIGNED("Host;x-amz-date"), "not signed as" },
    { "GET /", VANILLA SIGNED("connection;host;x-amz-date"), "not signed as" },
    { "GET /", VANILLA SIGNED(""), "not signed as" },
    { "GET /", "Host: a\r\n" SIGNED("host"), "not signed as" },
    { "GET /", "Host: a\r\nX-Amz-Date: 20150831T123600Z\r\n" SIGNED("host"), "not signed as" },
    { "GET /", VANILLA SIGNED("host;x-amz-date") SIGNED("host;x-amz-date"), "not signed as" },
    { "GET /", VANILLA "Authorization: AWS4-HMAC-SHA256 Credential=" ID "/" SCOPE ", SignedHeaders=host\r\n",
      "not signed as" },
    { "GET /",
      VANILLA "Authorization: AWS4-HMAC-SHA256 Credential=x" ID "/" SCOPE
              ", SignedHeaders=host, Signature=" EMPTY_SIGNATURE "\r\n",
      "not signed as" },
    { "GET /",
      VANILLA "Authorization: AWS4-HMAC-SHA256 Credential=" ID "/20150830/" ID "/s3/aws4_request, SignedHeaders=host, "
              "Signature=" EMPTY_SIGNATURE "\r\n",
      "not signed as" },
    { "GET /", VANILLA "Authorization: AWS " ID ":abc\r\n", "not signed as" },
    { "GET /", VANILLA "Authorization: AWS4-ECDSA-P256-SHA256 Credential=" ID "/20150830/s3/aws4_request\r\n",
      "several regions" },
    { "GET /?X-Amz-Credential=" ID "%2F20150830", VANILLA, "presigned" },
    { "GET /?AWSAccessKeyId=" ID "&Signature=a", VANILLA, "presigned" },
    { "GET /?a=" ID, VANILLA, "not its signature" },
    { "GET /" ID, VANILLA, "not its signature" },
    { "GET /" KEY, VANILLA SIGNED("host;x-amz-date"), "not its signature" },
    { "GET /", VANILLA "X-A: " ID "\r\n" SIGNED("host;x-amz-date"), "not its signature" },
    { "GET /", VANILLA "X-A: " KEY "\r\n" SIGNED("host;x-amz-date"), "not its signature" },
    { "GET /", VANILLA "Authorization: Bearer " KEY "\r\n", "not its signature" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct inject_look look;
    struct http_head head;
    enum inject_verdict verdict;

    parse(rows[i].line, rows[i].fields, &head);
    verdict = inject_look(secrets, 2, 3, &head, &look);
    unit_assert_row((verdict == INJECT_WANTS) == !rows[i].cause, rows[i].line, rows[i].fields);
    unit_assert_row((verdict == INJECT_MISUSE) == !!rows[i].cause && (!rows[i].cause || look.index == 1), rows[i].line,
                    rows[i].fields);
    unit_assert_row(!rows[i].cause || (look.fault && strstr(look.fault->cause, rows[i].cause)), rows[i].line,
                    look.fault ? look.fault->cause : rows[i].fields);
    /* Not bound: refused in the same words as any other. */
    verdict = inject_look(secrets, 2, 1, &head, &look);
    unit_assert_row(verdict == INJECT_MISUSE && look.index == 1 && !look.fault, rows[i].line, rows[i].fields);
  }
}

/* What is signed with another key, changed on its way, or too large. */
static void test_not_signed(void **state)
{
  struct inject_signer signer = { .crypto = digest_crypto(), .now_ms = NOW_MS };

  (void)state;
  for (int i = 0; i < 4; i++) {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    struct inject_secret secret = secrets[1];
    struct err err = ERR_INIT;
    struct http_head head;

    parse("GET /a", VANILLA SIGNED("host;x-amz-date"), &head);
    sign(&head, SPAN(HASH_OF_NOTHING), i == 0 ? "AnotherKey" : KEY);
    if (i == 1)
      head.target = SPAN("/b");
    if (i == 2)
      signer.body = SPAN(EMPTY_SIGNATURE);
    if (i == 3)
      secret.value = SPAN("one");
    assert_int_equal(
        inject_fields(&secret, 1, 1,
                      i == 3 ? &(struct inject_signer){ .crypto = digest_crypto(), .now_ms = NOW_MS } : &signer, &head,
                      &err, &out),
        i == 3 ? -EINVAL : -EKEYREJECTED);
    assert_non_null(strstr(err.message, "aws"));
    assert_null(strstr(err.message, "one in"));
  }
}

/* A key signs for now: 15 minutes to either side, as the services take it. */
static void test_time(void **state)
{
  static const struct {
    const char *time;
    uint64_t now_ms;
    bool good;
  } rows[] = {
    { "20150830T123600Z", NOW_MS, true },
    { "20150830T123600Z", NOW_MS - INJECT_SIGN_SPAN_MS, true },
    { "20150830T123600Z", NOW_MS + INJECT_SIGN_SPAN_MS, true },
    { "20150830T123600Z", NOW_MS - INJECT_SIGN_SPAN_MS - 1, false },
    { "20150830T123600Z", NOW_MS + INJECT_SIGN_SPAN_MS + 1, false },
    { "20150830T123600Z", 0, false },
    { "20150830T126000Z", NOW_MS, false },
    { "20150830T246000Z", NOW_MS, false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
    struct inject_signer signer = { .crypto = digest_crypto(), .now_ms = rows[i].now_ms };
    char fields[1024];
    struct err err = ERR_INIT;
    struct http_head head;
    int r;

    snprintf(fields, sizeof fields, "Host: example.amazonaws.com\r\nX-Amz-Date: %s\r\n%s", rows[i].time,
             SIGNED("host;x-amz-date"));
    parse("GET /", fields, &head);
    sign(&head, SPAN(HASH_OF_NOTHING), KEY);
    r = inject_fields(&secrets[1], 1, 1, &signer, &head, &err, &out);
    unit_assert_row(r == (rows[i].good ? 0 : -EKEYREJECTED), rows[i].time, err.message);
    unit_assert_row(rows[i].good || strstr(err.message, "another time"), rows[i].time, err.message);
  }
}

static void test_many_parameters(void **state)
{
  static char target[LIMITS_HTTP_HEAD_BYTES];
  struct http_head head;
  struct sigv4_auth auth;
  char signature[SIGV4_HEX_BYTES];

  (void)state;
  for (size_t count = SIGV4_PARAMETERS_MAX; count <= SIGV4_PARAMETERS_MAX + 1; count++) {
    parse("GET /", VANILLA SIGNED("host;x-amz-date"), &head);
    assert_true(sigv4_read(http_head_find(&head, "authorization", NULL)->value, &auth));
    memcpy(target, "/?", 2);
    for (size_t i = 0; i < count; i++)
      memcpy(target + 2 + 2 * i, "a&", 2);
    head.target = (struct span){ target, 2 + 2 * count - 1 };
    assert_int_equal(sigv4_sign(digest_crypto(), &head, &auth, SPAN(""), SPAN("k"), signature),
                     count > SIGV4_PARAMETERS_MAX ? -E2BIG : 0);
  }
}

/* A request that has nothing to do with it, or a key of its own. */
static void test_untouched(void **state)
{
  static const char *const rows[] = {
    "Host: a\r\n",
    "Host: a\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIAOWN/" SCOPE
    ", SignedHeaders=host, Signature=" EMPTY_SIGNATURE "\r\n",
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct inject_look look;
    struct http_head head;

    parse("GET /?X-Amz-Credential=AKIAOWN", rows[i], &head);
    assert_int_equal(inject_look(secrets, 2, 3, &head, &look), INJECT_PASS);
    assert_true(!look.wanted && !look.body);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hashes),          cmocka_unit_test(test_example),    cmocka_unit_test(test_token),
    cmocka_unit_test(test_faults),          cmocka_unit_test(test_not_signed), cmocka_unit_test(test_time),
    cmocka_unit_test(test_many_parameters), cmocka_unit_test(test_untouched),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
