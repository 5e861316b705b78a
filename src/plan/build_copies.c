/* Files of credentials, which are there inside with placeholders in place of values. What they hold is made when the
 * run starts (run/credential_file.c); here is where they stand.
 *
 * The real file is hidden (policy/credentials.c), so that no other name leads to it: the mask of the later stage lies
 * wherever the host's own object is shown, and the copy is none. Where the name that was asked for leads to the object
 * inside too, the copy is mounted over it; where it does not, as in a private home, it gets the name. It is read-only:
 * what a program wrote to a copy would be lost without a word.
 *
 * A mask and a copy lie on the object that has the name at the start. A host's program that saves the file makes
 * another object and renames it to that name, and with that the kernel takes the mount away (rename(2) of a mount
 * point in another mount namespace). So nothing may lie on a file with a value in a directory that the host shares:
 * the run is refused, unless the directory is veiled (plan/veil.h) or hidden itself. */
#include "plan/build.h"
#include "plan/ops.h"
#include "policy/credentials.h"
#include "sys/path.h"

#include <errno.h>
#include <sys/stat.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

/* Whether the command may write at a path of the host. 1, 0 or -ENOMEM. */
static int is_writable(const struct policy *policy, const struct facts *facts, const char *path)
{
  if (path_is_within(path, facts->workspace) || path_is_within(path, facts->private_home))
    return 1;
  for (size_t i = 0; i < policy->write.count; i++) {
    mem_autofree char *tree = facts_expand(facts, policy->write.items[i].text);
    const struct fact_path *fact = tree ? facts_path(facts, tree) : NULL;

    if (!tree)
      return -ENOMEM;
    if (path_is_within(path, tree) || (fact && !fact->error && path_is_within(path, fact->real)))
      return 1;
  }
  return 0;
}

static int check_fact(const struct fact_path *fact, const struct policy *policy, const struct facts *facts,
                      struct err *err)
{
  int writable = is_writable(policy, facts, fact->asked);

  if (fact->error == -ENOENT || fact->error == -ENOTDIR)
    return err_set(err, EINVAL, "does not exist; create it, or leave it out");
  if (fact->error)
    return err_set_errno(err, -fact->error, "cannot be looked at");
  if (!S_ISREG(fact->mode))
    return err_set(err, EINVAL, "is not a regular file; name one that has the value in it");
  if (writable == 0)
    writable = is_writable(policy, facts, fact->real);
  if (writable < 0)
    return OUT_OF_MEMORY(err);
  if (writable || path_is_within(fact->real, "/proc") || path_is_within(fact->real, "/sys") ||
      path_is_within(fact->real, "/dev"))
    return err_set(err, EINVAL,
                   "lies where the command may write, as in the workspace, and could make it another file; move it to "
                   "the home, outside of what is writable");
  return 0;
}

/* Whether the name leads to the object inside as it does outside. 1, 0 or -ENOMEM. */
static int leads_there(const struct plan *plan, const struct fact_path *fact)
{
  const struct plan_op *cover = ops_covering(plan, fact->asked);
  mem_autofree char *source = NULL;

  if (!cover || !ops_is_bind(cover))
    return cover && cover->kind == PLAN_SYMLINK;
  if (strcmp(cover->source, cover->target) == 0)
    return 1;
  source = ops_source_of(cover, fact->asked);
  return source ? strcmp(source, fact->real) == 0 : -ENOMEM;
}

static int add_copy(const struct fact_path *fact, struct err *err, struct plan *plan)
{
  int over = leads_there(plan, fact);
  const char *target = over > 0 ? fact->real : fact->asked;
  struct plan_op *op;

  if (over < 0)
    return OUT_OF_MEMORY(err);
  ops_drop_visible(plan, target);
  op = ops_add(plan, PLAN_STAGE_VISIBLE, PLAN_COVER, fact->real, target, "a copy with placeholders");
  if (!op || !(op->data = mem_strndup("", 0)))
    return OUT_OF_MEMORY(err);
  op->mode = fact->mode & 0777;
  op->late = PLAN_LATE_CREDENTIAL;
  if (over > 0) {
    op->device = fact->device;
    op->inode = fact->inode;
  }
  ops_place(plan);
  return 0;
}

int build_copies(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count && plan->tls; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];

    for (size_t j = 0; j < credential->files.count; j++) {
      mem_autofree char *path = facts_expand(facts, credential->files.items[j]);
      const struct fact_path *fact = path ? facts_path(facts, path) : NULL;

      if (!path)
        return OUT_OF_MEMORY(err);
      r = fact ? check_fact(fact, policy, facts, err) : err_set(err, EINVAL, "was not looked at");
      if (r == 0)
        r = add_copy(fact, err, plan);
      if (r < 0 && r != -ENOMEM) {
        err_wrap(err, "file: %s", credential->files.items[j]);
        return credentials_refuse(credential, err);
      }
      if (r < 0)
        return r;
    }
  }
  return 0;
}

/* Whether a directory of the host is shown, wherever. 1, 0 or -ENOMEM. */
static int is_shown(const struct plan *plan, const char *dir)
{
  mem_autofree char *name = NULL;
  size_t at = 0;

  return ops_next_shown(plan, *dir ? dir : "/", &at, &name);
}

static char *directory_of(const char *path)
{
  return mem_strndup(path, (size_t)(strrchr(path, '/') - path));
}

static int check_held(const char *path, const struct facts *facts, struct err *err, const struct plan *plan)
{
  const struct fact_path *fact = facts_path(facts, path);
  mem_autofree char *named = directory_of(path);
  mem_autofree char *real = directory_of(fact && !fact->error ? fact->real : path);
  int named_shown = named ? is_shown(plan, named) : -ENOMEM;
  int real_shown = real ? is_shown(plan, real) : -ENOMEM;

  if (named_shown < 0 || real_shown < 0)
    return OUT_OF_MEMORY(err);
  if (!named_shown && !real_shown)
    return 0;
  return err_set(
      err, EINVAL,
      "%s would be seen inside as soon as a program of the host saves it anew, as most do, since the sandbox "
      "shows the directory %s; move the file, or have the sandbox show less (filesystem.home, "
      "filesystem.read) or hide that directory (filesystem.hide)",
      path, named_shown ? named : real);
}

int build_held(const struct policy *policy, const struct facts *facts, struct err *err, const struct plan *plan)
{
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count && r == 0; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];
    size_t sources = credential->source.kind == POLICY_SOURCE_FILE ? 1 : 0;

    for (size_t j = 0; j < sources + credential->files.count && r == 0; j++) {
      const char *text = j < sources ? credential->source.words.items[0] : credential->files.items[j - sources];
      mem_autofree char *path = facts_expand(facts, text);

      r = path ? check_held(path, facts, err, plan) : OUT_OF_MEMORY(err);
      if (r < 0 && r != -ENOMEM) {
        err_wrap(err, j < sources ? "source" : "file");
        return credentials_refuse(credential, err);
      }
    }
  }
  return r;
}
