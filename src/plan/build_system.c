/* The stages that are the same for every project: system, kernel interfaces, private directories. */
#include "plan/build.h"
#include "plan/ops.h"
#include "plan/view.h"
#include "sys/path.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

/* A tree that a private directory would cover comes after it. */
static int add_system_tree(const struct facts *facts, const char *tree, enum plan_stage stage, struct err *err,
                           struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, tree);
  const struct plan_op *op;

  if (!fact)
    return err_set(err, EINVAL, "plan: %s was not looked at", tree);
  if (fact->error)
    return 0;
  op = ops_add(plan, stage, fact->link ? PLAN_SYMLINK : PLAN_BIND_RO, fact->real, tree, "system");
  return op ? 0 : OUT_OF_MEMORY(err);
}

/* ssh's own directory with copies instead of the host's files: see facts.h, and host keys stay outside. */
static int add_ssh(const struct facts *facts, struct err *err, struct plan *plan)
{
  bool ok;

  if (!facts->file_count)
    return 0;
  ok = ops_add(plan, PLAN_STAGE_SYSTEM, PLAN_TMPFS, NULL, "/etc/ssh", "ssh configuration");
  for (size_t i = 0; i < facts->file_count && ok; i++) {
    const struct fact_file *file = &facts->files[i];
    struct plan_op *op = ops_add(plan, PLAN_STAGE_SYSTEM, PLAN_FILE, NULL, file->path, "ssh configuration");

    ok = op && (op->data = mem_strndup(file->text, strlen(file->text)));
    if (ok)
      op->mode = file->mode;
  }
  ok = ok && ops_add(plan, PLAN_STAGE_SYSTEM, PLAN_DIR, NULL, "/etc/ssh/ssh_config.d", "ssh configuration");
  ok = ok && ops_add(plan, PLAN_STAGE_SYSTEM, PLAN_SEAL, NULL, "/etc/ssh", "ssh configuration");
  return ok ? 0 : OUT_OF_MEMORY(err);
}

/* Names of the host's hosts file belong to the host: the proxy reads them when it resolves (DESIGN 8), and a program
 * that found their addresses here would ask for an address where the policy has a name. The sandbox's own name is one
 * that resolves, to an address that leads back to it (and not to localhost). With the host's network the host's names
 * stay. */
static int add_hosts(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  static const char own[] = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 sbx\n";
  const struct fact_path *fact = facts_path(facts, "/etc/hosts");
  const char *host = policy->network == POLICY_NETWORK_HOST && facts->hosts ? facts->hosts : "";
  struct plan_op *op;
  char *text;

  if (!fact || fact->error || !S_ISREG(fact->mode) || !path_is_within(fact->real, "/etc"))
    return 0;
  op = ops_add(plan, PLAN_STAGE_SYSTEM, PLAN_COVER, NULL, fact->real, "hosts");
  if (!op || asprintf(&text, "%s%s", own, host) < 0)
    return OUT_OF_MEMORY(err);
  op->data = text;
  op->mode = 0644;
  return 0;
}

/* With the host's network, names are resolved by the host's own means, and its resolv.conf often leads into /run. */
static int add_resolver(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, "/etc/resolv.conf");

  if (policy->network != POLICY_NETWORK_HOST || !fact || fact->error || path_is_within(fact->real, "/etc"))
    return 0;
  return ops_add(plan, PLAN_STAGE_PRIVATE, PLAN_BIND_RO, fact->real, fact->real, "resolver") ? 0 : OUT_OF_MEMORY(err);
}

