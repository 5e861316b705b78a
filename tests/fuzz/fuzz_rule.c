/* A rule: whatever is accepted has a canonical text that parses to the same rule. */
#include "fuzz/fuzz.h"

#include "policy/rule.h"

#include <string.h>

static int replay(enum rule_list list, const uint8_t *data, size_t size)
{
  struct policy_rule rule;
  struct policy_rule again;
  struct err err = ERR_INIT;

  if (rule_parse((struct span){ (const char *)data, size }, list, &err, &rule) < 0) {
    FUZZ_ASSERT(err.message[0] != '\0');
    return 0;
  }
  FUZZ_ASSERT(rule_parse(span_of(rule.text), list, &err, &again) == 0);
  FUZZ_ASSERT(strcmp(rule.text, again.text) == 0 && rule.kind == again.kind);
  FUZZ_ASSERT(rule.port_count == again.port_count && rule.port_count > 0);
  FUZZ_ASSERT(memcmp(rule.ports, again.ports, rule.port_count * sizeof *rule.ports) == 0);
  FUZZ_ASSERT(rule.kind != POLICY_HOST_SUBDOMAINS || strchr(rule.name, '.'));
  rule_free(&rule);
  rule_free(&again);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return replay(RULE_ALLOW, data, size) + replay(RULE_DENY, data, size);
}
