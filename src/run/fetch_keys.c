#include "config.h"

#include "run/fetch_keys.h"

#include "base/span.h"
#include "policy/doc.h"
#include "policy/limits.h"
#include "run/fetch.h"

#include <errno.h>

struct keys {
  struct span id;
  struct span secret;
  struct span token;
};

/* Whether text can be a word of a value, and stand where it will stand in a request. */
static bool is_word(struct span text, const char *refused)
{
  for (size_t i = 0; i < text.len; i++)
    if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || strchr(refused, text.ptr[i]))
      return false;
  return text.len > 0;
}

/* Names of the parts as the source has them, for messages. */
static int join(const struct keys *keys, const char *const names[3], struct err *err, struct secret *value)
{
  struct span parts[] = { keys->id, keys->secret, keys->token };
  size_t count = keys->token.len > 0 ? 3 : 2;
  size_t len = 0;

  for (size_t i = 0; i < count; i++) {
    if (parts[i].len == 0)
      return err_set(err, EINVAL, "%s is there without %s; name both", names[1 - i], names[i]);
    if (!is_word(parts[i], i == 0 ? "/,=" : ""))
      return err_set(err, EINVAL, "%s has a byte in it that none of its kind has", names[i]);
    len += parts[i].len + 1;
  }
  if (len - 1 > LIMITS_SECRET_BYTES)
    return err_set(err, EINVAL, "is larger than %d bytes", LIMITS_SECRET_BYTES);
  value->len = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0)
      value->bytes[value->len++] = ' ';
    memcpy(value->bytes + value->len, parts[i].ptr, parts[i].len);
    value->len += parts[i].len;
  }
  return 0;
}

/* As a value of one part is taken: white space at its end does not count. */
static struct span trim(struct span text)
{
  while (text.len > 0 && (text.ptr[text.len - 1] == '\r' || text.ptr[text.len - 1] == '\n'))
    text.len--;
  return span_trim(text);
}

static struct span variable(const struct strv *names, size_t index, const struct facts *facts)
{
  return index < names->count ? trim(span_of(facts_getenv(facts, names->items[index]))) : SPAN("");
}

/* The id and the secret key belong together. */
static int check_pair(const struct strv *names, const struct facts *facts, struct err *err)
{
  bool id = variable(names, 0, facts).len > 0;
  bool secret = variable(names, 1, facts).len > 0;

  if (id == secret)
    return 0;
  return err_set(err, EINVAL, "the variable %s is set and %s is not; set both, or name another source",
                 names->items[id ? 0 : 1], names->items[id ? 1 : 0]);
}

int fetch_keys_variables(const struct strv *names, const struct facts *facts, struct err *err, struct secret *value)
{
  const char *const shown[] = { names->items[0], names->items[1], names->count > 2 ? names->items[2] : "" };
  struct keys keys = { variable(names, 0, facts), variable(names, 1, facts), variable(names, 2, facts) };
  int r = check_pair(names, facts, err);

  if (r < 0)
    return r;
  if (keys.id.len == 0)
    return err_set(err, ENOENT, "the variables %s and %s are not set; set them, or name another source", shown[0],
                   shown[1]);
  return join(&keys, shown, err, value);
}

int fetch_keys_check(const struct policy *policy, const struct facts *facts, struct err *err)
{
  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];
    const struct strv *names = &credential->source.words;

    if (credential->source.kind == POLICY_SOURCE_ENV && names->count > 1 && check_pair(names, facts, err) < 0)
      return err_wrap(err, "credential %s", credential->name);
  }
  return 0;
}

static struct span string_of(const struct doc *doc, const char *name)
{
  const struct doc *member = doc_member(doc, name);

  return member && member->type == DOC_STRING ? span_of(member->text) : SPAN("");
}

/* The parser's own copies are beyond our reach; those of the tree are not. */
static int read_json(struct span text, struct err *err, struct secret *value, uint64_t *ret_valid_ms)
{
  static const char *const names[] = { "\"AccessKeyId\"", "\"SecretAccessKey\"", "\"SessionToken\"" };
  doc_autofree struct doc *doc = NULL;
  int r = doc_parse("output", text, NULL, &doc);
  struct keys keys = { 0 };

  if (r == 0 && doc->type == DOC_OBJECT)
    keys = (struct keys){ string_of(doc, "AccessKeyId"), string_of(doc, "SecretAccessKey"),
                          string_of(doc, "SessionToken") };
  if (keys.id.len == 0 && keys.secret.len == 0)
    r = err_set(err, EINVAL, "has no JSON with strings \"AccessKeyId\" and \"SecretAccessKey\"");
  else
    r = fetch_read_expiry(doc_member(doc, "Expiration"), "Expiration", err, ret_valid_ms);
  if (r == 0)
    r = join(&keys, names, err, value);
  for (size_t i = 0; doc && i < doc->count; i++) {
    if (doc->items[i].text)
      mem_wipe(doc->items[i].text, strlen(doc->items[i].text));
  }
  return r;
}

/* NAME = VALUE lines in sections; of the section [default] only. */
static int read_sections(struct span text, struct err *err, struct secret *value)
{
  static const char *const names[] = { "aws_access_key_id", "aws_secret_access_key", "aws_session_token" };
  struct keys keys = { SPAN(""), SPAN(""), SPAN("") };
  struct span *const parts[] = { &keys.id, &keys.secret, &keys.token };
  struct span line;
  bool ours = false;

  while (span_split(&text, '\n', &line)) {
    size_t equals = span_find(line, '=');
    struct span name = span_trim(span_sub(line, 0, equals));
    struct span rest = span_sub(line, equals + 1, line.len);

    line = trim(line);
    if (span_starts_with(line, SPAN("[")))
      ours = span_equal(line, SPAN("[default]"));
    for (size_t i = 0; ours && i < MEM_COUNT(names); i++)
      if (span_equal_nocase(name, span_of(names[i])))
        *parts[i] = trim(rest);
  }
  if (keys.id.len == 0 && keys.secret.len == 0)
    return err_set(err, EINVAL,
                   "has neither JSON with \"AccessKeyId\" and \"SecretAccessKey\", nor a section [default] with %s and "
                   "%s; see " SBX_POLICY_PAGE "(5)",
                   names[0], names[1]);
  return join(&keys, names, err, value);
}

int fetch_keys_text(struct span text, struct err *err, struct secret *value, uint64_t *ret_valid_ms)
{
  while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\n' || text.ptr[0] == '\t' || text.ptr[0] == '\r'))
    text = span_sub(text, 1, text.len);
  *ret_valid_ms = 0;
  return text.len > 0 && text.ptr[0] == '{' ? read_json(text, err, value, ret_valid_ms)
                                            : read_sections(text, err, value);
}
