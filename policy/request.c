#include "policy/request.h"

#include "policy/doc.h"

#include <errno.h>

/* tchar of RFC 9110, 5.6.2. */
static bool is_token_byte(char byte)
{
  return span_is_alpha(byte) || span_is_digit(byte) || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static int hex_digit(char byte)
{
  if (span_is_digit(byte))
    return byte - '0';
  byte = span_lower(byte);
  return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Why a byte of a decoded path cannot be told apart by all servers; NULL where it can. encoded: it stood as %XX. */
static const char *odd_byte(char byte, bool encoded)
{
  if ((unsigned char)byte < 0x20 || byte == 0x7f)
    return "a control byte in the path";
  if (byte == '\\')
    return "a backslash in the path, which some servers take for a slash";
  if (byte == ';')
    return "a semicolon in the path, from which on some servers read parameters";
  if (!encoded)
    return NULL;
  if (byte == '/')
    return "an encoded slash in the path, which some servers decode before they split it";
  if (byte == '%')
    return "an encoded percent sign in the path, which some servers decode twice";
  return byte == '?' || byte == '#' ? "an encoded '?' or '#' in the path" : NULL;
}

/* Decodes the byte at the front of *rest. NULL or the cause. */
static const char *take_byte(struct span *rest, char *ret_byte)
{
  char byte = rest->ptr[0];
  int high;
  int low;

  if ((unsigned char)byte <= 0x20 || (unsigned char)byte >= 0x7f)
    return "a byte in the path that has to be encoded";
  if (byte != '%') {
    *ret_byte = byte;
    *rest = span_sub(*rest, 1, rest->len);
    return odd_byte(byte, false);
  }
  high = rest->len > 2 ? hex_digit(rest->ptr[1]) : -1;
  low = rest->len > 2 ? hex_digit(rest->ptr[2]) : -1;
  if (high < 0 || low < 0)
    return "a percent sign in the path without two hexadecimal digits";
  *ret_byte = (char)(high << 4 | low);
  *rest = span_sub(*rest, 3, rest->len);
  return odd_byte(*ret_byte, true);
}

/* Why the parts between the slashes cannot be told apart; NULL where they can. The last part may be empty. */
static const char *odd_parts(struct span path)
{
  struct span rest = span_sub(path, 1, path.len);
  struct span part;

  while (span_split(&rest, '/', &part)) {
    if (part.len == 0 && rest.ptr)
      return "an empty part in the path (//), which some servers leave out";
    if (span_equal_str(part, ".") || span_equal_str(part, ".."))
      return "a part \".\" or \"..\" in the path";
  }
  return NULL;
}

int request_read_path(struct span path, struct request_path *ret_path, const char **ret_cause)
{
  struct span rest = path.len ? path : SPAN("/");
  const char *cause = NULL;

  ret_path->len = 0;
  if (span_equal_str(rest, "*")) {
    ret_path->bytes[ret_path->len++] = '*';
    return 0;
  }
  if (rest.ptr[0] != '/')
    cause = "a path that does not begin with a slash";
  while (!cause && rest.len) {
    if (ret_path->len == sizeof ret_path->bytes)
      cause = "a path that is too long to be judged";
    else
      cause = take_byte(&rest, &ret_path->bytes[ret_path->len++]);
  }
  if (!cause)
    cause = odd_parts((struct span){ ret_path->bytes, ret_path->len });
  if (!cause && !doc_is_utf8((struct span){ ret_path->bytes, ret_path->len }))
    cause = "encoded bytes in the path that are not UTF-8";
  if (!cause)
    return 0;
  *ret_cause = cause;
  return -EBADMSG;
}

int request_check_method(struct span method, struct err *err)
{
  static const char *const known[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE" };

  if (method.len == 0 || method.len > LIMITS_METHOD_BYTES)
    return err_set(err, EINVAL, "a method is 1 to %d bytes long", LIMITS_METHOD_BYTES);
  if (span_equal_str(method, "*"))
    return err_set(err, EINVAL, "\"*\" is no method; leave \"methods\" out for every method");
  for (size_t i = 0; i < method.len; i++)
    if (!is_token_byte(method.ptr[i]))
      return err_set(err, EINVAL, "not a method; write a word such as GET");
  if (span_equal_nocase(method, SPAN("CONNECT")))
    return err_set(err, EINVAL, "CONNECT makes a tunnel and is no request to a host; name what is asked for in it");
  for (size_t i = 0; i < MEM_COUNT(known); i++)
    if (span_equal_nocase(method, span_of(known[i])) && !span_equal_str(method, known[i]))
      return err_set(err, EINVAL, "methods are case-sensitive; write %s", known[i]);
  return 0;
}

int request_check_pattern(struct span pattern, struct err *err)
{
  const char *cause;

  if (pattern.len == 0 || pattern.ptr[0] != '/')
    return err_set(err, EINVAL, "a path begins with a slash; write /path, or /* for all");
  if (pattern.len > LIMITS_RULE_PATH_BYTES)
    return err_set(err, EINVAL, "a path of a rule has at most %d bytes", LIMITS_RULE_PATH_BYTES);
  for (size_t i = 0; i < pattern.len; i++) {
    char byte = pattern.ptr[i];
    if (byte == '?' || byte == '#')
      return err_set(err, EINVAL, "a query or fragment; rules are about the path, so leave out '%c' and what follows",
                     byte);
    if (byte == '%')
      return err_set(err, EINVAL, "an encoded byte; write the path decoded");
    cause = odd_byte(byte, false);
    if (cause)
      return err_set(err, EINVAL, "%s; such requests are refused, so leave it out", cause);
    if (byte == '*' && i + 1 < pattern.len && pattern.ptr[i + 1] == '*')
      return err_set(err, EINVAL, "'*' stands for slashes too; write it once");
  }
  cause = odd_parts(pattern);
  if (cause)
    return err_set(err, EINVAL, "%s; such requests are refused, so leave it out", cause);
  return 0;
}

bool request_matches_method(const struct policy_rule *rule, struct span method)
{
  bool head = span_equal_str(method, "HEAD");

  for (size_t i = 0; i < rule->methods.count; i++)
    if (span_equal_str(method, rule->methods.items[i]) || (head && strcmp(rule->methods.items[i], "GET") == 0))
      return true;
  return rule->methods.count == 0;
}

/* Goes back to the last '*' alone: what an earlier one could take, the last one can as well. */
static bool matches(struct span pattern, struct span text)
{
  size_t star = SIZE_MAX;
  size_t resume = 0;
  size_t p = 0;
  size_t t = 0;

  while (t < text.len) {
    if (p < pattern.len && pattern.ptr[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.len && pattern.ptr[p] == text.ptr[t]) {
      p++;
      t++;
    } else if (star != SIZE_MAX) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.len && pattern.ptr[p] == '*')
    p++;
  return p == pattern.len;
}

bool request_matches_path(const struct policy_rule *rule, const struct request_path *path, bool slash)
{
  struct span text = { path->bytes, path->len };
  struct span bare = { path->bytes, path->len - 1 };

  for (size_t i = 0; i < rule->paths.count; i++) {
    struct span pattern = span_of(rule->paths.items[i]);
    if (matches(pattern, text) || (slash && bare.len > 0 && span_ends_with(text, SPAN("/")) && matches(pattern, bare)))
      return true;
  }
  return rule->paths.count == 0;
}
