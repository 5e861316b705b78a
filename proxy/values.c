/* Theory of operation
 *
 * A value is fetched when a request needs it first, and kept until it expires or an origin refuses it. sbx alone can
 * read the sources; it is asked over the control socket (CONTROL_WANT), one question per credential at a time, and
 * answers after a bounded time with the value or with what is wrong (CONTROL_SECRET). How often a source is asked, sbx
 * decides too: a flood of requests must not run a program of the user's again and again.
 *
 *   IDLE     a value may be there       wanted, and none there or expired; or refused by an origin ──> UNSENT
 *   UNSENT   the socket had no room     room ──> ASKED
 *   ASKED                               the answer, or time is up ──> IDLE, and who waits for this one and for no
 *                                       other is told
 *
 * A failure is told to those that wait, and not kept: the next request asks again. A value that was there stays until a
 * new one comes; an answer without a value takes it away.
 *
 * Values are in memory of their own (sys/secret.h) and nowhere else for longer than it takes to send a request.
 */
#include "proxy/values.h"

#include "policy/credential_word.h"
#include "proxy/finder.h"
#include "proxy/notify.h"
#include "sys/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PLACEHOLDER_LEAST 8 /* inject.h */
#define GRACE_MS 10000 /* what sbx gets beyond the time that a program of a source has */
#define ERROR_BYTES (sizeof((struct control_secret *)NULL)->error)

enum value_state {
  VALUE_IDLE,
  VALUE_UNSENT,
  VALUE_ASKED,
};

struct value {
  enum value_state state;
  uint64_t deadline_ms; /* of the loop's clock, unless idle */
  bool stale; /* how it is asked for */
  struct secret memory;
  struct secret former[LIMITS_SECRET_FORMER]; /* the values before, which origins may still send back; a ring */
  unsigned former_next;
  uint64_t expires_ms; /* of the loop's clock; 0: never */
  uint64_t version;
  char placeholder[LIMITS_PLACEHOLDER_BYTES + 1];
  char error[ERROR_BYTES]; /* of the last answer */
};

struct values_waiter {
  struct values_waiter *next;
  struct values *values;
  inject_set wanted;
  void (*done)(void *data, const char *error);
  void *data;
  struct values_waiter **slot;
};

struct values {
  struct proxy *proxy;
  struct loop_timer *timer; /* on while something is asked */
  size_t count;
  struct value items[LIMITS_CREDENTIALS];
  struct inject_secret list[LIMITS_CREDENTIALS];
  struct inject_secret known[FINDER_PATTERNS_MAX]; /* words of them all */
  size_t known_count;
  struct values_waiter *waiters;
};

int values_new(struct proxy *proxy, const struct control_placeholders *placeholders, struct err *err,
               struct values **ret_values)
{
  const struct policy_credentials *credentials = &proxy->policy->credentials;
  struct values *values = mem_calloc(1, sizeof *values);

  if (!values)
    return err_set(err, ENOMEM, "credentials: out of memory");
  values->proxy = proxy;
  values->count = credentials->count;
  for (size_t i = 0; i < values->count && placeholders->count == values->count; i++) {
    struct value *value = &values->items[i];
    size_t len = strnlen(placeholders->placeholders[i], sizeof placeholders->placeholders[i]);

    if (len < PLACEHOLDER_LEAST || len >= sizeof value->placeholder)
      break;
    memcpy(value->placeholder, placeholders->placeholders[i], len);
    values->list[i] =
        (struct inject_secret){ .credential = &credentials->items[i], .placeholder = { value->placeholder, len } };
  }
  if (!values->count || !values->list[values->count - 1].credential) {
    free(values);
    return err_set(err, EPROTO, "control: the placeholders are not those of the policy's credentials");
  }
  *ret_values = values;
  return 0;
}

void values_free(struct values *values)
{
  if (!values)
    return;
  for (size_t i = 0; i < values->count; i++) {
    secret_free(&values->items[i].memory);
    for (size_t j = 0; j < LIMITS_SECRET_FORMER; j++)
      secret_free(&values->items[i].former[j]);
  }
  loop_timer_free(&values->timer);
  free(values);
}

const struct inject_secret *values_list(const struct values *values, size_t *ret_count)
{
  *ret_count = values->count;
  return values->list;
}

const struct inject_secret *values_known(const struct values *values, size_t *ret_count)
{
  *ret_count = values->known_count;
  return values->known;
}

