/* Theory of operation
 *
 * A pattern is matched by parts, on two levels that work alike. Within a part '*' is the only thing that can take
 * more than one byte, over the whole path "**" the only thing that can take more than one part. On a mismatch it is
 * enough to go back to the last such star and let it take one more: an earlier star could only take away from what
 * follows, so nothing is lost. Hence no recursion, and no pattern that takes exponential time.
 */
#include "policy/fspath.h"

#include "base/buf.h"
#include "policy/limits.h"

#include <errno.h>
#include <stdint.h>

bool fspath_is_pattern(const char *text)
{
  return strpbrk(text, "*?") != NULL;
}

static int fspath_check(struct span text, bool pattern, struct err *err)
{
  if (text.len == 0)
    return err_set(err, EINVAL, "empty path; write \".\" for the workspace");
  if (text.len >= LIMITS_PATH_BYTES)
    return err_set(err, EINVAL, "path of %zu bytes; at most %d are allowed", text.len, LIMITS_PATH_BYTES - 1);
  for (size_t i = 0; i < text.len; i++) {
    unsigned char byte = (unsigned char)text.ptr[i];
    if (byte < 0x20 || byte == 0x7f)
      return err_set(err, EINVAL, "path with a control byte (0x%02x); rename the file", byte);
    if (!pattern && (byte == '*' || byte == '?'))
      return err_set(err, EINVAL,
                     "a pattern where a path is wanted; patterns work in filesystem.hide only, name each "
                     "path or their directory");
  }
  return 0;
}

/* Appends the parts of text to out, which ends in '/' or is empty. */
static int fspath_append_parts(struct span text, struct err *err, struct buf *out)
{
  struct span part;
  bool first = true;

  while (span_split(&text, '/', &part)) {
    if (part.len == 0 || span_equal_str(part, "."))
      continue;
    if (span_equal_str(part, ".."))
      return err_set(err, EINVAL, "path with a \"..\" part; write the path that it leads to");
    if (span_find(part, '*') < part.len && !span_equal_str(part, "**")) {
      for (size_t i = 0; i + 1 < part.len; i++)
        if (part.ptr[i] == '*' && part.ptr[i + 1] == '*')
          return err_set(err, EINVAL, "\"**\" beside other bytes; it stands for whole parts only, as in **/name");
    }
    if (!first)
      buf_append_byte(out, '/');
    first = false;
    buf_append(out, part);
  }
  return 0;
}

int fspath_parse(struct span text, bool pattern, struct err *err, char **ret_text)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_PATH_BYTES);
  struct span rest = text;
  int r = fspath_check(text, pattern, err);

  if (r < 0)
    return r;
  if (text.ptr[0] == '/') {
    buf_append_byte(&out, '/');
  } else if (text.ptr[0] == '~') {
    struct span user = span_sub(text, 1, span_find(text, '/') - 1);
    if (user.len > 0)
      return err_set(err, EINVAL,
                     "\"~%.*s\": another user's home; write its absolute path (or ./~... for a file of that "
                     "name)",
                     (int)(user.len > 64 ? 64 : user.len), user.ptr);
    rest = span_sub(text, 1, text.len);
    buf_append_str(&out, "~/");
  }
  /* "./~x" is a file below the workspace whose name begins with '~': it keeps the "./" that says so. */
  size_t start = out.len;
  r = fspath_append_parts(rest, err, &out);
  if (r < 0)
    return r;
  if (out.len == 0)
    buf_append_byte(&out, '.');
  else if (start == 2 && out.len == 2)
    out.data[out.len = 1] = '\0';
  if (start == 0 && buf_error(&out) == 0 && out.data[0] == '~') {
    buf_autofree struct buf dotted = BUF_INIT(LIMITS_PATH_BYTES);
    buf_printf(&dotted, "./%s", out.data);
    struct buf swap = out;
    out = dotted;
    dotted = swap;
  }
  if (buf_error(&out) == -E2BIG)
    return err_set(err, EINVAL, "path is too long");
  char *result = buf_steal(&out);
  if (!result)
    return err_set(err, ENOMEM, "out of memory");
  *ret_text = result;
  return 0;
}

