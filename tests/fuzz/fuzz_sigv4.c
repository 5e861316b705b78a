/* A request head about a key. What inject_look() lets pass has one signature, of the placeholder, that can be made
 * again. Then it is signed anew: with everything else as it was, with the token of the key and no other, and right.
 * What was not signed with the placeholder is not signed. */
#include "fuzz/fuzz.h"

#include "proxy/inject.h"

#include <errno.h>

#define ID "AKIAPLACEHOLDERAAAAA"
#define KEY "PlaceholderSecretKeyOfFortyLettersAAAAAA"
#define TOKEN "TOKEN/+=="

static char name[] = "aws";
static const struct policy_credential credential = { .name = name, .place = POLICY_PLACE_SIGV4 };
static const struct inject_secret placeholder = { &credential, SPAN_INIT(ID " " KEY), SPAN_INIT(ID " " KEY) };
static const struct inject_secret key = { &credential, SPAN_INIT(ID " " KEY), SPAN_INIT("REALID RealKey " TOKEN) };

/* No hash that anybody should use (FNV), but of all bytes. */
static void mix(struct span text, uint64_t *state)
{
  for (size_t i = 0; i < text.len; i++)
    *state = (*state ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
}

static void spread(uint64_t state, unsigned char ret_hash[SIGV4_HASH_BYTES])
{
  for (size_t i = 0; i < SIGV4_HASH_BYTES; i++) {
    state = (state ^ i) * UINT64_C(1099511628211);
    ret_hash[i] = (unsigned char)(state >> 32);
  }
}

static bool hash(struct span text, unsigned char ret_hash[SIGV4_HASH_BYTES])
{
  uint64_t state = UINT64_C(14695981039346656037);

  mix(text, &state);
  spread(state, ret_hash);
  return true;
}

static bool mac(struct span with, struct span text, unsigned char ret_mac[SIGV4_HASH_BYTES])
{
  uint64_t state = UINT64_C(14695981039346656037);

  mix(with, &state);
  mix(SPAN("\0"), &state);
  mix(text, &state);
  spread(state, ret_mac);
  return true;
}

#define NOW_MS UINT64_C(1440938160000) /* of the corpus */
static const struct sigv4_crypto crypto = { .hash = hash, .mac = mac };
static const struct inject_signer signer = { .crypto = &crypto, .body = SPAN_INIT("body"), .now_ms = NOW_MS };

static struct sigv4_auth auth_of(const struct http_head *head)
{
  struct sigv4_auth auth;
  size_t count;
  const struct http_field *field = http_head_find(head, "authorization", &count);

  FUZZ_ASSERT(count == 1 && sigv4_read(field->value, &auth));
  return auth;
}

static bool is_ours(struct span field)
{
  return span_equal_nocase(field, SPAN("authorization")) || span_equal_nocase(field, SPAN("x-amz-security-token"));
}

/* The next field from *at on that is not about the signature. */
static const struct http_field *next_other(const struct http_head *head, size_t *at)
{
  while (*at < head->field_count && is_ours(head->fields[*at].name))
    (*at)++;
  return *at < head->field_count ? &head->fields[(*at)++] : NULL;
}

static void check_others(const struct http_head *head, const struct http_head *before)
{
  size_t i = 0;
  size_t j = 0;
  const struct http_field *field;

  FUZZ_ASSERT(span_equal(head->method, before->method) && span_equal(head->target, before->target));
  while ((field = next_other(before, &i))) {
    const struct http_field *same = next_other(head, &j);

    FUZZ_ASSERT(same && span_equal(same->name, field->name) && span_equal(same->value, field->value));
  }
  FUZZ_ASSERT(!next_other(head, &j));
}

static void check_signed(const struct http_head *head, const struct sigv4_auth *before)
{
  struct sigv4_auth auth = auth_of(head);
  char signature[SIGV4_HEX_BYTES];
  size_t count;
  const struct http_field *token = http_head_find(head, "x-amz-security-token", &count);

  FUZZ_ASSERT(span_equal(auth.id, SPAN("REALID")) && span_equal(auth.scope, before->scope));
  FUZZ_ASSERT(count == 1 && span_equal(token->value, SPAN(TOKEN)) && sigv4_is_whole(&auth, head));
  FUZZ_ASSERT(sigv4_signs(&auth, SPAN("x-amz-security-token")) && sigv4_signs(&auth, SPAN("host")));
  FUZZ_ASSERT(sigv4_sign(&crypto, head, &auth, signer.body, SPAN("RealKey"), signature) == 0);
  FUZZ_ASSERT(span_equal(auth.signature, (struct span){ signature, sizeof signature }));
}

/* As a client would have signed it. False where it is too large for that. */
static bool sign(const struct http_head *head, const struct sigv4_auth *auth, char *text)
{
  char signature[SIGV4_HEX_BYTES];
  int r = sigv4_sign(&crypto, head, auth, signer.body, SPAN(KEY), signature);

  FUZZ_ASSERT(r == 0 || r == -E2BIG);
  if (r == 0)
    memcpy(text, signature, sizeof signature);
  return r == 0;
}

/* Whether one of the words stands where it goes on as it is. */
static bool has_echo(const struct http_head *head)
{
  return http_head_find(head, "cookie", NULL) || http_head_find(head, "referer", NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct http_head head;
  static struct http_head before;
  static char text[LIMITS_HTTP_HEAD_BYTES];
  buf_autowipe struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  buf_autowipe struct buf again = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct inject_look look;
  struct sigv4_auth auth;
  uint64_t time_ms;
  bool timely;
  int r;

  if (size > sizeof text)
    return 0;
  memcpy(text, data, size);
  if (http_head_parse_request((struct span){ text, size }, NULL, &before) < 0)
    return 0;
  if (inject_look(&key, 1, 1, &before, &look) != INJECT_WANTS)
    return 0;
  FUZZ_ASSERT(look.wanted == 1 && !look.fault && sigv4_body_of(&before) <= SIGV4_BODY_ABSENT);
  FUZZ_ASSERT(look.body == (sigv4_body_of(&before) == SIGV4_BODY_ABSENT));
  auth = auth_of(&before);
  FUZZ_ASSERT(span_equal(auth.id, SPAN(ID)) && sigv4_is_whole(&auth, &before));
  if (!sign(&before, &auth, text + (auth.signature.ptr - text)))
    return 0;
  head = before;
  timely =
      sigv4_time(&head, &time_ms) && time_ms <= NOW_MS + INJECT_SIGN_SPAN_MS && time_ms >= NOW_MS - INJECT_SIGN_SPAN_MS;
  r = inject_fields(&key, 1, 1, &signer, &head, NULL, &out);
  FUZZ_ASSERT(timely ? r == 0 || r == -ENOBUFS : r == -EKEYREJECTED);
  if (r < 0)
    return 0;
  check_signed(&head, &auth);
  check_others(&head, &before);
  FUZZ_ASSERT(has_echo(&head) || inject_look(&key, 1, 1, &head, &look) == INJECT_PASS);
  head = before;
  text[auth.signature.ptr - text] ^= 1;
  FUZZ_ASSERT(!sigv4_read(http_head_find(&head, "authorization", NULL)->value, &auth) ||
              inject_fields(&placeholder, 1, 1, &signer, &head, NULL, &again) == -EKEYREJECTED);
  return 0;
}