/* One value, or each of its words: an origin may send back one alone. A token has no placeholder of its own. */
static void know(struct values *values, const struct inject_secret *secret, const struct secret *memory)
{
  bool words = secret->credential->place == POLICY_PLACE_SIGV4;
  struct inject_secret known = *secret;

  known.value = (struct span){ .ptr = memory->bytes, .len = memory->len };
  for (enum credential_word word = CREDENTIAL_KEY_ID; word <= (words ? CREDENTIAL_TOKEN : CREDENTIAL_KEY_ID); word++) {
    if (words) {
      known.value = credential_word((struct span){ .ptr = memory->bytes, .len = memory->len }, word);
      known.placeholder =
          credential_word(secret->placeholder, word == CREDENTIAL_KEY_ID ? word : CREDENTIAL_SECRET_KEY);
    }
    if (known.value.len)
      values->known[values->known_count++] = known;
  }
}

/* A value has changed. */
static void know_all(struct values *values)
{
  values->known_count = 0;
  for (size_t i = 0; i < values->count; i++) {
    know(values, &values->list[i], &values->items[i].memory);
    for (size_t j = 0; j < LIMITS_SECRET_FORMER; j++)
      know(values, &values->list[i], &values->items[i].former[j]);
  }
}

static bool is_good(const struct values *values, const struct value *value)
{
  return value->memory.len && (!value->expires_ms || loop_now_ms(values->proxy->loop) < value->expires_ms);
}

uint64_t values_version(const struct values *values, inject_set wanted)
{
  uint64_t version = 0;

  for (size_t i = 0; i < values->count; i++)
    if (inject_has(wanted, i))
      version += values->items[i].version;
  return version;
}

void values_print(const struct values *values, inject_set set, struct buf *out)
{
  size_t before = out->len;

  for (size_t i = 0; i < values->count; i++) {
    if (!inject_has(set, i))
      continue;
    if (out->len > before)
      buf_append_byte(out, ',');
    buf_append_str(out, values->list[i].credential->name);
  }
}

/* Asking. */

static bool is_pending(const struct values *values, inject_set set)
{
  for (size_t i = 0; i < values->count; i++)
    if (inject_has(set, i) && values->items[i].state != VALUE_IDLE)
      return true;
  return false;
}

