#include "config.h"

#include "cmd/opts.h"

#include "base/num.h"
#include "policy/keys.h"
#include "policy/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define OPTS_FD "fd:" /* in front of the number of a descriptor */
#define OPTS_SETTINGS_MAX 65536
#define OPTS_SYSCALLS "syscalls." /* keys that one option sets, by the rest of their names */
#define OPTS_POLICY \
  (OPTS_FOR_RUN | OPTS_FOR_SHELL | OPTS_FOR_CHECK | OPTS_FOR_SHOW | OPTS_FOR_WHY | OPTS_FOR_LEARN | OPTS_FOR_CREDENTIAL)
#define OPTS_START (OPTS_FOR_RUN | OPTS_FOR_SHELL | OPTS_FOR_LEARN)

enum opts_id {
  OPTS_ID_POLICY,
  OPTS_ID_WORKSPACE,
  OPTS_ID_FD,
  OPTS_ID_ASK,
  OPTS_ID_ASK_TIMEOUT,
  OPTS_ID_ENGINE,
  OPTS_ID_SUMMARY,
  OPTS_ID_DRY_RUN,
  OPTS_ID_QUIET,
  OPTS_ID_VERBOSE,
  OPTS_ID_JSON,
  OPTS_ID_PLAN,
  OPTS_ID_MAY_WRITE,
  OPTS_ID_METHOD,
  OPTS_ID_FOLLOW,
  OPTS_ID_OUTPUT,
  OPTS_ID_HOSTS_ONLY,
  OPTS_ID_HELP,
};

struct option {
  enum opts_id id;
  unsigned commands;
  const char *name;
  char letter; /* 0: none */
  const char *argument; /* NULL: takes none; in brackets: takes one that looks like it, or none */
  const char *help;
};

/* Options that are no policy keys; those that are come from keys.h. */
static const struct option own_options[] = {
  { OPTS_ID_POLICY, OPTS_POLICY, "--policy", 0, "FILE", "add a policy file" },
  { OPTS_ID_WORKSPACE, OPTS_POLICY | OPTS_FOR_INIT | OPTS_FOR_TRUST, "--workspace", 0, "DIR",
    "work in this directory instead of the enclosing project" },
  { OPTS_ID_FD, OPTS_START, "--fd", 0, "N", "let the command inherit this descriptor" },
  { OPTS_ID_ASK, OPTS_FOR_RUN | OPTS_FOR_SHELL, "--ask", 0, "[fd:N]", "ask about hosts that no rule names" },
  { OPTS_ID_ASK_TIMEOUT, OPTS_FOR_RUN | OPTS_FOR_SHELL, "--ask-timeout", 0, "DURATION",
    "take no answer in this time for a no" },
  { OPTS_ID_ENGINE, OPTS_START, "--engine", 0, "auto|bwrap", "choose what builds the sandbox" },
  { OPTS_ID_SUMMARY, OPTS_START, "--summary", 0, "auto|always|never", "choose when the end of a run is summed up" },
  { OPTS_ID_DRY_RUN, OPTS_FOR_RUN | OPTS_FOR_SHELL, "--dry-run", 0, NULL, "print the plan and start nothing" },
  { OPTS_ID_JSON, OPTS_FOR_CHECK | OPTS_FOR_SHOW | OPTS_FOR_DOCTOR | OPTS_FOR_WHY | OPTS_FOR_LOG, "--json", 0, NULL,
    "print JSON" },
  { OPTS_ID_JSON, OPTS_FOR_RUN, "--json", 0, NULL, "print the plan of --dry-run as JSON" },
  { OPTS_ID_MAY_WRITE, OPTS_FOR_WHY, "--write", 0, NULL, "ask whether the path may be written" },
  { OPTS_ID_METHOD, OPTS_FOR_WHY, "--method", 'X', "METHOD", "ask about a request with this method, not GET" },
  { OPTS_ID_FOLLOW, OPTS_FOR_LOG, "--follow", 'f', NULL, "go on printing what is added" },
  { OPTS_ID_OUTPUT, OPTS_FOR_LEARN, "--output", 'o', "FILE", "write the policy to a file" },
  { OPTS_ID_HOSTS_ONLY, OPTS_FOR_LEARN, "--hosts-only", 0, NULL, "do not trace the command for its paths" },
  { OPTS_ID_PLAN, OPTS_FOR_SHOW, "--plan", 0, NULL, "show what the sandbox would be made of" },
  { OPTS_ID_QUIET, OPTS_POLICY | OPTS_FOR_INIT | OPTS_FOR_TRUST, "--quiet", 'q', NULL,
    "print faults and warnings only" },
  { OPTS_ID_VERBOSE, OPTS_POLICY | OPTS_FOR_INIT | OPTS_FOR_TRUST, "--verbose", 'v', NULL,
    "tell what was decided and left out" },
  { OPTS_ID_HELP, ~0U, "--help", 'h', NULL, "print this help" },
};

