#include "run/host_program.h"

#include "sys/path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the command inside may write at a real path. */
static int is_writable_inside(const struct policy *policy, const struct facts *facts, const char *real,
                              bool *ret_writable)
{
  *ret_writable = path_is_within(real, facts->workspace) || path_is_within(real, facts->private_home);
  for (size_t i = 0; i < policy->write.count; i++) {
    mem_autofree char *path = facts_expand(facts, policy->write.items[i].text);
    path_object_autofree struct path_object object = { .real = NULL };

    if (!path)
      return -ENOMEM;
    *ret_writable |=
        path_is_within(real, path) || (path_resolve(path, &object) == 0 && path_is_within(real, object.real));
  }
  return 0;
}

/* Looks at one place. 0 and the path; -ENOENT; -EPERM where the command may write it; -ENOMEM. */
static int try_program(const struct policy *policy, const struct facts *facts, const char *path, char **ret_path)
{
  path_object_autofree struct path_object object = { .real = NULL };
  bool writable = false;

  if (path_resolve(path, &object) < 0 || !S_ISREG(object.mode) || access(path, X_OK) < 0)
    return -ENOENT;
  if (is_writable_inside(policy, facts, object.real, &writable) < 0)
    return -ENOMEM;
  if (writable || is_writable_inside(policy, facts, path, &writable) < 0 || writable)
    return -EPERM;
  *ret_path = mem_strndup(path, strlen(path));
  return *ret_path ? 0 : -ENOMEM;
}

int host_program_find(const struct policy *policy, const struct facts *facts, const char *name, struct err *err,
                      char **ret_path)
{
  struct span rest = span_of(facts_getenv(facts, "PATH"));
  struct span part;
  bool refused = false;
  int r = name[0] == '/' ? try_program(policy, facts, name, ret_path) : -ENOENT;

  refused = r == -EPERM;
  while (!strchr(name, '/') && (r == -ENOENT || r == -EPERM) && span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);
    mem_autofree char *path = dir && dir[0] == '/' ? path_join(dir, name) : NULL;

    if (!dir || (dir[0] == '/' && !path))
      return err_set(err, ENOMEM, "out of memory");
    if (path)
      r = try_program(policy, facts, path, ret_path);
    refused |= r == -EPERM;
  }
  if (r == 0)
    return 0;
  if (r == -ENOMEM)
    return err_set(err, ENOMEM, "out of memory");
  if (refused)
    return err_set(err, EPERM, "the program %s stands where the command inside may write; put it elsewhere", name);
  if (strchr(name, '/') && name[0] != '/')
    return err_set(err, EINVAL, "the program %s: a relative path; write an absolute one", name);
  return err_set(err, ENOENT, "the program %s was not found; install it, or name another source", name);
}
