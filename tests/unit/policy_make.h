/* policy_make: policies from text, for the tests of what reads them. */
#ifndef SBX_TESTS_UNIT_POLICY_MAKE_H
#define SBX_TESTS_UNIT_POLICY_MAKE_H

#include "policy/print.h"
#include "policy/validate.h"
#include "unit/unit.h"

/* One text that is added to the layers. */
struct make_layer {
  enum layer_kind kind;
  const char *name;
  const char *text;
};

/* Validates the built-in base and count texts. The result of policy_validate, or of the first layer that failed;
 * *ret_policy and notes may be NULL. */
static inline int make_validate(const struct make_layer *texts, size_t count, struct err *err, struct strv *notes,
                                struct policy **ret_policy)
{
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv own_notes = STRV_INIT;
  policy_autofree struct policy *policy = NULL;
  int r = 0;

  assert_non_null(layers);
  for (size_t i = 0; r == 0 && i < count; i++)
    r = layers_add_text(layers, texts[i].kind, texts[i].name, span_of(texts[i].text), err);
  if (r == 0)
    r = policy_validate(layers, err, notes ? notes : &own_notes, &policy);
  if (r == 0 && ret_policy)
    *ret_policy = mem_steal(policy);
  return r;
}

/* The policy of one text on top of the built-in base; the text has to be right. */
static inline struct policy *make_policy(const char *text)
{
  struct make_layer layer = { LAYER_FILE, "/test.json", text };
  struct err err = ERR_INIT;
  struct policy *policy = NULL;

  if (make_validate(&layer, 1, &err, NULL, &policy) < 0)
    fail_msg("%s: %s", text, err.message);
  return policy;
}

/* What policy_print makes of a policy. Caller frees. */
static inline char *make_print(const struct policy *policy, bool with_origins)
{
  struct buf out = BUF_INIT(8 * 1024 * 1024);
  char *text;

  policy_print(policy, with_origins, &out);
  text = buf_steal(&out);
  assert_non_null(text);
  return text;
}

#endif
