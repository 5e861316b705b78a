#include "policy/keys.h"

#include <stdint.h>

static const char *const keys_home_words[] = { "tmpfs", "private", "host", NULL };
static const char *const keys_tmp_words[] = { "private", NULL };
static const char *const keys_network_words[] = { "none", "proxy", "host", NULL };
static const char *const keys_upstream_words[] = { "none", "env", NULL };
static const char *const keys_bool_words[] = { "false", "true", NULL };

/* Objects that hold keys, and the two that are no keys of the policy itself. */
static const char *const keys_objects[] = { "filesystem", "network", "env", "limits", "syscalls", "audit", "env.set" };

static const struct key keys_table[KEY_COUNT] = {
  { KEY_EXTENDS, "extends", KEY_TYPE_PROFILE, KEY_LIST, KEY_TAKEN, NULL, NULL, false, "--profile", "NAME",
    "add a built-in profile" },
  { KEY_READ, "filesystem.read", KEY_TYPE_PATH, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--read", "PATH",
    "show a path read-only" },
  { KEY_WRITE, "filesystem.write", KEY_TYPE_PATH, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--write", "PATH",
    "show a path writable" },
  { KEY_HIDE, "filesystem.hide", KEY_TYPE_PATTERN, KEY_LIST, KEY_TAKEN, NULL, NULL, false, "--hide", "PATH",
    "hide a path or a pattern of paths" },
  { KEY_PROTECT, "filesystem.protect", KEY_TYPE_PATH, KEY_LIST, KEY_TAKEN, NULL, NULL, false, NULL, NULL,
    "keep a path inside a writable tree read-only" },
  { KEY_UNPROTECT, "filesystem.unprotect", KEY_TYPE_PATH, KEY_LIST, KEY_NEVER, NULL, NULL, false, "--unprotect", "PATH",
    "lift the protection of a path" },
  { KEY_HOME, "filesystem.home", KEY_TYPE_WORD, KEY_SCALAR, KEY_IF_NARROWER, keys_home_words, NULL, false, "--home",
    "private|tmpfs|host", "choose the home directory" },
  { KEY_TMP, "filesystem.tmp", KEY_TYPE_WORD, KEY_SCALAR, KEY_IF_NARROWER, keys_tmp_words, NULL, false, NULL, NULL,
    "choose the temporary directories" },
  { KEY_NETWORK_MODE, "network.mode", KEY_TYPE_WORD, KEY_SCALAR, KEY_IF_NARROWER, keys_network_words, "host", false,
    "--network", "proxy|none|host", "choose the kind of network" },
  { KEY_ALLOW, "network.allow", KEY_TYPE_RULE, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--allow", "RULE",
    "allow connections to a host" },
  { KEY_DENY, "network.deny", KEY_TYPE_RULE, KEY_LIST, KEY_TAKEN, NULL, NULL, false, "--deny", "RULE",
    "refuse connections to a host, whatever allows it" },
  { KEY_FORWARD, "network.forward", KEY_TYPE_PORT_MAP, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--forward",
    "[HOSTPORT:]PORT", "let a loopback port inside reach the host's" },
  { KEY_PUBLISH, "network.publish", KEY_TYPE_PORT_MAP, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--publish",
    "[HOSTPORT:]PORT", "let a loopback port of the host reach the sandbox's" },
  { KEY_UNIX_SOCKETS, "network.unixSockets", KEY_TYPE_PATH, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false,
    "--unix-socket", "PATH", "let a socket of the host be connected to" },
  { KEY_UPSTREAM_PROXY, "network.upstreamProxy", KEY_TYPE_UPSTREAM, KEY_SCALAR, KEY_IF_TRUSTED, keys_upstream_words,
    NULL, true, NULL, NULL, "choose the proxy that the host itself has to use" },
  { KEY_CREDENTIALS, "credentials", KEY_TYPE_CREDENTIAL, KEY_MAP, KEY_NEVER, NULL, NULL, false, "--credential",
    "NAME[=SOURCE]", "let the command use a login that it never sees" },
  { KEY_ENV_PASS, "env.pass", KEY_TYPE_ENV_NAME, KEY_LIST, KEY_IF_TRUSTED, NULL, NULL, false, "--env", "NAME[=VALUE]",
    "pass a variable of the environment on, or set it" },
  { KEY_ENV_SET, "env.set", KEY_TYPE_ENV_VALUE, KEY_MAP, KEY_IF_TRUSTED, NULL, NULL, false, "--env", "NAME[=VALUE]",
    "set variables of the environment" },
  { KEY_MEMORY, "limits.memory", KEY_TYPE_SIZE, KEY_SCALAR, KEY_IF_LOWER, NULL, NULL, true, "--memory", "SIZE",
    "limit memory" },
  { KEY_CPUS, "limits.cpus", KEY_TYPE_CPUS, KEY_SCALAR, KEY_IF_LOWER, NULL, NULL, true, "--cpus", "N",
    "limit CPU time to so many CPUs" },
  { KEY_PIDS, "limits.pids", KEY_TYPE_NUMBER, KEY_SCALAR, KEY_IF_LOWER, NULL, NULL, true, "--pids", "N",
    "limit the number of processes and threads" },
  { KEY_TIMEOUT, "limits.timeout", KEY_TYPE_DURATION, KEY_SCALAR, KEY_IF_LOWER, NULL, NULL, true, "--timeout",
    "DURATION", "end the command after a time" },
  { KEY_NESTING, "syscalls.nesting", KEY_TYPE_BOOL, KEY_SCALAR, KEY_IF_NARROWER, keys_bool_words, NULL, false,
    "--syscalls", "nesting|ptrace|i386", "let user namespaces through" },
  { KEY_PTRACE, "syscalls.ptrace", KEY_TYPE_BOOL, KEY_SCALAR, KEY_IF_NARROWER, keys_bool_words, NULL, false,
    "--syscalls", "nesting|ptrace|i386", "let ptrace among the command's own processes through" },
  { KEY_I386, "syscalls.i386", KEY_TYPE_BOOL, KEY_SCALAR, KEY_IF_NARROWER, keys_bool_words, NULL, false, "--syscalls",
    "nesting|ptrace|i386", "let 32-bit programs run" },
  { KEY_AUDIT_FILE, "audit.file", KEY_TYPE_FILE, KEY_SCALAR, KEY_IF_TRUSTED, NULL, NULL, true, "--audit", "FILE|fd:N",
    "choose where the audit is written" },
};

