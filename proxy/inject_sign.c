/* Theory of operation
 *
 * The client has signed with the placeholder as if it were a key. Its own signature is made again first, from the
 * request as it goes out: where the two differ, the request was not signed by who has the placeholder, or we and the
 * client do not read it in the same way, and then the origin would not either. What is right is signed with the key:
 * the same time, scope and headers, and the token of the session, if the key is of one, which is signed too. A token of
 * the client's own is dropped, since it goes with another key.
 *
 * A signature names its host, which is among what is signed. A host that a wildcard has in it, and that answers to
 * somebody else, can do nothing with it.
 */
#include "proxy/inject_sign.h"

#include "policy/credential_word.h"
#include "policy/inject_find.h"
#include "proxy/inject_place.h"

#include <errno.h>

#define TOKEN_FIELD "x-amz-security-token"
#define ASYMMETRIC "AWS4-ECDSA-P256-SHA256"

static const struct inject_fault presigned = {
  "in a presigned URL, which is not signed anew",
  "let the program send the request itself, signed in its header; or have the URL made outside of the sandbox",
};
static const struct inject_fault asymmetric = {
  "in a request for several regions (SigV4A), which cannot be signed anew",
  "use the service in one region: no multi-region access point, no global endpoint",
};
static const struct inject_fault chunked = {
  "in a request whose body is signed chunk by chunk, which cannot be signed anew",
  "switch chunk signatures off in the program (chunkedEncodingEnabled(false) in Java), or let it send the body "
  "unsigned",
};
static const struct inject_fault malformed = {
  "in a request that is not signed as AWS Signature Version 4 has it",
  "sign X-Amz-Date, Host and no header field that a proxy removes, such as Connection",
};

static const struct inject_fault misplaced = {
  "in a part of the request that is not its signature",
  "let programs sign with it, and send it nowhere else",
};

static bool stands_in(struct span text, struct span id)
{
  struct inject_match match;

  return inject_find(text, 0, id, &match);
}

/* Signed URLs of today, and those of signature version 2. */
static bool is_presigned(struct span target, struct span id)
{
  struct span rest = inject_query_of(target);
  struct inject_parameter parameter;

  while (inject_next_parameter(&rest, &parameter))
    if ((inject_is_named(parameter.name, "x-amz-credential") || inject_is_named(parameter.name, "awsaccesskeyid")) &&
        stands_in(parameter.value, id))
      return true;
  return false;
}

/* What is wrong with a request whose Authorization header has the id in it; NULL where nothing is. */
static const struct inject_fault *fault_of(struct span value, struct span id, const struct http_head *head)
{
  struct sigv4_auth auth;
  size_t count;

  (void)http_head_find(head, "authorization", &count);
  if (span_starts_with(value, SPAN(ASYMMETRIC)))
    return &asymmetric;
  if (count != 1 || !sigv4_read(value, &auth) || !span_equal(auth.id, id) || stands_in(auth.scope, id) ||
      stands_in(auth.signed_names, id) || !sigv4_is_whole(&auth, head))
    return &malformed;
  switch (sigv4_body_of(head)) {
  case SIGV4_BODY_GIVEN:
  case SIGV4_BODY_ABSENT:
    return NULL;
  case SIGV4_BODY_CHUNKS:
    return &chunked;
  case SIGV4_BODY_BAD:
    break;
  }
  return &malformed;
}

const struct inject_fault *inject_sign_misplaced(void)
{
  return &misplaced;
}

enum inject_id inject_sign_look(struct span id, const struct http_head *head, const struct inject_fault **ret_fault)
{
  enum inject_id worst = INJECT_ID_NOT;

  *ret_fault = NULL;
  if (stands_in(head->target, id)) {
    *ret_fault = is_presigned(head->target, id) ? &presigned : &misplaced;
    return INJECT_ID_ELSEWHERE;
  }
  for (size_t i = 0; i < head->field_count; i++) {
    const struct http_field *field = &head->fields[i];
    enum inject_id stands = INJECT_ID_ELSEWHERE;

    if (!stands_in(field->value, id) || worst == INJECT_ID_ELSEWHERE)
      continue;
    if (span_equal_nocase(field->name, SPAN("authorization"))) {
      *ret_fault = fault_of(field->value, id, head);
      stands = *ret_fault ? INJECT_ID_ELSEWHERE : INJECT_ID_SIGNS;
    } else if (inject_is_echoed(field->name)) {
      stands = INJECT_ID_ECHOED;
    } else {
      *ret_fault = &misplaced;
    }
    worst = stands > worst ? stands : worst;
  }
  return worst;
}

int inject_set_field(struct http_head *head, struct span name, struct span value)
{
  size_t kept = 0;
  bool set = false;

  for (size_t i = 0; i < head->field_count; i++) {
    bool ours = span_equal_nocase(head->fields[i].name, name);

    if (ours && set)
      continue;
    head->fields[kept] = head->fields[i];
    if (ours)
      head->fields[kept].value = value;
    set = set || ours;
    kept++;
  }
  if (!set && kept == MEM_COUNT(head->fields))
    return -ENOBUFS;
  if (!set)
    head->fields[kept++] = (struct http_field){ .name = name, .value = value };
  head->field_count = kept;
  return 0;
}

