/* Values from their sources, through fetch.h, and what the proxy is answered. */
#include "base/clock.h"
#include "run/secrets.h"
#include "unit/policy_make.h"
#include "unit/temp.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* One caller, one policy, and the last answer. */
struct scene {
  char *dir;
  struct policy *policy;
  struct facts facts;
  struct secrets secrets;
  struct control_secret last;
  size_t answers;
};

static char *copy(const char *text)
{
  return mem_strndup(text, strlen(text));
}

static void take(void *data, const struct control_secret *answer)
{
  struct scene *scene = data;

  scene->last = *answer;
  scene->answers++;
}

/* One that stays, and those that lead to where the command may write, or load code. */
static void add_variables(struct strv *environment, void **state)
{
  assert_int_equal(strv_addf(environment, "BESIDE=%s", temp_path(state, "workshop")), 0);
  assert_int_equal(strv_addf(environment, "INSIDE=--from=%s,x", temp_path(state, "work")), 0);
  assert_int_equal(strv_addf(environment, "WRITTEN=%s", temp_path(state, "out/x")), 0);
  assert_int_equal(strv_addf(environment, "VIA=/usr/lib:%s", temp_path(state, "home/into/x")), 0);
  assert_int_equal(strv_add(environment, "PYTHONPATH=/usr/lib"), 0);
  assert_int_equal(strv_add(environment, "LD_BIND_NOW=1"), 0);
  assert_int_equal(strv_add(environment, "ENV=/etc/profile"), 0);
}

/* The policy {"credentials": {"x": {"source": SOURCE, ...}}}. */
static void open_scene(struct scene *scene, void **state, const char *source)
{
  char text[4096];
  char path[4096];
  struct err err = ERR_INIT;

  snprintf(text, sizeof text,
           "{\"filesystem\": {\"write\": [\"%s/out\"]}, \"credentials\": {\"x\": {\"source\": %s, \"env\": \"PH\", "
           "\"bind\": [\"a.test\"]}}}",
           (const char *)*state, source);
  *scene = (struct scene){ .dir = *state, .policy = make_policy(text), .facts = FACTS_INIT };
  scene->facts.home = copy(temp_path(state, "home"));
  scene->facts.workspace = copy(temp_path(state, "work"));
  scene->facts.private_home = copy(temp_path(state, "private"));
  snprintf(path, sizeof path, "PATH=relative:%s:%s:%s:%s:/usr/bin:/bin", temp_path(state, "work/bin"),
           temp_path(state, "out/bin"), temp_path(state, "linked"), temp_path(state, "bin"));
  assert_int_equal(strv_add(&scene->facts.environment, path), 0);
  add_variables(&scene->facts.environment, state);
  assert_int_equal(strv_add(&scene->facts.environment, "TOKEN=hunter2\n"), 0);
  assert_int_equal(strv_add(&scene->facts.environment, "EMPTY="), 0);
  assert_int_equal(strv_add(&scene->facts.environment, "LINES=one\ntwo"), 0);
  assert_int_equal(secrets_open(&scene->secrets, scene->policy, &scene->facts, take, scene, &err), 0);
}

static void close_scene(struct scene *scene)
{
  secrets_close(&scene->secrets);
  facts_free(&scene->facts);
  policy_free(scene->policy);
}

/* As supervise() does. */
static void turn(struct scene *scene)
{
  struct pollfd fds[SECRETS_POLL_MAX];
  size_t count = secrets_poll(&scene->secrets, fds);
  int wait = secrets_wait_ms(&scene->secrets);
  int status;
  pid_t pid;

  assert_true(wait >= 0);
  (void)poll(fds, count, wait < 20 ? wait : 20);
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    assert_true(secrets_reaped(&scene->secrets, pid, status));
  secrets_read(&scene->secrets);
}

static void want(struct scene *scene, bool stale)
{
  size_t before = scene->answers;

  secrets_want(&scene->secrets, 0, stale);
  for (int i = 0; i < 1000 && scene->answers == before; i++)
    turn(scene);
  assert_int_equal(scene->answers, before + 1);
  assert_int_equal(scene->last.type, CONTROL_SECRET);
  assert_int_equal(scene->last.index, 0);
}