/* Where text starts from, and the parts that follow there. */
static const char *fspath_root(const char *text, const char *home, const char *workspace, struct span *ret_parts)
{
  if (text[0] == '/') {
    *ret_parts = span_of(text + 1);
    return "/";
  }
  if (text[0] == '~') {
    *ret_parts = span_of(text[1] == '/' ? text + 2 : text + 1);
    return home;
  }
  if (strcmp(text, ".") == 0)
    *ret_parts = span_of("");
  else
    *ret_parts = span_of(text[0] == '.' && text[1] == '/' ? text + 2 : text);
  return workspace;
}

static bool fspath_has_wildcard(struct span part)
{
  return span_find(part, '*') < part.len || span_find(part, '?') < part.len;
}

int fspath_split(const char *text, const char *home, const char *workspace, char **ret_base, struct span *ret_rest)
{
  buf_autofree struct buf base = BUF_INIT(3 * LIMITS_PATH_BYTES);
  struct span parts;
  struct span part;
  struct span rest;
  char *result;

  buf_append_str(&base, fspath_root(text, home, workspace, &parts));
  for (rest = parts; rest.len > 0; parts = rest) {
    if (!span_split(&rest, '/', &part) || fspath_has_wildcard(part))
      break;
    if (base.len == 0 || base.data[base.len - 1] != '/')
      buf_append_byte(&base, '/');
    buf_append(&base, part);
    if (!rest.ptr)
      rest = span_of("");
  }
  result = buf_steal(&base);
  if (!result)
    return -ENOMEM;
  *ret_base = result;
  *ret_rest = parts;
  return 0;
}

/* One part of a path with one part of a pattern. */
static bool fspath_glob_part(struct span pattern, struct span part)
{
  size_t p = 0;
  size_t s = 0;
  size_t star = SIZE_MAX;
  size_t star_from = 0;

  while (s < part.len) {
    if (p < pattern.len && pattern.ptr[p] == '*') {
      star = p++;
      star_from = s;
    } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == part.ptr[s])) {
      p++;
      s++;
    } else if (star != SIZE_MAX) {
      p = star + 1;
      s = ++star_from;
    } else {
      return false;
    }
  }
  while (p < pattern.len && pattern.ptr[p] == '*')
    p++;
  return p == pattern.len;
}

bool fspath_glob(struct span pattern, struct span path)
{
  struct span star_pattern = { NULL, 0 };
  struct span star_path = { NULL, 0 };
  struct span pattern_part;
  struct span path_part;

  while (path.ptr) {
    struct span pattern_rest = pattern;
    struct span path_rest = path;
    bool more = span_split(&pattern_rest, '/', &pattern_part);
    if (more && span_equal_str(pattern_part, "**")) {
      pattern = star_pattern = pattern_rest;
      star_path = path;
      if (!pattern.ptr)
        return true;
      continue;
    }
    span_split(&path_rest, '/', &path_part);
    if (more && fspath_glob_part(pattern_part, path_part)) {
      pattern = pattern_rest;
      path = path_rest;
      continue;
    }
    if (!star_path.ptr)
      return false;
    span_split(&star_path, '/', &path_part);
    pattern = star_pattern;
    path = star_path;
  }
  while (span_split(&pattern, '/', &pattern_part))
    if (!span_equal_str(pattern_part, "**"))
      return false;
  return true;
}

/* The part of path below the directory base; false when it is elsewhere. base itself gives the empty span. */
static bool fspath_below(const char *base, const char *path, struct span *ret_rest)
{
  size_t len = strlen(base);

  while (len > 0 && base[len - 1] == '/')
    len--;
  if (strncmp(base, path, len) != 0 || (path[len] != '/' && path[len] != '\0'))
    return false;
  *ret_rest = span_of(path[len] == '/' ? path + len + 1 : path + len);
  return true;
}

bool fspath_match(const char *text, const char *home, const char *workspace, const char *path)
{
  struct span parts;
  struct span rest;
  const char *root = fspath_root(text, home, workspace, &parts);

  if (path[0] != '/' || !fspath_below(root, path, &rest))
    return false;
  if (parts.len == 0 || rest.len == 0)
    return parts.len == rest.len;
  return fspath_glob(parts, rest);
}
