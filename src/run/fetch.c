/* Theory of operation
 *
 * A program of a source runs outside of the sandbox, whenever the command inside brings it about (run/outside.c).
 *
 * It has no terminal, which is the command's while it runs, and a session of its own. What it prints goes straight into
 * memory for secrets, and errors never quote it. Nor do they quote its standard error: errors are told
 * inside too, and a program that fails may say what it was given. That is for the user alone, and the first line of it
 * only, unless that has what was printed in it.
 */
#include "config.h"

#include "run/fetch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "policy/credential_tool.h"
#include "policy/limits.h"
#include "run/fetch_keys.h"
#include "run/outside.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes text as the value: without white space at its end, and in one line. */
static int take_value(struct span text, struct err *err, struct secret *value)
{
  while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) && text.ptr[text.len - 1] != '\0')
    text.len--;
  if (text.len == 0)
    return err_set(err, EINVAL, "is empty");
  if (text.len > LIMITS_SECRET_BYTES)
    return err_set(err, EINVAL, "is larger than %d bytes", LIMITS_SECRET_BYTES);
  for (size_t i = 0; i < text.len; i++) {
    if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
      return err_set(err, EINVAL, "has a line break or a control character in it");
  }
  memcpy(value->bytes, text.ptr, text.len);
  value->len = text.len;
  return 0;
}

/* Takes what a source gave, which may be a value that is made of several. */
static int take_text(const struct policy_credential *credential, struct span text, struct err *err,
                     struct secret *value, uint64_t *ret_valid_ms)
{
  if (credential->place == POLICY_PLACE_SIGV4)
    return fetch_keys_text(text, err, value, ret_valid_ms);
  *ret_valid_ms = 0;
  return take_value(text, err, value);
}

/* Of those that programs read the value from, the user may have another. */
static int missing(const struct policy_credential *credential, const struct facts *facts, struct err *err)
{
  const char *name = credential->source.words.items[0];

  for (size_t i = 0; i < credential->env.count; i++)
    if (facts_getenv(facts, credential->env.items[i]))
      return err_set(err, ENOENT, "the variable %s is not set, and %s is; write %s=env:%s, or name another source",
                     name, credential->env.items[i], credential->name, credential->env.items[i]);
  return err_set(err, ENOENT, "the variable %s is not set; set it, or name another source", name);
}

static int read_variable(const struct policy_credential *credential, const struct facts *facts, struct err *err,
                         struct secret *value, uint64_t *ret_valid_ms)
{
  const char *name = credential->source.words.items[0];
  const char *text = facts_getenv(facts, name);
  int r;

  if (credential->source.words.count > 1) {
    *ret_valid_ms = 0;
    return fetch_keys_variables(&credential->source.words, facts, err, value);
  }
  if (!text)
    return missing(credential, facts, err);
  r = take_text(credential, span_of(text), err, value, ret_valid_ms);
  return r < 0 ? err_wrap(err, "the variable %s", name) : 0;
}

/* What the command could put in its place would be sent to the hosts that the credential is for. */
static int check_file(const char *path, const struct policy *policy, const struct facts *facts, struct err *err)
{
  strv_autofree struct strv places = STRV_INIT;
  int r = outside_places(policy, facts, &places);

  if (r == 0)
    r = outside_is_writable(&places, path);
  if (r > 0)
    return err_set(err, EPERM, "the file %s is reached by way of what the command may write; name it otherwise", path);
  return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

static int read_file(const struct policy_credential *credential, const struct policy *policy, const struct facts *facts,
                     struct err *err, struct secret *value, uint64_t *ret_valid_ms)
{
  mem_autofree char *path = facts_expand(facts, credential->source.words.items[0]);
  secret_autofree struct secret text = SECRET_INIT;
  fd_autoclose int fd = -1;
  struct stat stat;
  ssize_t n = 1;
  int r;

  if (!path)
    return err_set(err, ENOMEM, "out of memory");
  r = check_file(path, policy, facts, err);
  if (r < 0)
    return r;
  fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &stat) < 0)
    return err_set_errno(err, errno, "the file %s", path);
  if (!S_ISREG(stat.st_mode))
    return err_set(err, EINVAL, "the file %s is not a regular file", path);
  r = secret_new(LIMITS_SECRET_OUTPUT_BYTES, err, &text);
  while (r == 0 && n > 0 && text.len < text.size) {
    n = read(fd, text.bytes + text.len, text.size - text.len);
    if (n < 0)
      return err_set_errno(err, errno, "the file %s", path);
    text.len += (size_t)n;
  }
  if (r == 0 && text.len == text.size && credential->place == POLICY_PLACE_SIGV4)
    r = err_set(err, EFBIG, "is larger than %d bytes", LIMITS_SECRET_OUTPUT_BYTES - 1);
  else if (r == 0)
    r = take_text(credential, (struct span){ text.bytes, text.len }, err, value, ret_valid_ms);
  return r < 0 ? err_wrap(err, "the file %s", path) : 0;
}

