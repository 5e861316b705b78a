#include "policy/limits.h"
#include "unit/policy_make.h"

/* A key with a value (JSON), and how the error about it begins behind "/p.json:1: ". */
static void test_refused_values(void **state)
{
  static const struct {
    const char *object;
    const char *value;
    const char *start;
  } rows[] = {
    { "network", "\"mode\": \"off\"", "network.mode: \"off\": unknown word; write none, proxy or host" },
    { "network", "\"mode\": \"Proxy\"", "network.mode: \"Proxy\": unknown word" },
    { "network", "\"allow\": [\"*.com\"]", "network.allow[0]: \"*.com\": a wildcard over a whole top-level domain; " },
    { "network", "\"allow\": [\"a.test\", \"a.test:443x\"]", "network.allow[1]: \"a.test:443x\": ports are not" },
    { "network", "\"allow\": [\"10.0.0.1/8\"]",
      "network.allow[0]: \"10.0.0.1/8\": bits are set past the prefix length; "
      "write 10.0.0.0/8" },
    { "network", "\"deny\": [\"http://x\"]", "network.deny[0]: \"http://x\": a URL" },
    { "network", "\"forward\": [0]", "network.forward[0]: \"0\": not a port" },
    { "network", "\"forward\": [65536]", "network.forward[0]: \"65536\": not a port" },
    { "network", "\"forward\": [1.5]", "network.forward[0]: \"1.5\": not a port" },
    { "network", "\"forward\": [-1]", "network.forward[0]: \"-1\": not a port" },
    { "network", "\"forward\": [8e1]", "network.forward[0]: \"8e1\": not a port" },
    { "network", "\"publish\": [\"1:2:3\"]", "network.publish[0]: \"1:2:3\": not a port" },
    { "network", "\"publish\": [1023]", "network.publish[0]: \"1023\": nothing inside can listen on port 1023" },
    { "network", "\"publish\": [\"8080:80\"]",
      "network.publish[0]: \"8080:80\": nothing inside can listen on port 80" },
    { "network", "\"publish\": [\":2\"]", "network.publish[0]: \":2\": not a port" },
    { "network", "\"publish\": [\"2:\"]", "network.publish[0]: \"2:\": not a port" },
    { "network", "\"publish\": [\"0.0.0.0:1:2\"]", "network.publish[0]: \"0.0.0.0:1:2\": not a port" },
    { "network", "\"forward\": [8080], \"deny\": [{\"host\": \"localhost:8080\", \"methods\": [\"PUT\"]}]",
      "network.deny[0]: a rule on requests to port 8080 of localhost, which network.forward hands in whole" },
    { "network", "\"forward\": [\"8080:1\"], \"deny\": [{\"host\": \"127.0.0.0/8:8080\", \"paths\": [\"/a\"]}]",
      "network.deny[0]: a rule on requests to port 8080 of localhost" },
    { "network", "\"forward\": [8080], \"deny\": [{\"host\": \"[::1]:8080\", \"paths\": [\"/a\"]}]",
      "network.deny[0]: a rule on requests to port 8080 of localhost" },
    { "network", "\"unixSockets\": [\"/run/*.sock\"]", "network.unixSockets[0]: \"/run/*.sock\": a pattern" },
    { "network", "\"upstreamProxy\": \"auto\"", "network.upstreamProxy: neither a known word nor a URL" },
    { "network", "\"upstreamProxy\": \"https://p.test:1\"", "network.upstreamProxy: neither a known word nor a URL" },
    { "network", "\"upstreamProxy\": \"http://p.test\"", "network.upstreamProxy: no port" },
    { "network", "\"upstreamProxy\": \"http://p.test:1/x\"", "network.upstreamProxy: " },
    { "network", "\"upstreamProxy\": \"http://p.test:1\\n\"", "network.upstreamProxy: a space, control byte" },
    { "network", "\"upstreamProxy\": \"http://\"", "network.upstreamProxy: " },
    { "filesystem", "\"home\": \"none\"", "filesystem.home: \"none\": unknown word; write tmpfs, private or host" },
    { "filesystem", "\"tmp\": \"host\"", "filesystem.tmp: \"host\": unknown word; write private" },
    { "filesystem", "\"read\": [\"\"]", "filesystem.read[0]: \"\": empty path" },
    { "filesystem", "\"read\": [\"a/../b\"]", "filesystem.read[0]: \"a/../b\": path with a \"..\" part" },
    { "filesystem", "\"write\": [\"*.txt\"]", "filesystem.write[0]: \"*.txt\": a pattern where a path is wanted" },
    { "filesystem", "\"protect\": [\"**/x\"]", "filesystem.protect[0]: \"**/x\": a pattern" },
    { "filesystem", "\"hide\": [\"x**\"]", "filesystem.hide[0]: \"x**\": \"**\" beside other bytes" },
    { "filesystem", "\"hide\": [\"a\\nb\"]", "filesystem.hide[0]: \"a\\x0ab\": path with a control byte" },
    { "filesystem", "\"read\": [\"~user/x\"]", "filesystem.read[0]: \"~user/x\": \"~user\": another user's home" },
    { "env", "\"pass\": [\"A=B\"]", "env.pass[0]: \"A=B\": not a variable's name" },
    { "env", "\"pass\": [\"\"]", "env.pass[0]: \"\": a variable's name is" },
    { "env", "\"pass\": [\"*\"]", "env.pass[0]: \"*\": every variable" },
    { "env", "\"pass\": [\"A*B\"]", "env.pass[0]: \"A*B\": not a variable's name" },
    { "env", "\"pass\": [\"1A\"]", "env.pass[0]: \"1A\": not a variable's name" },
    { "env", "\"set\": {\"\": \"x\"}", "env.set.: a variable's name is" },
    { "env", "\"set\": {\"A*\": \"x\"}", "env.set.A*: not a variable's name" },
    { "env", "\"set\": {\"A=B\": \"x\"}", "env.set.A=B: not a variable's name" },
    { "limits", "\"memory\": 0", "limits.memory: \"0\": out of range" },
    { "limits", "\"memory\": \"4gb\"", "limits.memory: \"4gb\": not well formed; write a size" },
    { "limits", "\"memory\": 1.5", "limits.memory: \"1.5\": not well formed" },
    { "limits", "\"memory\": \"none\"", "limits.memory: \"none\": not well formed" },
    { "limits", "\"memory\": \"99999999999t\"", "limits.memory: \"99999999999t\": out of range" },
    { "limits", "\"cpus\": 0", "limits.cpus: \"0\": out of range" },
    { "limits", "\"cpus\": 0.0001", "limits.cpus: \"0.0001\": not well formed" },
    { "limits", "\"cpus\": -1", "limits.cpus: \"-1\": not well formed" },
    { "limits", "\"cpus\": 4097", "limits.cpus: \"4097\": out of range" },
    { "limits", "\"pids\": 0", "limits.pids: \"0\": out of range" },
    { "limits", "\"pids\": 1.5", "limits.pids: \"1.5\": not well formed" },
    { "limits", "\"pids\": 4194305", "limits.pids: \"4194305\": out of range" },
    { "limits", "\"timeout\": 0", "limits.timeout: \"0\": out of range" },
    { "limits", "\"timeout\": \"1w\"", "limits.timeout: \"1w\": not well formed" },
    { "limits", "\"timeout\": \"-1s\"", "limits.timeout: \"-1s\": not well formed" },
    { "audit", "\"file\": \"audit.log\"", "audit.file: \"audit.log\": neither an absolute path" },
    { "audit", "\"file\": \"\"", "audit.file: \"\": neither an absolute path" },
    { "audit", "\"file\": \"fd:3\"", "audit.file: \"fd:3\": a descriptor in a policy file" },
    { "audit", "\"file\": \"/a/../b\"", "audit.file: \"/a/../b\": path with a \"..\" part" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char text[256];
    struct make_layer layer = { LAYER_FILE, "/p.json", text };
    struct err err = ERR_INIT;
    snprintf(text, sizeof text, "{\"%s\": {%s}}", rows[i].object, rows[i].value);
    unit_assert_row(make_validate(&layer, 1, &err, NULL, NULL) == -EINVAL, rows[i].value, "accepted");
    struct span message = span_of(err.message);
    unit_assert_row(span_starts_with(message, SPAN("/p.json:1: ")), rows[i].value, err.message);
    message = span_sub(message, strlen("/p.json:1: "), message.len);
    unit_assert_row(span_starts_with(message, span_of(rows[i].start)), rows[i].value, err.message);
  }
}

static void test_accepted_values(void **state)
{
  struct policy *policy = make_policy(
      "{\"network\": {\"forward\": [1, \"65535\", \"8080:80\"], \"publish\": [3000],\n"
      "  \"unixSockets\": [\"/run/x.sock\", \"~/y.sock\"], \"upstreamProxy\": \"http://u:p%40@Proxy.test:3128/\"},\n"
      " \"filesystem\": {\"home\": \"host\", \"tmp\": \"private\", \"hide\": [\"**/.env\"], \"unprotect\": "
      "[\".envrc\"]},\n"
      " \"env\": {\"pass\": [\"A_*\", \"_b\"], \"set\": {\"X\": \"a=b\\nc\"}},\n"
      " \"limits\": {\"memory\": \"512M\", \"cpus\": \"0.5\", \"pids\": 1, \"timeout\": 60},\n"
      " \"syscalls\": {\"nesting\": true, \"ptrace\": false, \"i386\": true}, \"audit\": {\"file\": \"~/a.log\"}}");

  (void)state;
  assert_int_equal(policy->forward.items[1].host_port, 65535);
  assert_int_equal(policy->forward.items[1].port, 65535);
  assert_int_equal(policy->forward.items[2].host_port, 8080);
  assert_int_equal(policy->forward.items[2].port, 80);
  assert_int_equal(policy->publish.items[0].port, 3000);
  assert_string_equal(policy->unix_sockets.items[1].text, "~/y.sock");
  assert_int_equal(policy->upstream, POLICY_UPSTREAM_URL);
  assert_string_equal(policy->upstream_url, "http://u:p%40@Proxy.test:3128");
  assert_int_equal(policy->home, POLICY_HOME_HOST);
  assert_string_equal(policy->env_set.items[0].value, "a=b\nc");
  assert_int_equal(policy->memory_bytes, 512 * 1024 * 1024);
  assert_int_equal(policy->cpu_milli, 500);
  assert_int_equal(policy->pids, 1);
  assert_int_equal(policy->timeout_ms, 60000);
  assert_true(policy->nesting && !policy->ptrace && policy->foreign);
  assert_string_equal(policy->audit_file, "~/a.log");
  policy_free(policy);
}

/* F59 and P11: without configuration nothing is allowed, and an empty list says nothing. */
static void test_empty_policy(void **state)
{
  static const char *const texts[] = { "{}", "{\"network\": {\"allow\": []}, \"extends\": []}",
                                       "{\"filesystem\": {\"read\": [], \"write\": []}, \"env\": {\"set\": {}}}" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(texts); i++) {
    struct policy *policy = make_policy(texts[i]);
    assert_int_equal(policy->network, POLICY_NETWORK_PROXY);
    assert_int_equal(policy->home, POLICY_HOME_PRIVATE);
    assert_int_equal(policy->upstream, POLICY_UPSTREAM_ENV);
    assert_int_equal(policy->allow.count + policy->deny.count + policy->forward.count + policy->publish.count, 0);
    assert_int_equal(policy->read.count + policy->write.count + policy->unix_sockets.count, 0);
    assert_int_equal(policy->unprotect.count, 0);
    assert_int_equal(policy->memory_bytes + policy->cpu_milli + policy->pids + policy->timeout_ms, 0);
    assert_true(!policy->nesting && policy->ptrace && !policy->foreign);
    assert_null(policy->audit_file);
    policy_free(policy);
  }
}

/* F7: rules that have no effect are not passed over in silence. */
static void test_rules_without_effect(void **state)
{
  struct make_layer layer = { LAYER_FILE, "/p.json", "{\"network\": {\"mode\": \"host\", \"deny\": [\"a.test\"]}}" };
  struct err err = ERR_INIT;
  strv_autofree struct strv notes = STRV_INIT;

  (void)state;
  assert_int_equal(make_validate(&layer, 1, &err, &notes, NULL), 0);
  assert_int_equal(notes.count, 1);
  assert_non_null(strstr(notes.items[0], "no effect"));
}

/* An error message never shows what may be a password. */
static void test_secrets_stay_out_of_messages(void **state)
{
  static const char *const texts[] = { "{\"network\": {\"upstreamProxy\": \"http://user:hunter2@bad host:1\"}}",
                                       "{\"network\": {\"upstreamProxy\": \"socks://user:hunter2@h:1\"}}",
                                       "{\"env\": {\"set\": {\"A-B\": \"hunter2\"}}}" };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(texts); i++) {
    struct make_layer layer = { LAYER_FILE, "/p.json", texts[i] };
    struct err err = ERR_INIT;
    assert_int_equal(make_validate(&layer, 1, &err, NULL, NULL), -EINVAL);
    unit_assert_row(!strstr(err.message, "hunter2"), texts[i], err.message);
  }
}

