#include "config.h"

#include "cmd/opts.h"
#include "unit/unit.h"

#include "base/fd.h"
#include "policy/keys.h"

#include <fcntl.h>
#include <unistd.h>

#define ARGS_MAX 10

/* What a command line comes to, in one line: settings as key=value@option, then the rest. */
static void describe(const struct opts *opts, struct buf *out)
{
  for (size_t i = 0; i < opts->setting_count; i++)
    buf_printf(out, "%s=%s@%s ", opts->settings[i].key, opts->settings[i].value, opts->settings[i].option);
  for (size_t i = 0; i < opts->policy_files.count; i++)
    buf_printf(out, "policy:%s ", opts->policy_files.items[i]);
  if (opts->workspace)
    buf_printf(out, "workspace:%s ", opts->workspace);
  for (size_t i = 0; i < opts->fd_count; i++)
    buf_printf(out, "fd:%d ", opts->fds[i]);
  if (opts->audit_fd >= 0)
    buf_printf(out, "audit:%d ", opts->audit_fd);
  if (opts->summary != RUN_SUMMARY_AUTO)
    buf_printf(out, "summary:%d ", (int)opts->summary);
  if (opts->level != LOG_NOTICE)
    buf_printf(out, "level:%d ", (int)opts->level);
  buf_printf(out, "%s%s%s%s%zu", opts->dry_run ? "dry " : "", opts->json ? "json " : "", opts->plan ? "plan " : "",
             opts->help ? "help " : "", opts->consumed);
}

static int parse(enum opts_command command, const char *const *words, struct err *err, struct opts *opts)
{
  char *args[ARGS_MAX + 1] = { NULL };
  int r;

  for (size_t i = 0; i < ARGS_MAX && words[i]; i++)
    args[i] = mem_strndup(words[i], strlen(words[i]));
  r = opts_parse(command, args, err, opts);
  for (size_t i = 0; i < ARGS_MAX; i++)
    free(args[i]);
  return r;
}

/* Options after operands come before them, and both keep their order. */
static void test_order(void **state)
{
  char line[][8] = { "a", "--json", "b", "c", "--allow", "x", "d", "-q", "--", "-e", "f" };
  static const char *const order[] = { "--json", "--allow", "x", "-q", "--", "a", "b", "c", "d", "-e", "f" };
  char *words[MEM_COUNT(line) + 1] = { NULL };
  opts_autofree struct opts opts = OPTS_INIT;
  struct err err = ERR_INIT;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(line); i++)
    words[i] = line[i];
  assert_int_equal(opts_parse(OPTS_FOR_WHY, words, &err, &opts), 0);
  assert_int_equal(opts.consumed, 5);
  for (size_t i = 0; i < MEM_COUNT(order); i++)
    assert_string_equal(words[i], order[i]);
  assert_null(words[MEM_COUNT(order)]);
}

struct row {
  enum opts_command command;
  const char *args[ARGS_MAX];
  const char *result; /* describe(), or part of the message */
};

