#include "policy/inject_find.h"
#include "proxy/inject.h"

/* Fields that frame the message: no value can stand in them, and what looks like one is a length. */
static const char *const framing_fields[] = { "content-length", "transfer-encoding" };

static bool is_framing(struct span name)
{
  for (size_t i = 0; i < MEM_COUNT(framing_fields); i++)
    if (span_equal_nocase(name, span_of(framing_fields[i])))
      return true;
  return false;
}

/* The first value in text, not before from; NULL where there is none. */
static const struct inject_secret *find_first(const struct inject_secret *secrets, size_t count, struct span text,
                                              size_t from, struct inject_match *ret_match)
{
  const struct inject_secret *whose = NULL;

  for (size_t i = 0; i < count; i++) {
    struct inject_match match;

    if (!inject_find(text, from, secrets[i].value, &match))
      continue;
    if (!whose || match.at < ret_match->at || (match.at == ret_match->at && match.len > ret_match->len)) {
      *ret_match = match;
      whose = &secrets[i];
    }
  }
  return whose;
}

size_t inject_scrub_text(const struct inject_secret *secrets, size_t count, struct span *text, struct buf *out)
{
  struct inject_match match;
  const struct inject_secret *whose = find_first(secrets, count, *text, 0, &match);
  size_t start = out->len;
  size_t found = 0;
  size_t from = 0;

  if (!whose)
    return 0;
  buf_reserve(out, out->max - out->len);
  for (; whose; whose = find_first(secrets, count, *text, from, &match)) {
    buf_append(out, span_sub(*text, from, match.at - from));
    buf_append(out, whose->placeholder);
    from = match.at + match.len;
    found++;
  }
  buf_append(out, span_sub(*text, from, text->len));
  *text = buf_error(out) ? SPAN("") : span_sub(buf_span(out), start, out->len);
  return found;
}

/* Names are compared without their letter case, which servers and clients change as they like. */
static bool is_value_in_name(const struct inject_secret *secrets, size_t count, struct span name)
{
  for (size_t i = 0; i < count; i++) {
    struct span value = secrets[i].value;

    for (size_t at = 0; value.len && at + value.len <= name.len; at++)
      if (span_equal_nocase(span_sub(name, at, value.len), value))
        return true;
  }
  return false;
}

size_t inject_scrub(const struct inject_secret *secrets, size_t count, struct http_head *head, struct buf *out)
{
  size_t found = inject_scrub_text(secrets, count, &head->phrase, out);
  size_t kept = 0;

  for (size_t i = 0; i < head->field_count; i++) {
    struct http_field field = head->fields[i];
    size_t more = is_framing(field.name) ? 0 : inject_scrub_text(secrets, count, &field.value, out);
    bool named = !is_framing(field.name) && is_value_in_name(secrets, count, field.name);

    found += more + named;
    if (!named && !(more && buf_error(out)))
      head->fields[kept++] = field;
  }
  head->field_count = kept;
  return found;
}
