#include "proxy/inject_place.h"

#include "base/base64.h"
#include "policy/inject_find.h"

/* Fields that nothing is put into: they frame or route the message, or are this hop's. */
static const char *const protected_fields[] = {
  "connection",          "content-length",   "expect", "host",    "http2-settings", "keep-alive",
  "proxy-authenticate",  "proxy-connection", "te",     "trailer", "upgrade",        "transfer-encoding",
  "proxy-authorization",
};

/* Fields that hold a credential whatever the service. */
static const char *const credential_fields[] = {
  "api-key",   "authorization", "deploy-token", "job-token",    "private-token",  "x-access-token",
  "x-api-key", "x-api-token",   "x-auth-key",   "x-auth-token", "x-goog-api-key", "x-vault-token",
};

/* Fields that clients fill by themselves. */
static const char *const echoed_fields[] = { "cookie", "referer" };

/* URLs that carry a signature of their own: parameters of the query, all of a row (F75). */
static const char *const signatures[][3] = {
  { "x-amz-signature" },
  { "x-goog-signature" },
  { "sig", "se", "sv" }, /* a shared access signature */
  { "signature", "awsaccesskeyid" },
  { "signature", "googleaccessid" },
  { "signature", "key-pair-id" },
};

static bool is_one_of(struct span name, const char *const *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (span_equal_nocase(name, span_of(list[i])))
      return true;
  return false;
}

struct span inject_path_of(struct span target)
{
  return span_sub(target, 0, span_find(target, '?'));
}

struct span inject_query_of(struct span target)
{
  size_t mark = span_find(target, '?');

  return mark < target.len ? span_sub(target, mark + 1, target.len) : (struct span){ .ptr = NULL, .len = 0 };
}

bool inject_next_parameter(struct span *rest, struct inject_parameter *ret_parameter)
{
  if (!span_split(rest, '&', &ret_parameter->all))
    return false;
  ret_parameter->name = span_sub(ret_parameter->all, 0, span_find(ret_parameter->all, '='));
  ret_parameter->value = span_sub(ret_parameter->all, ret_parameter->name.len + 1, ret_parameter->all.len);
  return true;
}

bool inject_is_named(struct span text, const char *name)
{
  size_t at = 0;

  while (at < text.len && *name) {
    char byte;

    at += inject_unescape(text, at, &byte);
    if (span_lower(byte) != span_lower(*name++))
      return false;
  }
  return at == text.len && !*name;
}

static bool has_parameter(struct span target, const char *name)
{
  struct span rest = inject_query_of(target);
  struct inject_parameter parameter;

  while (inject_next_parameter(&rest, &parameter))
    if (inject_is_named(parameter.name, name))
      return true;
  return false;
}

static bool is_signed(struct span target)
{
  for (size_t i = 0; i < MEM_COUNT(signatures); i++) {
    bool all = true;

    for (size_t j = 0; j < MEM_COUNT(signatures[i]) && signatures[i][j]; j++)
      all = all && has_parameter(target, signatures[i][j]);
    if (all)
      return true;
  }
  return false;
}

bool inject_is_place(const struct policy_credential *credential, struct span name)
{
  if (credential->place == POLICY_PLACE_SIGV4 || is_one_of(name, protected_fields, MEM_COUNT(protected_fields)))
    return false;
  return is_one_of(name, credential_fields, MEM_COUNT(credential_fields)) ||
         (credential->place == POLICY_PLACE_HEADER && span_equal_nocase(name, span_of(credential->place_name)));
}

bool inject_is_place_parameter(const struct policy_credential *credential, struct span name)
{
  return credential->place == POLICY_PLACE_QUERY && inject_is_named(name, credential->place_name);
}

bool inject_attaches(const struct policy_credential *credential, const struct http_head *head)
{
  bool query = credential->place == POLICY_PLACE_QUERY;

  if (credential->inject == POLICY_INJECT_REPLACE || is_signed(head->target) ||
      (query && span_equal_str(head->target, "*")))
    return false;
  if (credential->inject == POLICY_INJECT_ATTACH)
    return true;
  /* A request that says who it is in its own way stays as it is. */
  return !http_head_find(head, "authorization", NULL) &&
         !(credential->place == POLICY_PLACE_HEADER && http_head_find(head, credential->place_name, NULL)) &&
         !(query && has_parameter(head->target, credential->place_name));
}

bool inject_is_traced(struct span method)
{
  return span_equal_nocase(method, SPAN("trace")) || span_equal_nocase(method, SPAN("track"));
}

bool inject_is_echoed(struct span name)
{
  return is_one_of(name, echoed_fields, MEM_COUNT(echoed_fields));
}

bool inject_read_basic(struct span value, struct span *ret_scheme, struct span *ret_token, struct buf *plain)
{
  size_t begin = sizeof "Basic" - 1;

  if (!span_equal_nocase(span_sub(value, 0, begin), SPAN("basic")))
    return false;
  while (begin < value.len && value.ptr[begin] == ' ')
    begin++;
  *ret_scheme = span_sub(value, 0, begin);
  *ret_token = span_sub(value, begin, value.len);
  return base64_decode(*ret_token, plain) == 0 && !buf_error(plain);
}
