/* Every allocation of the policy code fails once: the answer is -ENOMEM or, where a part can do without, a right
 * result; never a crash, a leak (under valgrind or ASan) or a policy that lacks something. json-c's own allocations
 * are not reached: the linker wraps the calls of our archives alone. */
#include "policy/decide.h"
#include "unit/policy_make.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

/* Allocations until one fails; 0: none fails. */
static size_t alloc_countdown;
static size_t alloc_failed;

static bool alloc_fails(void)
{
  if (alloc_countdown == 0 || --alloc_countdown > 0)
    return false;
  alloc_failed++;
  return true;
}

void *__wrap_malloc(size_t size)
{
  return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
  return alloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
  return alloc_fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
  return alloc_fails() ? NULL : __real_reallocarray(old, count, size);
}

static const char alloc_text[] =
    "{\"extends\": [\"git\", \"strict\"],\n"
    "\"filesystem\": {\"read\": [\"/a\", \"~/b\", \"./~c\"], \"hide\": [\"**/x\"]},\n"
    "\"network\": {\"allow\": [\"a.test\", \"a.test\", \"*.b.test:22\", \"[::1]:9\", \"*\"],\n"
    "  \"forward\": [1, \"2:3\"], \"upstreamProxy\": \"http://p.test:1\"},\n"
    "\"credentials\": {\"github\": {}, \"x\": {\"source\": {\"exec\": [\"p\", \"q\"]}, \"env\": [\"X\", \"Y\"], "
    "\"bind\": [\"c.test\"], \"place\": {\"header\": \"k\"}}, \"f\": {\"source\": {\"file\": \"/f\"}, \"bind\": "
    "[\"192.0.2.1\"], \"inject\": \"attach\"}},\n"
    "\"env\": {\"pass\": [\"A*\"], \"set\": {\"B\": \"c\"}},\n"
    "\"limits\": {\"memory\": \"1g\"}, \"audit\": {\"file\": \"/x\"}}";

/* The whole way once. 0 with the canonical text, or a negative errno. */
static int alloc_run(enum layer_kind kind, char **ret_text)
{
  layers_autofree struct layers *layers = layers_new();
  strv_autofree struct strv notes = STRV_INIT;
  policy_autofree struct policy *policy = NULL;
  policy_autofree struct policy *parsed = NULL;
  buf_autofree struct buf out = BUF_INIT(1024 * 1024);
  buf_autofree struct buf again = BUF_INIT(1024 * 1024);
  struct err err = ERR_INIT;
  int r = layers ? layers_add_text(layers, kind, "/w/p.json", span_of(alloc_text), &err) : -ENOMEM;

  if (r == 0)
    r = layers_add_option(layers, "env", "E=y", "--env", &err);
  if (r == 0)
    r = layers_add_option(layers, "credentials", "npm=exec:a b", "--credential", &err);
  if (r == 0)
    r = policy_validate(layers, &err, &notes, &policy);
  if (r < 0)
    return r;
  policy_print(policy, true, &out);
  r = buf_error(&out);
  if (r == 0)
    r = policy_parse(buf_span(&out), &err, &parsed);
  if (r < 0)
    return r;
  policy_print(parsed, true, &again);
  *ret_text = buf_steal(&again);
  return *ret_text ? 0 : -ENOMEM;
}

static void check_every_allocation(enum layer_kind kind)
{
  char *wanted = NULL;
  size_t failures = 0;

  assert_int_equal(alloc_run(kind, &wanted), 0);
  for (size_t i = 1;; i++) {
    char *text = NULL;
    alloc_failed = 0;
    alloc_countdown = i;
    int r = alloc_run(kind, &text);
    alloc_countdown = 0;
    if (r == 0)
      assert_string_equal(text, wanted);
    else
      assert_int_equal(r, -ENOMEM);
    free(text);
    if (alloc_failed == 0)
      break;
    failures += r < 0;
  }
  assert_true(failures > 100);
  free(wanted);
}

static void test_file(void **state)
{
  (void)state;
  check_every_allocation(LAYER_FILE);
}

static void test_untrusted_workspace(void **state)
{
  (void)state;
  check_every_allocation(LAYER_WORKSPACE);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_file), cmocka_unit_test(test_untrusted_workspace) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