static void got_value(struct scene *scene, const char *source, const char *value)
{
  unit_assert_row(scene->last.error[0] == '\0', source, scene->last.error);
  unit_assert_row(scene->last.len == strlen(value) && memcmp(scene->last.value, value, scene->last.len) == 0, source,
                  scene->last.value);
}

static void write_program(void **state, const char *name, const char *script)
{
  char text[8192];

  snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
  temp_put(temp_path(state, name), text);
  assert_int_equal(chmod(temp_path(state, name), 0755), 0);
}

static void write_script(void **state, const char *name, const char *runner)
{
  char text[4096];

  snprintf(text, sizeof text, "#!  %s -x\n", temp_path(state, runner));
  temp_put(temp_path(state, name), text);
  assert_int_equal(chmod(temp_path(state, name), 0755), 0);
}

/* Programs that the command could make other ones, and those that tell what they were given. */
static void put_traps(void **state)
{
  write_program(state, "bin/where", "pwd");
  write_program(
      state, "bin/path",
      "case $PATH in *relative*|*/work/*|*/out/*|*/linked*) echo bad;; */bin:/usr/bin:/bin) echo good;; esac");
  write_program(state, "bin/variables",
                "echo \"${INSIDE-}${WRITTEN-}${VIA-}${PYTHONPATH-}${LD_BIND_NOW-}${ENV-}:${BESIDE##*/}\"");
  write_program(state, "bin/calls", "planted || echo none");
  write_script(state, "bin/run-by", "work/bin/both");
  write_script(state, "bin/run-by-two", "bin/run-by");
  temp_link("../bin/give", temp_path(state, "work/round"));
  temp_put(temp_path(state, "linked/other"), "");
  temp_link("../work/round", temp_path(state, "linked/round"));
  temp_link("../work", temp_path(state, "home/into"));
}

