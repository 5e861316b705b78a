/* plan: everything an engine needs to know, as data.
 *
 * A plan is pure: build.h makes it from a policy and facts, check.h refuses what cannot hold, print.h shows it. An
 * engine (engine/engine.h) carries it out and decides nothing.
 */
#ifndef SBX_PLAN_PLAN_H
#define SBX_PLAN_PLAN_H

#include "base/strv.h"
#include "plan/syscalls.h"
#include "policy/addr.h"
#include "sys/control.h"

#include <stdint.h>
#include <sys/types.h>

/* A file at the root of every sandbox; nothing inside can make or remove it. */
#define PLAN_MARKER "/.sbx"

/* The certificate of the run's CA, where TLS is terminated, behind those that the caller's Node.js trusts beside its
 * own. */
#define PLAN_CA "/run/sbx/ca.pem"

/* What a file holds that is known only when the rest of the sandbox stands. */
enum plan_late {
  PLAN_LATE_NOT,
  PLAN_LATE_CERTIFICATE, /* data, and behind it the certificate of the run's CA */
  PLAN_LATE_JAVA, /* the certificates of the store source, or of the host's bundle, and the CA's, as Java reads them */
  PLAN_LATE_NSS, /* the file of this name of the database that plan->certutil makes */
  PLAN_LATE_CREDENTIAL, /* the file source, with placeholders in place of values */
};

enum plan_op_kind {
  PLAN_BIND_RO, /* source and what is mounted below it appear at target, read-only */
  PLAN_BIND_RW, /* the same, writable */
  PLAN_TMPFS, /* an empty file system in memory, mode */
  PLAN_DIR, /* a directory, mode; its parents as needed */
  PLAN_SYMLINK, /* a symbolic link at target that holds source */
  PLAN_FILE, /* a file at target that holds data, owned by the user, mode; read-only once its file system is sealed */
  PLAN_COVER, /* a read-only one, mounted over a file that is there */
  PLAN_PROC, /* a new proc */
  PLAN_DEV, /* null, zero, full, random, urandom, tty, pts, shm, fd, stdin, stdout, stderr */
  PLAN_MASK_FILE, /* something that cannot be opened, over a file or socket */
  PLAN_MASK_DIR, /* something that cannot be opened, over a directory */
  PLAN_SEAL, /* the file system mounted at target becomes read-only */
};

/* Which part of the view an operation belongs to, in the order in which they are carried out. */
enum plan_stage {
  PLAN_STAGE_SYSTEM, /* /usr, /etc, /opt ... read-only */
  PLAN_STAGE_KERNEL, /* /dev, /proc, /sys and their masks */
  PLAN_STAGE_PRIVATE, /* /tmp, /var/tmp, /run */
  PLAN_STAGE_HOME, /* the private home */
  /* Toolchains, workspace, read, write, sockets, and pinned ancestors of what is protected: parents before children. */
  PLAN_STAGE_VISIBLE,
  PLAN_STAGE_PROTECT, /* read-only inside writable trees */
  PLAN_STAGE_HIDE, /* hidden paths, masked host sockets */
  PLAN_STAGE_SEAL,
};

struct plan_op {
  enum plan_stage stage;
  enum plan_op_kind kind;
  char *target; /* absolute path inside */
  char *source; /* absolute path on the host (BIND_*, late), text of a link (SYMLINK), else NULL */
  char *data; /* FILE, COVER only */
  enum plan_late late; /* FILE, COVER only */
  mode_t
      mode; /* TMPFS, DIR, FILE, COVER: permissions; BIND_* of the visible stage: type and permissions of the source */
  /* The object that was judged; inode 0 where it does not matter. BIND_*: after the engine has mounted everything, and
   * before the command starts, the object at target must be this one. MASK_*, TMPFS, COVER: it must not be this one
   * any more. */
  uint64_t device;
  uint64_t inode;
  const char *why; /* a few words for a person: "workspace", "protect", "hide" */
};

struct plan_ops {
  struct plan_op *items;
  size_t count;
  size_t cap;
};

