/* Theory of operation
 *
 * An entry is read member by member into an empty credential, and what is missing then comes from the preset, so that
 * what is said always wins. What a credential lacks after that is an error: no half of one may come to be, since a
 * value that is bound to too much is a leak, and one that is bound to nothing a riddle.
 *
 * The option is put together from the same parts.
 */
#include "config.h"

#include "policy/credential.h"

#include "policy/credential_member.h"
#include "policy/credential_tool.h"
#include "policy/limits.h"
#include "policy/rule.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_MS 30000 /* of a program that prints a value, unless the entry says otherwise */

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

void credential_clear(struct policy_credential *credential)
{
  for (size_t i = 0; i < credential->bind.count; i++)
    rule_free(&credential->bind.items[i]);
  free(credential->bind.items);
  free(credential->name);
  free(credential->preset);
  strv_free(&credential->source.words);
  strv_free(&credential->env);
  strv_free(&credential->files);
  free(credential->place_name);
  policy_origin_clear(&credential->origin);
  *credential = (struct policy_credential){ 0 };
}

static int check_name(struct span name, struct err *err)
{
  bool good = name.len > 0 && name.len <= LIMITS_CREDENTIAL_NAME_BYTES;

  for (size_t i = 0; i < name.len; i++)
    good &= span_is_alpha(name.ptr[i]) || span_is_digit(name.ptr[i]) || name.ptr[i] == '-' || name.ptr[i] == '_';
  return good ? 0
              : err_set(err, EINVAL, "not a credential's name; use 1 to %d letters, digits, '-' and '_'",
                        LIMITS_CREDENTIAL_NAME_BYTES);
}

/* What the entry has left out. */
static int fill_in(const struct credential_preset *preset, const struct credential_given *given, struct err *err,
                   struct policy_credential *credential)
{
  int r = 0;

  for (size_t i = 0; r == 0 && !given->source && preset->source[i]; i++)
    r = credential_set_source(POLICY_SOURCE_ENV, preset->source[i], err, &credential->source);
  for (size_t i = 0; r == 0 && !given->bind && preset->hosts[i]; i++)
    r = credential_add_host(preset->hosts[i], err, &credential->bind);
  for (size_t i = 0; r == 0 && !given->env && preset->env[i]; i++)
    r = credential_add_env(preset->env[i], err, &credential->env);
  if (!given->inject)
    credential->inject = preset->inject;
  if (r == 0 && !given->place) {
    credential->place = preset->place;
    r = preset->place_name ? credential_copy(preset->place_name, err, &credential->place_name) : 0;
  }
  return r;
}

/* What is made of several words, and what is not. */
static int check_words(const struct policy_credential *credential, struct err *err)
{
  size_t variables = credential->source.kind == POLICY_SOURCE_ENV ? credential->source.words.count : 1;

  if (credential->place != POLICY_PLACE_SIGV4)
    return variables == 1
               ? 0
               : err_set(err, EINVAL,
                         "source: several variables hold one value only with \"place\": \"sigv4\"; name one");
  if (variables > 3)
    return err_set(err, EINVAL,
                   "source: more than three variables; name those of the access key id, the secret key and the "
                   "session token, in this order");
  if (credential->inject != POLICY_INJECT_REPLACE)
    return err_set(err, EINVAL,
                   "inject: with \"place\": \"sigv4\" a request is signed anew that was signed with the placeholder, "
                   "and no other; leave it out");
  if (credential->files.count > 0)
    return err_set(err, EINVAL, "file: with \"place\": \"sigv4\" placeholders are in variables only; leave it out");
  if (credential->env.count != 2)
    return err_set(err, EINVAL,
                   "env: with \"place\": \"sigv4\" there are two placeholders; name the variable of the access key id, "
                   "and then that of the secret key");
  return 0;
}

static int check_whole(struct policy_credential *credential, struct err *err)
{
  if (credential->source.words.count == 0)
    return err_set(err, EINVAL, "no source, and no preset of this name; add \"source\"");
  if (credential->bind.count == 0)
    return err_set(err, EINVAL, "bound to no host, so nobody would get the value; name hosts in \"bind\"");
  if (credential->inject == POLICY_INJECT_REPLACE && credential->env.count == 0 && credential->files.count == 0)
    return err_set(err, EINVAL,
                   "replaces a placeholder that stands nowhere; name a variable for it in \"env\" or a file in "
                   "\"file\", or write \"inject\": \"attach\"");
  if ((credential->place == POLICY_PLACE_PATH || credential->place == POLICY_PLACE_BODY) &&
      credential->inject != POLICY_INJECT_REPLACE)
    return err_set(err, EINVAL,
                   "inject: with \"place\": \"%s\" a value goes where the placeholder stands, and nowhere without one; "
                   "leave it out",
                   credential->place == POLICY_PLACE_PATH ? "path" : "body");
  if (credential_tool_is_run(&credential->source) && credential->source.timeout_ms == 0)
    credential->source.timeout_ms = TIMEOUT_MS;
  return check_words(credential, err);
}

/* The preset by name, where the entry does not say which, and what comes of it. */
static int complete(const struct credential_given *given, struct err *err, struct policy_credential *credential)
{
  const struct credential_preset *preset = NULL;
  int r = 0;

  if (!given->preset && credential_preset_find(span_of(credential->name)))
    r = credential_copy(credential->name, err, &credential->preset);
  if (r == 0 && credential->preset)
    preset = credential_preset_find(span_of(credential->preset));
  if (preset)
    r = fill_in(preset, given, err, credential);
  return r < 0 ? r : check_whole(credential, err);
}

