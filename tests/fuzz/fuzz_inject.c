/* A request or response head about credentials. The first byte says which are bound; the rest is the head.
 *
 * What is refused and what is wanted follows from what is bound. Whatever goes on is read as one head again, with
 * nothing changed but where credentials stand, with no value of a credential that is not bound and no placeholder of
 * one either. Values that are their own placeholders change nothing. A scrubbed response holds no value in any form. */
#include "fuzz/fuzz.h"

#include "policy/inject_find.h"
#include "unit/inject_make.h"

#include <errno.h>

static bool is_in(struct span text, struct span wanted)
{
  struct inject_match match;

  return inject_find(text, 0, wanted, &match);
}

static bool is_in_head(const struct http_head *head, struct span wanted)
{
  bool found = is_in(head->target, wanted) || is_in(head->phrase, wanted);

  for (size_t i = 0; i < head->field_count; i++)
    found = found || is_in(head->fields[i].value, wanted);
  return found;
}

static size_t count_of(const struct http_head *head, const char *name)
{
  size_t count;

  (void)http_head_find(head, name, &count);
  return count;
}

/* The head as it was written has one reading, and that is what was meant. */
static void check_one_reading(const struct http_head *head, const struct http_head *before)
{
  static struct http_head again;
  static const char *const kept[] = { "host", "content-length", "transfer-encoding", "connection", "upgrade", "te" };
  buf_autofree struct buf text = BUF_INIT(4 * LIMITS_HTTP_HEAD_BYTES);

  make_print_request(head, &text);
  FUZZ_ASSERT(!buf_error(&text) && http_head_parse_request(buf_span(&text), NULL, &again) == 0);
  FUZZ_ASSERT(span_equal(again.method, before->method) && again.minor == before->minor);
  FUZZ_ASSERT(span_equal(again.target, head->target) && again.field_count == head->field_count);
  for (size_t i = 0; i < again.field_count; i++)
    FUZZ_ASSERT(span_equal(again.fields[i].name, head->fields[i].name) &&
                span_equal(again.fields[i].value, head->fields[i].value));
  for (size_t i = 0; i < MEM_COUNT(kept); i++) {
    const struct http_field *field = http_head_find(&again, kept[i], NULL);

    FUZZ_ASSERT(count_of(&again, kept[i]) == count_of(before, kept[i]));
    FUZZ_ASSERT(!field || span_equal(field->value, http_head_find(before, kept[i], NULL)->value));
  }
  FUZZ_ASSERT(span_equal(span_sub(again.target, 0, span_find(again.target, '?')),
                         span_sub(before->target, 0, span_find(before->target, '?'))));
}

/* Equal but for the ways to write the same byte in a query. */
static void check_same_target(struct span a, struct span b)
{
  size_t i = 0;
  size_t j = 0;

  while (i < a.len && j < b.len) {
    char x;
    char y;

    i += inject_unescape(a, i, &x);
    j += inject_unescape(b, j, &y);
    if (x == y)
      continue;
    /* Encoded more than once, it was still the placeholder. */
    return;
  }
  FUZZ_ASSERT(i == a.len && j == b.len);
}

static void check_identity(const struct http_head *before, inject_set wanted)
{
  static struct http_head head;
  struct inject_secret secrets[MAKE_COUNT];
  struct policy_credential credentials[MAKE_COUNT];
  buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);

  for (size_t i = 0; i < MAKE_COUNT; i++) {
    credentials[i] = make_credentials[i];
    credentials[i].inject = POLICY_INJECT_REPLACE;
    secrets[i] = (struct inject_secret){ &credentials[i], make_secrets[i].placeholder, make_secrets[i].placeholder };
  }
  head = *before;
  if (inject_fields(secrets, MAKE_COUNT, wanted, NULL, &head, NULL, &out) < 0)
    return;
  check_same_target(head.target, before->target);
  FUZZ_ASSERT(head.field_count == before->field_count);
  for (size_t i = 0; i < head.field_count; i++)
    FUZZ_ASSERT(span_equal(head.fields[i].name, before->fields[i].name) &&
                span_equal(head.fields[i].value, before->fields[i].value));
}

static void check_request(struct span text, inject_set bound)
{
  static struct http_head before;
  static struct http_head head;
  buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  enum inject_verdict verdict;
  inject_set wanted = 0;
  size_t index = MAKE_COUNT;
  int r;

  if (http_head_parse_request(text, NULL, &before) < 0)
    return;
  verdict = make_look(bound, &before, &wanted, &index);
  for (size_t i = 0; i < MAKE_COUNT; i++) {
    bool found = is_in_head(&before, make_secrets[i].placeholder);

    FUZZ_ASSERT(verdict == INJECT_MISUSE || !found || inject_has(bound, i));
    FUZZ_ASSERT(verdict != INJECT_MISUSE || index != i || found);
  }
  if (verdict == INJECT_MISUSE)
    return;
  FUZZ_ASSERT((verdict == INJECT_WANTS) == (wanted != 0) && (wanted & ~bound) == 0);
  FUZZ_ASSERT(!wanted || !span_equal_nocase(before.method, SPAN("trace")));
  check_identity(&before, wanted);
  head = before;
  r = inject_fields(make_secrets, MAKE_COUNT, wanted, NULL, &head, NULL, &out);
  if (r < 0) {
    FUZZ_ASSERT(r == -ENOBUFS && head.field_count == before.field_count && head.target.ptr == before.target.ptr);
    return;
  }
  check_one_reading(&head, &before);
  for (size_t i = 0; i < MAKE_COUNT; i++)
    FUZZ_ASSERT(inject_has(wanted, i) || is_in_head(&before, make_secrets[i].value) ||
                !is_in_head(&head, make_secrets[i].value));
}

static bool is_framing(struct span name)
{
  return span_equal_nocase(name, SPAN("content-length")) || span_equal_nocase(name, SPAN("transfer-encoding"));
}

static void check_response(struct span text)
{
  static struct http_head before;
  static struct http_head head;
  buf_autofree struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  size_t found;

  if (http_head_parse_response(text, NULL, &before) < 0)
    return;
  head = before;
  found = inject_scrub(make_secrets, MAKE_COUNT, &head, &out);
  FUZZ_ASSERT(head.status == before.status && head.minor == before.minor && head.field_count <= before.field_count);
  FUZZ_ASSERT(found || head.field_count == before.field_count);
  for (size_t i = 0; i < MAKE_COUNT; i++) {
    FUZZ_ASSERT(!is_in(head.phrase, make_secrets[i].value));
    for (size_t j = 0; j < head.field_count; j++)
      FUZZ_ASSERT(is_framing(head.fields[j].name) || !is_in(head.fields[j].value, make_secrets[i].value));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size < LIMITS_HTTP_HEAD_BYTES ? size : LIMITS_HTTP_HEAD_BYTES };

  if (size < 2)
    return 0;
  check_request(span_sub(text, 1, text.len), data[0] & (((unsigned)1 << MAKE_COUNT) - 1));
  check_response(span_sub(text, 1, text.len));
  return 0;
}
