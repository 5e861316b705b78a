#include "config.h"

#include "plan/build.h"

#include "plan/ops.h"
#include "policy/decide.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The first Landlock ABI that can keep a process from abstract sockets outside (Linux 6.12). */
#define BUILD_ABI_SCOPES 6
#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static enum plan_network network_of(const struct policy *policy)
{
  switch (policy->network) {
  case POLICY_NETWORK_PROXY:
    return PLAN_NETWORK_PROXY;
  case POLICY_NETWORK_HOST:
    return PLAN_NETWORK_HOST;
  case POLICY_NETWORK_NONE:
    break;
  }
  return PLAN_NETWORK_NONE;
}

static size_t count_files(const struct policy *policy)
{
  size_t count = 0;

  for (size_t i = 0; i < policy->credentials.count; i++)
    count += policy->credentials.items[i].files.count;
  return count;
}

static int set_frame(const struct policy *policy, const struct facts *facts, char *const *argv, struct plan *plan)
{
  int r = 0;

  for (; *argv && r == 0; argv++)
    r = strv_add(&plan->argv, *argv);
  plan->network = network_of(policy);
  plan->new_session = !facts->terminal;
  plan->scope_abstract = plan->network == PLAN_NETWORK_HOST && facts->landlock_abi >= BUILD_ABI_SCOPES;
  if (plan->network == PLAN_NETWORK_HOST && !plan->scope_abstract && r == 0)
    r = strv_add(&plan->warnings,
                 "network.mode host: on this kernel the command also reaches the host's abstract sockets");
  plan->syscalls = (struct syscalls_options){ .nesting = policy->nesting,
                                              .ptrace = policy->ptrace,
                                              .foreign = policy->foreign,
                                              .pin_cpus = policy->cpu_milli != 0,
                                              .shared_session = facts->terminal };
  plan->limits = (struct plan_limits){ .memory_bytes = policy->memory_bytes,
                                       .cpu_milli = policy->cpu_milli,
                                       .pids = policy->pids,
                                       .timeout_ms = policy->timeout_ms };
  plan->data_max = facts->file_count + 1; /* and /etc/hosts */
  plan->tls = plan->network == PLAN_NETWORK_PROXY && decide_may_terminate(policy);
  if (plan->tls)
    plan->late_max = facts->root_count + 1 + facts->java_count + count_files(policy) +
                     (facts->certutil ? BUILD_NSS_FILES : 0); /* and the CA itself */
  plan->workspace = mem_strndup(facts->workspace, strlen(facts->workspace));
  return plan->workspace ? r : -ENOMEM;
}

/* The caller's directory where the command can see it, else the workspace. */
static int set_cwd(const struct facts *facts, struct plan *plan)
{
  const struct plan_op *cover = ops_covering(plan, facts->cwd);
  bool shown = cover && ops_is_bind(cover) && strcmp(cover->source, cover->target) == 0;
  const char *cwd = shown ? facts->cwd : facts->workspace;

  plan->cwd = mem_strndup(cwd, strlen(cwd));
  return plan->cwd ? 0 : -ENOMEM;
}

int plan_begin(const struct policy *policy, const struct facts *facts, char *const *argv, struct err *err,
               struct plan *plan)
{
  int r = set_frame(policy, facts, argv, plan);

  return r < 0 ? err_set_errno(err, -r, "plan") : 0;
}

int plan_build(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = build_system(policy, facts, err, plan);

  if (r == 0)
    r = build_visible(policy, facts, err, plan);
  if (r == 0)
    r = build_protect(policy, facts, err, plan);
  if (r == 0)
    r = build_hide(policy, facts, err, plan);
  if (r == 0)
    r = build_held(policy, facts, err, plan);
  if (r == 0)
    r = build_network(policy, err, plan);
  if (r == 0)
    r = build_publish(policy, err, plan);
  if (r == 0)
    r = build_upstream(policy, facts, err, plan);
  if (r == 0)
    r = build_env(policy, facts, err, plan);
  if (r == 0)
    r = build_idle(policy, facts, err, plan);
  if (r < 0)
    return r;
  if (!ops_add(plan, PLAN_STAGE_SEAL, PLAN_SEAL, NULL, "/", "root") || set_cwd(facts, plan) < 0)
    return OUT_OF_MEMORY(err);
  return 0;
}

/* Whether the host's object behind fact is what the command finds at fact's name inside. */
static bool is_visible(const struct plan *plan, const struct fact_path *fact)
{
  const struct plan_op *named = ops_covering(plan, fact->asked);
  const struct plan_op *real = ops_covering(plan, fact->real);

  if (!named || (!ops_is_bind(named) && named->kind != PLAN_SYMLINK))
    return false;
  if (ops_is_bind(named) && strcmp(named->source, named->target) != 0)
    return true; /* a private home, or a toolchain shown under its own name */
  return real && ops_is_bind(real);
}

