#include "config.h"

#include "policy/credential_member.h"

#include "base/num.h"
#include "policy/credential_tool.h"
#include "policy/limits.h"
#include "policy/reserved.h"
#include "policy/rule.h"
#include "policy/value.h"

#include <errno.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

#define CREDENTIAL_KINDS "env, file, exec, secretService, op and pass"

int credential_copy(const char *text, struct err *err, char **ret_copy)
{
  *ret_copy = mem_strndup(text, strlen(text));
  return *ret_copy ? 0 : OUT_OF_MEMORY(err);
}

int credential_no_preset(struct span name, bool option, struct err *err)
{
  buf_autofree struct buf names = BUF_INIT(256);

  for (const struct credential_preset *preset = credential_presets(); preset->name; preset++)
    buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", preset->name);
  return err_set(err, EINVAL, "no preset \"%.*s\"; the presets are %s%s", (int)(name.len > 64 ? 64 : name.len),
                 name.ptr, names.data ? names.data : "none",
                 option ? "; a login of another service is described in a policy file" : "");
}

static int read_preset(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  if (doc->type == DOC_NULL)
    return 0;
  if (doc->type != DOC_STRING)
    return err_set(err, EINVAL, "%s where a name is wanted", doc_type_name(doc->type));
  if (!credential_preset_find(span_of(doc->text)))
    return credential_no_preset(span_of(doc->text), false, err);
  return credential_copy(doc->text, err, &credential->preset);
}

/* What a source in a file or an option names. */
int credential_set_source(enum policy_source_kind kind, const char *word, struct err *err, struct policy_source *source)
{
  mem_autofree char *path = NULL;
  int r = 0;

  if (kind == POLICY_SOURCE_ENV) {
    r = value_check_env_name(span_of(word), false, err);
  } else if (kind == POLICY_SOURCE_FILE) {
    r = value_file(word[0] == '/' || word[0] == '~' ? word : "", false, err, &path);
    word = path;
  }
  if (r < 0)
    return r;
  source->kind = kind;
  return strv_add(&source->words, word) < 0 ? OUT_OF_MEMORY(err) : 0;
}

