/* The program that a command names: found (0), not found (127) or not executable (126). F42. */
#include "unit/facts_make.h"

#define KEPT HOME "/.local/state/sbx/home/key"

static const struct thing things[] = {
  PROGRAM("/usr/bin/tool"),
  REGULAR("/usr/bin/plain"),
  DIRECTORY("/usr/bin/dir"),
  PROGRAM("/srv/bin/outside"),
  PROGRAM(HOME "/.cargo/bin/cargo"),
  PROGRAM(HOME "/bin/mine"),
  PROGRAM(KEPT "/bin/kept"),
  PROGRAM(WORK "/run.sh"),
  REGULAR(WORK "/text"),
  LINK(WORK "/link", "/usr/bin/tool"),
  LINK(WORK "/away", "/srv/bin/outside"),
  PROGRAM(WORK "/hidden"),
  REGULAR("/opt/first/tool"),
};

static const struct {
  const char *path;
  const char *command;
  int result;
  const char *text; /* the program, or part of the message */
} rows[] = {
  { "/usr/bin", "tool", 0, "/usr/bin/tool" },
  { "/nonexistent:/usr/bin", "tool", 0, "/usr/bin/tool" },
  { ":relative:.:/usr/bin", "tool", 0, "/usr/bin/tool" },
  { "/opt/first:/usr/bin", "tool", 0, "/usr/bin/tool" }, /* as execvp(3): past one that is not executable */
  { "/opt/first", "tool", -EACCES, "/opt/first/tool: not executable" },
  { "/usr/bin", "plain", -EACCES, "/usr/bin/plain: not executable" },
  { "/usr/bin", "dir", -EACCES, "/usr/bin/dir: is a directory" },
  { "/usr/bin", "absent", -ENOENT, "absent: command not found" },
  { "", "tool", -ENOENT, "tool: command not found" },
  { "/usr/bin:/srv/bin", "outside", -ENOENT, "on the host at /srv/bin/outside, which the sandbox does not show" },
  { HOME "/.cargo/bin", "cargo", 0, HOME "/.cargo/bin/cargo" },
  { HOME "/bin", "mine", -ENOENT, "on the host at " HOME "/bin/mine" },
  { HOME "/bin", "kept", 0, HOME "/bin/kept" },
  { "/usr/bin", "/usr/bin/tool", 0, "/usr/bin/tool" },
  { "/usr/bin", "/bin/tool", 0, "/bin/tool" },
  { "/usr/bin", "/srv/bin/outside", -ENOENT, "does not show" },
  { "/usr/bin", "/usr/bin/dir", -EACCES, "is a directory" },
  { "/usr/bin", "/usr/bin/absent", -ENOENT, "command not found" },
  { "/usr/bin", "./run.sh", 0, WORK "/./run.sh" },
  { "/usr/bin", "./text", -EACCES, "not executable" },
  { "/usr/bin", "./link", 0, WORK "/./link" },
  { "/usr/bin", "./away", -ENOENT, "does not show" },
  { "/usr/bin", "./hidden", -ENOENT, "does not show" },
  { "/usr/bin", "run.sh", -ENOENT, "run.sh: command not found" }, /* never from the working directory */
};

/* Looks at a name that need not be canonical, as facts_read_paths() does for a command. */
static void look(struct facts *facts, const struct make_world *world, const char *path)
{
  mem_autofree char *plain = make_copy(path);
  char *dot = strstr(plain, "/./");
  struct fact_path *fact;

  if (facts_path(facts, path))
    return;
  if (dot)
    memmove(dot, dot + 2, strlen(dot + 2) + 1);
  assert_int_equal(mem_grow(&facts->paths, facts->path_count, &facts->path_cap, sizeof *facts->paths, STRV_MAX_DEFAULT),
                   0);
  fact = &facts->paths[facts->path_count++];
  *fact = (struct fact_path){ .asked = make_copy(path) };
  make_look(world, plain, fact, 0);
  qsort(facts->paths, facts->path_count, sizeof *facts->paths, make_compare);
}

static void look_for(struct facts *facts, const struct make_world *world, const char *path_variable,
                     const char *command)
{
  struct span rest = span_of(path_variable);
  struct span part;

  if (strchr(command, '/')) {
    mem_autofree char *path = path_join(command[0] == '/' ? "/" : facts->cwd, command);

    look(facts, world, path);
    return;
  }
  while (span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    mem_autofree char *path = path_join(dir, command);
    mem_autofree char *kept = NULL;

    if (dir[0] != '/')
      continue;
    look(facts, world, path);
    if (path_is_within(path, HOME))
      kept = path_join(KEPT, path + strlen(HOME));
    if (kept)
      look(facts, world, kept);
  }
}

static void test_rows(void **state)
{
  const struct make_world world = { things, MEM_COUNT(things) };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char *argv[] = { make_copy(rows[i].command), NULL };
    char json[256];
    facts_autofree struct facts facts = FACTS_INIT;
    plan_autofree struct plan plan = PLAN_INIT;
    struct err err = ERR_INIT;
    int r;

    snprintf(json, sizeof json, "{\"env\": {\"set\": {\"PATH\": \"%s\"}}, \"filesystem\": {\"hide\": [\"hidden\"]}}",
             rows[i].path);
    policy_autofree struct policy *policy = make_policy(json);

    make_caller(&facts, 1000, NULL);
    make_paths(&facts, policy, &world, NULL);
    assert_string_equal(plan_path_variable(policy, &facts), rows[i].path);
    look_for(&facts, &world, rows[i].path, rows[i].command);
    if (make_plan(policy, &facts, argv, &err, &plan) < 0)
      fail_msg("%s", err.message);
    r = plan_resolve_program(&facts, &err, &plan);
    unit_assert_row(r == rows[i].result, rows[i].command, r < 0 ? err.message : plan.program);
    if (r == 0)
      assert_string_equal(plan.program, rows[i].text);
    else
      unit_assert_row(strstr(err.message, rows[i].text) != NULL, rows[i].command, err.message);
    assert_true(r == 0 || !plan.program);
    free(argv[0]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
