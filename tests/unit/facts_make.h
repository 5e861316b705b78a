/* facts_make: facts of a host that exists on paper, so that a plan is the same wherever it is built. */
#ifndef SBX_TESTS_UNIT_FACTS_MAKE_H
#define SBX_TESTS_UNIT_FACTS_MAKE_H

#include "plan/build.h"
#include "plan/check.h"
#include "plan/print.h"
#include "plan/view.h"
#include "policy/fspath.h"
#include "sys/path.h"
#include "unit/policy_make.h"

#include <sys/stat.h>

#define HOME "/home/u"
#define WORK HOME "/proj"

/* One thing of the host. A link has real; so has nothing else. */
struct thing {
  const char *path;
  mode_t mode; /* type and permissions */
  const char *real;
  int error; /* what a look at it gives instead */
};

#define DIRECTORY(name) { .path = (name), .mode = S_IFDIR | 0755 }
#define REGULAR(name) { .path = (name), .mode = S_IFREG | 0644 }
#define PROGRAM(name) { .path = (name), .mode = S_IFREG | 0755 }
#define SOCKET(name) { .path = (name), .mode = S_IFSOCK | 0755 }
#define LINK(name, to) { .path = (name), .real = (to) }

/* A Debian with a user who has a project in a git work tree. Directories above what is named exist too. */
static const struct thing make_base[] = {
  DIRECTORY("/usr"),
  DIRECTORY("/etc"),
  DIRECTORY("/opt"),
  LINK("/bin", "/usr/bin"),
  LINK("/lib", "/usr/lib"),
  LINK("/lib64", "/usr/lib64"),
  LINK("/sbin", "/usr/sbin"),
  DIRECTORY("/usr/lib"),
  DIRECTORY("/usr/lib64"),
  DIRECTORY("/usr/sbin"),
  DIRECTORY("/usr/bin"),
  PROGRAM("/usr/bin/sh"),
  DIRECTORY("/sys/devices"),
  REGULAR("/proc/keys"),
  DIRECTORY("/proc/sys"),
  REGULAR("/proc/sysrq-trigger"),
  REGULAR("/proc/kcore"),
  DIRECTORY("/proc/acpi"),
  REGULAR("/etc/shadow"),
  DIRECTORY("/etc/ssl/private"),
  REGULAR("/etc/resolv.conf"),
  REGULAR("/etc/hosts"),
  DIRECTORY(HOME "/.cargo/bin"),
  REGULAR(HOME "/.gitconfig"),
  DIRECTORY(HOME "/.config/git"),
  REGULAR(HOME "/.config/git/credentials"),
  DIRECTORY(HOME "/.config/sbx"),
  DIRECTORY(HOME "/.local/state/sbx"),
  DIRECTORY(HOME "/.ssh"),
  DIRECTORY(WORK "/.git/hooks"),
  REGULAR(WORK "/.git/config"),
  DIRECTORY(WORK "/src"),
};

struct make_world {
  const struct thing *things; /* in place of, or beside, make_base */
  size_t count;
};

static inline const struct thing *make_find(const struct make_world *world, const char *path)
{
  for (size_t i = 0; i < world->count; i++) {
    if (strcmp(world->things[i].path, path) == 0)
      return &world->things[i];
  }
  for (size_t i = 0; i < MEM_COUNT(make_base); i++) {
    if (strcmp(make_base[i].path, path) == 0)
      return &make_base[i];
  }
  return NULL;
}

static inline bool make_is_above(const struct thing *things, size_t count, const char *path)
{
  for (size_t i = 0; i < count; i++) {
    if (things[i].error == 0 && path_is_within(things[i].path, path))
      return true;
  }
  return false;
}

/* What a look at path finds, through the links of the world. */
static inline void make_look(const struct make_world *world, const char *path, struct fact_path *fact, unsigned links)
{
  const struct thing *thing = make_find(world, path);

  fact->error = -ENOENT;
  for (const char *slash = strchr(path + 1, '/'); slash && links < 8; slash = strchr(slash + 1, '/')) {
    mem_autofree char *above = mem_strndup(path, (size_t)(slash - path));
    const struct thing *way = make_find(world, above);
    mem_autofree char *through = way && way->real ? path_join(way->real, slash + 1) : NULL;

    if (through) {
      make_look(world, through, fact, links + 1);
      return;
    }
  }
  if (thing && thing->real && links < 8) {
    make_look(world, thing->real, fact, links + 1);
    fact->link = links == 0;
    return;
  }
  if (thing && thing->error) {
    fact->error = thing->error;
    return;
  }
  if (!thing && !make_is_above(world->things, world->count, path) &&
      !make_is_above(make_base, MEM_COUNT(make_base), path))
    return;
  fact->error = 0;
  fact->real = mem_strndup(path, strlen(path));
  fact->mode = thing ? thing->mode : S_IFDIR | 0755;
  fact->device = 1;
  fact->inode = 5381;
  for (const char *at = path; *at; at++)
    fact->inode = fact->inode * 33 + (unsigned char)*at;
}

