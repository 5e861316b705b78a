#include "base/buf.h"
#include "policy/fspath.h"
#include "policy/limits.h"
#include "unit/unit.h"

static void test_parse(void **state)
{
  static const struct {
    const char *text;
    const char *canonical; /* NULL: refused */
    bool pattern;
  } rows[] = {
    { "/opt/sdk", "/opt/sdk", false },
    { "/", "/", false },
    { "//", "/", false },
    { "//opt//sdk//", "/opt/sdk", false },
    { "/opt/./sdk/.", "/opt/sdk", false },
    { "~", "~", false },
    { "~/", "~", false },
    { "~/.cache/pip/", "~/.cache/pip", false },
    { "~/./x", "~/x", false },
    { ".", ".", false },
    { "./", ".", false },
    { "././/", ".", false },
    { "deploy/", "deploy", false },
    { "./deploy", "deploy", false },
    { "a/b", "a/b", false },
    { "./~x", "./~x", false }, /* a file of the workspace, not a user's home */
    { "./~", "./~", false },
    { "./~/x", "./~/x", false },
    { "a/~", "a/~", false },
    { ".git", ".git", false },
    { "...", "...", false },
    { "a b", "a b", false },
    { "[id].tsx", "[id].tsx", false },
    { "caf\xc3\xa9", "caf\xc3\xa9", false },
    { "**/.env", "**/.env", true },
    { "*.pem", "*.pem", true },
    { "~/*/key?", "~/*/key?", true },
    { "/srv/**/x", "/srv/**/x", true },
    { "**", "**", true },
    { "", NULL, false },
    { "..", NULL, false },
    { "../x", NULL, false },
    { "a/../b", NULL, false },
    { "/a/..", NULL, false },
    { "~/..", NULL, false },
    { "**/../x", NULL, true },
    { "~root", NULL, false },
    { "~root/x", NULL, false },
    { "a\nb", NULL, false },
    { "a\tb", NULL, false },
    { "a\x7f"
      "b",
      NULL, false },
    { "**/.env", NULL, false },
    { "*.pem", NULL, false },
    { "a?", NULL, false },
    { "a**", NULL, true },
    { "**a/x", NULL, true },
    { "***", NULL, true },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct err err = ERR_INIT;
    char *text = NULL;
    int r = fspath_parse(span_of(rows[i].text), rows[i].pattern, &err, &text);
    unit_assert_row((r == 0) == (rows[i].canonical != NULL), rows[i].text, "accepted or refused wrongly");
    if (r < 0) {
      unit_assert_row(r == -EINVAL && err.message[0], rows[i].text, "no reason");
      continue;
    }
    unit_assert_row(strcmp(text, rows[i].canonical) == 0, rows[i].text, text);
    free(text);
  }
}

static void test_parse_limits(void **state)
{
  char text[LIMITS_PATH_BYTES + 1];
  char *result = NULL;

  (void)state;
  memset(text, 'a', sizeof text);
  assert_int_equal(fspath_parse((struct span){ text, LIMITS_PATH_BYTES - 1 }, false, NULL, &result), 0);
  free(result);
  assert_int_equal(fspath_parse((struct span){ text, LIMITS_PATH_BYTES }, false, NULL, &result), -EINVAL);
  assert_int_equal(fspath_parse((struct span){ "a\0b", 3 }, false, NULL, &result), -EINVAL);
}