/* Tens of thousands of equal and unequal items, as a hostile workspace may hold them. */
/* One rule more, and all else as it was, origins included. */
static void test_extended(void **state)
{
  policy_autofree struct policy *policy = make_policy(
      "{\"network\": {\"allow\": [\"a.test\"], \"deny\": [\"b.test\"]}, \"env\": {\"set\": {\"A\": \"b\"}}, "
      "\"limits\": {\"timeout\": \"5m\"}, \"filesystem\": {\"home\": \"tmpfs\"}}");
  policy_autofree struct policy *same = NULL;
  policy_autofree struct policy *more = NULL;
  struct err err = ERR_INIT;
  mem_autofree char *before = make_print(policy, true);
  mem_autofree char *after = NULL;

  (void)state;
  assert_int_equal(policy_extend(policy, "a.test", "--ask", &err, &same), 0);
  after = make_print(same, true);
  assert_string_equal(before, after);
  assert_int_equal(policy_extend(policy, "c.test:7", "--ask", &err, &more), 0);
  assert_int_equal(more->allow.count, policy->allow.count + 1);
  assert_string_equal(more->allow.items[more->allow.count - 1].text, "c.test:7");
  assert_int_equal(more->timeout_ms, policy->timeout_ms);
  assert_int_equal(policy_extend(policy, "c.test/x", "--ask", &err, &more), -EINVAL);
}

