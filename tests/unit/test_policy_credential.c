#include "config.h"

#include "policy/credential.h"
#include "policy/decide.h"
#include "policy/limits.h"
#include "unit/policy_make.h"

/* An entry of a name and how its error begins. */
struct refused {
  const char *name;
  const char *text;
  const char *start;
};

static void check_refused(const struct refused *rows, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    struct policy_credential credential = { .name = NULL };
    struct err err = ERR_INIT;
    unit_assert_row(credential_parse(rows[i].name, rows[i].text, &err, &credential) == -EINVAL, rows[i].text,
                    "accepted");
    unit_assert_row(strncmp(err.message, rows[i].start, strlen(rows[i].start)) == 0, rows[i].text, err.message);
    unit_assert_row(!credential.name, rows[i].text, "touched");
    assert_int_equal(credential_parse(rows[i].name, rows[i].text, NULL, &credential), -EINVAL);
  }
}

static void test_refused(void **state)
{
  static const struct refused rows[] = {
    { "", "{}", "not a credential's name" },
    { "a b", "{}", "not a credential's name" },
    { "a.b", "{}", "not a credential's name" },
    { "x", "[]", "a list where an object is wanted" },
    { "x", "{}", "no source, and no preset of this name" },
    { "x", "{\"source\": {\"env\": \"X\"}, \"env\": \"X\"}", "bound to no host" },
    { "github", "{\"bind\": []}", "bound to no host" },
    { "github", "{\"bind\": \"a.test\"}", "bind: a string where a list is wanted" },
    { "github", "{\"bind\": [\"a.test\", \"*\"]}", "bind[1]: every host would get the value" },
    { "github", "{\"bind\": [\"*:8443\"]}", "bind[0]: every host would get the value" },
    { "github", "{\"bind\": [{\"host\": \"*\"}]}", "bind[0].host: every host would get the value" },
    { "github", "{\"bind\": [\"*.com\"]}", "bind[0]: a wildcard over a whole top-level domain" },
    { "github", "{\"bind\": [\"localhost\"]}", "bind[0]: values go to hosts that prove" },
    { "github", "{\"bind\": [\"x.localhost\"]}", "bind[0]: values go to hosts that prove" },
    { "github", "{\"bind\": [\"127.0.0.2\"]}", "bind[0]: values go to hosts that prove" },
    { "github", "{\"bind\": [\"[::1]:443\"]}", "bind[0]: values go to hosts that prove" },
    { "github", "{\"bind\": [\"0.0.0.0\"]}", "bind[0]: values go to hosts that prove" },
    { "github", "{\"bind\": [\"10.0.0.0/8\"]}", "bind[0]: a whole network would get the value" },
    { "github", "{\"bind\": [{\"host\": \"a.test\", \"methods\": [\"GET\"]}]}",
      "bind[0].methods: a credential is bound to a host as a whole" },
    { "github", "{\"bind\": [{\"paths\": [\"/x\"]}]}", "bind[0].paths: a credential is bound to a host as a whole" },
    { "github", "{\"bind\": [{}]}", "bind[0]: not a host" },
    { "github", "{\"bind\": [\"{\\\"host\\\": \\\"a.test:80\\\", \\\"methods\\\": [\\\"GET\\\"]}\"]}", "bind[0]: " },
    { "github", "{\"bind\": [\"https://a.test/\"]}", "bind[0]: a URL where a rule is wanted" },
    { "github", "{\"bind\": [\"a.test\", \"A.test:443\"]}", "bind[1]: stands there twice" },
    { "github", "{\"preset\": \"gitlub\"}",
      "preset: no preset \"gitlub\"; the presets are github, anthropic, openai, npm, pypi, aws, gcp" },
    { "github", "{\"preset\": null}", "no source" },
    { "github", "{\"file\": \"x\"}", "file: neither an absolute path" },
    { "github", "{\"file\": \"fd:3\"}", "file: neither an absolute path" },
    { "github", "{\"file\": \"~/a*\"}", "file: " },
    { "github", "{\"file\": [\"/x\", \"/./x\"]}", "file: /x stands there twice" },
    { "github", "{\"file\": [\"/x\", null]}", "file: not a path" },
    { "github", "{\"file\": {\"path\": \"/x\"}}", "file: not a path, or a list of at most 8" },
    { "github", "{\"file\": [\"/1\",\"/2\",\"/3\",\"/4\",\"/5\",\"/6\",\"/7\",\"/8\",\"/9\"]}",
      "file: not a path, or a list of at most 8" },
    { "github", "{\"mode\": \"x\"}", "mode: unknown member" },
    { "github", "{\"source\": \"env:X\"}", "source: a string where an object is wanted" },
    { "github", "{\"source\": {}}", "source: names nothing" },
    { "github", "{\"source\": {\"env\": \"A B\"}}", "source: env: not a variable's name" },
    { "github", "{\"source\": {\"env\": \"A*\"}}", "source: env: not a variable's name" },
    { "github", "{\"source\": {\"env\": \"A\", \"file\": \"/x\"}}", "source: file: another source" },
    { "github", "{\"source\": {\"file\": \"x\"}}", "source: file: neither an absolute path" },
    { "github", "{\"source\": {\"file\": \"fd:3\"}}", "source: file: neither an absolute path" },
    { "github", "{\"source\": {\"file\": \"/a/../b\"}}", "source: file: " },
    { "github", "{\"source\": {\"file\": \"/a*\"}}", "source: file: " },
    { "github", "{\"source\": {\"exec\": \"gh auth token\"}}", "source: exec: not a list with a program" },
    { "github", "{\"source\": {\"exec\": []}}", "source: exec: not a list with a program" },
    { "github", "{\"source\": {\"exec\": [\"\"]}}", "source: exec: not a list of strings" },
    { "github", "{\"source\": {\"exec\": [\"x\", 1]}}", "source: exec: not a list of strings" },
    { "github", "{\"source\": {\"exec\": [\"x\"], \"timeout\": 0}}", "source: timeout: not a time" },
    { "github", "{\"source\": {\"exec\": [\"x\"], \"ttl\": \"soon\"}}", "source: ttl: not a time" },
    { "github", "{\"source\": {\"file\": \"/x\", \"timeout\": 1}}", "source: timeout: goes with a program" },
    { "github", "{\"source\": {\"env\": \"X\", \"ttl\": 1}}", "source: ttl: a variable does not change" },
    { "github", "{\"source\": {\"secretService\": \"x\"}}", "source: secretService: not attributes" },
    { "github", "{\"source\": {\"secretService\": {}}}", "source: secretService: not attributes" },
    { "github", "{\"source\": {\"secretService\": {\"a\": 1}}}", "source: secretService: a: a number where" },
    { "github", "{\"source\": {\"secretService\": {\"-a\": \"b\"}}}", "source: secretService: a word that is empty" },
    { "github", "{\"source\": {\"secretService\": {\"a\": \"\"}}}", "source: secretService: a word that is empty" },
    { "github", "{\"source\": {\"op\": \"x\"}}", "source: op: not a secret reference" },
    { "github", "{\"source\": {\"op\": \"op://\"}}", "source: op: not a secret reference" },
    { "github", "{\"source\": {\"op\": \"op://a\\n\"}}", "source: op: a control character" },
    { "github", "{\"source\": {\"pass\": [\"x\"]}}", "source: pass: a list where a string is wanted" },
    { "github", "{\"source\": {\"pass\": \"--clip\"}}", "source: pass: a word that is empty or begins with '-'" },
    { "github", "{\"source\": {\"pass\": \"x\", \"op\": \"op://a\"}}", "source: op: another source" },
    { "github", "{\"source\": {\"env\": \"A\", \"timeout\": 1}}", "source: timeout: goes with a program" },
    { "github", "{\"source\": {\"vault\": \"x\"}}", "source: vault: unknown member" },
    { "github", "{\"env\": \"A-B\"}", "env: not a variable's name" },
    { "github", "{\"env\": [\"A\", \"A\"]}", "env: A stands there twice" },
    { "github", "{\"env\": [1]}", "env: not a variable's name" },
    { "github", "{\"env\": []}", "replaces a placeholder that stands nowhere" },
    { "github", "{\"inject\": \"sign\"}", "inject: unknown word" },
    { "github", "{\"inject\": null}", "inject: unknown word" },
    { "github", "{\"place\": \"header\"}", "place: not a place" },
    { "github", "{\"place\": {\"header\": \"a\", \"query\": \"b\"}}", "place: not a place" },
    { "github", "{\"place\": {\"body\": \"a\"}}", "place: not a place" },
    { "github", "{\"place\": \"body\", \"inject\": \"attach\"}",
      "inject: with \"place\": \"body\" a value goes where the placeholder stands" },
    { "github", "{\"place\": \"path\", \"inject\": \"attach-if-absent\"}",
      "inject: with \"place\": \"path\" a value goes where the placeholder stands" },
    { "github", "{\"scrub\": \"bodies\"}", "scrub: not a part of responses; write \"head\" or \"body\"" },
    { "github", "{\"scrub\": true}", "scrub: not a part of responses" },
    { "github", "{\"place\": {\"header\": \"\"}}", "place: header: not a header's name" },
    { "github", "{\"place\": {\"header\": \"a:b\"}}", "place: header: not a header's name" },
    { "github", "{\"place\": {\"header\": \"Host\"}}", "place: header: a header that is no place" },
    { "github", "{\"place\": {\"header\": \"Transfer-Encoding\"}}", "place: header: a header that is no place" },
    { "github", "{\"place\": {\"header\": \"PROXY-Authorization\"}}", "place: header: a header that is no place" },
    { "github", "{\"place\": {\"query\": \"\"}}", "place: query: not a parameter's name" },
    { "github", "{\"place\": {\"query\": \"a&b\"}}", "place: query: not a parameter's name" },
    { "github", "{\"place\": {\"basic\": \"a:b\"}}", "place: basic: not a user of Basic" },
  };

  (void)state;
  check_refused(rows, MEM_COUNT(rows));
}