int fetch_read(const struct policy_credential *credential, const struct policy *policy, const struct facts *facts,
               struct err *err, struct secret *value, uint64_t *ret_valid_ms)
{
  return credential->source.kind == POLICY_SOURCE_ENV ? read_variable(credential, facts, err, value, ret_valid_ms)
                                                      : read_file(credential, policy, facts, err, value, ret_valid_ms);
}

static int make_pipes(int out[2], int errors[2], struct err *err)
{
  if (pipe2(out, O_CLOEXEC) == 0) {
    if (pipe2(errors, O_CLOEXEC) == 0 && fd_set_nonblock(out[0], true) == 0 && fd_set_nonblock(errors[0], true) == 0)
      return 0;
  }
  return err_set_errno(err, errno, "pipes for its output");
}

int fetch_start(const struct policy_credential *credential, const struct policy *policy, const struct facts *facts,
                struct err *err, struct fetch *fetch)
{
  const struct policy_source *source = &credential->source;
  struct fetch made = FETCH_INIT;
  strv_autofree struct strv argv = STRV_INIT;
  strv_autofree struct strv places = STRV_INIT;
  strv_autofree struct strv environment = STRV_INIT;
  mem_autofree char *program = NULL;
  fd_autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int out[2] = { -1, -1 };
  int errors[2] = { -1, -1 };
  int r = credential_tool_command(source, &argv) < 0 || outside_places(policy, facts, &places) < 0
              ? err_set(err, ENOMEM, "out of memory")
              : outside_program(&places, facts, &argv, err, &program);

  if (r == 0)
    r = outside_environment(&places, facts, err, &environment);
  if (r == 0)
    r = secret_new(LIMITS_SECRET_OUTPUT_BYTES, err, &made.text);
  if (r == 0)
    r = make_pipes(out, errors, err);
  made.out = out[0];
  made.err = errors[0];
  if (r == 0) {
    const struct spawn_fd fds[] = { { null, STDIN_FILENO }, { out[1], STDOUT_FILENO }, { errors[1], STDERR_FILENO } };

    r = spawn_program(&(struct spawn){ .program = program,
                                       .argv = argv.items,
                                       .envp = environment.items,
                                       .directory = "/",
                                       .fds = fds,
                                       .fd_count = MEM_COUNT(fds),
                                       .new_session = true,
                                       .may_gain = true,
                                       .landlock = -1,
                                       .cgroup_procs = -1 },
                      err, &made.pid);
  }
  fd_close(&out[1]);
  fd_close(&errors[1]);
  if (r < 0) {
    fetch_abort(&made);
    return r;
  }
  made.deadline_ns = clock_mono_ns() + source->timeout_ms * UINT64_C(1000000);
  *fetch = made;
  return 0;
}

/* Reads what there is. */
static void drain_output(struct fetch *fetch)
{
  while (fetch->out >= 0 && fetch->text.len < fetch->text.size) {
    ssize_t n = read(fetch->out, fetch->text.bytes + fetch->text.len, fetch->text.size - fetch->text.len);

    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0)
      fd_close(&fetch->out);
    else
      fetch->text.len += (size_t)n;
  }
}

static void drain_errors(struct fetch *fetch)
{
  char bytes[sizeof fetch->words];
  ssize_t n;

  while (fetch->err >= 0 && (n = read(fetch->err, bytes, sizeof bytes)) != -1) {
    size_t room = sizeof fetch->words - fetch->words_len;
    size_t taken = (size_t)n < room ? (size_t)n : room;

    if (n == 0)
      fd_close(&fetch->err);
    memcpy(fetch->words + fetch->words_len, bytes, taken);
    fetch->words_len += taken;
  }
  mem_wipe(bytes, sizeof bytes);
}

bool fetch_step(struct fetch *fetch)
{
  drain_output(fetch);
  drain_errors(fetch);
  return fetch->ended || fetch->text.len == fetch->text.size || clock_mono_ns() >= fetch->deadline_ns;
}

