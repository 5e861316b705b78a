#include "base/mem.h"
#include "policy/keys.h"
#include "unit/unit.h"

static void test_table_is_consistent(void **state)
{
  (void)state;
  for (unsigned id = 0; id < KEY_COUNT; id++) {
    const struct key *key = keys_at(id);
    assert_non_null(key->path);
    assert_int_equal(key->id, id);
    assert_ptr_equal(keys_find(span_of(key->path)), key);
    assert_non_null(key->help);
    assert_int_equal(key->option == NULL, key->argument == NULL);
    if (key->type == KEY_TYPE_WORD || key->type == KEY_TYPE_BOOL)
      assert_non_null(key->words);
    if (key->merge != KEY_SCALAR)
      assert_true(key->trust == KEY_TAKEN || key->trust == KEY_IF_TRUSTED || key->trust == KEY_NEVER);
    size_t dot = span_find(span_of(key->path), '.');
    if (dot < strlen(key->path))
      assert_true(keys_is_object(span_sub(span_of(key->path), 0, dot)));
  }
}

/* Printing opens each object once, so the keys of one object have to stand together. */
static void test_objects_stand_together(void **state)
{
  (void)state;
  for (unsigned i = 0; i < KEY_COUNT; i++) {
    for (unsigned j = i + 2; j < KEY_COUNT; j++) {
      struct span a = span_of(keys_at(i)->path);
      struct span b = span_of(keys_at(j)->path);
      struct span between = span_of(keys_at(j - 1)->path);
      a = span_sub(a, 0, span_find(a, '.'));
      b = span_sub(b, 0, span_find(b, '.'));
      if (span_equal(a, b))
        assert_true(span_equal(a, span_sub(between, 0, span_find(between, '.'))));
    }
  }
}

static void test_suggestions(void **state)
{
  static const struct {
    const char *parent;
    const char *name;
    const char *near; /* NULL: none */
  } rows[] = {
    { "network", "alow", "allow" },
    { "network", "Allow", "allow" },
    { "network", "allowed", "allow" },
    { "network", "deney", "deny" },
    { "", "filesytem", "filesystem" },
    { "", "netwrok", "network" },
    { "limits", "memroy", "memory" },
    { "", "extend", "extends" },
    { "env", "sets", "set" },
    { "network", "unix-sockets", "unixSockets" },
    { "network", "x", NULL },
    { "network", "completely", NULL },
    { "", "", NULL },
    { "limits", "cpu", "cpus" },
    { "env", "xyz", NULL },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct span near;
    bool found = keys_suggest(span_of(rows[i].parent), span_of(rows[i].name), &near);
    unit_assert_row(found == (rows[i].near != NULL), rows[i].name, "suggestion");
    if (found)
      unit_assert_row(span_equal_str(near, rows[i].near), rows[i].name, rows[i].near);
  }
}

static void test_lookup(void **state)
{
  (void)state;
  assert_null(keys_find(SPAN("network")));
  assert_null(keys_find(SPAN("network.allo")));
  assert_null(keys_find(SPAN("network.allow.x")));
  assert_null(keys_find(SPAN("")));
  assert_true(keys_is_object(SPAN("network")));
  assert_false(keys_is_object(SPAN("extends")));
  assert_false(keys_is_object(SPAN("")));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table_is_consistent),
    cmocka_unit_test(test_objects_stand_together),
    cmocka_unit_test(test_suggestions),
    cmocka_unit_test(test_lookup),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
