/* credential: which logins a run here would have, and whether their values can be had. Values are never shown. */
#include "config.h"

#include "cmd/cmd.h"
#include "policy/credential.h"
#include "policy/credential_word.h"
#include "run/secrets.h"

#include <errno.h>
#include <stdlib.h>

#define CREDENTIAL_TEXT_BYTES (1024 * 1024)

static void print_hosts(const struct policy_rules *bind, struct buf *out)
{
  buf_append_str(out, "  hosts   ");
  for (size_t i = 0; i < bind->count; i++)
    buf_printf(out, "%s%s", i ? ", " : "", bind->items[i].text);
}

/* Of several values the words of one are told. */
static void print_keys(const struct control_secret *secret, struct buf *out)
{
  const struct span value = { secret->value, secret->len };

  buf_printf(out, "  value   a key id and its secret key, %s",
             credential_word(value, CREDENTIAL_TOKEN).len ? "with the token of a session"
                                                          : "without a session's token");
}

static void print_inject(const struct policy_credential *credential, struct buf *out)
{
  buf_append_str(out, "\n  goes    ");
  if (credential->place == POLICY_PLACE_SIGV4) {
    buf_append_str(out, "nowhere: what is signed with the placeholder is signed anew (AWS Signature Version 4)");
    return;
  }
  if (credential->inject == POLICY_INJECT_REPLACE) {
    buf_append_str(out, "where the placeholder stands");
    if (credential->place == POLICY_PLACE_PATH || credential->place == POLICY_PLACE_BODY) {
      buf_append_str(out, ", also in ");
      credential_print_place(credential, out);
    }
    return;
  }
  buf_append_str(out, "to ");
  credential_print_place(credential, out);
  buf_append_str(out, credential->inject == POLICY_INJECT_ATTACH ? ", on every request"
                                                                 : ", where a request has nothing there");
}

static void print_places(const struct policy_credential *credential, struct buf *out)
{
  const struct strv *const lists[] = { &credential->env, &credential->files };
  const char *before = "\n  inside  a placeholder in ";

  for (size_t i = 0; i < MEM_COUNT(lists); i++) {
    for (size_t j = 0; j < lists[i]->count; j++, before = ", ") {
      buf_append_str(out, before);
      buf_append_printable(out, span_of(lists[i]->items[j]));
    }
  }
}

static void print_one(const struct policy_credential *credential, struct buf *out)
{
  const struct policy_origin *origin = &credential->origin;

  buf_printf(out, "%s\n", credential->name);
  print_hosts(&credential->bind, out);
  buf_append_str(out, "\n  source  ");
  credential_print_source(&credential->source, out);
  print_inject(credential, out);
  print_places(credential, out);
  buf_append_str(out, "\n  from    ");
  buf_append_printable(out, span_of(origin->file));
  if (origin->line > 0)
    buf_printf(out, ":%u", origin->line);
  buf_append_byte(out, '\n');
}

static int list(const struct policy *policy)
{
  buf_autofree struct buf text = BUF_INIT(CREDENTIAL_TEXT_BYTES);

  for (size_t i = 0; i < policy->credentials.count; i++)
    print_one(&policy->credentials.items[i], &text);
  if (policy->credentials.count == 0)
    log_line(LOG_NOTICE,
             "no credentials here; --credential NAME adds one, and " SBX_POLICY_PAGE "(5) tells about them");
  return cmd_print(&text);
}

/* What may be told of a value: how long it is, roughly, and whether it begins as those of the service do. */
static void print_value(const struct policy_credential *credential, const struct control_secret *secret,
                        struct buf *out)
{
  const struct credential_preset *preset =
      credential->preset ? credential_preset_find(span_of(credential->preset)) : NULL;
  const struct span value = { secret->value, secret->len };
  bool known = false;
  unsigned low = 1;

  while (low * 2 <= secret->len)
    low *= 2;
  if (credential->place == POLICY_PLACE_SIGV4)
    print_keys(secret, out);
  else
    buf_printf(out, "  value   of %u to %u bytes", low, low * 2 - 1);
  for (size_t i = 0; preset && preset->prefixes[i]; i++)
    known |= span_starts_with(value, span_of(preset->prefixes[i]));
  if (preset && preset->prefixes[0])
    buf_printf(out, ", and begins %s values of %s do", known ? "as" : "otherwise than", preset->name);
  if (secret->valid_ms > 0)
    buf_printf(out, "; it is asked for anew after %u s", secret->valid_ms / 1000);
  buf_append_byte(out, '\n');
}

/* The answer; wiped by whoever asked. */
static void take(void *data, const struct control_secret *answer)
{
  struct secret *kept = data;

  memcpy(kept->bytes, answer, sizeof *answer);
  kept->len = sizeof *answer;
}

static int ask(struct context *context, uint32_t index, struct err *err, struct secret *answer)
{
  struct secrets secrets = SECRETS_INIT;
  int r = secret_new(sizeof(struct control_secret), err, answer);

  if (r == 0)
    r = secrets_open(&secrets, context->policy, &context->facts, take, answer, err);
  if (r < 0)
    return r;
  secrets_want(&secrets, index, false);
  (void)secrets_await(&secrets);
  secrets_close(&secrets);
  return 0;
}

static int test(struct context *context, uint32_t index, struct err *err)
{
  const struct policy_credential *credential = &context->policy->credentials.items[index];
  buf_autofree struct buf text = BUF_INIT(CREDENTIAL_TEXT_BYTES);
  secret_autofree struct secret answer = SECRET_INIT;
  const struct control_secret *secret;
  int printed;

  if (ask(context, index, err, &answer) < 0)
    return cmd_fail(err);
  secret = (const void *)answer.bytes;
  print_one(credential, &text);
  if (secret->len > 0)
    print_value(credential, secret, &text);
  printed = cmd_print(&text);
  if (secret->len > 0 || printed != 0)
    return printed;
  log_line(LOG_ERROR, "credential %s: %s", credential->name, secret->error);
  return EXIT_FAILURE;
}

static int no_such(const struct policy *policy, const char *name, struct err *err)
{
  buf_autofree struct buf names = BUF_INIT(LIMITS_CREDENTIALS * (LIMITS_CREDENTIAL_NAME_BYTES + 2));

  for (size_t i = 0; i < policy->credentials.count; i++)
    buf_printf(&names, "%s%s", i ? ", " : "", policy->credentials.items[i].name);
  if (names.len > 0)
    err_set(err, EINVAL, "credential: there is no %s here; there are %s", name, names.data ? names.data : "");
  else
    err_set(err, EINVAL, "credential: there are none here; --credential NAME adds one");
  return cmd_fail(err);
}

int cmd_credential(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  bool lists = args[0] && strcmp(args[0], "list") == 0 && !args[1];
  bool tests = args[0] && strcmp(args[0], "test") == 0 && args[1] && !args[2];
  struct err err = ERR_INIT;

  if (!lists && !tests) {
    err_set(&err, EINVAL, "credential: write " SBX_NAME " credential list, or " SBX_NAME " credential test NAME");
    return cmd_fail(&err);
  }
  if (context_load(opts, &err, &context) < 0)
    return cmd_fail(&err);
  context_tell(&context);
  if (lists)
    return list(context.policy);
  for (size_t i = 0; i < context.policy->credentials.count; i++)
    if (strcmp(context.policy->credentials.items[i].name, args[1]) == 0)
      return test(&context, (uint32_t)i, &err);
  return no_such(context.policy, args[1], &err);
}
