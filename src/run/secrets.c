#include "config.h"

#include "run/secrets.h"

#include "base/clock.h"
#include "base/log.h"
#include "policy/credential_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SECRETS_LOOK_MS 50 /* a program that has closed its output is looked after so often */

int secrets_open(struct secrets *secrets, const struct policy *policy, const struct facts *facts,
                 void (*answered)(void *data, const struct control_secret *answer), void *data, struct err *err)
{
  struct secrets made = {
    .policy = policy, .facts = facts, .answered = answered, .data = data, .count = policy->credentials.count
  };

  made.entries = mem_calloc(made.count, sizeof *made.entries);
  if (!made.entries)
    return err_set(err, ENOMEM, "out of memory");
  for (size_t i = 0; i < made.count; i++)
    made.entries[i].fetch = (struct fetch)FETCH_INIT;
  /* From here on, and not from the first value on: a source can be a variable, which is in our memory already. */
  if (made.count > 0)
    secret_guard_process(true);
  *secrets = made;
  return 0;
}

void secrets_close(struct secrets *secrets)
{
  for (size_t i = 0; i < secrets->count; i++) {
    struct secrets_entry *entry = &secrets->entries[i];

    if (entry->said[0])
      log_line(LOG_WARNING, "credential %s: its program said: %s", secrets->policy->credentials.items[i].name,
               entry->said);
    mem_wipe(entry->said, sizeof entry->said);
    fetch_abort(&entry->fetch);
    secret_free(&entry->value);
  }
  free(secrets->entries);
  if (secrets->count > 0)
    secret_guard_process(false);
  *secrets = (struct secrets)SECRETS_INIT;
}

/* A time by a source's own word may be any: some hundred years are for ever. */
static uint64_t ms_to_ns(uint64_t ms)
{
  return ms < UINT64_MAX / 2 / 1000000 ? ms * UINT64_C(1000000) : UINT64_MAX / 2;
}

static bool is_good(const struct secrets_entry *entry, uint64_t now)
{
  return entry->value.len > 0 && (!entry->until_ns || now < entry->until_ns);
}

/* Each failure in a row doubles the time: a source may be a dialog, and the command decides how often it is asked. */
static uint64_t retry_ms(const struct secrets_entry *entry)
{
  return entry->failures > 0 ? (uint64_t)LIMITS_SECRET_RETRY_MS << (entry->failures - 1) : 0;
}

/* What the proxy gets. The message lies in memory for secrets, since it holds one. */
static void answer(struct secrets *secrets, uint32_t index, const struct secrets_entry *entry, const char *error)
{
  secret_autofree struct secret memory = SECRET_INIT;
  struct control_secret none = { .type = CONTROL_SECRET, .index = index, .error = "out of memory" };
  struct control_secret *message = &none;
  uint64_t now = clock_mono_ns();
  uint64_t left_ms = 0;

  if (secret_new(sizeof *message, NULL, &memory) == 0) {
    message = (void *)memory.bytes;
    message->type = CONTROL_SECRET;
    message->index = index;
    snprintf(message->error, sizeof message->error, "%s", error);
    if (error[0] == '\0') {
      message->len = (uint32_t)entry->value.len;
      memcpy(message->value, entry->value.bytes, entry->value.len);
    }
    if (error[0] == '\0' && entry->until_ns)
      left_ms = entry->until_ns > now ? (entry->until_ns - now) / 1000000 + 1 : 1;
    message->valid_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
  }
  secrets->answered(secrets->data, message);
}

/* A source has given a value, or not. */
static void settle(struct secrets *secrets, size_t index, int result, const struct err *err, uint64_t valid_ms)
{
  struct secrets_entry *entry = &secrets->entries[index];
  uint64_t ttl = secrets->policy->credentials.items[index].source.ttl_ms;

  if (ttl > 0 && (valid_ms == 0 || ttl < valid_ms))
    valid_ms = ttl;
  if (valid_ms > 0 && valid_ms < LIMITS_SECRET_VALID_MS)
    valid_ms = LIMITS_SECRET_VALID_MS;
  entry->fetched_ns = clock_mono_ns();
  entry->until_ns = result == 0 && valid_ms > 0 ? entry->fetched_ns + ms_to_ns(valid_ms) : 0;
  snprintf(entry->error, sizeof entry->error, "%.*s", (int)sizeof entry->error - 1, result < 0 ? err->message : "");
  entry->failures = result < 0 ? entry->failures + (entry->failures < LIMITS_SECRET_RETRY_DOUBLES) : 0;
  if (result < 0)
    secret_free(&entry->value);
  if (!entry->wanted)
    return;
  entry->wanted = false;
  answer(secrets, (uint32_t)index, entry, entry->error);
}

/* Begins to ask the source. */
static void fetch(struct secrets *secrets, size_t index)
{
  const struct policy_credential *credential = &secrets->policy->credentials.items[index];
  struct secrets_entry *entry = &secrets->entries[index];
  struct err err = ERR_INIT;
  uint64_t valid_ms = 0;
  int r;

  secret_free(&entry->value);
  r = secret_new(LIMITS_SECRET_BYTES, &err, &entry->value);
  if (r == 0 && credential_tool_is_run(&credential->source)) {
    r = fetch_start(credential, secrets->policy, secrets->facts, &err, &entry->fetch);
    if (r == 0)
      return;
  } else if (r == 0) {
    r = fetch_read(credential, secrets->policy, secrets->facts, &err, &entry->value, &valid_ms);
  }
  settle(secrets, index, r, &err, valid_ms);
}