void opts_free(struct opts *opts)
{
  for (size_t i = 0; i < opts->setting_count; i++) {
    free(opts->settings[i].value);
    free(opts->settings[i].option);
  }
  free(opts->settings);
  strv_free(&opts->policy_files);
  free(opts->workspace);
  free(opts->output);
  *opts = (struct opts)OPTS_INIT;
}

static const struct option *find_own(enum opts_command command, struct span name)
{
  for (size_t i = 0; i < MEM_COUNT(own_options); i++) {
    const struct option *option = &own_options[i];
    bool letter = name.len == 2 && option->letter && name.ptr[1] == option->letter;

    if ((option->commands & command) && (span_equal_str(name, option->name) || letter))
      return option;
  }
  return NULL;
}

static const struct key *find_key(enum opts_command command, struct span name)
{
  if (!(command & OPTS_POLICY))
    return NULL;
  for (int id = 0; id < KEY_COUNT; id++) {
    const struct key *key = keys_at((enum key_id)id);

    if (key->option && span_equal_str(name, key->option))
      return key;
  }
  return NULL;
}

static const char *name_of(enum opts_command command)
{
  static const char *const names[] = { "run",    "shell", "check", "show",  "init",      "trust",
                                       "doctor", "why",   "log",   "learn", "credential" };

  for (size_t i = 0; i < MEM_COUNT(names); i++) {
    if (command == 1U << i)
      return names[i];
  }
  return "";
}

static void consider(struct span name, const char *known, size_t *nearest, const char **ret_near)
{
  size_t distance = span_starts_with(span_of(known), SPAN("--")) ? span_distance(name, span_of(known + 2)) : SIZE_MAX;

  if (distance >= *nearest)
    return;
  *nearest = distance;
  *ret_near = known;
}

/* Says that there is no such option, which one was meant perhaps, and where all are listed. */
static int refuse_unknown(enum opts_command command, struct span name, struct err *err)
{
  struct span bare = span_starts_with(name, SPAN("--")) ? span_sub(name, 2, name.len) : name;
  size_t nearest = SIZE_MAX;
  const char *near = NULL;

  for (int id = 0; id < KEY_COUNT && (command & OPTS_POLICY); id++) {
    if (keys_at((enum key_id)id)->option)
      consider(bare, keys_at((enum key_id)id)->option, &nearest, &near);
  }
  for (size_t i = 0; i < MEM_COUNT(own_options); i++) {
    if (own_options[i].commands & command)
      consider(bare, own_options[i].name, &nearest, &near);
  }
  if (near && span_is_near(bare, nearest))
    return err_set(err, EINVAL, "%.*s: no such option; did you mean %s?", (int)name.len, name.ptr, near);
  return err_set(err, EINVAL, "%.*s: no such option; see " SBX_NAME " %s --help", (int)name.len, name.ptr,
                 name_of(command));
}

