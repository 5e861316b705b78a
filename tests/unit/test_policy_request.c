#include "policy/decide.h"
#include "policy/rule.h"
#include "unit/policy_make.h"

/* What a path becomes; NULL: it has more than one reading. */
static void test_read_path(void **state)
{
  static const struct {
    const char *path;
    const char *read;
  } rows[] = {
    { "", "/" },
    { "/", "/" },
    { "*", "*" },
    { "/a/b", "/a/b" },
    { "/a/", "/a/" },
    { "/a%20b", "/a b" },
    { "/%61%62", "/ab" },
    { "/%41", "/A" },
    { "/caf%C3%A9", "/caf\xc3\xa9" },
    { "/caf%c3%a9", "/caf\xc3\xa9" },
    { "/a*b", "/a*b" },
    { "/%2a", "/*" },
    { "/a.b/..c/.d/...", "/a.b/..c/.d/..." },
    { "/a+b:c@d!$&'(),=~", "/a+b:c@d!$&'(),=~" },
    { "a", NULL },
    { "**", NULL },
    { "%2f", NULL },
    { "/a/../b", NULL },
    { "/a/..", NULL },
    { "/..", NULL },
    { "/.", NULL },
    { "/a/./b", NULL },
    { "/%2e%2e/b", NULL },
    { "/.%2E/b", NULL },
    { "/a//b", NULL },
    { "//a", NULL },
    { "//", NULL },
    { "/a%2fb", NULL },
    { "/a%2Fb", NULL },
    { "/a\\b", NULL },
    { "/a%5cb", NULL },
    { "/a;b", NULL },
    { "/..;/b", NULL },
    { "/a%3bb", NULL },
    { "/a%00b", NULL },
    { "/a%0ab", NULL },
    { "/a%7f", NULL },
    { "/a%25b", NULL },
    { "/a%252e", NULL },
    { "/a%252f", NULL },
    { "/a%3fb", NULL },
    { "/a%23b", NULL },
    { "/%", NULL },
    { "/%2", NULL },
    { "/%zz", NULL },
    { "/%u002f", NULL },
    { "/% 20", NULL },
    { "/a b", NULL },
    { "/a\tb", NULL },
    { "/caf\xc3\xa9", NULL },
    { "/%c0%af", NULL }, /* overlong '/' */
    { "/%c0%ae%c0%ae/b", NULL },
    { "/%e0%80%af", NULL },
    { "/%ff", NULL },
    { "/%c3", NULL },
    { "/%ed%a0%80", NULL }, /* half a surrogate pair */
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct request_path path;
    const char *cause = NULL;
    int r = request_read_path(span_of(rows[i].path), &path, &cause);
    unit_assert_row((r == 0) == (rows[i].read != NULL), rows[i].path, cause ? cause : "accepted");
    unit_assert_row(r == 0 || (cause && *cause), rows[i].path, "no cause");
    if (r == 0)
      unit_assert_row(span_equal_str((struct span){ path.bytes, path.len }, rows[i].read), rows[i].path,
                      "read wrongly");
  }
}

static void test_long_path(void **state)
{
  char text[LIMITS_REQUEST_PATH_BYTES + 2];
  struct request_path path;
  const char *cause;

  (void)state;
  memset(text, 'a', sizeof text);
  text[0] = '/';
  assert_int_equal(request_read_path((struct span){ text, LIMITS_REQUEST_PATH_BYTES }, &path, &cause), 0);
  assert_int_equal(path.len, LIMITS_REQUEST_PATH_BYTES);
  assert_int_equal(request_read_path((struct span){ text, LIMITS_REQUEST_PATH_BYTES + 1 }, &path, &cause), -EBADMSG);
}

