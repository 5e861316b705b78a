#include "unit/policy_make.h"

static void test_default_text(void **state)
{
  static const char wanted[] = "{\n"
                               "  \"filesystem\": {\n"
                               "    \"read\": [],\n"
                               "    \"write\": [],\n"
                               "    \"hide\": [\n"
                               "      \"**/.env\"\n"
                               "    ],\n"
                               "    \"protect\": [],\n"
                               "    \"unprotect\": [],\n"
                               "    \"home\": \"private\",\n"
                               "    \"tmp\": \"private\"\n"
                               "  },\n"
                               "  \"network\": {\n"
                               "    \"mode\": \"proxy\",\n"
                               "    \"allow\": [\n"
                               "      \"a.test\",\n"
                               "      \"[2001:db8::1]:22\"\n"
                               "    ],\n"
                               "    \"deny\": [],\n"
                               "    \"forward\": [\n"
                               "      5432,\n"
                               "      \"8080:80\"\n"
                               "    ],\n"
                               "    \"publish\": [],\n"
                               "    \"unixSockets\": [],\n"
                               "    \"upstreamProxy\": \"env\"\n"
                               "  },\n"
                               "  \"credentials\": {},\n"
                               "  \"env\": {\n"
                               "    \"pass\": [],\n"
                               "    \"set\": {\n"
                               "      \"A\": \"b\\nc\"\n"
                               "    }\n"
                               "  },\n"
                               "  \"limits\": {\n"
                               "    \"memory\": \"4g\",\n"
                               "    \"cpus\": 2.5,\n"
                               "    \"pids\": null,\n"
                               "    \"timeout\": \"90s\"\n"
                               "  },\n"
                               "  \"syscalls\": {\n"
                               "    \"nesting\": false,\n"
                               "    \"ptrace\": true,\n"
                               "    \"i386\": false\n"
                               "  },\n"
                               "  \"audit\": {\n"
                               "    \"file\": null\n"
                               "  }\n"
                               "}\n";
  struct policy *policy =
      make_policy("{\"filesystem\": {\"hide\": [\"**/.env\"]}, \"network\": {\"allow\": [\"A.test\", "
                  "\"[2001:DB8::1]:22\"], \"forward\": [5432, \"8080:80\"]}, \"env\": {\"set\": "
                  "{\"A\": \"b\\nc\"}}, \"limits\": {\"memory\": \"4096m\", \"cpus\": 2.50, "
                  "\"timeout\": 90}}");
  char *text = make_print(policy, false);

  (void)state;
  assert_string_equal(text, wanted);
  free(text);
  policy_free(policy);
}

static void test_descriptor_is_left_out(void **state)
{
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv notes = STRV_INIT;
  struct policy *policy = NULL;
  struct policy *again = NULL;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(layers_add_option(layers, "audit.file", "fd:7", "--audit", &err), 0);
  assert_int_equal(policy_validate(layers, &err, &notes, &policy), 0);
  char *human = make_print(policy, false);
  char *canonical = make_print(policy, true);
  assert_non_null(strstr(human, "\"file\": null"));
  assert_int_equal(policy_parse(span_of(canonical), &err, &again), 0);
  assert_string_equal(again->audit_file, "fd:7");
  free(human);
  free(canonical);
  policy_free(policy);
  policy_free(again);
}

static void test_ceiling(void **state)
{
  struct policy *policy = make_policy("{}");
  struct buf out = BUF_INIT(100);

  (void)state;
  policy_print(policy, true, &out);
  assert_int_equal(buf_error(&out), -E2BIG);
  buf_free(&out);
  policy_free(policy);
}