static int add_masks(const struct facts *facts, const struct view_mask *masks, struct err *err, struct plan *plan)
{
  for (; masks->path; masks++) {
    const struct fact_path *fact = facts_path(facts, masks->path);

    if (fact && !fact->error &&
        !ops_add(plan, PLAN_STAGE_KERNEL, masks->directory ? PLAN_MASK_DIR : PLAN_MASK_FILE, NULL, masks->path,
                 "kernel"))
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

static int bind_existing(const struct facts *facts, const char *const *paths, const char *why, struct err *err,
                         struct plan *plan)
{
  for (; *paths; paths++) {
    const struct fact_path *fact = facts_path(facts, *paths);

    if (fact && !fact->error && !ops_add(plan, PLAN_STAGE_KERNEL, PLAN_BIND_RO, *paths, *paths, why))
      return OUT_OF_MEMORY(err);
  }
  return 0;
}

static int add_kernel(const struct facts *facts, struct err *err, struct plan *plan)
{
  int r;

  if (!ops_add(plan, PLAN_STAGE_KERNEL, PLAN_DEV, NULL, "/dev", "devices") ||
      !ops_add(plan, PLAN_STAGE_KERNEL, PLAN_PROC, NULL, "/proc", "processes"))
    return OUT_OF_MEMORY(err);
  r = bind_existing(facts, view_sys_trees(), "devices", err, plan);
  if (r == 0)
    r = add_masks(facts, view_kernel_masks(), err, plan);
  if (r < 0 || facts->uid != 0)
    return r;
  r = bind_existing(facts, view_proc_readonly_root(), "sysctl", err, plan);
  return r < 0 ? r : add_masks(facts, view_kernel_masks_root(), err, plan);
}

static bool add_tmpfs(struct plan *plan, const char *target, mode_t mode)
{
  struct plan_op *op = ops_add(plan, PLAN_STAGE_PRIVATE, PLAN_TMPFS, NULL, target, "private");

  if (op)
    op->mode = mode;
  return op;
}

static int add_private(const struct facts *facts, struct err *err, struct plan *plan)
{
  struct plan_op *runtime;
  struct plan_op *marker;
  char path[64];
  bool ok = add_tmpfs(plan, "/tmp", 01777) && add_tmpfs(plan, "/var/tmp", 01777) && add_tmpfs(plan, "/run", 0755);

  ok = ok && ops_add(plan, PLAN_STAGE_PRIVATE, PLAN_SYMLINK, "/run", "/var/run", "private");
  snprintf(path, sizeof path, "/run/user/%u", (unsigned)facts->uid);
  runtime = ok ? ops_add(plan, PLAN_STAGE_PRIVATE, PLAN_DIR, NULL, path, "private") : NULL;
  if (!runtime)
    return OUT_OF_MEMORY(err);
  runtime->mode = 0700;
  /* By this file, on a root that nobody inside can write, sbx knows that it runs inside a sandbox. */
  marker = ops_add(plan, PLAN_STAGE_PRIVATE, PLAN_FILE, NULL, PLAN_MARKER, "marker");
  if (!marker || !(marker->data = mem_strndup("sbx\n", 4)))
    return OUT_OF_MEMORY(err);
  marker->mode = 0444;
  return 0;
}

int build_system(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = 0;

  for (const char *const *tree = view_system_trees(); *tree && r == 0; tree++) {
    if (!path_is_within(*tree, "/run") && !path_is_within(*tree, "/var"))
      r = add_system_tree(facts, *tree, PLAN_STAGE_SYSTEM, err, plan);
  }
  if (r == 0)
    r = add_ssh(facts, err, plan);
  if (r == 0)
    r = add_hosts(policy, facts, err, plan);
  if (r == 0)
    r = add_kernel(facts, err, plan);
  if (r == 0)
    r = add_private(facts, err, plan);
  for (const char *const *tree = view_system_trees(); *tree && r == 0; tree++) {
    if (path_is_within(*tree, "/run") || path_is_within(*tree, "/var"))
      r = add_system_tree(facts, *tree, PLAN_STAGE_PRIVATE, err, plan);
  }
  if (r == 0)
    r = add_resolver(policy, facts, err, plan);
  return r == 0 ? build_trust(facts, err, plan) : r;
}