static void test_glob(void **state)
{
  static const struct {
    const char *pattern;
    const char *path;
    bool matches;
  } rows[] = {
    { ".env", ".env", true },
    { ".env", "a/.env", false },
    { "**/.env", ".env", true },
    { "**/.env", "a/.env", true },
    { "**/.env", "a/b/c/.env", true },
    { "**/.env", "a/.envx", false },
    { "**/.env", "a/.env/x", false },
    { "*.pem", "key.pem", true },
    { "*.pem", ".pem", true },
    { "*.pem", "a/key.pem", false },
    { "*", "a", true },
    { "*", "a/b", false },
    { "*/b", "a/b", true },
    { "a/*/c", "a/b/c", true },
    { "a/*/c", "a/b/b/c", false },
    { "a/**/c", "a/c", true },
    { "a/**/c", "a/b/b/c", true },
    { "a/**/c", "a/b/b/d", false },
    { "a/**", "a", true },
    { "a/**", "a/b/c", true },
    { "a/**", "b", false },
    { "**", "a/b/c", true },
    { "**/**", "a", true },
    { "**/a/**/b", "x/a/y/a/z/b", true },
    { "**/a/b", "a/a/b", true },
    { "**/a/b/a/c", "a/b/a/b/a/c", true },
    { "?", "a", true },
    { "?", "", false },
    { "?", "ab", false },
    { "a?c", "abc", true },
    { "a?c", "a/c", false },
    { "*a*b*c", "xaybzc", true },
    { "*a*b*c", "xaybz", false },
    { "*ab", "aab", true },
    { "*ab*", "xxabyy", true },
    { "a*b", "ab", true },
    { "a*b", "a/b", false },
    { "[ab]", "a", false },
    { "[ab]", "[ab]", true },
    { "a\\*", "a*", false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    unit_assert_row(fspath_glob(span_of(rows[i].pattern), span_of(rows[i].path)) == rows[i].matches, rows[i].pattern,
                    rows[i].path);
}

/* The matcher as a specification: short, recursive, exponential. */
static bool oracle_part(const char *p, size_t p_len, const char *s, size_t s_len)
{
  if (p_len == 0)
    return s_len == 0;
  if (p[0] == '*')
    return oracle_part(p + 1, p_len - 1, s, s_len) || (s_len > 0 && oracle_part(p, p_len, s + 1, s_len - 1));
  return s_len > 0 && (p[0] == '?' || p[0] == s[0]) && oracle_part(p + 1, p_len - 1, s + 1, s_len - 1);
}

static bool oracle_glob(struct span pattern, struct span path)
{
  struct span pattern_part;
  struct span path_part;

  if (!pattern.ptr)
    return !path.ptr;
  span_split(&pattern, '/', &pattern_part);
  if (span_equal_str(pattern_part, "**")) {
    if (oracle_glob(pattern, path))
      return true;
    struct buf again = BUF_INIT(256);
    buf_append_str(&again, pattern.ptr ? "**/" : "**");
    if (pattern.ptr)
      buf_append(&again, pattern);
    bool matches = false;
    if (path.ptr) {
      span_split(&path, '/', &path_part);
      matches = oracle_glob(buf_span(&again), path);
    }
    buf_free(&again);
    return matches;
  }
  if (!path.ptr)
    return false;
  span_split(&path, '/', &path_part);
  return oracle_part(pattern_part.ptr, pattern_part.len, path_part.ptr, path_part.len) && oracle_glob(pattern, path);
}

static void test_glob_property(void **state)
{
  static const char *const pattern_parts[] = { "**", "**", "a", "b", "*", "a*", "*b", "?", "*a*", "a?" };
  static const char *const path_parts[] = { "a", "b", "ab", "ba", "aab", "" };
  struct unit_random random = unit_seed("glob");
  size_t matched = 0;

  (void)state;
  for (int i = 0; i < 100000; i++) {
    char pattern[64] = "";
    char path[64] = "";
    size_t count = 1 + unit_below(&random, 4);
    for (size_t j = 0, used = 0; j < count; j++)
      used += (size_t)snprintf(pattern + used, sizeof pattern - used, "%s%s", j > 0 ? "/" : "",
                               pattern_parts[unit_below(&random, MEM_COUNT(pattern_parts))]);
    count = 1 + unit_below(&random, 5);
    for (size_t j = 0, used = 0; j < count; j++)
      used += (size_t)snprintf(path + used, sizeof path - used, "%s%s", j > 0 ? "/" : "",
                               path_parts[unit_below(&random, MEM_COUNT(path_parts) - (count == 1))]);
    bool wanted = oracle_glob(span_of(pattern), span_of(path));
    if (fspath_glob(span_of(pattern), span_of(path)) != wanted)
      fail_msg("%s with %s: wanted %d", pattern, path, wanted);
    matched += wanted;
  }
  assert_true(matched > 5000);
}

/* A pattern that takes a recursive matcher years. */
static void test_glob_is_not_exponential(void **state)
{
  char pattern[801];
  char path[2001];

  (void)state;
  for (size_t i = 0; i < 800; i += 2)
    memcpy(pattern + i, "*a", 2);
  pattern[799] = 'b';
  pattern[800] = '\0';
  memset(path, 'a', 2000);
  path[2000] = '\0';
  assert_false(fspath_glob(span_of(pattern), span_of(path)));
  for (size_t i = 0; i < 800; i += 5)
    memcpy(pattern + i, "**/a/", 5);
  pattern[799] = 'b';
  for (size_t i = 1; i < 2000; i += 2)
    path[i] = '/';
  path[1999] = '\0';
  assert_false(fspath_glob(span_of(pattern), span_of(path)));
}

static void test_match(void **state)
{
  static const struct {
    const char *text;
    const char *path;
    bool matches;
  } rows[] = {
    { "/opt/sdk", "/opt/sdk", true },
    { "/opt/sdk", "/opt/sdk/x", false },
    { "/", "/", true },
    { "/*", "/opt", true },
    { "~", "/home/u", true },
    { "~/x", "/home/u/x", true },
    { "~/x", "/home/ux", false },
    { "~/*.pem", "/home/u/k.pem", true },
    { ".", "/w[1]*", true },
    { "deploy", "/w[1]*/deploy", true },
    { "**/.env", "/w[1]*/a/.env", true },
    { "**/.env", "/w[1]*/.env", true },
    { "**/.env", "/w[1]xyz/.env", false }, /* a '*' in the workspace's own name is no wildcard */
    { "**/.env", "/home/u/.env", false },
    { "./~x", "/w[1]*/~x", true },
    { "./~x", "/home/u/x", false },
    { "deploy", "deploy", false },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++)
    unit_assert_row(fspath_match(rows[i].text, "/home/u", "/w[1]*", rows[i].path) == rows[i].matches, rows[i].text,
                    rows[i].path);
  assert_true(fspath_match("/", "/home/u", "/", "/"));
  assert_true(fspath_match("a/b", "/home/u", "/", "/a/b"));
  assert_true(fspath_match("~/b", "/", "/w", "/b"));
}

static void test_split(void **state)
{
  static const struct {
    const char *text;
    const char *base;
    const char *rest;
  } rows[] = {
    { "/opt/sdk", "/opt/sdk", "" },
    { "/", "/", "" },
    { "~", "/home/u", "" },
    { "~/a/b", "/home/u/a/b", "" },
    { ".", "/w", "" },
    { "a", "/w/a", "" },
    { "./~x", "/w/~x", "" },
    { "**/.env", "/w", "**/.env" },
    { "~/a/*.pem", "/home/u/a", "*.pem" },
    { "/srv/*/x/y", "/srv", "*/x/y" },
    { "/*", "/", "*" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct span rest;
    char *base;
    assert_int_equal(fspath_split(rows[i].text, "/home/u", "/w", &base, &rest), 0);
    unit_assert_row(strcmp(base, rows[i].base) == 0, rows[i].text, base);
    unit_assert_row(span_equal_str(rest, rows[i].rest), rows[i].text, "wrong rest");
    free(base);
  }
}

/* What is accepted is canonical: it parses to itself. */
static void test_canonical_property(void **state)
{
  static const char alphabet[] = "a~./*?";
  struct unit_random random = unit_seed("fspath");
  size_t accepted = 0;

  (void)state;
  for (int i = 0; i < 100000; i++) {
    char text[10];
    char *first;
    char *second;
    size_t len = unit_below(&random, sizeof text);
    bool pattern = unit_below(&random, 2);
    for (size_t j = 0; j < len; j++)
      text[j] = alphabet[unit_below(&random, sizeof alphabet - 1)];
    if (fspath_parse((struct span){ text, len }, pattern, NULL, &first) < 0)
      continue;
    accepted++;
    assert_int_equal(fspath_parse(span_of(first), pattern, NULL, &second), 0);
    assert_string_equal(first, second);
    assert_true(pattern || !fspath_is_pattern(first));
    free(first);
    free(second);
  }
  assert_true(accepted > 10000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parse), cmocka_unit_test(test_parse_limits),
    cmocka_unit_test(test_glob),  cmocka_unit_test(test_glob_property),
    cmocka_unit_test(test_match), cmocka_unit_test(test_glob_is_not_exponential),
    cmocka_unit_test(test_split), cmocka_unit_test(test_canonical_property),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