/* Objects as rules: canonical text, or NULL where refused. */
static void test_grammar(void **state)
{
  static const struct {
    const char *text;
    const char *canonical;
    const char *part; /* of the message */
  } rows[] = {
    { "{\"host\":\"A.test:80\",\"methods\":[\"GET\"]}", "{\"host\": \"a.test:80\", \"methods\": [\"GET\"]}", NULL },
    { "{\"paths\": [\"/b\", \"/a\", \"/b\"], \"host\": \"a.test:80\"}",
      "{\"host\": \"a.test:80\", \"paths\": [\"/a\", \"/b\"]}", NULL },
    { "{\"host\": \"[::1]:8080\", \"paths\": [\"/*\"], \"methods\": [\"PUT\", \"GET\"]}",
      "{\"host\": \"[::1]:8080\", \"methods\": [\"GET\", \"PUT\"], \"paths\": [\"/*\"]}", NULL },
    { "{\"host\": \"localhost:1-442\", \"methods\": [\"purge\"]}",
      "{\"host\": \"localhost:1-442\", \"methods\": [\"purge\"]}", NULL },
    { "{\"host\": \"A.test\", \"methods\": [\"GET\"]}", "{\"host\": \"a.test\", \"methods\": [\"GET\"]}", NULL },
    { "{\"host\": \"a.test:443\", \"methods\": [\"GET\"]}", "{\"host\": \"a.test:443\", \"methods\": [\"GET\"]}",
      NULL },
    { "{\"host\": \"*.a.test:*\", \"paths\": [\"/x\"]}", "{\"host\": \"*.a.test:*\", \"paths\": [\"/x\"]}", NULL },
    { "{\"host\": \"2001:db8::1\", \"paths\": [\"/x\"]}", "{\"host\": \"2001:db8::1\", \"paths\": [\"/x\"]}", NULL },
    { "{\"host\": \"a.test:80\"}", NULL, "write the string \"a.test:80\"" },
    { "{\"methods\": [\"GET\"]}", NULL, "host" },
    { "{\"host\": 1, \"methods\": [\"GET\"]}", NULL, "host" },
    { "{\"host\": \"{\\\"host\\\": \\\"a.test:80\\\"}\", \"methods\": [\"GET\"]}", NULL, "host" },
    { "{\"host\": \"*.com:80\", \"methods\": [\"GET\"]}", NULL, "host: a wildcard" },
    { "{\"host\": \"a.test:80\", \"methods\": []}", NULL, "methods: not a list" },
    { "{\"host\": \"a.test:80\", \"methods\": [\"get\"]}", NULL, "methods[0]: methods are case-sensitive; write GET" },
    { "{\"host\": \"a.test:80\", \"methods\": [\"GET\", \"*\"]}", NULL, "methods[1]: \"*\"" },
    { "{\"host\": \"a.test:80\", \"methods\": [\"CONNECT\"]}", NULL, "CONNECT" },
    { "{\"host\": \"a.test:80\", \"methods\": [\"G T\"]}", NULL, "not a method" },
    { "{\"host\": \"a.test:80\", \"methods\": [\"\"]}", NULL, "methods[0]" },
    { "{\"host\": \"a.test:80\", \"methods\": [1]}", NULL, "methods[0]: a number" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"x\"]}", NULL, "paths[0]: a path begins" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/x\", \"/x?y\"]}", NULL, "paths[1]: a query" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a%20b\"]}", NULL, "decoded" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a/../b\"]}", NULL, "paths[0]: a part" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a//b\"]}", NULL, "paths[0]: an empty part" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a;b\"]}", NULL, "semicolon" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/**\"]}", NULL, "write it once" },
    { "{\"host\": \"a.test:80\", \"path\": [\"/a\"]}", NULL, "path: unknown member" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a\"], \"paths\": [\"/b\"]}", NULL, "" },
    { "{", NULL, "" },
    { "{}", NULL, "host" },
    { "{\"host\": \"a.test:80\", \"paths\": [\"/a\"]} x", NULL, "" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    struct policy_rule rule;
    struct policy_rule again;
    int r = rule_parse(span_of(rows[i].text), RULE_ALLOW, &err, &rule);
    unit_assert_row((r == 0) == (rows[i].canonical != NULL), rows[i].text, err.message);
    if (r < 0) {
      unit_assert_row(r == -EINVAL && strstr(err.message, rows[i].part), rows[i].text, err.message);
      continue;
    }
    unit_assert_row(strcmp(rule.text, rows[i].canonical) == 0, rows[i].text, rule.text);
    assert_int_equal(rule_parse(span_of(rule.text), RULE_ALLOW, NULL, &again), 0);
    assert_string_equal(again.text, rule.text);
    rule_free(&rule);
    rule_free(&again);
  }
}

/* The place of a fault in a file, and the printed form. */
static void test_in_a_file(void **state)
{
  struct make_layer bad = {
    LAYER_FILE, "/p.json", "{\"network\": {\"allow\": [\"b.test\",\n {\"host\": \"a.test\", \"methods\": [\"get\"]}]}}"
  };
  struct make_layer quoted = { LAYER_FILE, "/p.json",
                               "{\"network\": {\"allow\": [\"{\\\"host\\\": \\\"a.test:80\\\"}\"]}}" };
  struct make_layer forward = { LAYER_FILE, "/p.json",
                                "{\"network\": {\"forward\": [\"80:8080\"], \"deny\": [{\"host\": \"localhost:80\", "
                                "\"methods\": [\"POST\"]}]}}" };
  struct policy *policy =
      make_policy("{\"network\": {\"allow\": [{\"paths\": [\"/caf\\u00e9 x\"], \"host\": \"a.test:80\"}, "
                  "{\"host\": \"A.test:80\", \"paths\": [\"/caf\\u00e9 x\"]}]}}");
  struct policy *again = NULL;
  struct err err = ERR_INIT;
  char *text;

  (void)state;
  assert_int_equal(make_validate(&bad, 1, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "/p.json:2: network.allow[1]"));
  assert_int_equal(make_validate(&quoted, 1, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "without"));
  assert_int_equal(make_validate(&forward, 1, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "network.forward"));
  assert_int_equal(policy->allow.count, 1); /* equal rules are one */
  text = make_print(policy, true);
  assert_int_equal(policy_parse(span_of(text), NULL, &again), 0);
  assert_string_equal(again->allow.items[0].text, policy->allow.items[0].text);
  assert_string_equal(again->allow.items[0].paths.items[0], "/caf\xc3\xa9 x");
  free(text);
  policy_free(again);
  policy_free(policy);
}

#define GET_X "{\"host\": \"a.test:80\", \"methods\": [\"GET\"], \"paths\": [\"/x/*\", \"/y\"]}"
#define ANY_Z "{\"host\": \"*.b.test:80\", \"paths\": [\"/z*\"]}"
#define POSTS "{\"host\": \"a.test:80\", \"methods\": [\"POST\"]}"

static void test_judgement(void **state)
{
  static const struct {
    const char *allow;
    const char *deny;
    const char *target;
    const char *addr; /* where it goes, or NULL */
    const char *method;
    const char *path;
    enum reason reason;
  } rows[] = {
    { GET_X, "", "a.test:80", NULL, "GET", "/x/1", REASON_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/x/1/2/3", REASON_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/x/", REASON_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/x", REASON_PATH_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/y/", REASON_PATH_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/X/1", REASON_PATH_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/", REASON_PATH_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "*", REASON_PATH_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/%78/1", REASON_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GET", "/x/../y", REASON_AMBIGUOUS_REQUEST },
    { GET_X, "", "a.test:80", NULL, "GET", "/x/%2e%2e/y", REASON_AMBIGUOUS_REQUEST },
    { GET_X, "", "a.test:80", NULL, "GET", "/x%2f1", REASON_AMBIGUOUS_REQUEST },
    { GET_X, "", "a.test:80", NULL, "HEAD", "/y", REASON_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "get", "/y", REASON_METHOD_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "GETX", "/y", REASON_METHOD_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "POST", "/y", REASON_METHOD_NOT_ALLOWED },
    { GET_X, "", "a.test:80", NULL, "POST", "/x/../y", REASON_METHOD_NOT_ALLOWED },
    { GET_X, "", "a.test:81", NULL, "GET", "/y", REASON_PORT_NOT_ALLOWED },
    { GET_X, "", "c.test:80", NULL, "GET", "/y", REASON_NOT_ALLOWED },
    { GET_X ", " POSTS, "", "a.test:80", NULL, "POST", "/any", REASON_ALLOWED },
    { GET_X ", " POSTS, "", "a.test:80", NULL, "POST", "/a/../b", REASON_ALLOWED }, /* no path decides */
    { GET_X ", " POSTS, "", "a.test:80", NULL, "PUT", "/any", REASON_METHOD_NOT_ALLOWED },
    { ANY_Z, "", "x.b.test:80", NULL, "ANY", "/zz", REASON_ALLOWED },
    { ANY_Z, "", "b.test:80", NULL, "ANY", "/zz", REASON_NOT_ALLOWED },
    /* A rule on the host allows all, before or behind. */
    { GET_X ", \"a.test\"", "", "a.test:80", NULL, "PUT", "/a/../b", REASON_ALLOWED },
    { "\"a.test\", " GET_X, "", "a.test:80", NULL, "PUT", "/q", REASON_ALLOWED },
    /* Deny wins. */
    { "\"a.test\"", POSTS, "a.test:80", NULL, "POST", "/q", REASON_DENY_RULE },
    { "\"a.test\"", POSTS, "a.test:80", NULL, "GET", "/a/../b", REASON_ALLOWED },
    { "\"a.test\"", GET_X, "a.test:80", NULL, "GET", "/y", REASON_DENY_RULE },
    { "\"a.test\"", GET_X, "a.test:80", NULL, "GET", "/y/", REASON_DENY_RULE }, /* many servers serve both alike */
    { "\"a.test\"", GET_X, "a.test:80", NULL, "HEAD", "/y", REASON_DENY_RULE },
    { "\"a.test\"", GET_X, "a.test:80", NULL, "GET", "/q", REASON_ALLOWED },
    { "\"a.test\"", GET_X, "a.test:80", NULL, "GET", "/%2e/y", REASON_AMBIGUOUS_REQUEST },
    { "\"a.test\"", GET_X, "a.test:80", NULL, "PUT", "/%2e/y", REASON_ALLOWED },
    { GET_X, "\"a.test\"", "a.test:80", NULL, "GET", "/y", REASON_DENY_RULE },
    { GET_X, GET_X, "a.test:80", NULL, "GET", "/y", REASON_DENY_RULE },
    { "\"*:*\"", "{\"host\": \"*:80\", \"methods\": [\"POST\"]}", "q.test:80", NULL, "POST", "/", REASON_DENY_RULE },
    { "\"*:*\"", "{\"host\": \"*:80\", \"methods\": [\"POST\"]}", "q.test:81", NULL, "POST", "/", REASON_ALLOWED },
    /* Addresses. */
    { "{\"host\": \"192.0.2.0/24:80\", \"methods\": [\"GET\"]}", "", "192.0.2.1:80", NULL, "GET", "/", REASON_ALLOWED },
    { "{\"host\": \"192.0.2.0/24:80\", \"methods\": [\"GET\"]}", "", "192.0.2.1:80", NULL, "PUT", "/",
      REASON_METHOD_NOT_ALLOWED },
    { "{\"host\": \"10.0.0.0/8:80\", \"methods\": [\"GET\"]}", "", "10.0.0.1:80", NULL, "GET", "/", REASON_ALLOWED },
    { "{\"host\": \"*:80\", \"methods\": [\"GET\"]}", "", "10.0.0.1:80", NULL, "GET", "/", REASON_ADDRESS_PRIVATE },
    { "\"a.test\"", "{\"host\": \"192.0.2.0/24:80\", \"methods\": [\"POST\"]}", "a.test:80", NULL, "POST", "/",
      REASON_ALLOWED },
    { "\"a.test\"", "{\"host\": \"192.0.2.0/24:80\", \"methods\": [\"POST\"]}", "a.test:80", "192.0.2.1", "POST", "/",
      REASON_DENY_RULE },
    { "\"a.test\"", "{\"host\": \"192.0.2.0/24:80\", \"methods\": [\"POST\"]}", "a.test:80", "192.0.3.1", "POST", "/",
      REASON_ALLOWED },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct buf text = BUF_INIT(4096);
    struct request request = { span_of(rows[i].method), span_of(rows[i].path) };
    struct verdict target;
    struct verdict verdict;
    struct policy *policy;
    struct host host;
    struct addr addr;
    uint16_t port;
    buf_printf(&text, "{\"network\": {\"allow\": [%s], \"deny\": [%s]}}", rows[i].allow, rows[i].deny);
    policy = make_policy(text.data);
    assert_int_equal(host_parse_target(span_of(rows[i].target), 0, NULL, &host, &port), 0);
    if (rows[i].addr)
      assert_int_equal(addr_parse(span_of(rows[i].addr), &addr), 0);
    target = decide_target(policy, &host, port);
    verdict = decide_request(policy, &target, &host, rows[i].addr ? &addr : NULL, port, &request);
    unit_assert_row(verdict.reason == rows[i].reason, text.data, reason_word(verdict.reason));
    unit_assert_row(verdict.allow == (rows[i].reason == REASON_ALLOWED), text.data, "verdict and reason differ");
    unit_assert_row((verdict.reason == REASON_AMBIGUOUS_REQUEST) == (verdict.detail != NULL), text.data, "detail");
    unit_assert_row(verdict.rule || verdict.reason == REASON_NOT_ALLOWED || verdict.has_addr, text.data, "no rule");
    buf_free(&text);
    policy_free(policy);
  }
}

/* A private address that a name leads to takes a rule on connections. */
static void test_names_and_addresses(void **state)
{
  struct policy *policy = make_policy("{\"network\": {\"allow\": [\"a.test\", {\"host\": \"10.0.0.0/8:80\", "
                                      "\"methods\": [\"GET\"]}], \"deny\": [{\"host\": \"192.0.2.1:80\", \"methods\": "
                                      "[\"PUT\"]}]}}");
  struct verdict verdict;
  struct host host;
  struct addr addr;

  (void)state;
  assert_int_equal(host_parse(SPAN("a.test"), NULL, &host), 0);
  assert_int_equal(addr_parse(SPAN("10.0.0.1"), &addr), 0);
  assert_int_equal(decide_addr(policy, &host, &addr, 80).reason, REASON_ADDRESS_PRIVATE);
  assert_int_equal(addr_parse(SPAN("192.0.2.1"), &addr), 0);
  assert_null(decide_target(policy, &host, 80).request_rule);
  verdict = decide_addr(policy, &host, &addr, 80);
  assert_true(verdict.allow && verdict.request_rule == &policy->deny.items[0]);
  assert_int_equal(decide_opaque(&verdict).reason, REASON_NOT_HTTP);
  verdict = decide_addr(policy, &host, &addr, 443);
  assert_true(verdict.allow && !verdict.request_rule && decide_opaque(&verdict).allow);
  policy_free(policy);
}

/* As the proxy does where the address is not known yet. */
static struct verdict judge(const struct policy *policy, const struct host *host, uint16_t port,
                            const struct request *request)
{
  struct verdict target = decide_target(policy, host, port);

  return decide_request(policy, &target, host, NULL, port, request);
}

/* What a credential implies gives way to allow rules on requests of the same host, and to no others. */
static void test_implied(void **state)
{
  static const struct {
    const char *allow;
    const char *target;
    const char *method;
    enum reason reason;
  } rows[] = {
    { "", "a.test:443", "PUT", REASON_ALLOWED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}", "a.test:443", "GET", REASON_ALLOWED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}", "a.test:443", "PUT", REASON_METHOD_NOT_ALLOWED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}", "x.b.test:443", "PUT", REASON_ALLOWED },
    { "{\"host\": \"a.test:80\", \"methods\": [\"GET\"]}", "a.test:443", "PUT", REASON_ALLOWED },
    { "{\"host\": \"*\", \"methods\": [\"GET\"]}", "x.b.test:443", "PUT", REASON_METHOD_NOT_ALLOWED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}, \"a.test\"", "a.test:443", "PUT", REASON_ALLOWED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}, \"a.test:443\"", "a.test:443", "PUT", REASON_ALLOWED },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char text[512];
    struct buf out = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
    struct request request = { .method = span_of(rows[i].method), .path = SPAN("/") };
    struct policy *policy, *again = NULL;
    struct host host;
    uint16_t port;

    snprintf(text, sizeof text,
             "{\"network\": {\"allow\": [%s]}, \"credentials\": {\"x\": {\"source\": {\"env\": \"X\"}, \"env\": \"X\", "
             "\"bind\": [\"a.test\", \"*.b.test\"]}}}",
             rows[i].allow);
    policy = make_policy(text);
    assert_int_equal(host_parse_target(span_of(rows[i].target), 0, NULL, &host, &port), 0);
    assert_int_equal(judge(policy, &host, port, &request).reason, rows[i].reason);
    /* And so in the proxy, which reads what is printed. */
    policy_print(policy, true, &out);
    assert_int_equal(policy_parse(buf_span(&out), NULL, &again), 0);
    assert_int_equal(judge(again, &host, port, &request).reason, rows[i].reason);
    buf_free(&out);
    policy_free(again);
    policy_free(policy);
  }
}