enum plan_network {
  PLAN_NETWORK_NONE, /* a network namespace with lo, no way out */
  PLAN_NETWORK_PROXY, /* the same, with the proxy's listeners in it */
  PLAN_NETWORK_HOST,
};

/* A socket of the proxy inside the sandbox. */
struct plan_listener {
  enum control_front front;
  bool udp;
  bool any; /* on every address; else on addr */
  enum addr_family family; /* of addr; with any, ADDR_V6 takes both families unless udp */
  struct addr addr;
  uint16_t port;
  uint16_t forward_port; /* CONTROL_FRONT_FORWARD: the host's port */
};

struct plan_listeners {
  struct plan_listener items[CONTROL_FRONTS_MAX];
  size_t count;
};

/* A port of the host's loopback that leads to one of the sandbox's. */
struct plan_publish {
  uint16_t host_port;
  uint16_t port;
};

struct plan_publishes {
  struct plan_publish items[CONTROL_FRONTS_MAX / 2]; /* one listener on 127.0.0.1, and one on ::1 */
  size_t count;
};

/* The proxy that the host has to use, as URLs that upstream_parse() takes; they may hold a password. NULL: none. */
struct plan_upstream {
  char *http; /* for http:// requests and port 80 */
  char *other;
  char *no_proxy; /* NULL: names nothing */
};

struct plan_limits {
  uint64_t memory_bytes; /* 0: none; so the next three */
  uint64_t cpu_milli;
  uint64_t pids;
  uint64_t timeout_ms;
};

struct plan {
  struct plan_ops ops;
  struct strv argv; /* the command; argv[0] as the user wrote it */
  char *program; /* absolute path of the program inside */
  struct strv env; /* NAME=VALUE */
  char *cwd;
  enum plan_network network;
  uint16_t http_port; /* PLAN_NETWORK_PROXY: where the proxy's HTTP front listens inside */
  struct plan_listeners listeners; /* PLAN_NETWORK_PROXY */
  bool ask; /* the user can be asked about hosts: well-known ports are listened on, whatever the rules name */
  struct plan_publishes publishes; /* PLAN_NETWORK_PROXY */
  struct plan_upstream upstream; /* PLAN_NETWORK_PROXY */
  bool tls; /* PLAN_NETWORK_PROXY: TLS to bound hosts is terminated, so the proxy runs before the command */
  bool scope_abstract; /* abstract sockets of the host's network namespace are out of reach (Landlock) */
  bool new_session;
  struct syscalls_options syscalls;
  struct plan_limits limits;
  size_t data_max; /* at most so many operations have data, the marker's and late ones not counted */
  size_t late_max; /* at most so many are late; none without tls */
  char *bundle; /* inside: certificates of the host and of the run's CA; NULL where there is no such file */
  char *certutil; /* host path of the program that makes the database of PLAN_LATE_NSS; NULL without one */
  char *workspace;
  char *private_home; /* host path of the private home, to be made before the start; NULL without one */
  /* Mount points to be made below private_home before the start, relative; one that ends in '/' is a directory. */
  struct strv private_mounts;
  struct strv passing_mounts; /* the same for what this policy shows, to be removed at the end */
  /* Protected names that are links, or lead through some, each followed by where it led. Mounts cannot hold a link. */
  struct strv links;
  struct strv own_dirs; /* directories of sbx's own to be made before the start */
  struct strv env_left_out; /* names of the caller's variables that the command does not get */
  struct strv notes; /* one line each, for -v */
  struct strv warnings; /* one line each, for everybody */
};

#define PLAN_INIT { .program = NULL }

void plan_free(struct plan *plan);
#define plan_autofree MEM_CLEANUP(plan_free)

/* Frees the texts, and wipes those that may hold a password. */
void plan_upstream_free(struct plan_upstream *upstream);
#define plan_upstream_autofree MEM_CLEANUP(plan_upstream_free)

/* The name of a stage or kind, as `sbx show --plan` prints it. */
const char *plan_stage_name(enum plan_stage stage);
const char *plan_op_name(enum plan_op_kind kind);

#endif
