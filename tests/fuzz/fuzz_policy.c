/* A policy file: whatever loads prints to a canonical text that parses to the same policy, and to a policy file that
 * makes the same policy; and an untrusted workspace file never allows anything. The first byte chooses the layer. */
#include "fuzz/fuzz.h"

#include "policy/print.h"
#include "policy/validate.h"

#include <errno.h>
#include <string.h>

static char *print(const struct policy *policy, bool with_origins)
{
  struct buf out = BUF_INIT(64 * 1024 * 1024);
  char *text;

  policy_print(policy, with_origins, &out);
  text = buf_steal(&out);
  FUZZ_ASSERT(text);
  return text;
}

static void check_round_trip(const struct policy *policy)
{
  mem_autofree char *canonical = print(policy, true);
  mem_autofree char *human = print(policy, false);
  policy_autofree struct policy *parsed = NULL;
  policy_autofree struct policy *reloaded = NULL;
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv notes = STRV_INIT;
  struct err err = ERR_INIT;

  if (strlen(canonical) > 8 * 1024 * 1024)
    return;
  FUZZ_ASSERT(policy_parse(span_of(canonical), &err, &parsed) == 0);
  mem_autofree char *again = print(parsed, true);
  FUZZ_ASSERT(strcmp(again, canonical) == 0);
  FUZZ_ASSERT(layers && layers_add_text(layers, LAYER_FILE, "/human.json", span_of(human), &err) == 0);
  /* A login is not printed, and what stands in its place is not taken for one. */
  if (policy->upstream_url && strchr(policy->upstream_url, '@')) {
    FUZZ_ASSERT(policy_validate(layers, &err, &notes, &reloaded) == -EINVAL);
    return;
  }
  FUZZ_ASSERT(policy_validate(layers, &err, &notes, &reloaded) == 0);
  mem_autofree char *human_again = print(reloaded, false);
  FUZZ_ASSERT(strcmp(human_again, human) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv notes = STRV_INIT;
  policy_autofree struct policy *policy = NULL;
  struct err err = ERR_INIT;
  bool untrusted = size > 0 && data[0] == 'w';

  FUZZ_ASSERT(layers);
  if (size == 0)
    return 0;
  struct span text = { (const char *)data + 1, size - 1 };
  if (layers_add_text(layers, untrusted ? LAYER_WORKSPACE : LAYER_FILE, "/fuzz.json", text, &err) < 0 ||
      policy_validate(layers, &err, &notes, &policy) < 0) {
    FUZZ_ASSERT(err.code == EINVAL && err.message[0] != '\0');
    return 0;
  }
  check_round_trip(policy);
  if (untrusted)
    FUZZ_ASSERT(policy->allow.count + policy->read.count + policy->write.count + policy->unprotect.count +
                        policy->forward.count + policy->publish.count + policy->unix_sockets.count +
                        policy->env_pass.count + policy->env_set.count + policy->credentials.count ==
                    0 &&
                policy->network != POLICY_NETWORK_HOST && policy->home != POLICY_HOME_HOST);
  return 0;
}
