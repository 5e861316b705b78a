/* Bodies that stream. The first byte says into pieces of how many bytes they are cut, the second which credentials are
 * meant; the rest is the body.
 *
 * What is found does not depend on the cut. A body that was scrubbed has its length, is the same but for what is
 * masked, and holds no value that the search in heads, which is another, would find. What is held is bounded. A body in
 * which placeholders are swapped holds none of those as it is, and is as it was where each value is its placeholder. */
#include "fuzz/fuzz.h"

#include "policy/inject_find.h"
#include "proxy/finder.h"
#include "proxy/inject_body.h"
#include "unit/inject_make.h"

#define BODY_MAX 4096

static struct policy_credential credentials[MAKE_COUNT];
static struct inject_secret secrets[MAKE_COUNT];

static void make_scrubbed(inject_set set)
{
  for (size_t i = 0; i < MAKE_COUNT; i++) {
    credentials[i] = make_credentials[i];
    credentials[i].scrub = inject_has(set, i) ? POLICY_SCRUB_BODY : POLICY_SCRUB_HEAD;
    secrets[i] = make_secrets[i];
    secrets[i].credential = &credentials[i];
  }
}

static size_t scrub(struct span body, size_t piece, struct buf *result)
{
  buf_autofree struct buf held = BUF_INIT(2 * BODY_MAX);
  size_t masked = 0;
  size_t found = 0;
  size_t at = 0;

  do {
    buf_autofree struct buf out = BUF_INIT(2 * BODY_MAX);
    struct span text;
    ssize_t n;

    buf_append(&held, span_sub(body, at, piece));
    at += piece;
    n = inject_body_scrub(secrets, MAKE_COUNT, buf_span(&held), at >= body.len, &masked, &out, &text);
    FUZZ_ASSERT(n >= 0);
    found += (size_t)n;
    buf_append(result, text);
    buf_consume(&held, text.len);
    FUZZ_ASSERT(held.len < FINDER_FORM_MAX * 20 && masked <= FINDER_FORM_MAX * 20);
  } while (at < body.len);
  FUZZ_ASSERT(!buf_error(&held) && held.len == 0);
  return found;
}

static inject_set find(struct span body, size_t piece, inject_set set)
{
  buf_autofree struct buf held = BUF_INIT(2 * BODY_MAX);
  inject_set found = 0;

  for (size_t at = 0; at < body.len; at += piece) {
    size_t done;

    buf_append(&held, span_sub(body, at, piece));
    found |= inject_body_find(secrets, MAKE_COUNT, set & ~found, buf_span(&held), at + piece >= body.len, &done);
    buf_consume(&held, done);
  }
  return found;
}

static void check_scrubbed(struct span body, size_t piece, inject_set set)
{
  buf_autofree struct buf whole = BUF_INIT(BODY_MAX);
  buf_autofree struct buf cut = BUF_INIT(BODY_MAX);
  struct inject_match match;
  size_t found = scrub(body, BODY_MAX, &whole);

  FUZZ_ASSERT(scrub(body, piece, &cut) == found);
  FUZZ_ASSERT(span_equal(buf_span(&whole), buf_span(&cut)) && whole.len == body.len);
  for (size_t i = 0; i < body.len; i++)
    FUZZ_ASSERT(whole.data[i] == body.ptr[i] || (found && whole.data[i] == '*'));
  for (size_t i = 0; i < MAKE_COUNT; i++)
    FUZZ_ASSERT(!inject_has(set, i) || !inject_find(buf_span(&whole), 0, secrets[i].value, &match));
}

static void check_swapped(struct span body, inject_set set)
{
  for (enum inject_writing writing = INJECT_WRITE_RAW; writing <= INJECT_WRITE_JSON; writing++) {
    buf_autowipe struct buf same = BUF_INIT(16 * BODY_MAX);
    buf_autowipe struct buf out = BUF_INIT(16 * BODY_MAX);
    struct inject_secret own[MAKE_COUNT];

    FUZZ_ASSERT(inject_body_swap(secrets, MAKE_COUNT, set, body, writing, NULL, &out) == 0);
    for (size_t i = 0; i < MAKE_COUNT; i++) {
      own[i] = secrets[i];
      own[i].value = own[i].placeholder;
      FUZZ_ASSERT(!inject_has(set, i) || inject_find_raw(buf_span(&out), 0, secrets[i].placeholder) == out.len);
    }
    FUZZ_ASSERT(inject_body_swap(own, MAKE_COUNT, set, body, writing, NULL, &same) == 0);
    FUZZ_ASSERT(writing == INJECT_WRITE_FORM || span_equal(buf_span(&same), body));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size < BODY_MAX ? size : BODY_MAX };
  struct span body = span_sub(text, 2, text.len);
  size_t piece;
  inject_set set;

  if (size < 2)
    return 0;
  piece = (size_t)data[0] + 1;
  set = data[1] & (((unsigned)1 << MAKE_COUNT) - 1);
  make_scrubbed(set);
  check_scrubbed(body, piece, set);
  FUZZ_ASSERT(find(body, piece, set) == find(body, BODY_MAX, set));
  check_swapped(body, set);
  return 0;
}
