/* Theory of operation
 *
 * A placeholder is swapped only where credentials stand by their nature: in Authorization, in the few fields that
 * services use beside it, in the field or query parameter that the policy names as the credential's place. Anywhere
 * else the value would be a present: a service that complains "unknown version VALUE" or "nothing found for VALUE" in
 * its response's body would hand it to whoever sent a placeholder in Accept or in ?q= (F70). So a placeholder that
 * stands in another field or in the path is refused, with a reason that tells what to write into the policy, and not
 * passed on: the service would answer 401 and nobody would know why (F79). Cookie and Referer are the exception, for a
 * target that the credential is bound to: clients fill them by themselves with what they were sent, and that has been
 * scrubbed, so refusing would block every later request; there the placeholder goes on as it is.
 *
 * What is swapped once is not looked at again: a value that looks like a placeholder stays a value.
 */
#include "proxy/inject.h"

#include "policy/credential_word.h"
#include "policy/inject_find.h"
#include "proxy/inject_place.h"
#include "proxy/inject_sign.h"

/* How a placeholder stands in a part of a request. */
enum standing {
  STANDS_NOT,
  STANDS_ECHOED, /* where it is left alone */
  STANDS_AT_PLACE, /* where it is swapped */
  STANDS_ELSEWHERE,
};

static enum standing stands_in_field(const struct inject_secret *secret, const struct http_field *field)
{
  buf_autowipe struct buf plain = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  struct inject_match match;
  struct span scheme;
  struct span token;

  if (!inject_find(field->value, 0, secret->placeholder, &match))
    return STANDS_NOT;
  if (!inject_is_place(secret->credential, field->name))
    return inject_is_echoed(field->name) ? STANDS_ECHOED : STANDS_ELSEWHERE;
  if (inject_find_raw(field->value, 0, secret->placeholder) < field->value.len)
    return STANDS_AT_PLACE;
  if (inject_read_basic(field->value, &scheme, &token, &plain) &&
      inject_find_raw(buf_span(&plain), 0, secret->placeholder) < plain.len)
    return STANDS_AT_PLACE;
  return STANDS_ELSEWHERE;
}

static enum standing stands_in_target(const struct inject_secret *secret, struct span target)
{
  enum standing standing = STANDS_NOT;
  struct span rest = inject_query_of(target);
  struct inject_parameter parameter;
  struct inject_match match;

  if (inject_find(inject_path_of(target), 0, secret->placeholder, &match)) {
    if (secret->credential->place != POLICY_PLACE_PATH ||
        !inject_find_escaped(inject_path_of(target), 0, secret->placeholder, &match))
      return STANDS_ELSEWHERE;
    standing = STANDS_AT_PLACE;
  }
  while (inject_next_parameter(&rest, &parameter)) {
    if (!inject_find(parameter.all, 0, secret->placeholder, &match))
      continue;
    if (!inject_is_place_parameter(secret->credential, parameter.name) ||
        !inject_find_escaped(parameter.value, 0, secret->placeholder, &match))
      return STANDS_ELSEWHERE;
    standing = STANDS_AT_PLACE;
  }
  return standing;
}

/* The worst of all the places where it stands. */
static enum standing stands_in(const struct inject_secret *secret, const struct http_head *head)
{
  enum standing worst = stands_in_target(secret, head->target);

  for (size_t i = 0; i < head->field_count; i++) {
    enum standing standing = stands_in_field(secret, &head->fields[i]);

    if (standing > worst)
      worst = standing;
  }
  return worst;
}

/* *ret_fault is why the placeholder is refused, if it is, where there is more to say. Of a credential that signs both
 * words are looked for. */
static enum standing stands_with_fault(const struct inject_secret *secret, const struct http_head *head,
                                       const struct inject_fault **ret_fault)
{
  struct inject_secret key = { .credential = secret->credential,
                               .placeholder = credential_word(secret->placeholder, CREDENTIAL_SECRET_KEY) };
  enum standing worst;

  *ret_fault = NULL;
  if (secret->credential->place != POLICY_PLACE_SIGV4)
    return stands_in(secret, head);
  worst = stands_in(&key, head);
  *ret_fault = inject_sign_misplaced();
  if (worst == STANDS_ELSEWHERE)
    return worst;
  switch (inject_sign_look(credential_word(secret->placeholder, CREDENTIAL_KEY_ID), head, ret_fault)) {
  case INJECT_ID_NOT:
    return worst;
  case INJECT_ID_ECHOED:
    return STANDS_ECHOED;
  case INJECT_ID_SIGNS:
    return STANDS_AT_PLACE;
  case INJECT_ID_ELSEWHERE:
    break;
  }
  return STANDS_ELSEWHERE;
}

enum inject_verdict inject_look(const struct inject_secret *secrets, size_t count, inject_set bound,
                                const struct http_head *head, struct inject_look *ret_look)
{
  struct inject_look look = { 0 };

  *ret_look = look;
  if (inject_is_traced(head->method))
    bound = 0;
  for (size_t i = 0; i < count; i++) {
    bool signs = secrets[i].credential->place == POLICY_PLACE_SIGV4;
    const struct inject_fault *fault = NULL;
    enum standing standing = stands_with_fault(&secrets[i], head, &fault);

    if (standing == STANDS_ELSEWHERE || (standing != STANDS_NOT && !inject_has(bound, i))) {
      ret_look->index = i;
      ret_look->fault = inject_has(bound, i) ? fault : NULL;
      return INJECT_MISUSE;
    }
    if (!inject_has(bound, i) || (standing != STANDS_AT_PLACE && !inject_attaches(secrets[i].credential, head)))
      continue;
    look.wanted |= (inject_set)1 << i;
    look.body = look.body || (signs && sigv4_body_of(head) == SIGV4_BODY_ABSENT);
  }
  *ret_look = look;
  return look.wanted ? INJECT_WANTS : INJECT_PASS;
}