/* Whatever allows the target: where a credential is bound to it, by the same name and port, TLS alone will do. */
static void test_cleartext(void **state)
{
  static const struct {
    const char *allow;
    const char *target;
    enum reason reason;
  } rows[] = {
    { "", "a.test:443", REASON_NOT_TERMINATED },
    { "\"a.test:443\"", "a.test:443", REASON_NOT_TERMINATED },
    { "\"*\"", "x.b.test:8000", REASON_NOT_TERMINATED },
    { "{\"host\": \"a.test\", \"methods\": [\"GET\"]}", "a.test:443", REASON_NOT_TERMINATED },
    { "\"a.test\"", "a.test:80", REASON_ALLOWED },
    { "\"b.test:8000\"", "b.test:8000", REASON_ALLOWED },
    { "", "a.test:80", REASON_PORT_NOT_ALLOWED },
    { "", "c.test:443", REASON_NOT_ALLOWED },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char text[512];
    struct request request = { SPAN("GET"), SPAN("/") };
    struct policy *policy;
    struct verdict verdict;
    struct host host;
    struct buf out = BUF_INIT(4096);
    uint16_t port;

    snprintf(text, sizeof text,
             "{\"network\": {\"allow\": [%s]}, \"credentials\": {\"x\": {\"source\": {\"env\": \"X\"}, \"env\": \"X\", "
             "\"bind\": [\"a.test\", \"*.b.test:8000\"]}}}",
             rows[i].allow);
    policy = make_policy(text);
    assert_int_equal(host_parse_target(span_of(rows[i].target), 0, NULL, &host, &port), 0);
    verdict = decide_target(policy, &host, port);
    verdict = decide_cleartext(policy, &verdict, &host, port);
    unit_assert_row(verdict.reason == rows[i].reason, rows[i].target, reason_word(verdict.reason));
    decide_fix_request(&verdict, &host, port, &request, &out);
    if (rows[i].reason == REASON_NOT_TERMINATED)
      assert_string_equal(out.data, "use https://");
    buf_free(&out);
    policy->network = POLICY_NETWORK_HOST;
    verdict = decide_target(policy, &host, port);
    assert_true(decide_cleartext(policy, &verdict, &host, port).allow);
    policy_free(policy);
  }
}