static void test_many_items(void **state)
{
  struct buf text = BUF_INIT(4 * 1024 * 1024);
  struct policy *policy;

  (void)state;
  buf_append_str(&text, "{\"network\": {\"deny\": [\"a.test\"");
  for (int i = 0; i < 60000; i++)
    buf_printf(&text, ",\"h%d.test\"", i % 30000);
  buf_append_str(&text, "]}}");
  policy = make_policy(text.data);
  assert_int_equal(policy->deny.count, 30001);
  assert_string_equal(policy->deny.items[0].text, "a.test");
  assert_string_equal(policy->deny.items[30000].text, "h29999.test");
  policy_free(policy);
  buf_free(&text);
}

/* A long value does not push the cause out of the message. */
static void test_long_values(void **state)
{
  struct buf text = BUF_INIT(65536);
  struct make_layer layer = { LAYER_FILE, "/p.json", NULL };
  struct err err = ERR_INIT;

  (void)state;
  buf_append_str(&text, "{\"network\": {\"allow\": [\"");
  for (int i = 0; i < 5000; i++)
    buf_append_byte(&text, 'a');
  buf_append_str(&text, "\"]}}");
  layer.text = text.data;
  assert_int_equal(make_validate(&layer, 1, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "host name of 5000 bytes"));
  buf_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_extended),
    cmocka_unit_test(test_refused_values),
    cmocka_unit_test(test_accepted_values),
    cmocka_unit_test(test_empty_policy),
    cmocka_unit_test(test_secrets_stay_out_of_messages),
    cmocka_unit_test(test_rules_without_effect),
    cmocka_unit_test(test_many_items),
    cmocka_unit_test(test_long_values),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
