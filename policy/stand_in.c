/* Theory of operation
 *
 * From the left, the first value that stands in the text in any form is replaced, and the search goes on behind it. As
 * it is, or escaped, the value's bytes give way to the placeholder. In base64 they share digits with what stands beside
 * them ("user:value"), and the placeholder has another length: so from the group of four in which the value begins to
 * the end of the digits everything is decoded, replaced, and encoded again.
 *
 * At the end nothing may be left, whatever the reason: the text is looked through once more, and without its white
 * space too, since base64 may stand in lines.
 */
#include "policy/stand_in.h"

#include "base/base64.h"
#include "policy/inject_find.h"

#include <errno.h>

#define DEPTH_MAX 2 /* base64 within base64 is looked into so often */

static int replace(struct stand_in *pairs, size_t count, struct span text, int depth, struct buf *out);

/* The first of the values in text, not before from; of two at one place the longer one. NULL: none. */
static struct stand_in *find_first(struct stand_in *pairs, size_t count, struct span text, size_t from,
                                   struct inject_match *ret_match)
{
  struct stand_in *first = NULL;

  for (size_t i = 0; i < count; i++) {
    struct inject_match match;

    if (!inject_find(text, from, pairs[i].value, &match))
      continue;
    if (!first || match.at < ret_match->at || (match.at == ret_match->at && match.len > ret_match->len)) {
      *ret_match = match;
      first = &pairs[i];
    }
  }
  return first;
}

/* Base64 from some place in a text to its end. */
struct run {
  struct span digits; /* without padding */
  size_t padding;
  bool url; /* in the alphabet of URLs */
};

static struct run run_at(struct span text, size_t at)
{
  struct run run = { .digits = span_sub(text, at, 0) };
  size_t end = at;

  for (; end < text.len && base64_digit(text.ptr[end]) >= 0; end++)
    run.url |= text.ptr[end] == '-' || text.ptr[end] == '_';
  run.digits.len = end - at;
  while (run.padding < 2 && end + run.padding < text.len && text.ptr[end + run.padding] == '=')
    run.padding++;
  return run;
}

/* Decodes either alphabet. 0 or -EILSEQ; or as buf_error(). */
static int decode(const struct run *run, struct buf *plain)
{
  buf_autowipe struct buf usual = BUF_INIT(run->digits.len);

  buf_reserve(&usual, run->digits.len);
  buf_reserve(plain, run->digits.len);
  for (size_t i = 0; i < run->digits.len; i++) {
    char digit = run->digits.ptr[i];

    buf_append_byte(&usual, digit == '-' ? '+' : digit == '_' ? '/' : digit);
  }
  if (buf_error(&usual) || buf_error(plain))
    return -ENOMEM;
  return base64_decode(buf_span(&usual), plain) < 0 ? -EILSEQ : buf_error(plain);
}

/* Encodes as the run was. */
static void encode(const struct run *run, struct span plain, struct buf *out)
{
  bool bare = run->padding == 0 && (run->url || run->digits.len % 4 != 0);
  size_t from = out->len;

  base64_append(plain, out);
  if (buf_error(out))
    return;
  while (bare && out->len > from && out->data[out->len - 1] == '=')
    out->data[--out->len] = '\0';
  for (size_t i = from; run->url && i < out->len; i++)
    out->data[i] = out->data[i] == '+' ? '-' : out->data[i] == '/' ? '_' : out->data[i];
}

/* Replaces what is in the base64 around a match, and sets *at to its end. What stands before the group in which the
 * value begins has been, or is, appended as it is. */
static int replace_base64(struct stand_in *pairs, size_t count, struct span text, const struct inject_match *match,
                          struct span value, int depth, size_t *at, struct buf *out)
{
  for (size_t back = 0; back <= 2 && match->at >= *at + back; back++) {
    size_t begin = match->at - back;
    struct run run = run_at(text, begin);
    buf_autowipe struct buf plain = BUF_INIT(run.digits.len + 1);
    buf_autowipe struct buf fresh = BUF_INIT(out->max);
    int r = decode(&run, &plain);
    size_t where;

    if (r == -ENOMEM)
      return r;
    /* It begins in the first group: with its first byte, its second, or its third. */
    where = inject_find_raw(span_sub(buf_span(&plain), 0, value.len + 2), 0, value);
    if (r < 0 || where > 2 || where + value.len > plain.len)
      continue;
    r = replace(pairs, count, buf_span(&plain), depth + 1, &fresh);
    if (r < 0)
      return r;
    buf_append(out, span_sub(text, *at, begin - *at));
    encode(&run, buf_span(&fresh), out);
    *at = begin + run.digits.len + run.padding;
    return buf_error(out);
  }
  return -EILSEQ;
}

static int replace(struct stand_in *pairs, size_t count, struct span text, int depth, struct buf *out)
{
  struct inject_match match;
  struct stand_in *pair;
  size_t at = 0;
  int r = 0;

  while (r == 0 && (pair = find_first(pairs, count, text, at, &match))) {
    if (match.form == INJECT_FORM_BASE64 && depth == DEPTH_MAX)
      return -EILSEQ;
    if (match.form == INJECT_FORM_BASE64) {
      r = replace_base64(pairs, count, text, &match, pair->value, depth, &at, out);
      continue;
    }
    buf_append(out, span_sub(text, at, match.at - at));
    buf_append(out, pair->placeholder);
    at = match.at + match.len;
    pair->found++;
  }
  buf_append(out, span_sub(text, at, text.len));
  return r < 0 ? r : buf_error(out);
}

/* Whether a value stands in the text, or would without its white space. */
static int look_for(const struct stand_in *pairs, size_t count, struct span text, size_t *ret_left)
{
  buf_autowipe struct buf tight = BUF_INIT(text.len + 1);
  struct inject_match match;

  buf_reserve(&tight, text.len);
  for (size_t i = 0; i < text.len; i++)
    if (text.ptr[i] == '\0' || !strchr(" \t\r\n\\", text.ptr[i]))
      buf_append_byte(&tight, text.ptr[i]);
  if (buf_error(&tight))
    return buf_error(&tight);
  for (size_t i = 0; i < count; i++) {
    if (!inject_find(text, 0, pairs[i].value, &match) && !inject_find(buf_span(&tight), 0, pairs[i].value, &match))
      continue;
    *ret_left = i;
    return -EILSEQ;
  }
  return 0;
}

int stand_in_text(struct stand_in *pairs, size_t count, struct span text, struct buf *out, size_t *ret_left)
{
  size_t from = out->len;
  int r = replace(pairs, count, text, 0, out);

  if (r == -EILSEQ && look_for(pairs, count, text, ret_left) == 0)
    *ret_left = 0;
  return r < 0 ? r : look_for(pairs, count, span_sub(buf_span(out), from, out->len), ret_left);
}