int credential_read(const char *name, const struct doc *doc, struct err *err, struct policy_credential *ret_credential)
{
  MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
  struct err own = ERR_INIT;
  struct credential_given given = { false };
  int r;

  err = err ? err : &own;
  r = check_name(span_of(name), err);
  if (r == 0)
    r = credential_copy(name, err, &credential.name);
  if (r == 0 && doc->type != DOC_OBJECT)
    r = err_set(err, EINVAL, "%s where an object is wanted; write it in { }", doc_type_name(doc->type));
  for (size_t i = 0; r == 0 && i < doc->count; i++)
    r = credential_read_member(&doc->items[i], err, &given, &credential);
  if (r == 0)
    r = complete(&given, err, &credential);
  if (r < 0)
    return r;
  *ret_credential = credential;
  credential = (struct policy_credential){ 0 };
  return 0;
}

int credential_parse(const char *name, const char *text, struct err *err, struct policy_credential *ret_credential)
{
  doc_autofree struct doc *doc = NULL;
  int r = doc_parse("credential", span_of(text), err, &doc);

  return r < 0 ? r : credential_read(name, doc, err, ret_credential);
}

static int read_variables(struct span names, struct err *err, struct policy_source *source)
{
  struct span name;
  int r = 0;

  while (r == 0 && span_split(&names, ',', &name)) {
    mem_autofree char *word = mem_strndup(name.ptr, name.len);

    r = word ? credential_set_source(POLICY_SOURCE_ENV, word, err, source) : OUT_OF_MEMORY(err);
  }
  return r;
}

/* KIND:REST of an option. */
static int read_option_source(struct span text, struct err *err, struct policy_source *source)
{
  size_t colon = span_find(text, ':');
  struct span kind = span_sub(text, 0, colon);
  struct span rest = span_sub(text, colon + 1, text.len);
  mem_autofree char *word = mem_strndup(rest.ptr, rest.len);
  struct span part;
  int r;

  if (!word)
    return OUT_OF_MEMORY(err);
  if (colon < text.len && rest.len > 0 && span_equal_str(kind, "env"))
    return read_variables(rest, err, source);
  if (colon < text.len && rest.len > 0 && span_equal_str(kind, "file"))
    return credential_set_source(POLICY_SOURCE_FILE, word, err, source);
  if (colon < text.len && span_equal_str(kind, "exec")) {
    source->kind = POLICY_SOURCE_EXEC;
    while (span_split(&rest, ' ', &part))
      if (part.len > 0 && strv_add_span(&source->words, part) < 0)
        return OUT_OF_MEMORY(err);
    if (source->words.count > 0)
      return 0;
  }
  r = colon < text.len ? credential_tool_read_option(kind, rest, err, source) : -ENOENT;
  if (r != -ENOENT)
    return r;
  return err_set(err, EINVAL,
                 "not a source; write env:NAME, file:PATH, exec:COMMAND, secret-service:ATTRIBUTE=VALUE,..., "
                 "op:REFERENCE or pass:NAME");
}

int credential_read_option(struct span text, struct err *err, struct policy_credential *ret_credential)
{
  MEM_CLEANUP(credential_clear) struct policy_credential credential = { 0 };
  size_t equals = span_find(text, '=');
  struct span name = span_sub(text, 0, equals);
  struct credential_given given = { .source = equals < text.len };
  int r = check_name(name, err);

  if (r == 0 && !credential_preset_find(name))
    return credential_no_preset(name, true, err);
  if (r == 0)
    credential.name = mem_strndup(name.ptr, name.len);
  if (r == 0 && !credential.name)
    r = OUT_OF_MEMORY(err);
  if (r == 0 && given.source)
    r = read_option_source(span_sub(text, equals + 1, text.len), err, &credential.source);
  if (r == 0)
    r = complete(&given, err, &credential);
  if (r < 0)
    return r;
  *ret_credential = credential;
  credential = (struct policy_credential){ 0 };
  return 0;
}

/* The header that is set, or NULL for a parameter. */
static const char *header_of(const struct policy_credential *credential)
{
  switch (credential->place) {
  case POLICY_PLACE_BEARER:
  case POLICY_PLACE_BASIC:
  case POLICY_PLACE_SIGV4:
    return "authorization";
  case POLICY_PLACE_HEADER:
    return credential->place_name;
  case POLICY_PLACE_QUERY:
  case POLICY_PLACE_PATH:
  case POLICY_PLACE_BODY:
    break;
  }
  return NULL;
}

bool credential_clashes(const struct policy_credential *a, const struct policy_credential *b)
{
  const char *header = header_of(a);
  const char *other = header_of(b);

  if (a->inject == POLICY_INJECT_REPLACE || b->inject == POLICY_INJECT_REPLACE)
    return false;
  if (header && other ? !span_equal_nocase(span_of(header), span_of(other))
                      : header || other || strcmp(a->place_name, b->place_name) != 0)
    return false;
  for (size_t i = 0; i < a->bind.count; i++)
    for (size_t j = 0; j < b->bind.count; j++)
      if (rule_overlaps(&a->bind.items[i], &b->bind.items[j]))
        return true;
  return false;
}