/* The files and programs of test_sources(). */
static void put_sources(void **state)
{
  char large[8194];

  memset(large, 'x', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  temp_put(temp_path(state, "home/token"), "from file \r\n\n");
  temp_put(temp_path(state, "home/empty"), "\n");
  temp_put(temp_path(state, "home/lines"), "hunter2\nhunter3\n");
  temp_put(temp_path(state, "home/large"), large);
  temp_put(temp_path(state, "work/bin/"), "");
  assert_int_equal(mkfifo(temp_path(state, "home/fifo"), 0600), 0);
  write_program(state, "bin/give", "echo \"$1:$(($# + 1))\"");
  write_program(state, "bin/json", "printf '%s' \"$1\"");
  write_program(state, "bin/nothing", "exit 0");
  write_program(state, "bin/lines", "echo hunter2; echo hunter3");
  write_program(state, "bin/nul", "printf 'hun\\000ter2'");
  write_program(state, "bin/fails", "printf 'not logged in\\033\\nmore' >&2; exit 3");
  write_program(state, "bin/tells", "echo hunter2; echo 'bad token hunter2' >&2; exit 1");
  write_program(state, "bin/dies", "kill -9 $$");
  write_program(state, "bin/floods", "exec cat /dev/zero");
  write_program(state, "bin/hangs", "echo hunter2; sleep 60");
  write_program(state, "bin/leaves", "sleep 2 & echo left");
  write_program(state, "bin/stdin", "wc -c");
  write_program(state, "bin/terminal", "(: < /dev/tty) 2> /dev/null && echo some || echo none");
  write_program(state, "bin/descriptors", "for n in 0 1 2 3 4 5 6 7 8 9; do [ -e /dev/fd/$n ] && printf $n; done; :");
  write_program(state, "work/bin/planted", "echo evil");
  write_program(state, "work/bin/both", "echo evil");
  write_program(state, "bin/both", "echo right");
  write_program(state, "work/bin/pass", "echo evil");
  write_program(state, "bin/secret-tool", "printf '<%s>' \"$@\"");
  write_program(state, "bin/op", "[ \"$3\" = op://lines ] && printf 'hunter2\\nhunter3'; printf '<%s>' \"$@\"");
  write_program(
      state, "bin/pass",
      "case $2 in json) echo '{\"value\": 1}';; nothing) printf '\\nhunter2\\n';; fails) echo hunter2; exit 2;; "
      "hangs) sleep 60;; *) printf '<%s>' \"$@\"; wc -c; echo 'url: hunter2';; esac");
  put_traps(state);
  write_program(state, "out/bin/planted-out", "echo evil");
  temp_link("../work/bin/planted", temp_path(state, "linked/linked"));
  assert_int_equal(truncate(temp_path(state, "home/token"), 13), 0);
  temp_put(temp_path(state, "home/huge"), "");
  assert_int_equal(truncate(temp_path(state, "home/huge"), 100000), 0);
}

/* A source, and what comes of it. SELF is the test's directory. */
static void test_sources(void **state)
{
  static const struct {
    const char *source;
    const char *value; /* NULL: an error */
    const char *error; /* a part of it */
  } rows[] = {
    { "{\"env\": \"TOKEN\"}", "hunter2", NULL },
    { "{\"env\": \"NONE\"}", NULL, "the variable NONE is not set; set it, or name another source" },
    { "{\"env\": \"EMPTY\"}", NULL, "the variable EMPTY: is empty" },
    { "{\"env\": \"LINES\"}", NULL, "the variable LINES: has a line break" },
    { "{\"file\": \"~/token\"}", "from file", NULL },
    { "{\"file\": \"~/gone\"}", NULL, "home/gone: No such file" },
    { "{\"file\": \"~/token/x\"}", NULL, "home/token/x: Not a directory" },
    { "{\"file\": \"~/empty\"}", NULL, "home/empty: is empty" },
    { "{\"file\": \"~/lines\"}", NULL, "home/lines: has a line break" },
    { "{\"file\": \"~/large\"}", NULL, "home/large: is larger than 8192 bytes" },
    { "{\"file\": \"~/huge\"}", NULL, "home/huge: is larger than 8192 bytes" },
    { "{\"file\": \"~\"}", NULL, "home is not a regular file" },
    { "{\"file\": \"~/fifo\"}", NULL, "fifo is not a regular file" },
    { "{\"exec\": [\"give\", \"a b\", \"\"]}", "a b:3", NULL },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"v\\\", \\\"other\\\": 1}\"]}", "v", NULL },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"v\\\", \\\"expires_at\\\": null}\"]}", "v", NULL },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"v\\\", \\\"expires_at\\\": \\\"2001-01-01T00:00:00Z\\\"}\"]}", NULL,
      "the program json: the value has expired already" },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"v\\\", \\\"expires_at\\\": \\\"soon\\\"}\"]}", NULL,
      "\"expires_at\" is no time" },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"v\\\", \\\"expires_at\\\": 1.5}\"]}", NULL, "is no time" },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": 1}\"]}", NULL, "has no string \"value\"" },
    { "{\"exec\": [\"json\", \"{hunter2\"]}", NULL, "has no string \"value\"" },
    { "{\"exec\": [\"json\", \"{\\\"value\\\": \\\"a\\\\nb\\\"}\"]}", NULL, "what it printed: has a line break" },
    { "{\"exec\": [\"nothing\"]}", NULL, "the program nothing: what it printed: is empty" },
    { "{\"exec\": [\"lines\"]}", NULL, "what it printed: has a line break" },
    { "{\"exec\": [\"nul\"]}", NULL, "what it printed: has a line break or a control character" },
    { "{\"exec\": [\"fails\"]}", NULL, "the program fails: ended with status 3" },
    { "{\"exec\": [\"tells\"]}", NULL, "the program tells: ended with status 1" },
    { "{\"exec\": [\"dies\"]}", NULL, "the program dies: was killed by signal 9" },
    { "{\"exec\": [\"floods\"]}", NULL, "the program floods: printed more than 16383 bytes" },
    { "{\"exec\": [\"hangs\"], \"timeout\": \"100ms\"}", NULL, "did not end within 100 ms" },
    { "{\"exec\": [\"leaves\"]}", "left", NULL },
    { "{\"exec\": [\"stdin\"]}", "0", NULL },
    { "{\"exec\": [\"terminal\"]}", "none", NULL },
    { "{\"exec\": [\"descriptors\"]}", "012", NULL },
    { "{\"exec\": [\"no-such-program\"]}", NULL, "the program no-such-program was not found" },
    { "{\"exec\": [\"planted\"]}", NULL, "the program planted stands where the command inside may write" },
    { "{\"exec\": [\"planted-out\"]}", NULL, "stands where the command inside may write" },
    { "{\"exec\": [\"linked\"]}", NULL, "stands where the command inside may write" },
    { "{\"exec\": [\"SELF/work/bin/planted\"]}", NULL, "stands where the command inside may write" },
    { "{\"exec\": [\"bin/give\"]}", NULL, "a relative path" },
    { "{\"exec\": [\"both\"]}", "right", NULL },
    { "{\"exec\": [\"where\"]}", "/", NULL },
    { "{\"exec\": [\"path\"]}", "good", NULL },
    { "{\"exec\": [\"variables\"]}", ":workshop", NULL },
    { "{\"exec\": [\"calls\"]}", "none", NULL },
    { "{\"exec\": [\"run-by\"]}", NULL, "or what its \"#!\" names does" },
    { "{\"exec\": [\"run-by-two\"]}", NULL, "or what its \"#!\" names does" },
    { "{\"exec\": [\"round\"]}", NULL, "stands where the command inside may write" },
    { "{\"exec\": [\"SELF/home/into/../bin/give\"]}", NULL, "stands where the command inside may write" },
    { "{\"exec\": [\"terminal\", \"SELF/work/get.py\"]}", NULL, "its argument 1 names a place where" },
    { "{\"exec\": [\"terminal\", \"\", \"--from=SELF/home/into/x\"]}", NULL, "its argument 2 names a place where" },
    { "{\"exec\": [\"terminal\", \"cat 'SELF/out/x'\"]}", NULL, "its argument 1 names a place where" },
    { "{\"exec\": [\"terminal\", \"SELF/workshop/x\"]}", "none", NULL },
    { "{\"secretService\": {\"service\": \"a b\", \"user\": \"me\"}}", "<lookup><service><a b><user><me>", NULL },
    { "{\"op\": \"op://v/i/f\"}", "<read><--no-newline><op://v/i/f>", NULL },
    { "{\"pass\": \"a/b\"}", "<show><a/b>0", NULL },
    { "{\"pass\": \"json\"}", "{\"value\": 1}", NULL },
    { "{\"pass\": \"nothing\"}", NULL, "the program pass: what it printed: is empty" },
    { "{\"pass\": \"fails\"}", NULL, "the program pass: ended with status 2" },
    { "{\"pass\": \"hangs\", \"timeout\": \"100ms\"}", NULL, "the program pass: did not end within 100 ms" },
    { "{\"op\": \"op://lines\"}", NULL, "the program op: what it printed: has a line break" },
  };

  put_sources(state);
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct scene scene;
    char source[4096];
    const char *self = strstr(rows[i].source, "SELF");
    snprintf(source, sizeof source, "%.*s%s%s", self ? (int)(self - rows[i].source) : (int)strlen(rows[i].source),
             rows[i].source, self ? (const char *)*state : "", self ? self + 4 : "");
    open_scene(&scene, state, source);
    want(&scene, false);
    if (rows[i].value) {
      got_value(&scene, rows[i].source, rows[i].value);
    } else {
      unit_assert_row(scene.last.len == 0, rows[i].source, "a value");
      unit_assert_row(strstr(scene.last.error, rows[i].error), rows[i].source, scene.last.error);
      unit_assert_row(!strstr(scene.last.error, "hunter"), rows[i].source, scene.last.error);
      unit_assert_row(!strstr(scene.last.error, "not logged in"), rows[i].source, scene.last.error);
    }
    close_scene(&scene);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  }
}