const struct key *keys_at(enum key_id id)
{
  return &keys_table[id];
}

const struct key *keys_find(struct span path)
{
  for (size_t i = 0; i < KEY_COUNT; i++)
    if (span_equal_str(path, keys_table[i].path))
      return &keys_table[i];
  return NULL;
}

bool keys_is_object(struct span path)
{
  for (size_t i = 0; i < sizeof(keys_objects) / sizeof(keys_objects[0]); i++)
    if (span_equal_str(path, keys_objects[i]))
      return true;
  return false;
}

/* The part of path that stands directly below parent ("" for the top); false when it stands elsewhere. */
static bool keys_child(struct span path, struct span parent, struct span *ret_name)
{
  if (parent.len > 0) {
    if (!span_starts_with(path, parent) || path.len <= parent.len || path.ptr[parent.len] != '.')
      return false;
    path = span_sub(path, parent.len + 1, path.len);
  }
  *ret_name = span_sub(path, 0, span_find(path, '.'));
  return true;
}

bool keys_suggest(struct span parent, struct span name, struct span *ret_name)
{
  size_t nearest = SIZE_MAX;

  for (size_t i = 0; i < KEY_COUNT; i++) {
    struct span child;
    if (!keys_child(span_of(keys_table[i].path), parent, &child))
      continue;
    size_t distance = span_distance(name, child);
    if (distance < nearest) {
      nearest = distance;
      *ret_name = child;
    }
  }
  return span_is_near(name, nearest);
}