static const struct row accepted[] = {
  { OPTS_FOR_RUN, { NULL }, "0" },
  { OPTS_FOR_RUN, { "ls", "--allow", "x" }, "0" }, /* past the command all is the command's */
  { OPTS_FOR_RUN, { "--", "--allow" }, "1" },
  { OPTS_FOR_RUN, { "--" }, "1" },
  { OPTS_FOR_RUN, { "-" }, "0" },
  { OPTS_FOR_RUN, { "", "x" }, "0" },
  { OPTS_FOR_RUN, { "--allow", "a.test", "ls" }, "network.allow=a.test@--allow 2" },
  { OPTS_FOR_RUN, { "--allow=a.test:80", "ls" }, "network.allow=a.test:80@--allow 1" },
  { OPTS_FOR_RUN,
    { "--allow=a", "--deny", "b", "--allow", "c" },
    "network.allow=a@--allow network.deny=b@--deny network.allow=c@--allow 5" },
  { OPTS_FOR_RUN, { "--allow", "--deny", "x" }, "network.allow=--deny@--allow 2" }, /* a value is taken as it is */
  { OPTS_FOR_RUN, { "--allow", "--", "x" }, "network.allow=--@--allow 2" },
  { OPTS_FOR_RUN, { "--write=a=b", "x" }, "filesystem.write=a=b@--write 1" },
  { OPTS_FOR_RUN, { "--write=", "x" }, "filesystem.write=@--write 1" },
  { OPTS_FOR_RUN, { "--write", "", "x" }, "filesystem.write=@--write 2" },
  { OPTS_FOR_RUN, { "--profile", "git" }, "extends=git@--profile 2" },
  { OPTS_FOR_RUN,
    { "--memory", "1g", "--cpus=2", "--pids", "9", "--timeout=1h" },
    "limits.memory=1g@--memory limits.cpus=2@--cpus limits.pids=9@--pids limits.timeout=1h@--timeout 6" },
  { OPTS_FOR_RUN,
    { "--syscalls", "nesting", "--syscalls=i386" },
    "syscalls.nesting=true@--syscalls syscalls.i386=true@--syscalls 3" },
  { OPTS_FOR_RUN, { "--policy", "a", "--policy=b" }, "policy:a policy:b 3" },
  { OPTS_FOR_RUN, { "--workspace", "a", "--workspace=b" }, "workspace:b 3" },
  { OPTS_FOR_RUN, { "--fd", "0", "--fd=50", "--fd", "51" }, "fd:50 fd:51 5" }, /* 0 to 2 are passed anyway */
  { OPTS_FOR_RUN, { "--audit", "fd:50" }, "audit:50 2" },
  { OPTS_FOR_RUN, { "--audit", "/x" }, "audit.file=/x@--audit 2" },
  { OPTS_FOR_RUN, { "--audit", "fd:50", "--audit=/x" }, "audit.file=/x@--audit 3" }, /* the last one counts */
  { OPTS_FOR_RUN, { "--engine=auto", "--engine", "bwrap" }, "3" },
  { OPTS_FOR_RUN, { "--summary=always", "--summary", "never" }, "summary:2 3" },
  { OPTS_FOR_RUN, { "--dry-run", "-v", "ls" }, "level:3 dry 2" },
  { OPTS_FOR_RUN, { "-v", "-q" }, "level:1 2" },
  { OPTS_FOR_RUN, { "--quiet", "--verbose" }, "level:3 2" },
  { OPTS_FOR_RUN, { "-h" }, "help 1" },
  { OPTS_FOR_SHOW, { "--plan", "--json", "--allow=x" }, "network.allow=x@--allow json plan 3" },
  { OPTS_FOR_CHECK, { "file", "--json" }, "json 1" }, /* no command begins here */
  { OPTS_FOR_WHY, { "a", "--allow", "x", "--json" }, "network.allow=x@--allow json 3" },
  { OPTS_FOR_WHY, { "a", "-", "--json" }, "json 1" },
  { OPTS_FOR_CREDENTIAL, { "list", "--", "--json" }, "1" },
  { OPTS_FOR_LEARN, { "ls", "--hosts-only" }, "0" },
  { OPTS_FOR_INIT, { "--workspace=x", "--help" }, "workspace:x help 2" },
  { OPTS_FOR_DOCTOR, { "--json" }, "json 1" },
};

static const struct row refused[] = {
  { OPTS_FOR_WHY, { "a", "--nonsense" }, "--nonsense: no such option" },
  { OPTS_FOR_WHY, { "a", "--allow" }, "--allow needs a value: RULE" },
  { OPTS_FOR_WHY, { "a", "b", "--policy" }, "--policy needs a value: FILE" },
  { OPTS_FOR_RUN, { "--allow" }, "--allow needs a value: RULE" },
  { OPTS_FOR_RUN, { "-v", "--policy" }, "--policy needs a value: FILE" },
  { OPTS_FOR_RUN, { "--nonsense" }, "--nonsense: no such option; see " SBX_NAME " run --help" },
  { OPTS_FOR_LOG, { "--nonsense" }, "--nonsense: no such option; see " SBX_NAME " log --help" }, /* the last bit */
  { OPTS_FOR_RUN, { "--alow", "x" }, "--alow: no such option; did you mean --allow?" },
  { OPTS_FOR_RUN, { "--dryrun" }, "did you mean --dry-run?" },
  { OPTS_FOR_INIT, { "--alow", "x" }, "see " SBX_NAME " init --help" }, /* not its option */
  { OPTS_FOR_RUN, { "--nonsense=x" }, "--nonsense: no such option" },
  { OPTS_FOR_RUN, { "--allo", "x" }, "--allo: no such option" }, /* no abbreviations */
  { OPTS_FOR_RUN, { "-x" }, "-x: no such option" },
  { OPTS_FOR_RUN, { "-vq" }, "-vq: no such option" },
  { OPTS_FOR_RUN, { "-allow", "x" }, "-allow: no such option" },
  { OPTS_FOR_RUN, { "--=x" }, "no such option" },
  { OPTS_FOR_RUN, { "---" }, "---: no such option" },
  { OPTS_FOR_RUN, { "--quiet=1" }, "--quiet takes no value" },
  { OPTS_FOR_RUN, { "--dry-run=" }, "--dry-run takes no value" },
  { OPTS_FOR_RUN, { "--plan" }, "--plan: no such option" }, /* another command's */
  { OPTS_FOR_SHOW, { "--fd", "1" }, "--fd: no such option" },
  { OPTS_FOR_INIT, { "--allow", "x" }, "--allow: no such option" },
  { OPTS_FOR_DOCTOR, { "--policy", "x" }, "--policy: no such option" },
  { OPTS_FOR_RUN, { "--fd", "x" }, "--fd: x is not the number of a descriptor" },
  { OPTS_FOR_RUN, { "--fd", "-1" }, "--fd: -1 is not the number" },
  { OPTS_FOR_RUN, { "--fd", "03" }, "--fd: 03 is not the number" },
  { OPTS_FOR_RUN, { "--fd", "4294967296" }, "is not the number" },
  { OPTS_FOR_RUN, { "--fd", "99" }, "--fd: descriptor 99 is not open" },
  { OPTS_FOR_RUN, { "--audit=fd:99" }, "--audit: descriptor 99 is not open" },
  { OPTS_FOR_RUN, { "--audit=fd:" }, "is not the number of a descriptor" },
  { OPTS_FOR_RUN, { "--engine", "docker" }, "--engine: docker is none of" },
  { OPTS_FOR_RUN, { "--summary", "sometimes" }, "--summary: sometimes is none of auto, always, never" },
  { OPTS_FOR_RUN, { "--syscalls", "all" }, "--syscalls: all is none of nesting|ptrace|i386" },
  { OPTS_FOR_RUN, { "--syscalls", "" }, "is none of" },
  { OPTS_FOR_RUN, { "--\x1b[31m" }, "--\\x1b[31m: no such option" },
};