static size_t count_runs(void **state)
{
  buf_autofree struct buf text = BUF_INIT(4096);

  (void)fd_read_file(AT_FDCWD, temp_path(state, "runs"), &text);
  return text.len;
}

/* A program that counts its runs and prints their number. */
static void write_counter(void **state, const char *more)
{
  char script[4096];

  snprintf(script, sizeof script, "printf x >> %s\necho value$(wc -c < %s)\n%s", temp_path(state, "runs"),
           temp_path(state, "runs"), more);
  write_program(state, "bin/count", script);
}

/* Asked once, kept; what came a moment ago is not asked for anew, however often it is refused. */
static void test_kept(void **state)
{
  struct scene scene;

  write_counter(state, "");
  open_scene(&scene, state, "{\"exec\": [\"count\"]}");
  assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
  for (int i = 0; i < 3; i++) {
    want(&scene, i > 0);
    got_value(&scene, "count", "value1");
    assert_int_equal(scene.last.valid_ms, 0);
  }
  assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
  scene.secrets.entries[0].fetched_ns -= LIMITS_SECRET_FRESH_MS * UINT64_C(1000000);
  want(&scene, false);
  got_value(&scene, "count", "value1");
  want(&scene, true);
  got_value(&scene, "count", "value2");
  assert_int_equal(count_runs(state), 2);
  close_scene(&scene);
  assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

/* Every source that can change: kept; asked for anew when it was refused, and when its time is over. */
static void test_changes(void **state)
{
  static const char *const sources[] = {
    "{\"file\": \"~/now\", \"ttl\": 60}",
    "{\"exec\": [\"now\"], \"ttl\": 60}",
    "{\"secretService\": {\"a\": \"b\"}, \"ttl\": 60}",
    "{\"op\": \"op://a\", \"ttl\": 60}",
    "{\"pass\": \"a\", \"ttl\": 60}",
  };
  char script[4096];

  snprintf(script, sizeof script, "cat %s", temp_path(state, "home/now"));
  write_program(state, "bin/now", script);
  write_program(state, "bin/secret-tool", script);
  write_program(state, "bin/op", script);
  write_program(state, "bin/pass", script);
  for (size_t i = 0; i < MEM_COUNT(sources); i++) {
    struct scene scene;

    temp_put(temp_path(state, "home/now"), "first");
    open_scene(&scene, state, sources[i]);
    want(&scene, false);
    got_value(&scene, sources[i], "first");
    temp_put(temp_path(state, "home/now"), "second");
    want(&scene, false);
    got_value(&scene, sources[i], "first");
    scene.secrets.entries[0].fetched_ns -= LIMITS_SECRET_FRESH_MS * UINT64_C(1000000);
    want(&scene, true);
    got_value(&scene, sources[i], "second");
    temp_put(temp_path(state, "home/now"), "third");
    scene.secrets.entries[0].until_ns = clock_mono_ns() - 1;
    want(&scene, false);
    got_value(&scene, sources[i], "third");
    close_scene(&scene);
  }
}

static void test_ttl(void **state)
{
  struct scene scene;

  write_counter(state, "");
  open_scene(&scene, state, "{\"exec\": [\"count\"], \"ttl\": \"1h\"}");
  want(&scene, false);
  assert_true(scene.last.valid_ms > 3590000 && scene.last.valid_ms <= 3600001);
  scene.secrets.entries[0].until_ns = clock_mono_ns() - 1;
  want(&scene, false);
  got_value(&scene, "count", "value2");
  close_scene(&scene);
}

/* The nearer of the two ends counts, and a value is too old some time before it expires. */
static void test_expiry(void **state)
{
  static const struct {
    unsigned seconds; /* from now, for expires_at */
    const char *ttl;
    unsigned low_ms;
    unsigned high_ms;
  } rows[] = {
    { 3600, "", 3600000 - LIMITS_SECRET_MARGIN_MS - 2000, 3600000 - LIMITS_SECRET_MARGIN_MS + 1 },
    { 20, "", 18000, 20001 },
    { 3600, ", \"ttl\": 5", 4000, 5001 },
    { 3600, ", \"ttl\": \"5ms\"", 900, 1001 },
    { 20, ", \"ttl\": \"1h\"", 18000, 20001 },
  };

  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct scene scene;
    char script[256];
    char source[256];
    char text[CLOCK_TEXT_MAX];
    uint64_t at = clock_real_ms() + rows[i].seconds * UINT64_C(1000);
    clock_format(at, text);
    if (i % 2)
      snprintf(script, sizeof script, "echo '{\"value\": \"v\", \"expires_at\": %llu}'", (unsigned long long)at / 1000);
    else
      snprintf(script, sizeof script, "echo '{\"value\": \"v\", \"expires_at\": \"%s\"}'", text);
    write_program(state, "bin/expires", script);
    snprintf(source, sizeof source, "{\"exec\": [\"expires\"]%s}", rows[i].ttl);
    open_scene(&scene, state, source);
    want(&scene, false);
    got_value(&scene, script, "v");
    unit_assert_row(scene.last.valid_ms >= rows[i].low_ms && scene.last.valid_ms <= rows[i].high_ms, script, source);
    close_scene(&scene);
  }
}