static int add_setting(struct opts *opts, const char *key, const char *value, struct span option, struct err *err)
{
  struct opts_setting *setting;

  if (mem_grow(&opts->settings, opts->setting_count, &opts->setting_cap, sizeof *setting, OPTS_SETTINGS_MAX) < 0)
    return err_set(err, E2BIG, "too many options");
  setting = &opts->settings[opts->setting_count++];
  *setting = (struct opts_setting){ .key = key,
                                    .value = mem_strndup(value, strlen(value)),
                                    .option = mem_strndup(option.ptr, option.len) };
  return setting->value && setting->option ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int parse_fd(const char *text, struct err *err, int *ret_fd)
{
  uint64_t number;

  if (num_parse_u64(span_of(text), 0, INT32_MAX, &number) < 0)
    return err_set(err, EINVAL, "%s is not the number of a descriptor", text);
  if (fcntl((int)number, F_GETFD) < 0)
    return err_set(err, EINVAL, "descriptor %s is not open; redirect it, as in %s</path", text, text);
  *ret_fd = (int)number;
  return 0;
}

static int add_fd(struct opts *opts, const char *text, struct err *err)
{
  int fd;
  int r = parse_fd(text, err, &fd);

  if (r < 0)
    return r;
  if (opts->fd_count == OPTS_FDS_MAX)
    return err_set(err, E2BIG, "more than %d descriptors", OPTS_FDS_MAX);
  if (fd > 2)
    opts->fds[opts->fd_count++] = fd;
  return 0;
}

static int add_key(struct opts *opts, const struct key *key, struct span name, const char *value, struct err *err)
{
  if (key->id == KEY_AUDIT_FILE && strncmp(value, "fd:", 3) == 0)
    return parse_fd(value + 3, err, &opts->audit_fd);
  if (span_starts_with(span_of(key->path), SPAN(OPTS_SYSCALLS))) {
    for (int id = 0; id < KEY_COUNT; id++) {
      const struct key *named = keys_at((enum key_id)id);

      if (span_starts_with(span_of(named->path), SPAN(OPTS_SYSCALLS)) &&
          strcmp(named->path + strlen(OPTS_SYSCALLS), value) == 0)
        return add_setting(opts, named->path, "true", name, err);
    }
    return err_set(err, EINVAL, "%s is none of %s", value, key->argument);
  }
  if (key->id == KEY_AUDIT_FILE)
    opts->audit_fd = -1; /* the last one counts */
  return add_setting(opts, key->path, value, name, err);
}

/* What is asked and answered there is the user's: the command has descriptors 0 to 2, and those of --fd. */
static int choose_ask(struct opts *opts, const char *value, struct err *err)
{
  int flags;
  int r;

  if (!value) {
    opts->ask = ASK_TERMINAL;
    return 0;
  }
  if (strncmp(value, OPTS_FD, strlen(OPTS_FD)) != 0)
    return err_set(err, EINVAL, "%s is not fd:N", value);
  r = parse_fd(value + 3, err, &opts->ask_fd);
  if (r < 0)
    return r;
  flags = fcntl(opts->ask_fd, F_GETFL);
  if (opts->ask_fd <= 2)
    return err_set(err, EINVAL, "%s is the command's too; open one end of a socketpair as 3 or above", value);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
    return err_set(err, EINVAL, "%s is not open for reading and writing; hand in one end of a socketpair", value);
  opts->ask = ASK_FD;
  return 0;
}

static int choose_ask_timeout(struct opts *opts, const char *value, struct err *err)
{
  return value_number(keys_at(KEY_TIMEOUT), value, err, &opts->ask_ms);
}

static int choose_summary(struct opts *opts, const char *value, struct err *err)
{
  static const char *const words[] = { "auto", "always", "never" }; /* in the order of enum run_summary */

  for (size_t i = 0; i < MEM_COUNT(words); i++) {
    if (strcmp(value, words[i]) == 0) {
      opts->summary = (enum run_summary)i;
      return 0;
    }
  }
  return err_set(err, EINVAL, "%s is none of auto, always, never", value);
}

static int apply_own(struct opts *opts, const struct option *option, const char *value, struct err *err)
{
  switch (option->id) {
  case OPTS_ID_POLICY:
    return strv_add(&opts->policy_files, value) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
  case OPTS_ID_WORKSPACE:
    free(opts->workspace);
    opts->workspace = mem_strndup(value, strlen(value));
    return opts->workspace ? 0 : err_set(err, ENOMEM, "out of memory");
  case OPTS_ID_HOSTS_ONLY:
    opts->hosts_only = true;
    return 0;
  case OPTS_ID_OUTPUT:
    free(opts->output);
    opts->output = mem_strndup(value, strlen(value));
    return opts->output ? 0 : err_set(err, ENOMEM, "out of memory");
  case OPTS_ID_FD:
    return add_fd(opts, value, err);
  case OPTS_ID_ASK:
    return choose_ask(opts, value, err);
  case OPTS_ID_ASK_TIMEOUT:
    return choose_ask_timeout(opts, value, err);
  case OPTS_ID_ENGINE:
    if (strcmp(value, "auto") == 0 || strcmp(value, "bwrap") == 0)
      return 0;
    return err_set(err, EINVAL, "%s is none of auto, bwrap", value);
  case OPTS_ID_SUMMARY:
    return choose_summary(opts, value, err);
  case OPTS_ID_DRY_RUN:
    opts->dry_run = true;
    return 0;
  case OPTS_ID_QUIET:
    opts->level = LOG_WARNING;
    return 0;
  case OPTS_ID_VERBOSE:
    opts->level = LOG_DETAIL;
    return 0;
  case OPTS_ID_JSON:
    opts->json = true;
    return 0;
  case OPTS_ID_PLAN:
    opts->plan = true;
    return 0;
  case OPTS_ID_MAY_WRITE:
    opts->write = true;
    return 0;
  case OPTS_ID_METHOD:
    opts->method = value;
    return 0;
  case OPTS_ID_FOLLOW:
    opts->follow = true;
    return 0;
  case OPTS_ID_HELP:
    opts->help = true;
    return 0;
  }
  return -EINVAL;
}

/* The only kind of argument that an option may do without. No command is called so. */
static bool is_fd(const char *word)
{
  return word && strncmp(word, OPTS_FD, strlen(OPTS_FD)) == 0;
}

/* One option at args[0]; *ret_used tells how many arguments it took. */
static int parse_one(enum opts_command command, char *const *args, struct err *err, struct opts *opts, size_t *ret_used)
{
  struct span word = span_of(args[0]);
  struct span name = span_starts_with(word, SPAN("--")) ? span_sub(word, 0, span_find(word, '=')) : word;
  const struct option *own = find_own(command, name);
  const struct key *key = own ? NULL : find_key(command, name);
  const char *value = name.len < word.len ? word.ptr + name.len + 1 : NULL;
  bool optional = own && own->argument && own->argument[0] == '[';
  bool takes_value = key || (own && own->argument && (!optional || value || is_fd(args[1])));
  int r;

  if (!own && !key)
    return refuse_unknown(command, name, err);
  if (!takes_value && value && !optional)
    return err_set(err, EINVAL, "%.*s takes no value", (int)name.len, name.ptr);
  *ret_used = 1;
  if (takes_value && !value) {
    value = args[1];
    *ret_used = 2;
  }
  if (takes_value && !value)
    return err_set(err, EINVAL, "%.*s needs a value: %s", (int)name.len, name.ptr, key ? key->argument : own->argument);
  r = own ? apply_own(opts, own, value, err) : add_key(opts, key, name, value, err);
  return r < 0 ? err_wrap(err, "%.*s", (int)name.len, name.ptr) : 0;
}

/* Of count words the last `used` come first, each part in its order. */
static void bring_forward(char **words, size_t count, size_t used)
{
  for (; used > 0; used--) {
    char *last = words[count - 1];

    memmove(words + 1, words, (count - 1) * sizeof *words);
    words[0] = last;
  }
}

int opts_parse(enum opts_command command, char **args, struct err *err, struct opts *opts)
{
  size_t at = 0;
  size_t operands = 0; /* those just before `at` */
  bool end = false;

  while (args[at] && !end) {
    size_t used = 1;
    int r = 0;

    if (args[at][0] != '-' || !args[at][1]) {
      if (command & OPTS_START)
        break;
      operands++;
      at++;
      continue;
    }
    end = strcmp(args[at], "--") == 0;
    if (!end)
      r = parse_one(command, args + at, err, opts, &used);
    if (r < 0)
      return r;
    bring_forward(args + at - operands, operands + used, used);
    at += used;
  }
  opts->consumed = at - operands;
  return 0;
}

static void help_line(const char *letter, const char *name, const char *argument, const char *help, struct buf *out)
{
  buf_autofree struct buf left = BUF_INIT(256);

  buf_printf(&left, "%s%s%s%s", letter, name, argument ? " " : "", argument ? argument : "");
  buf_printf(out, "  %-34s %s\n", left.data ? left.data : "", help);
}

/* What the help calls the argument: options that stand for one of several keys have a line for each. */
static const char *argument_of(const struct key *key)
{
  return span_starts_with(span_of(key->path), SPAN(OPTS_SYSCALLS)) ? key->path + strlen(OPTS_SYSCALLS) : key->argument;
}

void opts_help(enum opts_command command, struct buf *out)
{
  const struct key *before = NULL;

  for (int id = 0; id < KEY_COUNT && (command & OPTS_POLICY); id++) {
    const struct key *key = keys_at((enum key_id)id);
    bool own = key->option && find_own(command, span_of(key->option));
    bool again = before && key->option && before->option && strcmp(before->option, key->option) == 0 &&
                 strcmp(argument_of(before), argument_of(key)) == 0;

    if (key->option && !own && !again)
      help_line("", key->option, argument_of(key), key->help, out);
    before = key;
  }
  for (size_t i = 0; i < MEM_COUNT(own_options); i++) {
    const struct option *option = &own_options[i];
    char letter[] = { '-', option->letter, ',', ' ', '\0' };

    if (option->commands & command)
      help_line(option->letter ? letter : "", option->name, option->argument, option->help, out);
  }
}