static int read_words(const struct doc *doc, struct err *err, struct policy_source *source)
{
  if (doc->type != DOC_ARRAY || doc->count == 0)
    return err_set(err, EINVAL, "not a list with a program in it; write [\"PROGRAM\", \"ARGUMENT\"...]");
  source->kind = POLICY_SOURCE_EXEC;
  for (size_t i = 0; i < doc->count; i++) {
    if (doc->items[i].type != DOC_STRING || (i == 0 && doc->items[i].text[0] == '\0'))
      return err_set(err, EINVAL, "not a list of strings; write [\"PROGRAM\", \"ARGUMENT\"...]");
    if (strv_add(&source->words, doc->items[i].text) < 0)
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

static int read_variables(const struct doc *doc, struct err *err, struct policy_source *source)
{
  int r = doc->count > 0 ? 0 : err_set(err, EINVAL, "a list without a variable in it; name one");

  for (size_t i = 0; r == 0 && i < doc->count; i++)
    r = doc->items[i].type == DOC_STRING ? credential_set_source(POLICY_SOURCE_ENV, doc->items[i].text, err, source)
                                         : err_set(err, EINVAL, "not a variable's name, or a list of them");
  return r;
}

static int read_time(const struct doc *doc, struct err *err, uint64_t *ret_ms)
{
  if ((doc->type != DOC_STRING && doc->type != DOC_NUMBER) || num_parse_duration(span_of(doc->text), ret_ms) < 0)
    return err_set(err, EINVAL, "not a time; write seconds, or a time such as 10s or 5m");
  return 0;
}

static int read_source_member(const struct doc *doc, struct err *err, struct policy_source *source)
{
  bool kind = strcmp(doc->name, "env") == 0 || strcmp(doc->name, "file") == 0 || strcmp(doc->name, "exec") == 0;
  bool time = strcmp(doc->name, "timeout") == 0 || strcmp(doc->name, "ttl") == 0;
  struct policy_source tool = { .kind = POLICY_SOURCE_ENV };
  int r;

  if (!kind && !time) {
    r = credential_tool_read(doc, err, &tool);
    if (r == 0 && source->words.count == 0) {
      source->kind = tool.kind;
      source->words = tool.words;
      return 0;
    }
    strv_free(&tool.words);
    if (r == -ENOENT)
      return err_set(err, EINVAL, "unknown member; a source has one of " CREDENTIAL_KINDS ", and timeout and ttl");
    if (r < 0)
      return r;
    kind = true;
  }
  if (kind && source->words.count > 0)
    return err_set(err, EINVAL, "another source; write one of " CREDENTIAL_KINDS);
  if (kind && doc->name[1] == 'x')
    return read_words(doc, err, source);
  if (kind && doc->name[1] == 'n' && doc->type == DOC_ARRAY)
    return read_variables(doc, err, source);
  if (kind && doc->type != DOC_STRING)
    return err_set(err, EINVAL, "%s where a string is wanted", doc_type_name(doc->type));
  if (kind)
    return credential_set_source(doc->name[0] == 'e' ? POLICY_SOURCE_ENV : POLICY_SOURCE_FILE, doc->text, err, source);
  if (strcmp(doc->name, "timeout") == 0)
    return read_time(doc, err, &source->timeout_ms);
  return read_time(doc, err, &source->ttl_ms);
}

static int read_source(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  struct policy_source *source = &credential->source;

  if (doc->type != DOC_OBJECT)
    return err_set(err, EINVAL,
                   "%s where an object is wanted; write {\"env\": \"NAME\"}, {\"file\": \"PATH\"} or "
                   "{\"exec\": [\"PROGRAM\"]}",
                   doc_type_name(doc->type));
  for (size_t i = 0; i < doc->count; i++) {
    int r = read_source_member(&doc->items[i], err, source);

    if (r == -EINVAL)
      err_wrap(err, "%s", doc->items[i].name);
    if (r < 0)
      return r;
  }
  if (source->words.count == 0)
    return err_set(err, EINVAL, "names nothing; write one of " CREDENTIAL_KINDS);
  if (source->timeout_ms > 0 && !credential_tool_is_run(source))
    return err_set(err, EINVAL, "timeout: goes with a program; leave it out");
  if (source->ttl_ms > 0 && source->kind == POLICY_SOURCE_ENV)
    return err_set(err, EINVAL, "ttl: a variable does not change; leave it out");
  return 0;
}

/* A credential goes to whom it names, and to nobody else (F71). */
static int check_bound(const struct policy_rule *rule, struct err *err)
{
  enum addr_class class;

  switch (rule->kind) {
  case POLICY_HOST_SUBDOMAINS:
    return 0;
  case POLICY_HOST_NAME:
    if (!host_is_subdomain(span_of(rule->name), SPAN("localhost")))
      return 0;
    break;
  case POLICY_HOST_ANY:
    return err_set(err, EINVAL, "every host would get the value; name those that are to have it");
  case POLICY_HOST_LOCALHOST:
    break;
  case POLICY_HOST_PREFIX:
    if (!addr_prefix_is_single(&rule->prefix))
      return err_set(err, EINVAL, "a whole network would get the value; name the addresses that are to have it");
    class = addr_classify(&rule->prefix.addr);
    if (class != ADDR_LOOPBACK && class != ADDR_UNSPECIFIED)
      return 0;
    break;
  }
  return err_set(err, EINVAL,
                 "values go to hosts that prove by TLS who they are, and not to the loopback; "
                 "name a host, or pass the variable on with env.pass");
}

int credential_add_host(const char *text, struct err *err, struct policy_rules *bind)
{
  struct policy_rule rule = { 0 };
  int r = mem_grow(&bind->items, bind->count, &bind->cap, sizeof *bind->items, LIMITS_CREDENTIAL_HOSTS);

  if (r == -E2BIG)
    return err_set(err, EINVAL, "more than %d hosts; use a wildcard, or make it two credentials",
                   LIMITS_CREDENTIAL_HOSTS);
  r = r < 0 ? OUT_OF_MEMORY(err) : rule_parse(span_of(text), RULE_BIND, err, &rule);
  if (r == 0)
    r = check_bound(&rule, err);
  for (size_t i = 0; r == 0 && i < bind->count; i++)
    if (strcmp(bind->items[i].text, rule.text) == 0)
      r = err_set(err, EINVAL, "stands there twice; remove one");
  if (r < 0) {
    rule_free(&rule);
    return r;
  }
  bind->items[bind->count++] = rule;
  return 0;
}

/* *ret_member is the member that is wrong, where one is. */
static int read_host(const struct doc *doc, struct err *err, struct policy_rules *bind, const char **ret_member)
{
  const struct doc *host = doc->type == DOC_OBJECT ? doc_member(doc, "host") : doc;

  *ret_member = NULL;
  for (size_t i = 0; doc->type == DOC_OBJECT && i < doc->count; i++) {
    *ret_member = doc->items[i].name;
    if (strcmp(*ret_member, "host") != 0)
      return err_set(err, EINVAL, "a credential is bound to a host as a whole; leave it out");
  }
  if (!host || host->type != DOC_STRING)
    return err_set(err, EINVAL, "not a host; write \"HOST[:PORTS]\" or {\"host\": \"HOST[:PORTS]\"}");
  return credential_add_host(host->text, err, bind);
}

static int read_bind(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  if (doc->type != DOC_ARRAY)
    return err_set(err, EINVAL, "bind: %s where a list is wanted; write it in [ ]", doc_type_name(doc->type));
  for (size_t i = 0; i < doc->count; i++) {
    const char *member;
    int r = read_host(&doc->items[i], err, &credential->bind, &member);

    if (r == -EINVAL)
      return err_wrap(err, "bind[%zu]%s%s", i, member ? "." : "", member ? member : "");
    if (r < 0)
      return r;
  }
  return 0;
}

int credential_add_env(const char *name, struct err *err, struct strv *env)
{
  int r = value_check_env_name(span_of(name), false, err);

  if (r < 0)
    return r;
  if (reserved_is_variable(span_of(name)))
    return err_set(err, EINVAL,
                   "%s is set by " SBX_NAME " itself, or decides what code programs run; name the variable that the "
                   "login is read from",
                   name);
  if (strv_contains(env, name))
    return err_set(err, EINVAL, "%s stands there twice; remove one", name);
  return strv_add(env, name) < 0 ? OUT_OF_MEMORY(err) : 0;
}

static int read_env(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  if (doc->type == DOC_STRING)
    return credential_add_env(doc->text, err, &credential->env);
  if (doc->type != DOC_ARRAY || doc->count > LIMITS_CREDENTIAL_ENV)
    return err_set(err, EINVAL, "not a variable's name, or a list of at most %d of them", LIMITS_CREDENTIAL_ENV);
  for (size_t i = 0; i < doc->count; i++) {
    int r = doc->items[i].type == DOC_STRING ? credential_add_env(doc->items[i].text, err, &credential->env)
                                             : err_set(err, EINVAL, "not a variable's name");
    if (r < 0)
      return r;
  }
  return 0;
}

static int add_file(const char *name, struct err *err, struct strv *files)
{
  mem_autofree char *path = NULL;
  int r = value_file(name[0] == '/' || name[0] == '~' ? name : "", false, err, &path);

  if (r < 0)
    return r;
  if (strv_contains(files, path))
    return err_set(err, EINVAL, "%s stands there twice; remove one", path);
  return strv_add(files, path) < 0 ? OUT_OF_MEMORY(err) : 0;
}

static int read_file(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  if (doc->type == DOC_STRING)
    return add_file(doc->text, err, &credential->files);
  if (doc->type != DOC_ARRAY || doc->count > LIMITS_CREDENTIAL_FILES)
    return err_set(err, EINVAL, "not a path, or a list of at most %d of them", LIMITS_CREDENTIAL_FILES);
  for (size_t i = 0; i < doc->count; i++) {
    int r = doc->items[i].type == DOC_STRING ? add_file(doc->items[i].text, err, &credential->files)
                                             : err_set(err, EINVAL, "not a path");
    if (r < 0)
      return r;
  }
  return 0;
}

static int read_inject(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  static const struct {
    const char *word;
    enum policy_inject inject;
  } words[] = { { "auto", POLICY_INJECT_REPLACE },
                { "replace", POLICY_INJECT_REPLACE },
                { "attach", POLICY_INJECT_ATTACH },
                { "attach-if-absent", POLICY_INJECT_ATTACH_IF_ABSENT } };

  for (size_t i = 0; doc->type == DOC_STRING && i < MEM_COUNT(words); i++) {
    if (strcmp(doc->text, words[i].word) == 0) {
      credential->inject = words[i].inject;
      return 0;
    }
  }
  return err_set(err, EINVAL, "unknown word; write auto, replace, attach or attach-if-absent");
}

/* A token (RFC 9110, 5.6.2) that names neither where the request goes, nor where it ends (F71). */
static int check_header(const char *name, struct err *err)
{
  static const char *const refused[] = {
    "host",   "connection", "content-length", "transfer-encoding", "upgrade",
    "expect", "te",         "trailer",        "keep-alive",        "content-type"
  };
  struct span text = span_of(name);
  bool good = text.len > 0 && text.len <= LIMITS_CREDENTIAL_NAME_BYTES;

  for (size_t i = 0; i < text.len; i++)
    good &= span_is_alpha(name[i]) || span_is_digit(name[i]) || strchr("!#$%&'*+-.^_`|~", name[i]);
  if (!good)
    return err_set(err, EINVAL, "not a header's name; write one such as x-api-key");
  for (size_t i = 0; i < MEM_COUNT(refused); i++)
    good &= !span_equal_nocase(text, span_of(refused[i]));
  if (!good || span_equal_nocase(span_sub(text, 0, 6), SPAN("proxy-")))
    return err_set(err, EINVAL, "a header that is no place for a value; write another");
  return 0;
}

/* Bytes that need no encoding (RFC 3986, 2.3). */
static int check_parameter(const char *name, struct err *err)
{
  struct span text = span_of(name);
  bool good = text.len > 0 && text.len <= LIMITS_CREDENTIAL_NAME_BYTES;

  for (size_t i = 0; i < text.len; i++)
    good &= span_is_alpha(name[i]) || span_is_digit(name[i]) || strchr("-._~", name[i]);
  return good ? 0 : err_set(err, EINVAL, "not a parameter's name; use letters, digits, '-', '.', '_' and '~'");
}

/* A user-id of RFC 7617, which may be empty. */
static int check_user(const char *name, struct err *err)
{
  struct span text = span_of(name);
  bool good = text.len <= LIMITS_CREDENTIAL_NAME_BYTES;

  for (size_t i = 0; i < text.len; i++)
    good &= name[i] > ' ' && name[i] != 0x7f && name[i] != ':';
  return good ? 0 : err_set(err, EINVAL, "not a user of Basic; write visible ASCII without ':'");
}

static int read_place(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  static const struct {
    const char *name;
    enum policy_place place;
    int (*check)(const char *name, struct err *err);
  } places[] = { { "basic", POLICY_PLACE_BASIC, check_user },
                 { "header", POLICY_PLACE_HEADER, check_header },
                 { "query", POLICY_PLACE_QUERY, check_parameter } };
  static const struct {
    const char *word;
    enum policy_place place;
  } words[] = { { "bearer", POLICY_PLACE_BEARER },
                { "path", POLICY_PLACE_PATH },
                { "body", POLICY_PLACE_BODY },
                { "sigv4", POLICY_PLACE_SIGV4 } };

  for (size_t i = 0; doc->type == DOC_STRING && i < MEM_COUNT(words); i++) {
    if (strcmp(doc->text, words[i].word) == 0) {
      credential->place = words[i].place;
      return 0;
    }
  }
  for (size_t i = 0; doc->type == DOC_OBJECT && doc->count == 1 && i < MEM_COUNT(places); i++) {
    const struct doc *name = &doc->items[0];

    if (strcmp(name->name, places[i].name) != 0 || name->type != DOC_STRING)
      continue;
    if (places[i].check(name->text, err) < 0)
      return err_wrap(err, "%s", name->name);
    credential->place = places[i].place;
    return credential_copy(name->text, err, &credential->place_name);
  }
  return err_set(err, EINVAL,
                 "not a place; write \"bearer\", {\"basic\": \"USER\"}, {\"header\": \"NAME\"}, "
                 "{\"query\": \"NAME\"}, \"path\", \"body\" or \"sigv4\"");
}

static int read_scrub(const struct doc *doc, struct err *err, struct policy_credential *credential)
{
  bool body = doc->type == DOC_STRING && strcmp(doc->text, "body") == 0;

  if (!body && !(doc->type == DOC_STRING && strcmp(doc->text, "head") == 0))
    return err_set(err, EINVAL, "not a part of responses; write \"head\" or \"body\"");
  credential->scrub = body ? POLICY_SCRUB_BODY : POLICY_SCRUB_HEAD;
  return 0;
}

int credential_read_member(const struct doc *doc, struct err *err, struct credential_given *given,
                           struct policy_credential *credential)
{
  const struct {
    const char *name;
    bool *given;
    int (*read)(const struct doc *doc, struct err *err, struct policy_credential *credential);
  } members[] = {
    { "preset", &given->preset, read_preset }, { "source", &given->source, read_source },
    { "env", &given->env, read_env },          { "file", &given->file, read_file },
    { "inject", &given->inject, read_inject }, { "place", &given->place, read_place },
    { "scrub", &given->scrub, read_scrub },
  };
  int r = -ENOENT;

  if (strcmp(doc->name, "bind") == 0) {
    given->bind = true;
    return read_bind(doc, err, credential);
  }
  for (size_t i = 0; r == -ENOENT && i < MEM_COUNT(members); i++) {
    if (strcmp(doc->name, members[i].name) == 0) {
      *members[i].given = true;
      r = members[i].read(doc, err, credential);
    }
  }
  if (r == -ENOENT)
    r = err_set(err, EINVAL,
                "unknown member; a credential has preset, source, bind, env, file, inject, place and scrub");
  return r == -EINVAL ? err_wrap(err, "%s", doc->name) : r;
}