/* Values that are made of several. */
static void test_refused_keys(void **state)
{
  static const struct refused rows[] = {
    { "aws", "{\"inject\": \"attach\"}", "inject: with \"place\": \"sigv4\" a request is signed anew" },
    { "aws", "{\"env\": \"AWS_ACCESS_KEY_ID\"}", "env: with \"place\": \"sigv4\" there are two placeholders" },
    { "aws", "{\"env\": [\"A\", \"B\", \"C\"]}", "env: with \"place\": \"sigv4\" there are two placeholders" },
    { "aws", "{\"source\": {\"env\": [\"A\", \"B\", \"C\", \"D\"]}}", "source: more than three variables" },
    { "aws", "{\"source\": {\"env\": []}}", "source: env: a list without a variable" },
    { "aws", "{\"source\": {\"env\": [1]}}", "source: env: not a variable's name" },
    { "github", "{\"source\": {\"env\": [\"A\", \"B\"]}}", "source: several variables hold one value only" },
    { "github", "{\"place\": \"sigv2\"}", "place: not a place" },
    { "aws", "{\"file\": \"~/x\"}", "file: with \"place\": \"sigv4\" placeholders are in variables only" },
  };

  (void)state;
  check_refused(rows, MEM_COUNT(rows));
}

#define GITHUB_REST \
  "\"bind\": [\"api.github.com\", \"github.com\", \"uploads.github.com\"], \"env\": [\"GITHUB_TOKEN\", " \
  "\"GH_TOKEN\"], " \
  "\"inject\": \"replace\", \"place\": \"bearer\"}"