/* What is not canonical is refused, also where it would be a right policy file. */
static void test_parse_is_strict(void **state)
{
  static const char *const texts[] = {
    "",
    "{\"network\": {\"allow\": [\"a.test\"]}}",
    "{\"network\": {\"allow\": [{\"value\": \"a.test\"}]}}",
    "{\"network\": {\"allow\": [{\"value\": \"a.test\", \"file\": \"f\", \"path\": \"p\", \"line\": -1}]}}",
    "{\"network\": {\"allow\": [{\"value\": \"a.test\", \"file\": 1, \"path\": \"p\", \"line\": 1}]}}",
    "{\"network\": {\"allow\": [{\"value\": \"*.com\", \"file\": \"f\", \"path\": \"p\", \"line\": 1}]}}",
    "{\"network\": {\"allow\": [{\"value\": null, \"file\": \"f\", \"path\": \"p\", \"line\": 1}]}}",
    "{\"network\": {\"allow\": [{\"value\": {}, \"file\": \"f\", \"path\": \"p\", \"line\": 1}]}}",
    "{\"network\": {\"x\": 1}}",
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(texts); i++) {
    struct err err = ERR_INIT;
    struct policy *policy = NULL;
    unit_assert_row(policy_parse(span_of(texts[i]), &err, &policy) == -EINVAL, texts[i], "accepted");
    assert_null(policy);
  }
}

/* One random value of a list key as JSON. */
static void append_item(struct unit_random *random, const char *key, struct buf *out)
{
  static const char *const rules[] = { "A.test",         "*.B.test.", "10.0.0.0/8:22", "[2001:DB8::/32]:1-9",
                                       "localhost:5432", "*",         "*:*",           "::1",
                                       "c.test:80",      "d.test:*",  "192.0.2.1",     "e_f.test" };
  static const char *const paths[] = { "/", "~", ".", "a//b/", "./~x", "~/y", "/opt/./x", "caf\xc3\xa9", "a\\\"b" };
  static const char *const patterns[] = { "**/.env", "*.pem", "~/**/k?", "/srv/*", "." };
  static const char *const maps[] = { "1024", "\"80:8080\"", "\"65535\"", "\"9999:9999\"" };

  static const char *const objects[] = {
    "{\"host\": \"A.test:80\", \"methods\": [\"PUT\", \"GET\"]}",
    "{\"paths\": [\"/x y/*\", \"/\", \"/caf\\u00e9\"], \"host\": \"*:8080\"}",
    "{\"host\": \"[2001:db8::/32]:1-9\", \"methods\": [\"A'B\"], \"paths\": [\"/\\\"\"]}",
  };

  if ((strcmp(key, "allow") == 0 || strcmp(key, "deny") == 0) && unit_below(random, 3) == 0)
    buf_append_str(out, objects[unit_below(random, MEM_COUNT(objects))]);
  else if (strcmp(key, "allow") == 0 || strcmp(key, "deny") == 0)
    buf_append_json(out, span_of(rules[unit_below(random, MEM_COUNT(rules))]));
  else if (strcmp(key, "hide") == 0)
    buf_append_json(out, span_of(patterns[unit_below(random, MEM_COUNT(patterns))]));
  else if (strcmp(key, "forward") == 0 || strcmp(key, "publish") == 0)
    buf_append_str(out, maps[unit_below(random, MEM_COUNT(maps))]);
  else if (strcmp(key, "pass") == 0)
    buf_printf(out, "\"V%zu%s\"", unit_below(random, 9), unit_below(random, 2) ? "*" : "");
  else
    buf_append_json(out, span_of(paths[unit_below(random, MEM_COUNT(paths))]));
}

static void append_list(struct unit_random *random, const char *key, struct buf *out)
{
  buf_printf(out, "\"%s\": [", key);
  for (size_t count = unit_below(random, 5), i = 0; i < count; i++) {
    buf_append_str(out, i > 0 ? ",\n" : "");
    append_item(random, key, out);
  }
  buf_append_str(out, "],\n");
}

