#include "proxy/inject_body.h"

#include "policy/credential_word.h"
#include "proxy/finder.h"
#include "proxy/inject_place.h"
#include "proxy/inject_sign.h"

#include <errno.h>

static void add_placeholder(struct finder *finder, const struct inject_secret *secret, size_t which)
{
  if (secret->credential->place != POLICY_PLACE_SIGV4) {
    (void)finder_add(finder, secret->placeholder, which); /* there is room for all credentials */
    return;
  }
  (void)finder_add(finder, credential_word(secret->placeholder, CREDENTIAL_KEY_ID), which);
  (void)finder_add(finder, credential_word(secret->placeholder, CREDENTIAL_SECRET_KEY), which);
}

static void add_placeholders(struct finder *finder, const struct inject_secret *secrets, size_t count, inject_set set)
{
  finder_clear(finder);
  for (size_t i = 0; i < count; i++)
    if (inject_has(set, i))
      add_placeholder(finder, &secrets[i], i);
}

inject_set inject_body_find(const struct inject_secret *secrets, size_t count, inject_set set, struct span text,
                            bool end, size_t *ret_done)
{
  inject_set found = 0;
  struct finder_hit hit = { .at = 0 };
  struct finder finder;

  add_placeholders(&finder, secrets, count, set);
  while (finder_next(&finder, text, hit.at, end, &hit, ret_done)) {
    found |= (inject_set)1 << hit.which;
    /* Once is enough: a body full of one costs no more than another. */
    add_placeholders(&finder, secrets, count, set & ~found);
  }
  return found;
}

inject_set inject_body_scrubs(const struct inject_secret *secrets, size_t count, inject_set bound)
{
  inject_set set = 0;

  for (size_t i = 0; i < count; i++)
    if (inject_has(bound, i) && secrets[i].credential->scrub == POLICY_SCRUB_BODY)
      set |= (inject_set)1 << i;
  return set;
}

bool inject_body_is_looked_into(const struct inject_secret *secrets, size_t count, inject_set bound)
{
  for (size_t i = 0; i < count; i++)
    if (inject_has(bound, i) &&
        (secrets[i].credential->place == POLICY_PLACE_BODY || secrets[i].credential->scrub == POLICY_SCRUB_BODY))
      return true;
  return false;
}

static size_t smaller(size_t a, size_t b)
{
  return a < b ? a : b;
}

ssize_t inject_body_scrub(const struct inject_secret *known, size_t count, struct span text, bool end, size_t *masked,
                          struct buf *out, struct span *ret_text)
{
  size_t mask_end = *masked; /* everything before it that is not sent yet is masked */
  struct finder finder;
  struct finder_hit hit;
  ssize_t found = 0;
  size_t done;

  finder_clear(&finder);
  for (size_t i = 0; i < count; i++)
    if (known[i].credential->scrub == POLICY_SCRUB_BODY && !finder_add(&finder, known[i].value, i))
      return -ENOBUFS;
  if (mask_end)
    buf_append(out, text);
  if (mask_end && !buf_error(out))
    memset(out->data, '*', smaller(mask_end, text.len));
  for (size_t at = 0; finder_next(&finder, text, at, end, &hit, &done); at = hit.at + 1) {
    found += hit.at >= mask_end;
    if (!out->len)
      buf_append(out, text);
    if (buf_error(out))
      return -ENOMEM;
    memset(out->data + hit.at, '*', hit.len);
    mask_end = mask_end > hit.at + hit.len ? mask_end : hit.at + hit.len;
  }
  if (buf_error(out))
    return -ENOMEM;
  *masked = mask_end - smaller(mask_end, done);
  *ret_text = span_sub(out->len ? buf_span(out) : text, 0, done);
  return found;
}

bool inject_body_is_coded(const struct http_head *head)
{
  size_t count;
  const struct http_field *coding = http_head_find(head, "content-encoding", &count);

  return count > 1 || (coding && coding->value.len && !span_equal_nocase(coding->value, SPAN("identity")));
}

static bool is_signed(const struct http_head *head)
{
  const struct http_field *field = http_head_find(head, "authorization", NULL);

  return field && span_starts_with(field->value, SPAN("AWS4-"));
}