#define X_REST "\"bind\": [\"a.test\"], \"env\": [\"X\"], \"inject\": \"replace\", \"place\": \"bearer\"}"

/* An entry and its canonical form, which is read to an equal one. */
static void test_canonical(void **state)
{
  static const struct {
    const char *name;
    const char *text;
    const char *canonical;
  } rows[] = {
    { "github", "{}", "{\"preset\": \"github\", \"source\": {\"env\": \"GITHUB_TOKEN\"}, " GITHUB_REST },
    { "github", "{\"inject\": \"auto\", \"source\": {\"exec\": [\"gh\", \"auth\", \"\"]}}",
      "{\"preset\": \"github\", \"source\": {\"exec\": [\"gh\", \"auth\", \"\"], \"timeout\": 30}, " GITHUB_REST },
    { "work", "{\"preset\": \"github\", \"source\": {\"file\": \"~//t/./x\", \"ttl\": \"5m\"}}",
      "{\"preset\": \"github\", \"source\": {\"file\": \"~/t/x\", \"ttl\": 300}, " GITHUB_REST },
    { "x",
      "{\"source\": {\"exec\": [\"x\"], \"timeout\": \"1500ms\", \"ttl\": \"1ms\"}, \"env\": \"X\", \"bind\": "
      "[\"A.test.\"]}",
      "{\"preset\": null, \"source\": {\"exec\": [\"x\"], \"timeout\": \"1500ms\", \"ttl\": \"1ms\"}, " X_REST },
    { "github",
      "{\"preset\": null, \"source\": {\"env\": \"X\"}, \"env\": [\"X\"], \"bind\": [{\"host\": \"a.test:443\"}]}",
      "{\"preset\": null, \"source\": {\"env\": \"X\"}, " X_REST },
    { "anthropic", "{\"inject\": \"attach\", \"env\": []}",
      "{\"preset\": \"anthropic\", \"source\": {\"env\": \"ANTHROPIC_API_KEY\"}, \"bind\": [\"api.anthropic.com\"], "
      "\"env\": [], \"inject\": \"attach\", \"place\": {\"header\": \"x-api-key\"}}" },
    { "pypi", "{\"bind\": [\"*.a.test:8443\", \"[2001:db8::1]:*\", \"192.0.2.1\"], \"inject\": \"attach-if-absent\"}",
      "{\"preset\": \"pypi\", \"source\": {\"env\": \"TWINE_PASSWORD\"}, \"bind\": [\"*.a.test:8443\", "
      "\"[2001:db8::1]:*\", \"192.0.2.1\"], \"env\": [\"TWINE_PASSWORD\", \"UV_PUBLISH_TOKEN\"], \"inject\": "
      "\"attach-if-absent\", \"place\": {\"basic\": \"__token__\"}}" },
    { "openai", "{\"place\": {\"query\": \"key\"}, \"env\": \"K\", \"bind\": [\"a.test\"]}",
      "{\"preset\": \"openai\", \"source\": {\"env\": \"OPENAI_API_KEY\"}, \"bind\": [\"a.test\"], \"env\": [\"K\"], "
      "\"inject\": \"replace\", \"place\": {\"query\": \"key\"}}" },
    { "npm", "{\"file\": \"~//.npmrc\", \"env\": [], \"bind\": [\"a.test\"]}",
      "{\"preset\": \"npm\", \"source\": {\"env\": \"NPM_TOKEN\"}, \"bind\": [\"a.test\"], \"env\": [], \"file\": "
      "[\"~/.npmrc\"], \"inject\": \"replace\", \"place\": \"bearer\"}" },
    { "aws", "{}",
      "{\"preset\": \"aws\", \"source\": {\"env\": [\"AWS_ACCESS_KEY_ID\", \"AWS_SECRET_ACCESS_KEY\", "
      "\"AWS_SESSION_TOKEN\"]}, \"bind\": [\"*.amazonaws.com\"], \"env\": [\"AWS_ACCESS_KEY_ID\", "
      "\"AWS_SECRET_ACCESS_KEY\"], \"inject\": \"replace\", \"place\": \"sigv4\"}" },
    { "x",
      "{\"source\": {\"env\": [\"A\", \"B\"]}, \"env\": [\"C\", \"D\"], \"bind\": [\"a.test\"], \"place\": \"sigv4\"}",
      "{\"preset\": null, \"source\": {\"env\": [\"A\", \"B\"]}, \"bind\": [\"a.test\"], \"env\": [\"C\", \"D\"], "
      "\"inject\": \"replace\", \"place\": \"sigv4\"}" },
    { "x",
      "{\"source\": {\"file\": \"/x\"}, \"env\": \"X\", \"bind\": [\"a.test\"], \"place\": \"path\", \"scrub\": "
      "\"body\"}",
      "{\"preset\": null, \"source\": {\"file\": \"/x\"}, \"bind\": [\"a.test\"], \"env\": [\"X\"], \"inject\": "
      "\"replace\", \"place\": \"path\", \"scrub\": \"body\"}" },
    { "x",
      "{\"source\": {\"file\": \"/x\"}, \"env\": \"X\", \"bind\": [\"a.test\"], \"place\": \"body\", \"scrub\": "
      "\"head\"}",
      "{\"preset\": null, \"source\": {\"file\": \"/x\"}, \"bind\": [\"a.test\"], \"env\": [\"X\"], \"inject\": "
      "\"replace\", \"place\": \"body\"}" },
    { "npm", "{\"place\": {\"basic\": \"\"}, \"env\": \"K\", \"bind\": [\"a.test\"]}",
      "{\"preset\": \"npm\", \"source\": {\"env\": \"NPM_TOKEN\"}, \"bind\": [\"a.test\"], \"env\": [\"K\"], "
      "\"inject\": \"replace\", \"place\": {\"basic\": \"\"}}" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
    MEM_CLEANUP(credential_clear) struct policy_credential again = { 0 };
    buf_autofree struct buf text = BUF_INIT(65536);
    buf_autofree struct buf text_again = BUF_INIT(65536);
    struct err err = ERR_INIT;
    unit_assert_row(credential_parse(rows[i].name, rows[i].text, &err, &credential) == 0, rows[i].text, err.message);
    credential_print(&credential, &text);
    assert_string_equal(text.data, rows[i].canonical);
    unit_assert_row(credential_parse(rows[i].name, text.data, &err, &again) == 0, rows[i].text, err.message);
    credential_print(&again, &text_again);
    assert_string_equal(text_again.data, text.data);
  }
}

/* Every preset is whole by itself, and says what placeholders look like. */
static void test_presets(void **state)
{
  (void)state;
  for (const struct credential_preset *preset = credential_presets(); preset->name; preset++) {
    MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
    struct err err = ERR_INIT;
    int r = credential_parse(preset->name, "{}", &err, &credential);
    assert_ptr_equal(credential_preset_find(span_of(preset->name)), preset);
    unit_assert_row(r == 0, preset->name, err.message);
    unit_assert_row(preset->length <= LIMITS_PLACEHOLDER_BYTES, preset->name, "too long");
    if (preset->place != POLICY_PLACE_SIGV4)
      unit_assert_row(preset->length >= strlen(preset->prefixes[0]) + 24, preset->name, "too short to be unique");
  }
  assert_null(credential_preset_find(SPAN("")));
}

static void test_option(void **state)
{
  static const struct {
    const char *text;
    const char *wanted; /* a part of the canonical form, or how the error begins */
    int result;
  } rows[] = {
    { "github", "\"source\": {\"env\": \"GITHUB_TOKEN\"}", 0 },
    { "github=env:GH_TOKEN", "\"source\": {\"env\": \"GH_TOKEN\"}", 0 },
    { "github=exec:gh  auth token ", "\"source\": {\"exec\": [\"gh\", \"auth\", \"token\"], \"timeout\": 30}", 0 },
    { "github=file:~/a:b=c", "\"source\": {\"file\": \"~/a:b=c\"}", 0 },
    { "github=", "not a source; write env:NAME, file:PATH, exec:COMMAND, secret-service:", -EINVAL },
    { "github=GH_TOKEN", "not a source", -EINVAL },
    { "github=env:", "not a source", -EINVAL },
    { "github=exec: ", "not a source", -EINVAL },
    { "github=pass:a/b", "\"source\": {\"pass\": \"a/b\", \"timeout\": 30}", 0 },
    { "github=op:op://a/b c/d", "\"source\": {\"op\": \"op://a/b c/d\", \"timeout\": 30}", 0 },
    { "github=secret-service:a=b,c=d=e",
      "\"source\": {\"secretService\": {\"a\": \"b\", \"c\": \"d=e\"}, \"timeout\": 30}", 0 },
    { "github=secret-service:a", "not attributes", -EINVAL },
    { "github=pass:", "not a source", -EINVAL },
    { "github=op:x", "not a secret reference", -EINVAL },
    { "github=env:A B", "not a variable's name", -EINVAL },
    { "github=file:x", "neither an absolute path", -EINVAL },
    { "tracker=env:X",
      "no preset \"tracker\"; the presets are github, anthropic, openai, npm, pypi, aws, gcp; a login of another "
      "service is "
      "described in a policy file",
      -EINVAL },
    { "", "not a credential's name", -EINVAL },
    { "=env:X", "not a credential's name", -EINVAL },
    { "aws", "{\"env\": [\"AWS_ACCESS_KEY_ID\", \"AWS_SECRET_ACCESS_KEY\", \"AWS_SESSION_TOKEN\"]}", 0 },
    { "aws=env:A,B", "\"source\": {\"env\": [\"A\", \"B\"]}", 0 },
    { "aws=env:A", "\"source\": {\"env\": \"A\"}", 0 },
    { "aws=env:A,", "a variable's name is", -EINVAL },
    { "github=env:A,B", "source: several variables hold one value only", -EINVAL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
    buf_autofree struct buf text = BUF_INIT(65536);
    struct err err = ERR_INIT;
    unit_assert_row(credential_read_option(span_of(rows[i].text), &err, &credential) == rows[i].result, rows[i].text,
                    err.message);
    if (rows[i].result == 0) {
      credential_print(&credential, &text);
      unit_assert_row(strstr(text.data, rows[i].wanted), rows[i].text, text.data);
    } else {
      unit_assert_row(strncmp(err.message, rows[i].wanted, strlen(rows[i].wanted)) == 0, rows[i].text, err.message);
    }
  }
}

#define ENTRY(env, bind, more) \
  "{\"source\": {\"env\": \"" env "\"}, \"env\": \"" env "\", \"bind\": [\"" bind "\"]" more "}"
#define ATTACH(place) ", \"inject\": \"attach\", \"place\": " place

/* What credentials of one policy may not do to each other. */
static void test_whole(void **state)
{
  static const struct {
    const char *text;
    const char *wanted; /* part of the error; NULL: there is none */
  } rows[] = {
    { "{\"credentials\": {\"a\": " ENTRY("A", "a.test", "") ", \"b\": " ENTRY("B", "a.test", "") "}}", NULL },
    { "{\"credentials\": {\"a\": " ENTRY("A", "a.test", "") ",\n\"b\": " ENTRY("A", "b.test", "") "}}",
      "/test.json:2: credentials.b: \"a\" sets the variable A as well" },
    { "{\"credentials\": {\"a\": " ENTRY("A", "a.test", ATTACH("\"bearer\"")) ", \"b\": " ENTRY(
          "B", "*.test.test", ATTACH("\"bearer\"")) "}}",
      NULL },
    { "{\"credentials\": {\"a\": " ENTRY("A", "a.b.test", ATTACH("\"bearer\"")) ", \"b\": " ENTRY(
          "B", "*.b.test:1-999", ATTACH("{\"basic\": \"u\"}")) "}}",
      "credentials.b: \"a\" is set at the same place of the same requests" },
    { "{\"credentials\": {\"a\": " ENTRY(
          "A", "*.a.b.test", ATTACH("{\"header\": \"Authorization\"}")) ", \"b\": " ENTRY("B", "*.b.test",
                                                                                          ATTACH("\"bearer\"")) "}}",
      "\"a\" is set at the same place" },
    { "{\"credentials\": {\"a\": " ENTRY("A", "b.test", ATTACH("\"bearer\"")) ", \"b\": " ENTRY(
          "B", "*.b.test", ATTACH("\"bearer\"")) "}}",
      NULL },
    { "{\"credentials\": {\"a\": " ENTRY("A", "b.test", ATTACH("\"bearer\"")) ", \"b\": " ENTRY(
          "B", "b.test:8443", ATTACH("\"bearer\"")) "}}",
      NULL },
    { "{\"credentials\": {\"a\": " ENTRY("A", "192.0.2.1", ATTACH("{\"query\": \"k\"}")) ", \"b\": " ENTRY(
          "B", "::ffff:192.0.2.1", ATTACH("{\"query\": \"k\"}")) "}}",
      "\"a\" is set at the same place" },
    { "{\"credentials\": {\"a\": " ENTRY("A", "b.test", ATTACH("{\"query\": \"k\"}")) ", \"b\": " ENTRY(
          "B", "b.test", ATTACH("{\"query\": \"K\"}")) "}}",
      NULL },
    { "{\"credentials\": {\"a\": " ENTRY("A", "b.test", ATTACH("{\"header\": \"x-k\"}")) ", \"b\": " ENTRY(
          "B", "b.test", ATTACH("{\"header\": \"X-K\"}")) "}}",
      "\"a\" is set at the same place" },
    { "{\"credentials\": {\"a\": " ENTRY("A", "b.test", "") "}, \"env\": {\"set\": {\"A\": \"x\"}}}",
      "/test.json:1: credentials.a: sets the variable A, and so does env.set" },
    { "{\"credentials\": {\"a\": {}}}", "/test.json:1: credentials.a: no source" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    const struct make_layer layer = { LAYER_FILE, "/test.json", rows[i].text };
    struct err err = ERR_INIT;
    int r = make_validate(&layer, 1, &err, NULL, NULL);
    unit_assert_row(r == (rows[i].wanted ? -EINVAL : 0), rows[i].text, err.message);
    if (rows[i].wanted)
      unit_assert_row(strstr(err.message, rows[i].wanted), rows[i].text, err.message);
  }
}

static void test_too_many(void **state)
{
  (void)state;
  for (int count = LIMITS_CREDENTIALS; count <= LIMITS_CREDENTIALS + 1; count++) {
    buf_autofree struct buf text = BUF_INIT(65536);
    struct make_layer layer = { LAYER_FILE, "/test.json", NULL };
    struct err err = ERR_INIT;
    for (int i = 0; i < count; i++)
      buf_printf(&text, "%s\"c%d\": {\"source\": {\"env\": \"X\"}, \"env\": \"E%d\", \"bind\": [\"a.test\"]}",
                 i > 0 ? ", " : "{\"credentials\": {", i, i);
    buf_append_str(&text, "}}");
    layer.text = text.data;
    assert_int_equal(make_validate(&layer, 1, &err, NULL, NULL), count > LIMITS_CREDENTIALS ? -EINVAL : 0);
  }
}

/* A later layer replaces an entry whole; an untrusted or trusted workspace has no say; they come sorted by name. */
static void test_layers(void **state)
{
  static const struct make_layer layers[] = {
    { LAYER_USER, "/user.json",
      "{\"credentials\": {\"z\": " ENTRY("Z", "z.test", "") ", \"github\": {\"env\": \"OLD\"}}}" },
    { LAYER_WORKSPACE_TRUSTED, "/w/.sbx.json",
      "{\"credentials\": {\"evil\": {\"source\": {\"exec\": [\"evil\"]}, \"env\": \"E\", \"bind\": [\"e.test\"]},\n"
      "\"github\": {\"bind\": [\"e.test\"]}}}" },
    { LAYER_FILE, "/f.json", "{\"credentials\": {\"github\": {\"source\": {\"file\": \"/t\"}}}}" },
  };
  policy_autofree struct policy *policy = NULL;
  strv_autofree struct strv notes = STRV_INIT;
  struct err err = ERR_INIT;

  (void)state;
  if (make_validate(layers, MEM_COUNT(layers), &err, &notes, &policy) < 0)
    fail_msg("%s", err.message);
  assert_int_equal(policy->credentials.count, 2);
  assert_string_equal(policy->credentials.items[0].name, "github");
  assert_string_equal(policy->credentials.items[0].source.words.items[0], "/t");
  assert_string_equal(policy->credentials.items[0].env.items[0], "GITHUB_TOKEN");
  assert_string_equal(policy->credentials.items[0].origin.file, "/f.json");
  assert_string_equal(policy->credentials.items[1].name, "z");
  assert_int_equal(notes.count, 1);
  assert_string_equal(notes.items[0], "/w/.sbx.json: ignored, since a file in the workspace can never set it: "
                                      "credentials; set it in your own policy");
}

static void test_option_twice(void **state)
{
  layers_autofree struct layers *layers = layers_new();
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(layers_add_option(layers, "credentials", "github", "--credential", &err), 0);
  assert_int_equal(layers_add_option(layers, "credentials", "npm", "--credential", &err), 0);
  assert_int_equal(layers_add_option(layers, "credentials", "github=env:X", "--credential", &err), -EINVAL);
  assert_string_equal(err.message, "--credential github: given twice; leave one out");
  assert_int_equal(layers_add_option(layers, "credentials", "x", "--credential", &err), -EINVAL);
  assert_int_equal(strncmp(err.message, "--credential: ", 14), 0);
}

static struct verdict judge(const struct policy *policy, const char *target)
{
  struct err err = ERR_INIT;
  struct host host;
  uint16_t port;

  if (host_parse_target(span_of(target), 443, &err, &host, &port) < 0)
    fail_msg("%s", err.message);
  return decide_target(policy, &host, port);
}

/* What is bound may be reached where it is bound, by a rule that says so; deny wins; a file with a value is hidden. */
static void test_implied(void **state)
{
  policy_autofree struct policy *policy =
      make_policy("{\"network\": {\"deny\": [\"uploads.github.com\"]},\n\"credentials\": {\n\"github\": {\"source\": "
                  "{\"file\": \"~/t\"}}}}");
  struct verdict verdict = judge(policy, "api.github.com");

  (void)state;
  assert_true(verdict.allow);
  assert_string_equal(verdict.rule->text, "api.github.com:443");
  assert_string_equal(verdict.rule->origin.file, "/test.json");
  assert_string_equal(verdict.rule->origin.json_path, "credentials.github");
  assert_int_equal(verdict.rule->origin.line, 3);
  assert_false(judge(policy, "api.github.com:80").allow);
  assert_int_equal(judge(policy, "uploads.github.com").reason, REASON_DENY_RULE);
  assert_false(judge(policy, "gist.github.com").allow);
  assert_int_equal(policy->hide.count, 1);
  assert_string_equal(policy->hide.items[0].text, "~/t");
  assert_string_equal(policy->hide.items[0].origin.json_path, "credentials.github");
}

static void test_notes(void **state)
{
  static const struct make_layer layer = {
    LAYER_FILE, "/f.json",
    "{\"network\": {\"mode\": \"host\"}, \"env\": {\"pass\": [\"GITHUB_*\", \"GITHUB_TOKEN\"]}, \"credentials\": "
    "{\"github\": {}}}"
  };
  strv_autofree struct strv notes = STRV_INIT;
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(make_validate(&layer, 1, &err, &notes, NULL), 0);
  assert_int_equal(notes.count, 2);
  assert_string_equal(notes.items[0], "network.mode is host: the credentials have no effect; set it to proxy for them");
  assert_string_equal(notes.items[1],
                      "env.pass: GITHUB_TOKEN is not passed, since it holds the value of the credential \"github\"");
}

static void test_bound(void **state)
{
  static const struct {
    const char *target;
    uint32_t bound;
  } rows[] = {
    { "a.test", 1 },      { "a.test:80", 0 }, { "x.a.test", 2 },       { "x.a.test:8443", 0 },
    { "A.TEST.:443", 1 }, { "192.0.2.1", 4 }, { "192.0.2.1:8443", 4 }, { "192.0.2.2", 0 },
    { "other.test", 0 },  { "aa.test", 0 },   { "both.a.test", 10 },   { "::ffff:192.0.2.1", 4 },
  };
  policy_autofree struct policy *policy =
      make_policy("{\"credentials\": {\"b\": " ENTRY("B", "*.a.test", "") ", \"a\": " ENTRY(
          "A", "a.test", "") ", \"c\": " ENTRY("C", "192.0.2.1:*", "") ", \"d\": " ENTRY("D", "both.a.test", "") "}}");
  policy_autofree struct policy *grown = NULL;

  (void)state;
  /* What the user allows while the command runs changes nothing about it. */
  assert_int_equal(policy_extend(policy, "other.test", "--ask", NULL, &grown), 0);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct host host;
    uint16_t port = 443;
    if (host_parse_target(span_of(rows[i].target), 443, NULL, &host, &port) < 0)
      assert_int_equal(host_parse(span_of(rows[i].target), NULL, &host), 0);
    unit_assert_row(decide_bound(policy, &host, port) == rows[i].bound, rows[i].target, "bound");
    unit_assert_row(decide_bound(grown, &host, port) == rows[i].bound, rows[i].target, "bound as before");
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refused),  cmocka_unit_test(test_refused_keys), cmocka_unit_test(test_canonical),
    cmocka_unit_test(test_presets),  cmocka_unit_test(test_option),       cmocka_unit_test(test_whole),
    cmocka_unit_test(test_too_many), cmocka_unit_test(test_layers),       cmocka_unit_test(test_option_twice),
    cmocka_unit_test(test_implied),  cmocka_unit_test(test_notes),        cmocka_unit_test(test_bound),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
