#include "sys/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct landlock_ruleset_attr of ABI 6, whatever the system's header knows. Older kernels take a larger struct as long
 * as the part that they do not know is zero (landlock_create_ruleset(2)). */
struct ruleset_attr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

/* struct landlock_net_port_attr and LANDLOCK_RULE_NET_PORT of ABI 4. */
struct net_port_attr {
  uint64_t allowed_access;
  uint64_t port;
};
#define RULE_NET_PORT 2

int landlock_abi(void)
{
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

  return abi > 0 ? (int)abi : 0;
}

struct landlock_rights landlock_rights_known(int abi)
{
  struct landlock_rights rights = { 0 };

  if (abi >= 1)
    rights.fs = LANDLOCK_ACCESS_FS_REFER - 1;
  if (abi >= 2)
    rights.fs |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3)
    rights.fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (abi >= 4)
    rights.net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
  if (abi >= 5)
    rights.fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  if (abi >= 6)
    rights.scope = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
  return rights;
}

int landlock_create(const struct landlock_rights *want, struct err *err, struct landlock_rights *ret_handled,
                    int *ret_ruleset)
{
  struct landlock_rights known = landlock_rights_known(landlock_abi());
  struct ruleset_attr attr = {
    .handled_access_fs = want->fs & known.fs,
    .handled_access_net = want->net & known.net,
    .scoped = want->scope & known.scope,
  };
  long fd;

  if (!attr.handled_access_fs && !attr.handled_access_net && !attr.scoped)
    return err_set(err, EOPNOTSUPP, "landlock: the kernel has none of the rights that are to be given up");
  fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
  if (fd < 0)
    return err_set_errno(err, errno, "landlock: cannot make a ruleset");
  if (ret_handled)
    *ret_handled =
        (struct landlock_rights){ .fs = attr.handled_access_fs, .net = attr.handled_access_net, .scope = attr.scoped };
  *ret_ruleset = (int)fd;
  return 0;
}

int landlock_allow_path(int ruleset, int path_fd, uint64_t rights, struct err *err)
{
  struct landlock_path_beneath_attr attr = { .allowed_access = rights, .parent_fd = path_fd };

  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0))
    return err_set_errno(err, errno, "landlock: cannot add a path");
  return 0;
}

int landlock_allow_port(int ruleset, uint16_t port, uint64_t rights, struct err *err)
{
  struct net_port_attr attr = { .allowed_access = rights, .port = port };

  if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &attr, 0))
    return err_set_errno(err, errno, "landlock: cannot add port %u", port);
  return 0;
}

int landlock_enforce(int ruleset, struct err *err)
{
  if (syscall(SYS_landlock_restrict_self, ruleset, 0))
    return err_set_errno(err, errno, "landlock: cannot enforce the ruleset");
  return 0;
}