const struct fact_path *build_find_inside(const struct plan *plan, const struct facts *facts, const char *path,
                                          bool *ret_outside)
{
  const struct plan_op *cover = ops_covering(plan, path);
  const struct fact_path *fact;
  mem_autofree char *source = NULL;

  if (cover && ops_is_bind(cover) && plan->private_home && strcmp(cover->source, plan->private_home) == 0) {
    source = ops_source_of(cover, path);
    fact = source ? facts_path(facts, source) : NULL;
    if (fact && !fact->error)
      return fact;
    fact = facts_path(facts, path);
    *ret_outside |= fact && !fact->error;
    return NULL;
  }
  fact = facts_path(facts, path);
  if (!fact || fact->error)
    return NULL;
  if (is_visible(plan, fact))
    return fact;
  *ret_outside = true;
  return NULL;
}

static int check_program(const struct fact_path *fact, const char *path, struct err *err)
{
  if (S_ISDIR(fact->mode))
    return err_set(err, EACCES, "%s: is a directory, not a program", path);
  if (!S_ISREG(fact->mode) || !(fact->mode & 0111))
    return err_set(err, EACCES, "%s: not executable; chmod +x it, or name its interpreter", path);
  return 0;
}

/* The directory to be shown so that the program at path works: its own, or the one that has it in bin. */
static char *tree_of(const char *path, const struct facts *facts)
{
  mem_autofree char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
  const char *last = dir ? strrchr(dir, '/') : NULL;
  mem_autofree char *above = last ? mem_strndup(dir, (size_t)(last - dir)) : NULL;

  return above && strcmp(last, "/bin") == 0 && *above && !path_is_within(facts->home, above) ? mem_steal(above)
                                                                                             : mem_steal(dir);
}

static int not_found(const char *command, const char *outside, const struct facts *facts, struct err *err)
{
  mem_autofree char *tree = outside ? tree_of(outside, facts) : NULL;

  if (tree)
    return err_set(
        err, ENOENT,
        "%s: command not found inside; it is on the host at %s, which the sandbox does not show; to show it: " SBX_NAME
        " run --read %s -- %s ...",
        command, outside, tree, command);
  if (strpbrk(command, " \t;|&<>$`"))
    return err_set(err, ENOENT,
                   "%s: command not found; a command line goes through a shell: " SBX_NAME " run -- sh -c '...'",
                   command);
  return err_set(err, ENOENT, "%s: command not found", command);
}

/* That another program runs than the host's PATH leads to. */
static int tell_other_program(const char *outside, const struct facts *facts, struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, outside);
  mem_autofree char *tree = tree_of(outside, facts);

  if (!fact || fact->error || !S_ISREG(fact->mode) || !(fact->mode & 0111))
    return 0;
  return tree ? strv_addf(&plan->warnings,
                          "%s: %s runs, not %s, which your PATH has first and the sandbox does not show; to show it: "
                          "--read %s",
                          plan->argv.items[0], plan->program, outside, tree)
              : -ENOMEM;
}

int plan_resolve_program(const struct facts *facts, struct err *err, struct plan *plan)
{
  const char *command = plan->argv.items[0];
  struct span rest = SPAN_INIT("");
  struct span part;
  mem_autofree char *seen_outside = NULL;
  mem_autofree char *denied = NULL;

  if (command[0] == '\0')
    return err_set(err, ENOENT, "the command is an empty string; name a program");
  for (size_t i = 0; i < plan->env.count; i++) {
    if (strncmp(plan->env.items[i], "PATH=", 5) == 0)
      rest = span_of(plan->env.items[i] + 5);
  }
  if (strchr(command, '/'))
    rest = SPAN("/");
  while (span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    mem_autofree char *path = NULL;
    const struct fact_path *fact;
    bool outside = false;

    if (!dir || dir[0] != '/')
      continue;
    path = strchr(command, '/') && command[0] != '/' ? path_join(facts->cwd, command)
                                                     : path_join(command[0] == '/' ? "/" : dir, command);
    fact = path ? build_find_inside(plan, facts, path, &outside) : NULL;
    if (fact && check_program(fact, strchr(command, '/') ? command : path, err) == 0) {
      plan->program = mem_steal(path);
      if (seen_outside && tell_other_program(seen_outside, facts, plan) < 0)
        return OUT_OF_MEMORY(err);
      return 0;
    }
    if (fact && !denied)
      denied = mem_steal(path);
    else if (outside && !seen_outside)
      seen_outside = mem_steal(path);
  }
  if (denied)
    return -EACCES; /* err tells about the last one */
  return not_found(command, seen_outside, facts, err);
}