/* A source that fails is not tried again at once, and may come right. */
static void test_retry(void **state)
{
  struct scene scene;

  write_counter(state, "exit 1");
  open_scene(&scene, state, "{\"exec\": [\"count\"]}");
  for (int i = 0; i < 3; i++) {
    want(&scene, false);
    assert_int_equal(scene.last.len, 0);
  }
  assert_int_equal(count_runs(state), 1);
  for (unsigned i = 1; i < 9; i++) {
    uint64_t step = LIMITS_SECRET_RETRY_MS * UINT64_C(500000) << (i < 6 ? i - 1 : 5);

    scene.secrets.entries[0].fetched_ns -= step;
    want(&scene, false);
    assert_int_equal(count_runs(state), i);
    scene.secrets.entries[0].fetched_ns -= step;
    want(&scene, false);
    assert_int_equal(count_runs(state), i + 1);
  }
  write_counter(state, "");
  scene.secrets.entries[0].fetched_ns -= 32 * LIMITS_SECRET_RETRY_MS * UINT64_C(1000000);
  want(&scene, false);
  got_value(&scene, "count", "value10");
  close_scene(&scene);
}

/* Who asks while the program runs waits for the same answer; who has gone gets none; and nothing waits meanwhile. */
static void test_open_questions(void **state)
{
  struct scene scene;

  write_counter(state, "sleep 0.2");
  open_scene(&scene, state, "{\"exec\": [\"count\"]}");
  secrets_want(&scene.secrets, 0, false);
  secrets_want(&scene.secrets, 0, true);
  assert_int_equal(scene.answers, 0); /* had it waited for the program there would be one */
  secrets_forget(&scene.secrets);
  while (secrets_wait_ms(&scene.secrets) >= 0)
    turn(&scene);
  assert_int_equal(scene.answers, 0);
  want(&scene, false);
  got_value(&scene, "count", "value1");
  secrets_want(&scene.secrets, 7, false);
  assert_int_equal(scene.last.index, 7);
  assert_string_equal(scene.last.error, "no such credential");
  close_scene(&scene);
}

