/* What policy_documents needs from the program: the table of keys, and whether a policy file loads.
 *   policy_tool keys            one line per key: path, kind, type, words, null, option; separated by tabs
 *   policy_tool check FILE...   one line per file: "ok", or the error */
#include "policy/keys.h"
#include "policy/validate.h"

#include <stdio.h>
#include <string.h>

static const char *const merge_names[] = { [KEY_LIST] = "list", [KEY_SCALAR] = "scalar", [KEY_MAP] = "map" };

static const char *json_types(enum key_type type)
{
  switch (type) {
  case KEY_TYPE_BOOL:
    return "boolean";
  case KEY_TYPE_NUMBER:
    return "number";
  case KEY_TYPE_PORT_MAP:
  case KEY_TYPE_SIZE:
  case KEY_TYPE_CPUS:
  case KEY_TYPE_DURATION:
    return "number,string";
  case KEY_TYPE_CREDENTIAL:
    return "object";
  case KEY_TYPE_PROFILE:
  case KEY_TYPE_PATH:
  case KEY_TYPE_PATTERN:
  case KEY_TYPE_WORD:
  case KEY_TYPE_RULE:
  case KEY_TYPE_UPSTREAM:
  case KEY_TYPE_ENV_NAME:
  case KEY_TYPE_ENV_VALUE:
  case KEY_TYPE_FILE:
    break;
  }
  return "string";
}

static void print_keys(void)
{
  for (unsigned id = 0; id < KEY_COUNT; id++) {
    const struct key *key = keys_at((enum key_id)id);
    printf("%s\t%s\t%s\t", key->path, merge_names[key->merge], json_types(key->type));
    for (size_t i = 0; key->words && key->words[i]; i++)
      printf("%s%s", i > 0 ? "," : "", key->words[i]);
    printf("\t%s\t%s\n", key->nullable ? "null" : "", key->option ? key->option : "");
  }
}

static void check_file(const char *path)
{
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv notes = STRV_INIT;
  policy_autofree struct policy *policy = NULL;
  struct err err = ERR_INIT;
  int r = layers ? layers_add_file(layers, LAYER_FILE, path, &err) : -1;

  if (r == 0)
    r = policy_validate(layers, &err, &notes, &policy);
  puts(r == 0 ? "ok" : err.message);
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "keys") == 0) {
    print_keys();
    return 0;
  }
  if (argc < 3 || strcmp(argv[1], "check") != 0) {
    fprintf(stderr, "usage: policy_tool keys | check FILE...\n");
    return 2;
  }
  for (int i = 2; i < argc; i++)
    check_file(argv[i]);
  return 0;
}