static void test_accepted(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(accepted); i++) {
    opts_autofree struct opts opts = OPTS_INIT;
    buf_autofree struct buf got = BUF_INIT(4096);
    struct err err = ERR_INIT;
    int r = parse(accepted[i].command, accepted[i].args, &err, &opts);

    unit_assert_row(r == 0, accepted[i].result, err.message);
    describe(&opts, &got);
    unit_assert_row(strcmp(got.data, accepted[i].result) == 0, accepted[i].result, got.data);
  }
}

static void test_refused(void **state)
{
  (void)state;
  for (size_t i = 0; i < MEM_COUNT(refused); i++) {
    opts_autofree struct opts opts = OPTS_INIT;
    struct err err = ERR_INIT;
    int r = parse(refused[i].command, refused[i].args, &err, &opts);

    unit_assert_row(r == -EINVAL, refused[i].result, "passed");
    unit_assert_row(strstr(err.message, refused[i].result) != NULL, refused[i].result, err.message);
  }
}

static void test_too_many_descriptors(void **state)
{
  char *args[2 * OPTS_FDS_MAX + 3];
  opts_autofree struct opts opts = OPTS_INIT;
  struct err err = ERR_INIT;
  char option[] = "--fd";
  char number[] = "50";

  (void)state;
  for (size_t i = 0; i < 2 * OPTS_FDS_MAX + 2; i += 2) {
    args[i] = option;
    args[i + 1] = number;
  }
  args[2 * OPTS_FDS_MAX] = NULL;
  assert_int_equal(opts_parse(OPTS_FOR_RUN, args, &err, &opts), 0);
  assert_int_equal(opts.fd_count, OPTS_FDS_MAX);
  opts_free(&opts);
  args[2 * OPTS_FDS_MAX] = option;
  args[2 * OPTS_FDS_MAX + 2] = NULL;
  assert_int_equal(opts_parse(OPTS_FOR_RUN, args, &err, &opts), -E2BIG);
}

/* Every option of the keys is known, takes a value, and stands once in the help. */
static void test_keys_and_help(void **state)
{
  buf_autofree struct buf help = BUF_INIT(65536);

  (void)state;
  opts_help(OPTS_FOR_RUN, &help);
  assert_int_equal(buf_error(&help), 0);
  for (int id = 0; id < KEY_COUNT; id++) {
    const struct key *key = keys_at((enum key_id)id);
    opts_autofree struct opts opts = OPTS_INIT;
    struct err err = ERR_INIT;
    const char *at;
    char label[64];

    if (!key->option)
      continue;
    assert_int_equal(parse(OPTS_FOR_RUN, (const char *const[ARGS_MAX]){ key->option }, &err, &opts), -EINVAL);
    assert_non_null(strstr(err.message, "needs a value"));
    snprintf(label, sizeof label, "  %s %s ", key->option,
             strncmp(key->path, "syscalls.", 9) == 0 ? key->path + 9 : key->argument);
    at = strstr(help.data, label);
    assert_non_null(at);
    assert_null(strstr(at + 1, label));
  }
  assert_non_null(strstr(help.data, "-q, --quiet"));
  assert_null(strstr(help.data, "--plan"));
}

/* What stands in a command's help is true of that command. */
static void test_help_of_others(void **state)
{
  buf_autofree struct buf log = BUF_INIT(65536);
  buf_autofree struct buf why = BUF_INIT(65536);
  const char *at;

  (void)state;
  opts_help(OPTS_FOR_LOG, &log);
  opts_help(OPTS_FOR_WHY, &why);
  assert_non_null(strstr(log.data, "--json"));
  assert_null(strstr(log.data, "--dry-run"));
  at = strstr(why.data, "--write");
  assert_non_null(at);
  assert_null(strstr(at + 1, "--write"));
}

static int open_fds(void **state)
{
  (void)state;
  return dup2(0, 50) == 50 && dup2(0, 51) == 51 && fcntl(99, F_GETFD) < 0 ? 0 : -1;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order),         cmocka_unit_test(test_accepted),
    cmocka_unit_test(test_refused),       cmocka_unit_test(test_too_many_descriptors),
    cmocka_unit_test(test_keys_and_help), cmocka_unit_test(test_help_of_others),
  };

  return cmocka_run_group_tests(tests, open_fds, NULL);
}