static void test_fix(void **state)
{
  static const struct {
    const char *method;
    const char *path;
    const char *fix;
  } rows[] = {
    { "PUT", "/y", "add \"PUT\" to the methods of the rule " GET_X " in /test.json:1 (network.allow[0])" },
    { "GET", "/q%20'\"$(x)",
      "add \"/q '\\\"$(x)\" to the paths of the rule " GET_X " in /test.json:1 (network.allow[0])" },
    { "GET", "/a/../b", "" },
  };
  struct policy *policy = make_policy("{\"network\": {\"allow\": [" GET_X "]}}");
  struct host host;

  (void)state;
  assert_int_equal(host_parse(SPAN("a.test"), NULL, &host), 0);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct request request = { span_of(rows[i].method), span_of(rows[i].path) };
    struct verdict verdict = judge(policy, &host, 80, &request);
    struct buf out = BUF_INIT(4096);
    decide_fix_request(&verdict, &host, 80, &request, &out);
    unit_assert_row(strcmp(out.data ? out.data : "", rows[i].fix) == 0, rows[i].path, out.data ? out.data : "");
    buf_free(&out);
  }
  policy_free(policy);
}

/* What matches() says, the slow and plain way. */
static bool naive(const char *pattern, const char *text)
{
  if (*pattern == '*')
    return naive(pattern + 1, text) || (*text && naive(pattern, text + 1));
  return *pattern ? *pattern == *text && naive(pattern + 1, text + 1) : !*text;
}