/* The signed names with the token's, or without it, in their order. */
static struct span append_names(struct span names, bool token, struct buf *out)
{
  size_t start = out->len;
  struct span name;

  while (span_split(&names, ';', &name)) {
    if (span_equal_str(name, TOKEN_FIELD))
      continue;
    if (token && sigv4_compare(name, SPAN(TOKEN_FIELD)) > 0) {
      buf_printf(out, "%s" TOKEN_FIELD, out->len > start ? ";" : "");
      token = false;
    }
    if (out->len > start)
      buf_append_byte(out, ';');
    buf_append(out, name);
  }
  if (token)
    buf_printf(out, "%s" TOKEN_FIELD, out->len > start ? ";" : "");
  return span_sub(buf_span(out), start, out->len);
}

/* Whether the client has signed with the placeholder. */
static int check(const struct inject_secret *secret, const struct inject_signer *signer, const struct http_head *sent,
                 const struct sigv4_auth *auth, struct span body, struct err *err)
{
  char signature[SIGV4_HEX_BYTES];
  struct span key = credential_word(secret->placeholder, CREDENTIAL_SECRET_KEY);
  int r = sigv4_sign(signer->crypto, sent, auth, body, key, signature);

  if (r < 0 || span_equal(auth->signature, (struct span){ signature, sizeof signature }))
    return r;
  return err_set(err, EKEYREJECTED, "that of %s, in a request whose signature is not right", secret->credential->name);
}

static int check_time(const struct inject_secret *secret, const struct inject_signer *signer,
                      const struct http_head *sent, struct err *err)
{
  uint64_t time_ms;

  if (sigv4_time(sent, &time_ms) &&
      (time_ms > signer->now_ms ? time_ms - signer->now_ms : signer->now_ms - time_ms) <= INJECT_SIGN_SPAN_MS)
    return 0;
  return err_set(err, EKEYREJECTED, "that of %s, in a request that is signed for another time than it is here",
                 secret->credential->name);
}

static int sign(const struct inject_secret *secret, const struct inject_signer *signer, struct sigv4_auth *auth,
                struct span body, struct http_head *head, struct buf *out)
{
  struct span token = credential_word(secret->value, CREDENTIAL_TOKEN);
  char signature[SIGV4_HEX_BYTES];
  size_t start;
  int r = 0;

  http_head_drop(head, TOKEN_FIELD);
  if (token.len)
    r = inject_set_field(head, SPAN(TOKEN_FIELD), token);
  auth->signed_names = append_names(auth->signed_names, token.len > 0, out);
  if (r == 0)
    r = buf_error(out);
  if (r == 0)
    r = sigv4_sign(signer->crypto, head, auth, body, credential_word(secret->value, CREDENTIAL_SECRET_KEY), signature);
  if (r < 0)
    return r;
  start = out->len;
  buf_append_str(out, "AWS4-HMAC-SHA256 Credential=");
  buf_append(out, credential_word(secret->value, CREDENTIAL_KEY_ID));
  buf_append_byte(out, '/');
  buf_append(out, auth->scope);
  buf_append_str(out, ", SignedHeaders=");
  buf_append(out, auth->signed_names);
  buf_append_str(out, ", Signature=");
  buf_append(out, (struct span){ signature, sizeof signature });
  return inject_set_field(head, SPAN("Authorization"), span_sub(buf_span(out), start, out->len));
}

int inject_sign(const struct inject_secret *secret, const struct inject_signer *signer, const struct http_head *sent,
                struct http_head *head, struct err *err, struct buf *out)
{
  const struct http_field *field = http_head_find(sent, "authorization", NULL);
  unsigned char hash[SIGV4_HASH_BYTES];
  char hex[SIGV4_HEX_BYTES];
  struct sigv4_auth auth;
  struct span body;
  int r;

  if (!signer || !field || !sigv4_read(field->value, &auth) || !sigv4_is_whole(&auth, sent))
    return err_set(err, EKEYREJECTED, "that of %s, in a request that is signed otherwise than it is sent",
                   secret->credential->name);
  if (credential_word(secret->value, CREDENTIAL_SECRET_KEY).len == 0)
    return err_set(err, EINVAL, "credential %s: the value is no key id with a secret key", secret->credential->name);
  body = signer->body;
  if (!body.len) {
    if (!signer->crypto->hash(SPAN(""), hash))
      return -ENOMEM;
    sigv4_print_hex(hash, hex);
    body = (struct span){ hex, sizeof hex };
  }
  r = check_time(secret, signer, sent, err);
  if (r == 0)
    r = check(secret, signer, sent, &auth, body, err);
  if (r == 0)
    r = sign(secret, signer, &auth, body, head, out);
  if (r == -ENOMEM)
    return err_set(err, ENOMEM, "no memory for a signature");
  return r == -E2BIG || r == -ENOBUFS
             ? err_set(err, ENOBUFS, "credential %s: the request is too large to be signed", secret->credential->name)
             : r;
}