int fetch_read_expiry(const struct doc *doc, const char *name, struct err *err, uint64_t *ret_valid_ms)
{
  uint64_t now = clock_real_ms();
  uint64_t at = 0;
  int r = -EINVAL;

  *ret_valid_ms = 0;
  if (!doc || doc->type == DOC_NULL)
    return 0;
  if (doc->type == DOC_STRING)
    r = clock_parse(span_of(doc->text), &at);
  else if (doc->type == DOC_NUMBER && num_parse_u64(span_of(doc->text), 0, UINT64_MAX / 1000, &at) == 0)
    r = 0;
  if (r < 0)
    return err_set(err, EINVAL, "\"%s\" is no time; RFC 3339 or seconds since 1970 are wanted", name);
  if (doc->type == DOC_NUMBER)
    at *= 1000;
  if (at <= now)
    return err_set(err, EINVAL, "the value has expired already");
  *ret_valid_ms = at - now;
  if (*ret_valid_ms > 2 * LIMITS_SECRET_MARGIN_MS)
    *ret_valid_ms -= LIMITS_SECRET_MARGIN_MS;
  return 0;
}

/* The parser's own copies are beyond our reach; those of the tree are not. */
static int read_json(struct span text, struct err *err, struct secret *value, uint64_t *ret_valid_ms)
{
  doc_autofree struct doc *doc = NULL;
  const struct doc *member;
  int r = doc_parse("output", text, NULL, &doc);

  member = r == 0 && doc->type == DOC_OBJECT ? doc_member(doc, "value") : NULL;
  if (!member || member->type != DOC_STRING) {
    r = err_set(err, EINVAL, "printed something that begins like JSON and has no string \"value\"");
  } else {
    r = fetch_read_expiry(doc_member(doc, "expires_at"), "expires_at", err, ret_valid_ms);
    if (r == 0 && take_value(span_of(member->text), err, value) < 0)
      r = err_wrap(err, "what it printed");
  }
  for (size_t i = 0; doc && i < doc->count; i++) {
    if (doc->items[i].text)
      mem_wipe(doc->items[i].text, strlen(doc->items[i].text));
  }
  return r;
}

struct span fetch_said(const struct fetch *fetch)
{
  struct span words = { fetch->words, fetch->words_len };
  struct span line = span_trim(span_sub(words, 0, span_find(words, '\n')));
  struct span text = { fetch->text.bytes, fetch->text.len };

  text = span_trim(span_sub(text, 0, span_find(text, '\n')));
  return text.len > 0 && memmem(line.ptr, line.len, text.ptr, text.len) ? SPAN("") : line;
}

static int judge(const struct policy_credential *credential, const struct fetch *fetch, struct err *err,
                 struct secret *value, uint64_t *ret_valid_ms)
{
  struct span text = { fetch->text.bytes, fetch->text.len };

  *ret_valid_ms = 0;
  if (text.len == fetch->text.size)
    return err_set(err, EFBIG, "printed more than %d bytes", LIMITS_SECRET_OUTPUT_BYTES - 1);
  if (!fetch->ended)
    return err_set(err, ETIME, "did not end within %" PRIu64 " ms (\"timeout\")", credential->source.timeout_ms);
  if (WIFSIGNALED(fetch->status))
    return err_set(err, EIO, "was killed by signal %d", WTERMSIG(fetch->status));
  if (WEXITSTATUS(fetch->status) != 0)
    return err_set(err, EIO, "ended with status %d", WEXITSTATUS(fetch->status));
  /* What pass keeps below a password is about it. */
  if (credential->source.kind == POLICY_SOURCE_PASS)
    text.len = span_find(text, '\n');
  if (credential->source.kind == POLICY_SOURCE_EXEC && credential->place != POLICY_PLACE_SIGV4 && text.len > 0 &&
      text.ptr[0] == '{')
    return read_json(text, err, value, ret_valid_ms);
  return take_text(credential, text, err, value, ret_valid_ms) < 0 ? err_wrap(err, "what it printed") : 0;
}

int fetch_finish(const struct policy_credential *credential, struct fetch *fetch, struct err *err, struct secret *value,
                 uint64_t *ret_valid_ms)
{
  strv_autofree struct strv argv = STRV_INIT;
  int r;

  drain_output(fetch);
  drain_errors(fetch);
  r = judge(credential, fetch, err, value, ret_valid_ms);
  fetch_abort(fetch);
  if (r == 0)
    return 0;
  (void)credential_tool_command(&credential->source, &argv);
  return err_wrap(err, "the program %s", argv.count > 0 ? argv.items[0] : "");
}

void fetch_abort(struct fetch *fetch)
{
  if (fetch->pid > 0 && !fetch->ended) {
    (void)kill(-fetch->pid, SIGKILL);
    (void)kill(fetch->pid, SIGKILL);
    (void)waitpid(fetch->pid, NULL, 0);
  }
  fd_close(&fetch->out);
  fd_close(&fetch->err);
  secret_free(&fetch->text);
  mem_wipe(fetch->words, sizeof fetch->words);
  *fetch = (struct fetch)FETCH_INIT;
}
