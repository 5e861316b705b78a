#include "config.h"

#include "unit/policy_make.h"

#include "policy/fields.h"

#define SYSTEM(text) { LAYER_SYSTEM, "/etc/p.json", (text) }
#define USER(text) { LAYER_USER, "/u.json", (text) }
#define UNTRUSTED(text) { LAYER_WORKSPACE, "/w/.sbx.json", (text) }
#define TRUSTED(text) { LAYER_WORKSPACE_TRUSTED, "/w/.sbx.json", (text) }
#define FILE_LAYER(text) { LAYER_FILE, "/f.json", (text) }

/* Layers, a scalar key, and what becomes of it; and the texts that the notes hold (NULL: no note). */
struct row {
  struct make_layer layers[3];
  enum key_id key;
  uint64_t number; /* value_number */
  const char *note;
};

enum { NONE, PROXY, HOST };
enum { HOME_TMPFS, HOME_PRIVATE, HOME_HOST };
enum { FALSE, TRUE };

static void check_rows(const struct row *rows, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    struct err err = ERR_INIT;
    strv_autofree struct strv notes = STRV_INIT;
    struct policy *policy = NULL;
    size_t layers = 0;
    while (layers < 3 && rows[i].layers[layers].text)
      layers++;
    if (make_validate(rows[i].layers, layers, &err, &notes, &policy) < 0)
      fail_msg("row %zu: %s", i, err.message);
    if (fields_number(policy, rows[i].key) != rows[i].number)
      fail_msg("row %zu: %s is %llu, wanted %llu", i, keys_at(rows[i].key)->path,
               (unsigned long long)fields_number(policy, rows[i].key), (unsigned long long)rows[i].number);
    if ((notes.count > 0) != (rows[i].note != NULL))
      fail_msg("row %zu: note: %s", i, notes.count > 0 ? notes.items[0] : "none");
    if (rows[i].note)
      unit_assert_row(strstr(notes.items[0], rows[i].note), notes.items[0], rows[i].note);
    policy_free(policy);
  }
}