static void test_match_property(void **state)
{
  struct unit_random random = unit_seed("match");
  unsigned matched = 0;

  (void)state;
  for (int i = 0; i < 20000; i++) {
    char pattern[10] = "/";
    char text[12] = "/";
    char *items[] = { pattern, NULL };
    struct policy_rule rule = { .paths = { .items = items, .count = 1 } };
    struct request_path path;
    for (size_t j = 1, len = unit_below(&random, 8); j <= len; j++)
      pattern[j] = "ab/*"[unit_below(&random, 4)];
    for (size_t j = 1, len = unit_below(&random, 10); j <= len; j++)
      text[j] = "ab/"[unit_below(&random, 3)];
    path.len = strlen(text);
    memcpy(path.bytes, text, path.len);
    assert_int_equal(request_matches_path(&rule, &path, false), naive(pattern, text));
    matched += naive(pattern, text);
  }
  assert_true(matched > 500);
}

/* Whatever is read has no second reading: decoding it again does not change it, and encoding it in full gives the
 * same. */
static void test_one_reading_property(void **state)
{
  static const char *const parts[] = { "/",   "a",   "..",  ".",   "%2e", "%2F", "%25", "%252e", "\\", ";",
                                       "%61", "%c3", "%a9", "%00", "%20", "*",   "%",   "+",     "%C0" };
  struct unit_random random = unit_seed("reading");
  unsigned read = 0;

  (void)state;
  for (int i = 0; i < 50000; i++) {
    struct buf text = BUF_INIT(256);
    struct buf full = BUF_INIT(1024);
    struct request_path path;
    struct request_path again;
    const char *cause;
    buf_append_byte(&text, '/');
    for (size_t j = unit_below(&random, 6); j > 0; j--)
      buf_append_str(&text, parts[unit_below(&random, MEM_COUNT(parts))]);
    if (request_read_path(buf_span(&text), &path, &cause) == 0) {
      struct span bytes = { path.bytes, path.len };
      read++;
      assert_true(span_find(bytes, '%') == bytes.len && span_find(bytes, '\\') == bytes.len);
      for (size_t j = 0; j < path.len; j++)
        buf_printf(&full, path.bytes[j] == '/' ? "/" : "%%%02x", (unsigned char)path.bytes[j]);
      assert_int_equal(request_read_path(buf_span(&full), &again, &cause), 0);
      assert_true(span_equal(bytes, (struct span){ again.bytes, again.len }));
    }
    buf_free(&text);
    buf_free(&full);
  }
  assert_true(read > 5000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_read_path),
    cmocka_unit_test(test_long_path),
    cmocka_unit_test(test_grammar),
    cmocka_unit_test(test_in_a_file),
    cmocka_unit_test(test_judgement),
    cmocka_unit_test(test_names_and_addresses),
    cmocka_unit_test(test_implied),
    cmocka_unit_test(test_cleartext),
    cmocka_unit_test(test_fix),
    cmocka_unit_test(test_match_property),
    cmocka_unit_test(test_one_reading_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