inject_set inject_body_swaps(const struct inject_secret *secrets, size_t count, inject_set bound,
                             const struct http_head *head)
{
  inject_set set = 0;

  for (size_t i = 0; i < count; i++)
    if (inject_has(bound, i) && secrets[i].credential->place == POLICY_PLACE_BODY)
      set |= (inject_set)1 << i;
  return set && (inject_body_is_coded(head) || is_signed(head) || inject_is_traced(head->method)) ? 0 : set;
}

/* Whether text ends as a suffix says: "application/problem+json". */
static bool ends_with(struct span text, const char *suffix)
{
  size_t len = strlen(suffix);

  return text.len >= len && span_equal_nocase(span_sub(text, text.len - len, text.len), span_of(suffix));
}

enum inject_writing inject_body_writing(const struct http_head *head)
{
  const struct http_field *field = http_head_find(head, "content-type", NULL);
  struct span type = field ? span_trim(span_sub(field->value, 0, span_find(field->value, ';'))) : SPAN("");

  if (span_equal_nocase(type, SPAN("application/x-www-form-urlencoded")))
    return INJECT_WRITE_FORM;
  if (ends_with(type, "/json") || ends_with(type, "+json") || ends_with(type, "json-seq") || ends_with(type, "ndjson"))
    return INJECT_WRITE_JSON;
  return INJECT_WRITE_RAW;
}

static void append_json(struct span value, struct buf *out)
{
  for (size_t i = 0; i < value.len; i++) {
    if (value.ptr[i] == '"' || value.ptr[i] == '\\')
      buf_append_byte(out, '\\');
    if (value.ptr[i] == '\t')
      buf_append_str(out, "\\t");
    else
      buf_append_byte(out, value.ptr[i]);
  }
}

/* In a form a placeholder may be percent-encoded, as a whole or here and there. Elsewhere the value takes the place of
 * the bytes as they are, and of nothing that only looks like them. */
static bool is_swapped(struct span found, struct span placeholder, enum inject_writing writing)
{
  return span_equal(found, placeholder) ||
         (writing == INJECT_WRITE_FORM && found.len && memchr(found.ptr, '%', found.len));
}

static void append_value(struct span value, enum inject_writing writing, struct buf *out)
{
  switch (writing) {
  case INJECT_WRITE_FORM:
    inject_append_encoded(value, "", out);
    break;
  case INJECT_WRITE_JSON:
    append_json(value, out);
    break;
  case INJECT_WRITE_RAW:
    buf_append(out, value);
    break;
  }
}

/* The whole text, to out; without out it is only counted. */
static size_t swap(const struct inject_secret *secrets, const struct finder *finder, struct span text,
                   enum inject_writing writing, struct buf *out)
{
  struct finder_hit hit;
  size_t from = 0;
  size_t count = 0;
  size_t open;

  for (size_t at = 0; finder_next(finder, text, at, true, &hit, &open);) {
    const struct inject_secret *secret = &secrets[hit.which];

    at = hit.at + 1;
    if (!is_swapped(span_sub(text, hit.at, hit.len), secret->placeholder, writing))
      continue;
    at = hit.at + hit.len;
    count++;
    if (!out)
      continue;
    buf_append(out, span_sub(text, from, hit.at - from));
    append_value(secret->value, writing, out);
    from = at;
  }
  if (out)
    buf_append(out, span_sub(text, from, text.len));
  return count;
}

int inject_body_swap(const struct inject_secret *secrets, size_t count, inject_set set, struct span text,
                     enum inject_writing writing, struct err *err, struct buf *out)
{
  struct finder finder;
  size_t longest = 0;

  add_placeholders(&finder, secrets, count, set);
  for (size_t i = 0; i < count; i++) {
    int r = inject_has(set, i) ? inject_check_value(&secrets[i], err) : 0;

    if (r < 0)
      return r;
    if (inject_has(set, i) && secrets[i].value.len > longest)
      longest = secrets[i].value.len;
  }
  /* A move would leave a copy of a value behind. Nothing is written as more than three bytes for one. */
  buf_reserve(out, smaller(text.len + 3 * longest * swap(secrets, &finder, text, writing, NULL), out->max));
  (void)swap(secrets, &finder, text, writing, out);
  if (!buf_error(out))
    return 0;
  return buf_error(out) == -ENOMEM ? err_set(err, ENOMEM, "no memory for a request with a credential")
                                   : err_set(err, ENOBUFS, "a body with its credentials would be too large");
}