static void test_scalars_last_layer_wins(void **state)
{
  static const struct row rows[] = {
    { { USER("{}") }, KEY_NETWORK_MODE, PROXY, NULL },
    { { USER("{}") }, KEY_HOME, HOME_PRIVATE, NULL },
    { { USER("{}") }, KEY_PTRACE, TRUE, NULL },
    { { USER("{}") }, KEY_MEMORY, 0, NULL },
    { { SYSTEM("{\"network\": {\"mode\": \"none\"}}"), USER("{\"network\": {\"mode\": \"host\"}}") },
      KEY_NETWORK_MODE,
      HOST,
      NULL },
    /* The order of the layers counts, not the order in which they were added. */
    { { FILE_LAYER("{\"network\": {\"mode\": \"none\"}}"), USER("{\"network\": {\"mode\": \"host\"}}") },
      KEY_NETWORK_MODE,
      NONE,
      NULL },
    { { USER("{\"limits\": {\"memory\": \"1g\"}}"), FILE_LAYER("{\"limits\": {\"memory\": null}}") },
      KEY_MEMORY,
      0,
      NULL },
    { { USER("{\"limits\": {\"pids\": 5}}"), SYSTEM("{\"limits\": {\"pids\": 500}}") }, KEY_PIDS, 5, NULL },
    { { USER("{\"extends\": [\"strict\"], \"syscalls\": {\"i386\": true}}") }, KEY_I386, TRUE, NULL },
    { { USER("{\"extends\": [\"strict\"]}") }, KEY_PTRACE, FALSE, NULL },
    /* A profile stands before the files, whichever file names it; what it narrowed does not go silently. */
    { { USER("{\"network\": {\"mode\": \"proxy\"}}"), FILE_LAYER("{\"extends\": [\"offline\"]}") },
      KEY_NETWORK_MODE,
      PROXY,
      "/u.json:1: network.mode \"proxy\" overrides the \"none\" of profile offline; remove it there" },
    { { USER("{\"extends\": [\"offline\"]}") }, KEY_NETWORK_MODE, NONE, NULL },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

#define MODE(word) "{\"network\": {\"mode\": \"" word "\"}}"
#define HOME(word) "{\"filesystem\": {\"home\": \"" word "\"}}"
#define PIDS(number) "{\"limits\": {\"pids\": " number "}}"
#define PTRACE(word) "{\"syscalls\": {\"ptrace\": " word "}}"
#define NESTING(word) "{\"syscalls\": {\"nesting\": " word "}}"

static void test_scalars_of_the_workspace(void **state)
{
  static const struct row rows[] = {
    { { UNTRUSTED(MODE("none")) }, KEY_NETWORK_MODE, NONE, NULL },
    { { UNTRUSTED(MODE("proxy")) }, KEY_NETWORK_MODE, PROXY, NULL },
    { { UNTRUSTED(MODE("host")) }, KEY_NETWORK_MODE, PROXY, "can never set it: network.mode" },
    { { TRUSTED(MODE("host")) }, KEY_NETWORK_MODE, PROXY, "can never set it: network.mode" },
    { { USER(MODE("none")), UNTRUSTED(MODE("proxy")) },
      KEY_NETWORK_MODE,
      NONE,
      "not trusted, so ignored: network.mode" },
    { { USER(MODE("none")), TRUSTED(MODE("proxy")) }, KEY_NETWORK_MODE, PROXY, NULL },
    { { USER(MODE("host")), UNTRUSTED(MODE("proxy")) }, KEY_NETWORK_MODE, PROXY, NULL },
    { { USER(MODE("host")), UNTRUSTED(MODE("host")) }, KEY_NETWORK_MODE, HOST, NULL },
    /* The user's own --policy has the last word. */
    { { UNTRUSTED(MODE("none")), FILE_LAYER(MODE("proxy")) }, KEY_NETWORK_MODE, PROXY, NULL },
    { { UNTRUSTED(HOME("tmpfs")) }, KEY_HOME, HOME_TMPFS, NULL },
    { { UNTRUSTED(HOME("host")) }, KEY_HOME, HOME_PRIVATE, "run: " SBX_NAME " trust" },
    { { TRUSTED(HOME("host")) }, KEY_HOME, HOME_HOST, NULL },
    { { UNTRUSTED(PIDS("10")) }, KEY_PIDS, 10, NULL },
    { { USER(PIDS("5")), UNTRUSTED(PIDS("10")) }, KEY_PIDS, 5, "can never set it: limits.pids" },
    { { USER(PIDS("5")), TRUSTED(PIDS("10")) }, KEY_PIDS, 5, "can never set it: limits.pids" },
    { { USER(PIDS("5")), TRUSTED(PIDS("null")) }, KEY_PIDS, 5, "can never set it: limits.pids" },
    { { USER(PIDS("5")), TRUSTED(PIDS("4")) }, KEY_PIDS, 4, NULL },
    { { UNTRUSTED(PIDS("null")) }, KEY_PIDS, 0, NULL },
    { { UNTRUSTED(PTRACE("false")) }, KEY_PTRACE, FALSE, NULL },
    { { USER(PTRACE("false")), UNTRUSTED(PTRACE("true")) }, KEY_PTRACE, FALSE, "ignored: syscalls.ptrace" },
    { { UNTRUSTED(NESTING("true")) }, KEY_NESTING, FALSE, "ignored: syscalls.nesting" },
    { { TRUSTED(NESTING("true")) }, KEY_NESTING, TRUE, NULL },
    /* A profile is as untrusted as the file that names it. */
    { { UNTRUSTED("{\"extends\": [\"offline\"]}") }, KEY_NETWORK_MODE, NONE, NULL },
    { { UNTRUSTED("{\"extends\": [\"strict\"]}") }, KEY_PTRACE, FALSE, NULL },
    { { USER(HOME("tmpfs")), UNTRUSTED("{\"extends\": [\"strict\"]}") }, KEY_HOME, HOME_TMPFS, NULL },
  };

  (void)state;
  check_rows(rows, MEM_COUNT(rows));
}

/* Every list key, with one value, in a workspace file: taken where it narrows, else after `sbx trust` or never. */
static void test_lists_of_the_workspace(void **state)
{
  static const struct {
    const char *text;
    const char *untrusted_note; /* NULL: taken */
    const char *trusted_note;
    const char *printed; /* what the policy holds where it was taken */
  } rows[] = {
    { "{\"filesystem\": {\"hide\": [\"taken-value\"]}}", NULL, NULL, "taken-value" },
    { "{\"filesystem\": {\"protect\": [\"taken-value\"]}}", NULL, NULL, "taken-value" },
    { "{\"network\": {\"deny\": [\"taken-value\"]}}", NULL, NULL, "taken-value" },
    { "{\"filesystem\": {\"read\": [\"taken-value\"]}}", "ignored: filesystem.read;", NULL, "taken-value" },
    { "{\"filesystem\": {\"write\": [\"taken-value\"]}}", "ignored: filesystem.write;", NULL, "taken-value" },
    { "{\"filesystem\": {\"unprotect\": [\"taken-value\"]}}", "can never set it: filesystem.unprotect;",
      "can never set it: filesystem.unprotect;", "taken-value" },
    { "{\"network\": {\"allow\": [\"taken-value\"]}}", "ignored: network.allow;", NULL, "taken-value" },
    { "{\"network\": {\"forward\": [54321]}}", "ignored: network.forward;", NULL, "54321" },
    { "{\"network\": {\"publish\": [54321]}}", "ignored: network.publish;", NULL, "54321" },
    { "{\"network\": {\"unixSockets\": [\"taken-value\"]}}", "ignored: network.unixSockets;", NULL, "taken-value" },
    { "{\"network\": {\"upstreamProxy\": \"http://taken-value:1\"}}", "ignored: network.upstreamProxy;", NULL,
      "taken-value" },
    { "{\"env\": {\"pass\": [\"TAKEN_VALUE\"]}}", "ignored: env.pass;", NULL, "TAKEN_VALUE" },
    { "{\"env\": {\"set\": {\"TAKEN_VALUE\": \"\"}}}", "ignored: env.set;", NULL, "TAKEN_VALUE" },
    { "{\"audit\": {\"file\": \"/taken-value\"}}", "ignored: audit.file;", NULL, "taken-value" },
    { "{\"extends\": [\"git\"]}", "ignored: profile git;", NULL, "github.com" },
  };

  (void)state;
  for (size_t i = 0; i < 2 * MEM_COUNT(rows); i++) {
    bool trusted = i % 2;
    const char *note = trusted ? rows[i / 2].trusted_note : rows[i / 2].untrusted_note;
    struct make_layer layer = { trusted ? LAYER_WORKSPACE_TRUSTED : LAYER_WORKSPACE, "/w/.sbx.json", rows[i / 2].text };
    struct err err = ERR_INIT;
    strv_autofree struct strv notes = STRV_INIT;
    struct policy *policy = NULL;
    if (make_validate(&layer, 1, &err, &notes, &policy) < 0)
      fail_msg("%s: %s", rows[i / 2].text, err.message);
    char *text = make_print(policy, false);
    unit_assert_row(notes.count == (note ? 1 : 0), rows[i / 2].text, notes.count ? notes.items[0] : "no note");
    if (note)
      unit_assert_row(strstr(notes.items[0], note) && strstr(notes.items[0], "/w/.sbx.json"), notes.items[0], note);
    unit_assert_row((strstr(text, rows[i / 2].printed) != NULL) == !note, rows[i / 2].text, "taken or ignored wrongly");
    free(text);
    policy_free(policy);
  }
}

/* One line for a whole file, however much of it was ignored. */
static void test_notes_are_few(void **state)
{
  struct make_layer layer = UNTRUSTED("{\"filesystem\": {\"write\": [\"/\", \"/x\"], \"read\": [\"/\"], "
                                      "\"unprotect\": [\".git/config\"]}, \"network\": {\"allow\": [\"*\"]}}");
  struct err err = ERR_INIT;
  strv_autofree struct strv notes = STRV_INIT;

  (void)state;
  assert_int_equal(make_validate(&layer, 1, &err, &notes, NULL), 0);
  assert_int_equal(notes.count, 2);
  assert_string_equal(notes.items[0], "/w/.sbx.json: not trusted, so ignored: filesystem.write, filesystem.read, "
                                      "network.allow; look at the file and run: " SBX_NAME " trust");
  assert_string_equal(notes.items[1], "/w/.sbx.json: ignored, since a file in the workspace can never set it: "
                                      "filesystem.unprotect; set it in your own policy");
}

/* A bad value is an error also where its file would be ignored or its value overridden. */
static void test_bad_values_are_errors_everywhere(void **state)
{
  struct make_layer layers[] = { UNTRUSTED("{\"network\": {\"allow\": [\"*.com\"]}}"), FILE_LAYER("{}") };
  struct make_layer overridden[] = { USER("{\"limits\": {\"memory\": \"x\"}}"),
                                     FILE_LAYER("{\"limits\": {\"memory\": 1}}") };
  struct err err = ERR_INIT;

  (void)state;
  assert_int_equal(make_validate(layers, 2, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "/w/.sbx.json:1: network.allow[0]"));
  assert_int_equal(make_validate(overridden, 2, &err, NULL, NULL), -EINVAL);
  assert_non_null(strstr(err.message, "/u.json:1: limits.memory"));
}

static void test_lists_add_up_in_order(void **state)
{
  struct make_layer layers[] = {
    FILE_LAYER("{\"network\": {\"allow\": [\"f.test\", \"U.test.\"]}, \"env\": {\"set\": {\"A\": \"f\"}}}"),
    USER("{\"network\": {\"allow\": [\"u.test\", \"f.test:22\"]}, \"env\": {\"set\": {\"A\": \"u\", \"B\": \"u\"}}}"),
    SYSTEM("{\"network\": {\"allow\": [\"s.test\"]}, \"env\": {\"set\": {\"C\": \"s\"}}}"),
  };
  static const char *const wanted[] = { "s.test", "u.test", "f.test:22", "f.test" };
  struct err err = ERR_INIT;
  policy_autofree struct policy *policy = NULL;

  (void)state;
  assert_int_equal(make_validate(layers, 3, &err, NULL, &policy), 0);
  assert_int_equal(policy->allow.count, MEM_COUNT(wanted));
  for (size_t i = 0; i < MEM_COUNT(wanted); i++)
    assert_string_equal(policy->allow.items[i].text, wanted[i]);
  assert_string_equal(policy->allow.items[1].origin.file, "/u.json"); /* the first of two equal ones stays */
  assert_int_equal(policy->env_set.count, 3);
  assert_string_equal(policy->env_set.items[0].name, "C");
  assert_string_equal(policy->env_set.items[1].name, "B");
  assert_string_equal(policy->env_set.items[2].name, "A");
  assert_string_equal(policy->env_set.items[2].value, "f");
}

/* P11: an untrusted workspace file never widens. Random files of every kind of value over random files of the user. */
static void test_untrusted_never_widens_property(void **state)
{
  static const char *const parts[] = {
    "\"extends\": [\"git\"]",
    "\"extends\": [\"strict\", \"node\"]",
    "\"extends\": [\"offline\"]",
    "\"filesystem\": {\"home\": \"host\", \"write\": [\"/\"]}",
    "\"filesystem\": {\"home\": \"tmpfs\"}",
    "\"filesystem\": {\"read\": [\"~\"], \"unprotect\": [\".git\"]}",
    "\"network\": {\"mode\": \"host\"}",
    "\"network\": {\"mode\": \"none\"}",
    "\"network\": {\"mode\": \"proxy\", \"allow\": [\"*:*\"]}",
    "\"network\": {\"forward\": [1], \"publish\": [2000], \"unixSockets\": [\"/s\"]}",
    "\"env\": {\"pass\": [\"SECRET\"], \"set\": {\"LD_PRELOAD\": \"x\"}}",
    "\"limits\": {\"memory\": \"1t\", \"pids\": 3}",
    "\"limits\": {\"memory\": 1024, \"cpus\": 1}",
    "\"limits\": {\"timeout\": null, \"cpus\": null}",
    "\"syscalls\": {\"nesting\": true, \"ptrace\": true, \"i386\": true}",
    "\"syscalls\": {\"ptrace\": false}",
    "\"audit\": {\"file\": \"/a\"}",
  };
  static const enum key_id numbers[] = { KEY_HOME,    KEY_NETWORK_MODE, KEY_MEMORY, KEY_CPUS, KEY_PIDS,
                                         KEY_TIMEOUT, KEY_NESTING,      KEY_PTRACE, KEY_I386 };
  struct unit_random random = unit_seed("never-widens");

  (void)state;
  for (int i = 0; i < 3000; i++) {
    char text[2][512];
    for (size_t j = 0; j < 2; j++)
      snprintf(text[j], sizeof text[j], "{%s}", parts[unit_below(&random, MEM_COUNT(parts))]);
    struct make_layer layers[] = { USER(text[0]), UNTRUSTED(text[1]) };
    struct policy *without = NULL;
    struct policy *with = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(make_validate(layers, 1, &err, NULL, &without), 0);
    assert_int_equal(make_validate(layers, 2, &err, NULL, &with), 0);
    for (size_t j = 0; j < MEM_COUNT(numbers); j++) {
      uint64_t before = fields_number(without, numbers[j]);
      uint64_t after = fields_number(with, numbers[j]);
      bool limit = !keys_at(numbers[j])->words;
      if (before != after && !(after < before && (!limit || after != 0)) && !(limit && before == 0))
        fail_msg("%s, then %s: %s", text[0], text[1], keys_at(numbers[j])->path);
    }
    assert_int_equal(with->allow.count, without->allow.count);
    assert_int_equal(with->read.count + with->write.count + with->unprotect.count + with->unix_sockets.count,
                     without->read.count + without->write.count + without->unprotect.count +
                         without->unix_sockets.count);
    assert_int_equal(with->forward.count + with->publish.count + with->env_pass.count + with->env_set.count,
                     without->forward.count + without->publish.count + without->env_pass.count +
                         without->env_set.count);
    assert_true(with->deny.count >= without->deny.count && with->hide.count >= without->hide.count);
    assert_int_equal(with->audit_file == NULL, without->audit_file == NULL);
    policy_free(without);
    policy_free(with);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scalars_last_layer_wins),          cmocka_unit_test(test_scalars_of_the_workspace),
    cmocka_unit_test(test_lists_of_the_workspace),           cmocka_unit_test(test_notes_are_few),
    cmocka_unit_test(test_bad_values_are_errors_everywhere), cmocka_unit_test(test_lists_add_up_in_order),
    cmocka_unit_test(test_untrusted_never_widens_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
