/* landlock: rulesets of landlock(7), for a process that gives up rights of its own.
 *
 * The header declares what the headers of older systems lack; the module cuts a request down to what the running
 * kernel knows, so that a caller names everything that it wants and learns what it got.
 */
#ifndef SBX_SYS_LANDLOCK_H
#define SBX_SYS_LANDLOCK_H

#include "base/err.h"

#include <linux/landlock.h>
#include <stdint.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13) /* ABI 2 */
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3 */
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0) /* ABI 4 */
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6 */
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif

/* Rights that a ruleset takes away unless a rule gives them back; scopes have no rules. */
struct landlock_rights {
  uint64_t fs; /* LANDLOCK_ACCESS_FS_* */
  uint64_t net; /* LANDLOCK_ACCESS_NET_* */
  uint64_t scope; /* LANDLOCK_SCOPE_* */
};

/* The kernel's ABI version; 0 where it has no Landlock or has it switched off. */
int landlock_abi(void);

/* Every right that ABI version abi (0: none) knows, up to the newest that this header declares. */
struct landlock_rights landlock_rights_known(int abi);

/* Makes a ruleset that handles what is both in want and known to the kernel.
 * ret_handled     what that is; may be NULL
 * ret_ruleset     close-on-exec descriptor, the caller's
 * 0; -EOPNOTSUPP where nothing is left to handle; or -errno. */
int landlock_create(const struct landlock_rights *want, struct err *err, struct landlock_rights *ret_handled,
                    int *ret_ruleset);

/* Gives fs rights back below the file or directory that path_fd (O_PATH will do) stands for. rights must be handled by
 * the ruleset; on a file that is not a directory only rights that make sense for a file. 0 or -errno. */
int landlock_allow_path(int ruleset, int path_fd, uint64_t rights, struct err *err);

/* Gives net rights back for one TCP port (0: with BIND_TCP, any ephemeral port). 0 or -errno. */
int landlock_allow_port(int ruleset, uint16_t port, uint64_t rights, struct err *err);

/* Applies the ruleset to the calling thread and its children to come. no_new_privs must be set. 0 or -errno. */
int landlock_enforce(int ruleset, struct err *err);

#endif