static const char *pick(struct unit_random *random, const char *const *words, size_t count)
{
  return words[unit_below(random, count)];
}
#define PICK(random, ...) \
  pick((random), (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void append_credential(struct unit_random *random, const char *name, struct buf *out)
{
  buf_printf(out, "\"%s\": {\"source\": %s, \"env\": \"%s_TOKEN\", \"bind\": [\"%s\", {\"host\": \"%s\"}]", name,
             PICK(random, "{\"env\": \"X\"}", "{\"file\": \"~//x\"}", "{\"file\": \"/x\", \"ttl\": \"2m\"}",
                  "{\"exec\": [\"a\", \"\", \"\\\"\\u00e9\"], \"timeout\": \"1ms\", \"ttl\": 5}"),
             name, PICK(random, "A.test", "*.b.test:8443", "192.0.2.1"),
             PICK(random, "c.test:1-443", "[2001:db8::1]:*", "d_e.test"));
  if (unit_below(random, 2))
    buf_printf(out, ", \"inject\": \"%s\"", PICK(random, "auto", "replace"));
  if (unit_below(random, 2))
    buf_printf(out, ", \"place\": %s",
               PICK(random, "\"bearer\"", "\"path\"", "\"body\"", "{\"basic\": \"\"}", "{\"header\": \"X-K\"}",
                    "{\"query\": \"k~\"}"));
  if (unit_below(random, 2))
    buf_printf(out, ", \"scrub\": \"%s\"", PICK(random, "head", "body"));
  if (unit_below(random, 2))
    buf_printf(out, ", \"preset\": %s", PICK(random, "null", "\"npm\"", "\"github\""));
  buf_append_byte(out, '}');
}

static void append_credentials(struct unit_random *random, struct buf *out)
{
  static const char *const names[] = { "z", "github", "a_1" };
  bool first = true;

  buf_append_str(out, "\"credentials\": {");
  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    if (unit_below(random, 2))
      continue;
    buf_append_str(out, first ? "" : ",\n");
    append_credential(random, names[i], out);
    first = false;
  }
  buf_append_str(out, "}, ");
}

/* A random policy file. */
static char *random_policy(struct unit_random *random)
{
  struct buf out = BUF_INIT(65536);

  buf_append_str(&out, "{\"filesystem\": {");
  append_list(random, "read", &out);
  append_list(random, "write", &out);
  append_list(random, "hide", &out);
  append_list(random, "protect", &out);
  append_list(random, "unprotect", &out);
  buf_printf(&out, "\"home\": \"%s\"}, \"network\": {", PICK(random, "private", "tmpfs", "host"));
  append_list(random, "allow", &out);
  append_list(random, "deny", &out);
  append_list(random, "forward", &out);
  append_list(random, "publish", &out);
  append_list(random, "unixSockets", &out);
  buf_printf(&out, "\"mode\": \"%s\", \"upstreamProxy\": \"%s\"}, ", PICK(random, "proxy", "none", "host"),
             PICK(random, "env", "none", "http://p.test:1", "socks5h://[::1]:80/"));
  append_credentials(random, &out);
  buf_append_str(&out, "\"env\": {");
  append_list(random, "pass", &out);
  buf_printf(&out, "\"set\": {\"A%zu\": \"%s\", \"B\": \"\\u00e9\\u0001\"}}, ", unit_below(random, 3),
             PICK(random, "", "x", "\\\"\\\\\\n", "a=b"));
  buf_printf(&out, "\"limits\": {\"memory\": %s, \"cpus\": %s, \"pids\": %s, \"timeout\": %s}, ",
             PICK(random, "null", "1", "1023", "\"1025k\"", "\"3g\"", "4096"),
             PICK(random, "null", "1", "0.001", "\"2.050\"", "4096"), PICK(random, "null", "1", "4194304"),
             PICK(random, "null", "1", "\"1ms\"", "\"61m\"", "\"2d\"", "3600"));
  buf_printf(&out, "\"syscalls\": {\"nesting\": %s, \"ptrace\": %s, \"i386\": %s}, \"audit\": {\"file\": %s}}",
             PICK(random, "true", "false"), PICK(random, "true", "false"), PICK(random, "true", "false"),
             PICK(random, "null", "\"/a//b\"", "\"~/a\""));
  char *text = buf_steal(&out);
  assert_non_null(text);
  return text;
}

/* A login is never printed: the proxy does not need it, and a person is told that something was there (F4). */
static void test_login_is_left_out(void **state)
{
  struct policy *policy = make_policy("{\"network\": {\"upstreamProxy\": \"socks5://user:hun%40ter2@p.test:1/\"}}");
  struct policy *again;
  buf_autofree struct buf shown = BUF_INIT(1 << 20);
  buf_autofree struct buf canonical = BUF_INIT(1 << 20);
  struct err err = ERR_INIT;

  (void)state;
  policy_print(policy, false, &shown);
  policy_print(policy, true, &canonical);
  policy_free(policy);
  assert_non_null(strstr(shown.data, "\"upstreamProxy\": \"socks5://***@p.test:1\""));
  assert_null(strstr(shown.data, "ter2"));
  assert_null(strstr(shown.data, "user"));
  assert_non_null(strstr(canonical.data, "\"socks5://p.test:1\""));
  assert_null(strstr(canonical.data, "ter2"));
  assert_int_equal(policy_parse(buf_span(&canonical), &err, &again), 0);
  policy_free(again);
}

/* parse(print(p)) == p, origins included: the canonical text says everything, so equal texts are equal policies. And
 * the human form is a policy file that makes the same policy. */
static void test_round_trip_property(void **state)
{
  struct unit_random random = unit_seed("round-trip");

  (void)state;
  for (int i = 0; i < 2000; i++) {
    char *source = random_policy(&random);
    struct policy *policy = make_policy(source);
    struct policy *parsed = NULL;
    struct err err = ERR_INIT;
    char *canonical = make_print(policy, true);
    if (policy_parse(span_of(canonical), &err, &parsed) < 0)
      fail_msg("%s\n%s", err.message, canonical);
    char *again = make_print(parsed, true);
    assert_string_equal(again, canonical);
    char *human = make_print(policy, false);
    struct policy *reloaded = make_policy(human);
    char *human_again = make_print(reloaded, false);
    assert_string_equal(human_again, human);
    free(source);
    free(canonical);
    free(again);
    free(human);
    free(human_again);
    policy_free(policy);
    policy_free(parsed);
    policy_free(reloaded);
  }
}

/* Every field of the structs, not only their text, for one policy that sets them all. */
static void test_round_trip_fields(void **state)
{
  struct policy *policy = make_policy("{\"network\": {\n\"allow\": [\"a.test:1-9\",\n\"10.0.0.0/8\"]}}");
  struct policy *parsed = NULL;
  struct err err = ERR_INIT;
  char *canonical = make_print(policy, true);

  (void)state;
  assert_int_equal(policy_parse(span_of(canonical), &err, &parsed), 0);
  assert_int_equal(parsed->allow.count, 2);
  for (size_t i = 0; i < 2; i++) {
    const struct policy_rule *a = &policy->allow.items[i];
    const struct policy_rule *b = &parsed->allow.items[i];
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(&a->prefix, &b->prefix, sizeof a->prefix);
    assert_int_equal(a->port_count, b->port_count);
    assert_memory_equal(a->ports, b->ports, a->port_count * sizeof *a->ports);
    assert_string_equal(a->text, b->text);
    assert_string_equal(a->origin.file, b->origin.file);
    assert_string_equal(a->origin.json_path, b->origin.json_path);
    assert_int_equal(a->origin.line, b->origin.line);
    assert_int_equal(b->origin.line, 2 + i);
  }
  free(canonical);
  policy_free(policy);
  policy_free(parsed);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_default_text),      cmocka_unit_test(test_descriptor_is_left_out),
    cmocka_unit_test(test_ceiling),           cmocka_unit_test(test_parse_is_strict),
    cmocka_unit_test(test_login_is_left_out), cmocka_unit_test(test_round_trip_property),
    cmocka_unit_test(test_round_trip_fields),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