/* The end of a run is the end of a program that still runs, and of what it started. */
static void test_closed(void **state)
{
  buf_autofree struct buf text = BUF_INIT(64);
  struct scene scene;
  char script[4096];
  uint64_t pid;

  snprintf(script, sizeof script, "sleep 60 &\nprintf %%s $! > %s.new && mv %s.new %s; wait", temp_path(state, "pid"),
           temp_path(state, "pid"), temp_path(state, "pid"));
  write_program(state, "bin/waits", script);
  open_scene(&scene, state, "{\"exec\": [\"waits\"]}");
  secrets_want(&scene.secrets, 0, false);
  while (fd_read_file(AT_FDCWD, temp_path(state, "pid"), &text) < 0)
    turn(&scene);
  close_scene(&scene);
  assert_int_equal(num_parse_u64(buf_span(&text), 1, INT32_MAX, &pid), 0);
  for (int i = 0; i < 1000 && kill((pid_t)pid, 0) == 0; i++) {
    char path[64];
    buf_autofree struct buf stat = BUF_INIT(4096);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (fd_read_file(AT_FDCWD, path, &stat) < 0 || strstr(stat.data, ") Z "))
      return;
    usleep(2000);
  }
  assert_int_equal(kill((pid_t)pid, 0), -1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_sources, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_kept, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_changes, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_ttl, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_expiry, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_retry, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_open_questions, temp_make, temp_remove),
    cmocka_unit_test_setup_teardown(test_closed, temp_make, temp_remove),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
