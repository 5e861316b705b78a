#include "config.h"

#include "proxy/denial.h"
#include "proxy/sniff.h"
#include "unit/unit.h"

static const struct {
  enum reason reason;
  bool allow;
  unsigned status;
} statuses[] = {
  { REASON_DENY_RULE, false, 403 },         { REASON_NOT_ALLOWED, false, 403 },
  { REASON_PORT_NOT_ALLOWED, false, 403 },  { REASON_ADDRESS_PRIVATE, false, 403 },
  { REASON_BAD_TARGET, false, 400 },        { REASON_BAD_REQUEST, false, 400 },
  { REASON_RESOLVE_FAILED, true, 502 },     { REASON_CONNECT_REFUSED, true, 502 },
  { REASON_CONNECT_TIMEOUT, true, 504 },    { REASON_CONNECT_FAILED, true, 502 },
  { REASON_UPSTREAM_TLS, true, 502 },       { REASON_CREDENTIAL_UNAVAILABLE, true, 502 },
  { REASON_CREDENTIAL_MISUSE, false, 403 }, { REASON_UPSTREAM_CLOSED, true, 502 },
  { REASON_BAD_RESPONSE, true, 502 },       { REASON_LIMIT, false, 503 },
  { REASON_LIMIT_CONNECTIONS, false, 503 }, { REASON_LIMIT_DIALS, true, 503 },
  { REASON_LIMIT_HEAD, false, 431 },        { REASON_LIMIT_TIME, true, 504 },
};

static char *render(const struct denial *denial)
{
  struct buf out = BUF_INIT(65536);
  char *text;

  denial_render(denial, &out);
  text = buf_steal(&out);
  assert_non_null(text);
  return text;
}

static void assert_has(const char *text, const char *part)
{
  if (!strstr(text, part))
    fail_msg("no %s in %s", part, text);
}

static void test_statuses(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(statuses); i++) {
    struct verdict verdict = { .allow = statuses[i].allow, .reason = statuses[i].reason };

    assert_int_equal(denial_status(&verdict), statuses[i].status);
  }
}

static void test_render(void **state)
{
  struct policy_rule rule = { .text = (char[]){ "x\"y" } };
  struct denial denial = { .verdict = { .reason = REASON_NOT_ALLOWED, .rule = &rule }, .port = 443, .close = true };
  struct host host;
  buf_autofree struct buf length = BUF_INIT(64);
  mem_autofree char *text = NULL;
  const char *body;

  (void)state;
  assert_int_equal(host_parse(SPAN("Example.com"), NULL, &host), 0);
  denial.host = &host;
  text = render(&denial);
  assert_has(text, "HTTP/1.1 403 Blocked by " SBX_NAME ": example.com:443 is not allowed\r\n");
  assert_has(text, "\r\nConnection: close\r\n\r\n{");
  assert_has(text, "\"host\":\"example.com\",\"port\":443,\"reason\":\"not-allowed\",\"rule\":\"x\\\"y\",\"fix\":\"");
  assert_has(text, "--allow example.com");
  body = strstr(text, "\r\n\r\n") + 4;
  buf_printf(&length, "\r\nContent-Length: %zu\r\n", strlen(body));
  assert_has(text, length.data);
}

static void test_head_only(void **state)
{
  struct denial denial = { .verdict = { .reason = REASON_BAD_REQUEST }, .host_text = SPAN(""), .head_only = true };
  mem_autofree char *text = render(&denial);

  (void)state;
  assert_null(strchr(text, '{'));
  assert_string_equal(text + strlen(text) - 4, "\r\n\r\n");
}

/* Bytes from inside must not break out of the status line or of the JSON. */
static void test_hostile_text(void **state)
{
  struct denial denial = {
    .verdict = { .reason = REASON_BAD_TARGET },
    .host_text = SPAN("a\r\nX: y\"\\\x1b\xff"),
    .cause = "not\r\nwell",
  };
  mem_autofree char *text = render(&denial);

  (void)state;
  assert_has(text, "HTTP/1.1 400 " SBX_NAME ": a\\x0d\\x0aX: y\"\\x5c\\x1b\\xff: ");
  assert_has(text, "\"host\":\"a\\u000d\\nX: y\\\"\\\\\\u001b\\u00ff\"");
  assert_null(strstr(text, "\r\nX: "));
  assert_null(strchr(text, '\x1b'));
}

static void test_sniff(void **state)
{
  (void)state;
  assert_int_equal(sniff_first(SPAN("")), SNIFF_MORE);
  assert_int_equal(sniff_first(SPAN("G")), SNIFF_HTTP);
  assert_int_equal(sniff_first(SPAN("!x")), SNIFF_HTTP);
  assert_int_equal(sniff_first(SPAN("\x16\x03\x01")), SNIFF_UNKNOWN);
  assert_int_equal(sniff_first(SPAN("\x05\x01")), SNIFF_UNKNOWN);
  assert_int_equal(sniff_first(SPAN("\x04\x01")), SNIFF_UNKNOWN);
  assert_int_equal(sniff_first(SPAN("\0")), SNIFF_UNKNOWN);
  assert_int_equal(sniff_first(SPAN("\r\n")), SNIFF_UNKNOWN);
  assert_int_equal(sniff_first(SPAN("\x80")), SNIFF_UNKNOWN);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_statuses),     cmocka_unit_test(test_render), cmocka_unit_test(test_head_only),
    cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_sniff),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