/* sbx that is gone takes everything. */
static bool send_want(const struct values *values, size_t index)
{
  struct control_want message = { .type = CONTROL_WANT, .index = (uint32_t)index, .stale = values->items[index].stale };

  return send(values->proxy->control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

void values_flush(struct values *values)
{
  bool unsent = false;

  for (size_t i = 0; i < values->count; i++) {
    struct value *value = &values->items[i];

    if (value->state == VALUE_UNSENT && send_want(values, i))
      value->state = VALUE_ASKED;
    unsent |= value->state == VALUE_UNSENT;
  }
  notify_await_room(values->proxy, NOTIFY_WANTS, unsent);
}

static void expire(void *data);

/* The timer goes off when the first of those that are asked has to be there. */
static void set_timer(struct values *values)
{
  uint64_t now = loop_now_ms(values->proxy->loop);
  uint64_t nearest = UINT64_MAX;

  for (size_t i = 0; i < values->count; i++)
    if (values->items[i].state != VALUE_IDLE && values->items[i].deadline_ms < nearest)
      nearest = values->items[i].deadline_ms;
  /* When memory is short for it, the answer itself has to do. */
  if (!values->timer && loop_timer_new(values->proxy->loop, expire, values, &values->timer) < 0)
    return;
  if (nearest == UINT64_MAX)
    loop_timer_stop(values->timer);
  else
    loop_timer_set(values->timer, nearest > now ? nearest - now : 0);
}

static void ask(struct values *values, size_t index, bool stale)
{
  struct value *value = &values->items[index];

  if (value->state != VALUE_IDLE)
    return;
  value->state = VALUE_UNSENT;
  value->stale = stale;
  value->deadline_ms = loop_now_ms(values->proxy->loop) + values->list[index].credential->source.timeout_ms + GRACE_MS;
  set_timer(values);
}

static int wait_for(struct values *values, inject_set wanted, void (*done)(void *data, const char *error), void *data,
                    struct values_waiter **slot)
{
  struct values_waiter *waiter = mem_calloc(1, sizeof *waiter);

  values_flush(values);
  if (!waiter)
    return -ENOMEM;
  *waiter = (struct values_waiter){
    .next = values->waiters, .values = values, .wanted = wanted, .done = done, .data = data, .slot = slot
  };
  values->waiters = waiter;
  *slot = waiter;
  return 0;
}

int values_want(struct values *values, inject_set wanted, void (*done)(void *data, const char *error), void *data,
                struct values_waiter **slot)
{
  bool ready = true;

  for (size_t i = 0; i < values->count; i++) {
    if (!inject_has(wanted, i) || is_good(values, &values->items[i]))
      continue;
    ask(values, i, values->items[i].memory.len > 0);
    ready = false;
  }
  return ready ? 1 : wait_for(values, wanted, done, data, slot);
}

int values_renew(struct values *values, inject_set wanted, void (*done)(void *data, const char *error), void *data,
                 struct values_waiter **slot)
{
  for (size_t i = 0; i < values->count; i++)
    if (inject_has(wanted, i))
      ask(values, i, true);
  return wait_for(values, wanted, done, data, slot);
}

void values_cancel(struct values_waiter **slot)
{
  struct values_waiter *waiter = *slot;

  if (!waiter)
    return;
  for (struct values_waiter **at = &waiter->values->waiters; *at; at = &(*at)->next) {
    if (*at == waiter) {
      *at = waiter->next;
      break;
    }
  }
  *slot = NULL;
  free(waiter);
}

/* Answers. */

/* The value is about to be another, or none. */
static void keep_former(struct values *values, size_t index)
{
  struct value *value = &values->items[index];

  if (!value->memory.len)
    return;
  secret_free(&value->former[value->former_next]);
  value->former[value->former_next] = value->memory;
  value->former_next = (value->former_next + 1) % LIMITS_SECRET_FORMER;
  value->memory = (struct secret)SECRET_INIT;
}

static void take(struct values *values, size_t index, const struct control_secret *message)
{
  struct value *value = &values->items[index];
  secret_autofree struct secret memory = SECRET_INIT;

  value->state = VALUE_IDLE;
  memcpy(value->error, message->error, sizeof value->error - 1);
  if (message->len && secret_new(message->len, NULL, &memory) < 0) {
    snprintf(value->error, sizeof value->error, "out of memory");
  } else if (message->len) {
    memcpy(memory.bytes, message->value, message->len);
    memory.len = message->len;
  }
  if (memory.len != value->memory.len || (memory.len && memcmp(memory.bytes, value->memory.bytes, memory.len) != 0)) {
    value->version++;
    keep_former(values, index);
  }
  secret_free(&value->memory);
  value->memory = memory;
  memory = (struct secret)SECRET_INIT;
  value->expires_ms = message->valid_ms ? loop_now_ms(values->proxy->loop) + message->valid_ms : 0;
  values->list[index].value = (struct span){ .ptr = value->memory.bytes, .len = value->memory.len };
  know_all(values);
}

/* Takes the first that waits for nothing any more off the list: whoever is told may end others' waiting, or begin to
 * wait anew. */
static struct values_waiter *next_due(struct values *values)
{
  for (struct values_waiter **at = &values->waiters; *at; at = &(*at)->next) {
    struct values_waiter *waiter = *at;

    if (!is_pending(values, waiter->wanted)) {
      *at = waiter->next;
      *waiter->slot = NULL;
      return waiter;
    }
  }
  return NULL;
}

/* What is wrong with one of a set; nothing where none is. */
static void print_error(const struct values *values, inject_set set, struct buf *out)
{
  for (size_t i = 0; i < values->count; i++) {
    const struct value *value = &values->items[i];

    if (!inject_has(set, i) || value->memory.len)
      continue;
    buf_append_str(out, values->list[i].credential->name);
    buf_append_str(out, ": ");
    buf_append_str(out, *value->error ? value->error : "no value came");
    return;
  }
}

static void tell_due(struct values *values)
{
  struct values_waiter *waiter;

  set_timer(values);
  while ((waiter = next_due(values))) {
    buf_autofree struct buf error = BUF_INIT(2 * ERROR_BYTES);

    print_error(values, waiter->wanted, &error);
    waiter->done(waiter->data, error.len ? error.data : NULL);
    free(waiter);
  }
}

/* sbx has not answered: it hangs, or is stopped. */
static void expire(void *data)
{
  struct values *values = data;
  uint64_t now = loop_now_ms(values->proxy->loop);

  for (size_t i = 0; i < values->count; i++) {
    struct value *value = &values->items[i];

    if (value->state == VALUE_IDLE || now < value->deadline_ms)
      continue;
    value->state = VALUE_IDLE;
    snprintf(value->error, sizeof value->error, "no answer came in time");
    if (!is_good(values, value)) {
      value->version++;
      keep_former(values, i);
      values->list[i].value = SPAN("");
      know_all(values);
    }
  }
  tell_due(values);
}

void values_answer(struct values *values, const struct control_secret *message)
{
  if (message->index >= values->count || message->len > sizeof message->value ||
      values->items[message->index].state != VALUE_ASKED)
    return; /* sbx answers only what was asked */
  take(values, message->index, message);
  tell_due(values);
}
