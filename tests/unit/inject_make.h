/* inject_make: credentials of every kind with their placeholders and values, for tests of injection. */
#ifndef SBX_TESTS_UNIT_INJECT_MAKE_H
#define SBX_TESTS_UNIT_INJECT_MAKE_H

#include "proxy/inject.h"

enum inject_make {
  MAKE_TOKEN, /* replaced */
  MAKE_QUERY, /* replaced, in ?key= too */
  MAKE_OWN, /* replaced, in X-Own too */
  MAKE_BEARER, /* attached */
  MAKE_BASIC, /* attached if absent */
  MAKE_KEY, /* attached if absent, X-Api-Key */
  MAKE_PARAMETER, /* attached, ?sign= */
  MAKE_COUNT,
};

static char make_key[] = "key";
static char make_own[] = "X-Own";
static char make_user[] = "user";
static char make_api_key[] = "X-Api-Key";
static char make_sign[] = "sign";
static char make_names[MAKE_COUNT][8] = { "token", "query", "own", "bearer", "basic", "key", "param" };

static const struct policy_credential make_credentials[MAKE_COUNT] = {
  { .name = make_names[0], .inject = POLICY_INJECT_REPLACE, .place = POLICY_PLACE_BEARER },
  { .name = make_names[1], .inject = POLICY_INJECT_REPLACE, .place = POLICY_PLACE_QUERY, .place_name = make_key },
  { .name = make_names[2], .inject = POLICY_INJECT_REPLACE, .place = POLICY_PLACE_HEADER, .place_name = make_own },
  { .name = make_names[3], .inject = POLICY_INJECT_ATTACH, .place = POLICY_PLACE_BEARER },
  { .name = make_names[4],
    .inject = POLICY_INJECT_ATTACH_IF_ABSENT,
    .place = POLICY_PLACE_BASIC,
    .place_name = make_user },
  { .name = make_names[5],
    .inject = POLICY_INJECT_ATTACH_IF_ABSENT,
    .place = POLICY_PLACE_HEADER,
    .place_name = make_api_key },
  { .name = make_names[6], .inject = POLICY_INJECT_ATTACH, .place = POLICY_PLACE_QUERY, .place_name = make_sign },
};

/* The values share no four bytes with the placeholders or with each other, and none begins as a placeholder ends or
 * ends as one begins: what is left of half a value beside a placeholder does not make a whole one. */
static const struct inject_secret make_secrets[MAKE_COUNT] = {
  { &make_credentials[0], SPAN_INIT("ghp_TTTTplaceholder"), SPAN_INIT("Neal0+/=%0~value") },
  { &make_credentials[1], SPAN_INIT("AIzaQQQQplaceholder"), SPAN_INIT("genuine1&=?1 secret") },
  { &make_credentials[2], SPAN_INIT("own-WWWWplaceholder"),
    SPAN_INIT("\xc3\xa9"
              "clair2") },
  { &make_credentials[3], SPAN_INIT("brr.BBBBplaceholder"), SPAN_INIT("VALUE-THREE-3") },
  { &make_credentials[4], SPAN_INIT("bsc~AAAAplaceholder"), SPAN_INIT("pass:four:4") },
  { &make_credentials[5], SPAN_INIT("sk-ant-KKKKplacehold"), SPAN_INIT("5555-truth-5") },
  { &make_credentials[6], SPAN_INIT("sgn_PPPPplaceholder"), SPAN_INIT("six 6 \"six\"") },
};

static inline enum inject_verdict make_look(inject_set bound, const struct http_head *head, inject_set *ret_wanted,
                                            size_t *ret_index)
{
  struct inject_look look;
  enum inject_verdict verdict = inject_look(make_secrets, MAKE_COUNT, bound, head, &look);

  *ret_wanted = look.wanted;
  *ret_index = look.index;
  return verdict;
}

/* The head as it goes over the wire. */
static inline void make_print_request(const struct http_head *head, struct buf *out)
{
  buf_append(out, head->method);
  buf_append_byte(out, ' ');
  buf_append(out, head->target);
  buf_printf(out, " HTTP/1.%u\r\n", head->minor);
  for (size_t i = 0; i < head->field_count; i++) {
    buf_append(out, head->fields[i].name);
    buf_append_str(out, ": ");
    buf_append(out, head->fields[i].value);
    buf_append_str(out, "\r\n");
  }
  buf_append_str(out, "\r\n");
}

#endif