void secrets_want(struct secrets *secrets, uint32_t index, bool stale)
{
  struct secrets_entry *entry;
  uint64_t now = clock_mono_ns();
  uint64_t age;

  if (index >= secrets->count) {
    answer(secrets, index, NULL, "no such credential");
    return;
  }
  entry = &secrets->entries[index];
  entry->wanted = true;
  if (entry->fetch.pid >= 0)
    return;
  /* What the command sends can be refused on purpose, again and again: that must not run the program each time. */
  age = entry->fetched_ns ? now - entry->fetched_ns : UINT64_MAX;
  if ((is_good(entry, now) && (!stale || age < ms_to_ns(LIMITS_SECRET_FRESH_MS))) ||
      (entry->error[0] != '\0' && age < ms_to_ns(retry_ms(entry)))) {
    entry->wanted = false;
    answer(secrets, index, entry, entry->error);
    return;
  }
  fetch(secrets, index);
}

struct span secrets_value(const struct secrets *secrets, size_t index)
{
  const struct secrets_entry *entry = &secrets->entries[index];

  return is_good(entry, clock_mono_ns()) ? (struct span){ entry->value.bytes, entry->value.len } : SPAN("");
}

const char *secrets_error(const struct secrets *secrets, size_t index)
{
  const char *error = secrets->entries[index].error;

  return error[0] ? error : "it has expired";
}

/* The run is to end; the signals are blocked, since who waits for them is not there yet. */
static bool is_interrupted(void)
{
  static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
  sigset_t pending;
  bool found = false;

  if (sigpending(&pending) == 0)
    for (size_t i = 0; i < MEM_COUNT(ending); i++)
      found |= sigismember(&pending, ending[i]) == 1;
  return found;
}

bool secrets_await(struct secrets *secrets)
{
  int left_ms;

  while ((left_ms = secrets_wait_ms(secrets)) >= 0) {
    struct pollfd fds[SECRETS_POLL_MAX];
    size_t count = secrets_poll(secrets, fds);
    int status;

    if (is_interrupted())
      return true;
    (void)poll(fds, count, left_ms < SECRETS_LOOK_MS ? left_ms : SECRETS_LOOK_MS);
    for (size_t i = 0; i < secrets->count; i++) {
      struct fetch *fetch = &secrets->entries[i].fetch;

      if (fetch->pid > 0 && !fetch->ended && waitpid(fetch->pid, &status, WNOHANG) == fetch->pid)
        (void)secrets_reaped(secrets, fetch->pid, status);
    }
    secrets_read(secrets);
  }
  return false;
}

int secrets_gather(struct secrets *secrets, struct err *err)
{
  for (size_t i = 0; i < secrets->count; i++)
    fetch(secrets, i);
  return secrets_await(secrets) ? err_set(err, EINTR, "interrupted while the sources of credentials were asked") : 0;
}

void secrets_forget(struct secrets *secrets)
{
  for (size_t i = 0; i < secrets->count; i++)
    secrets->entries[i].wanted = false;
}

size_t secrets_poll(const struct secrets *secrets, struct pollfd *fds)
{
  size_t count = 0;

  for (size_t i = 0; i < secrets->count; i++) {
    const struct fetch *fetch = &secrets->entries[i].fetch;

    if (fetch->out >= 0)
      fds[count++] = (struct pollfd){ .fd = fetch->out, .events = POLLIN };
    if (fetch->err >= 0)
      fds[count++] = (struct pollfd){ .fd = fetch->err, .events = POLLIN };
  }
  return count;
}

int secrets_wait_ms(const struct secrets *secrets)
{
  uint64_t now = clock_mono_ns();
  uint64_t nearest = UINT64_MAX;

  for (size_t i = 0; i < secrets->count; i++) {
    const struct fetch *fetch = &secrets->entries[i].fetch;

    if (fetch->pid >= 0 && fetch->deadline_ns < nearest)
      nearest = fetch->deadline_ns;
  }
  if (nearest == UINT64_MAX)
    return -1;
  return nearest <= now ? 0 : (nearest - now) / 1000000 < 60000 ? (int)((nearest - now) / 1000000) + 1 : 60000;
}

void secrets_read(struct secrets *secrets)
{
  for (size_t i = 0; i < secrets->count; i++) {
    struct secrets_entry *entry = &secrets->entries[i];
    struct err err = ERR_INIT;
    struct span said;
    uint64_t valid_ms;
    int r;

    if (entry->fetch.pid < 0 || !fetch_step(&entry->fetch))
      continue;
    said = fetch_said(&entry->fetch);
    snprintf(entry->said, sizeof entry->said, "%.*s", (int)said.len, said.ptr);
    r = fetch_finish(&secrets->policy->credentials.items[i], &entry->fetch, &err, &entry->value, &valid_ms);
    if (r == 0)
      mem_wipe(entry->said, sizeof entry->said);
    settle(secrets, i, r, &err, valid_ms);
  }
}

bool secrets_reaped(struct secrets *secrets, pid_t pid, int status)
{
  for (size_t i = 0; i < secrets->count; i++) {
    struct fetch *fetch = &secrets->entries[i].fetch;

    if (fetch->pid != pid || fetch->ended)
      continue;
    fetch->ended = true;
    fetch->status = status;
    return true;
  }
  return false;
}