static inline void make_want(struct strv *wanted, const char *path)
{
  mem_autofree char *copy = mem_strndup(path, strlen(path));

  assert_non_null(copy);
  for (char *end = copy + strlen(copy); end && end != copy; *end = '\0', end = strrchr(copy, '/')) {
    if (!strv_contains(wanted, copy))
      assert_int_equal(strv_add(wanted, copy), 0);
  }
}

static inline void make_want_below(struct strv *wanted, const char *base, const char *const *names)
{
  for (; *names; names++) {
    mem_autofree char *path = path_join(base, *names);

    make_want(wanted, path);
  }
}

static inline void make_want_list(struct strv *wanted, const struct facts *facts, const struct policy_paths *list)
{
  for (size_t i = 0; i < list->count; i++) {
    mem_autofree char *path = facts_expand(facts, list->items[i].text);

    if (!fspath_is_pattern(list->items[i].text))
      make_want(wanted, path);
  }
}

static inline char *make_copy(const char *text)
{
  return mem_strndup(text, strlen(text));
}

/* The caller: uid, in WORK unless workspace says otherwise. Paths are looked at by make_paths(). */
static inline void make_caller(struct facts *facts, uid_t uid, const char *workspace)
{
  static const char *const environment[] = {
    "PATH=/home/u/.cargo/bin:/usr/bin:/bin", "HOME=" HOME, "USER=u", "LANG=C.UTF-8", "AWS_SECRET_ACCESS_KEY=s", NULL,
  };

  facts->uid = uid;
  facts->gid = uid;
  facts->home = make_copy(HOME);
  facts->workspace = make_copy(workspace ? workspace : WORK);
  facts->cwd = make_copy(facts->workspace);
  facts->state_dir = make_copy(HOME "/.local/state/sbx");
  facts->config_dir = make_copy(HOME "/.config/sbx");
  facts->private_home = make_copy(HOME "/.local/state/sbx/home/key");
  facts->landlock_abi = 6;
  for (size_t i = 0; environment[i]; i++)
    assert_int_equal(strv_add(&facts->environment, environment[i]), 0);
}

static inline int make_compare(const void *a, const void *b)
{
  return strcmp(((const struct fact_path *)a)->asked, ((const struct fact_path *)b)->asked);
}

static inline void make_paths(struct facts *facts, const struct policy *policy, const struct make_world *world,
                              const char *const *more)
{
  const struct policy_paths *const lists[] = { &policy->read, &policy->write, &policy->protect, &policy->hide,
                                               &policy->unix_sockets };
  const struct view_mask *const masks[] = { view_kernel_masks(), view_kernel_masks_root() };
  const char *const dirs[] = { facts->workspace,  facts->cwd,  facts->state_dir,
                               facts->config_dir, facts->home, "/etc/resolv.conf" };
  strv_autofree struct strv wanted = STRV_INIT;

  make_want_below(&wanted, "/", view_system_trees());
  make_want_below(&wanted, "/", view_sys_trees());
  make_want_below(&wanted, "/", view_proc_readonly_root());
  make_want_below(&wanted, "/", view_etc_root_only());
  make_want_below(&wanted, facts->home, view_home_tools());
  make_want_below(&wanted, facts->home, view_home_secrets());
  make_want_below(&wanted, facts->workspace, view_protected());
  for (size_t i = 0; i < MEM_COUNT(masks); i++) {
    for (const struct view_mask *mask = masks[i]; mask->path; mask++)
      make_want(&wanted, mask->path);
  }
  for (size_t i = 0; i < MEM_COUNT(dirs); i++)
    make_want(&wanted, dirs[i]);
  for (size_t i = 0; i < MEM_COUNT(lists); i++)
    make_want_list(&wanted, facts, lists[i]);
  for (size_t i = 0; i < facts->sockets.count; i++)
    make_want(&wanted, facts->sockets.items[i]);
  for (size_t i = 0; i < facts->hidden.count; i++)
    make_want(&wanted, facts->hidden.items[i]);
  for (; more && *more; more++)
    make_want(&wanted, *more);
  facts->paths = mem_calloc(wanted.count, sizeof *facts->paths);
  facts->path_cap = wanted.count;
  assert_non_null(facts->paths);
  for (size_t i = 0; i < wanted.count; i++) {
    facts->paths[i].asked = make_copy(wanted.items[i]);
    make_look(world, wanted.items[i], &facts->paths[i], 0);
  }
  facts->path_count = wanted.count;
  qsort(facts->paths, facts->path_count, sizeof *facts->paths, make_compare);
}

/* Both halves of making a plan. */
static inline int make_plan(const struct policy *policy, const struct facts *facts, char *const *argv, struct err *err,
                            struct plan *plan)
{
  int r = plan_begin(policy, facts, argv, err, plan);

  return r < 0 ? r : plan_build(policy, facts, err, plan);
}

/* The operation that stands at a path when all are carried out: the last that covers it. NULL for none. */
static inline const struct plan_op *make_at(const struct plan *plan, const char *path)
{
  const struct plan_op *found = NULL;

  for (size_t i = 0; i < plan->ops.count; i++) {
    if (plan->ops.items[i].kind != PLAN_SEAL && path_is_within(path, plan->ops.items[i].target))
      found = &plan->ops.items[i];
  }
  return found;
}

#endif
