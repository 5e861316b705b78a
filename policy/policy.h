/* policy: the validated policy, as every other part reads it.
 *
 * A struct policy exists only validated: policy_validate() (validate.h) is its only constructor, and nobody changes one
 * afterwards. Lists are in canonical order: the order in which the layers gave them, without duplicates.
 */
#ifndef SBX_POLICY_POLICY_H
#define SBX_POLICY_POLICY_H

#include "base/strv.h"
#include "policy/addr.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a value was written. */
struct policy_origin {
  char *file; /* "built-in", "profile git", an absolute path, or an option such as "--allow" */
  char *json_path; /* "network.allow[3]", or "" for an option */
  unsigned line; /* from 1; 0 where there is no file */
};

/* A path as the user wrote it, in one of four forms:
 *   "/abs"     absolute
 *   "~"/"~/x"  below the user's home
 *   "rel/x"    below the workspace ("." is the workspace itself; "./~x" where the first name begins with '~')
 *   a pattern  any of these with * ? or ** in it (hide only); "** /x" matches at any depth below the workspace
 * Without "." and ".." parts, double or trailing slashes. fspath.h parses and matches them. */
struct policy_path {
  char *text;
  struct policy_origin origin;
};

struct policy_paths {
  struct policy_path *items;
  size_t count;
  size_t cap;
};

enum policy_host_kind {
  POLICY_HOST_NAME, /* exactly this name */
  POLICY_HOST_SUBDOMAINS, /* "*.name": any subdomain, not the apex */
  POLICY_HOST_PREFIX, /* an address or CIDR */
  POLICY_HOST_LOCALHOST, /* the host's loopback */
  POLICY_HOST_ANY, /* "*": any public host */
};

struct policy_ports {
  uint16_t first; /* 1..65535 */
  uint16_t last; /* >= first */
};

struct policy_rule {
  enum policy_host_kind kind;
  char *name; /* canonical; NAME and SUBDOMAINS (without "*."), else NULL */
  struct addr_prefix prefix; /* PREFIX only */
  struct policy_ports *ports; /* sorted, disjoint, never empty: without any named 80 and 443 in allow, all in deny */
  size_t port_count;
  struct strv methods; /* of requests; sorted; none: every method */
  struct strv paths; /* patterns of request.h; sorted; none: every path */
  char *text; /* canonical text of the rule, as `sbx show` prints it */
  bool implied; /* by a credential: counts only where no allow rule on methods or paths is about the target */
  struct policy_origin origin;
};

struct policy_rules {
  struct policy_rule *items;
  size_t count;
  size_t cap;
};

/* forward and publish: [HOSTPORT:]PORT */
struct policy_port_map {
  uint16_t host_port;
  uint16_t port;
  struct policy_origin origin;
};

struct policy_port_maps {
  struct policy_port_map *items;
  size_t count;
  size_t cap;
};

struct policy_env_set {
  char *name;
  char *value;
  struct policy_origin origin;
};

struct policy_env_sets {
  struct policy_env_set *items;
  size_t count;
  size_t cap;
};

enum policy_home {
  POLICY_HOME_PRIVATE, /* kept per project under the state directory */
  POLICY_HOME_TMPFS, /* empty, gone at the end */
  POLICY_HOME_HOST, /* the real one, read-only, known secret places hidden */
};

enum policy_network {
  POLICY_NETWORK_PROXY,
  POLICY_NETWORK_NONE,
  POLICY_NETWORK_HOST,
};

enum policy_upstream {
  POLICY_UPSTREAM_ENV,
  POLICY_UPSTREAM_NONE,
  POLICY_UPSTREAM_URL,
};

/* Where the value of a credential comes from. It is read by sbx, outside, when it is needed first. */
enum policy_source_kind {
  POLICY_SOURCE_ENV, /* words: the name of a variable of the caller; for POLICY_PLACE_SIGV4 also of two or three, which
                      * hold the access key id, the secret key and the session token */
  POLICY_SOURCE_FILE, /* words: a path, absolute or "~/x"; white space at its end does not count */
  POLICY_SOURCE_EXEC, /* words: program and arguments; its output is the value, or JSON with "value" and "expires_at" */
  POLICY_SOURCE_SECRET_SERVICE, /* words: attributes, each with its value after it; asked by secret-tool(1) */
  POLICY_SOURCE_OP, /* words: a secret reference, "op://..."; asked by op(1) */
  POLICY_SOURCE_PASS, /* words: the name of an entry, whose first line is the value; asked by pass(1) */
};

struct policy_source {
  enum policy_source_kind kind;
  struct strv words; /* at least one */
  uint64_t timeout_ms; /* for the program, where one is run */
  uint64_t ttl_ms; /* the value is asked for anew after so long; 0: it stays */
};

enum policy_inject {
  POLICY_INJECT_REPLACE, /* the placeholder is swapped for the value where it stands; "auto" means it */
  POLICY_INJECT_ATTACH, /* the value is set on every request, whatever stood there */
  POLICY_INJECT_ATTACH_IF_ABSENT, /* the same, where the request has nothing at its place */
};

/* Where the value goes when it is attached; a placeholder is swapped in any of them. */
enum policy_place {
  POLICY_PLACE_BEARER, /* Authorization: Bearer VALUE */
  POLICY_PLACE_BASIC, /* Authorization: Basic base64(place_name:VALUE) */
  POLICY_PLACE_HEADER, /* place_name: VALUE */
  POLICY_PLACE_QUERY, /* ?place_name=VALUE */
  POLICY_PLACE_SIGV4, /* no place of its own: requests that are signed with the placeholder are signed anew (AWS
                       * Signature Version 4); value and placeholder are several words, see credential_word() */
  POLICY_PLACE_PATH, /* of the URL, where the placeholder stands; with POLICY_INJECT_REPLACE only, and so is the next */
  POLICY_PLACE_BODY, /* of a request, where the placeholder stands; the body is kept until it is whole */
};

/* Where in responses values become placeholders again. */
enum policy_scrub {
  POLICY_SCRUB_HEAD,
  POLICY_SCRUB_BODY, /* the same, and in bodies they are masked, which are searched while they stream */
};

struct policy_credential {
  char *name; /* of letters, digits, '-' and '_' */
  char *preset; /* credential.h; NULL for none. What it says has been filled in. */
  struct policy_source source;
  struct policy_rules bind; /* hosts and ports that get the value (RULE_BIND): names, *.names, single addresses */
  struct strv env; /* variables inside that hold the placeholder; of POLICY_PLACE_SIGV4 two: id and secret key */
  struct strv files; /* of the host, that are there inside with the placeholder in place of the value */
  enum policy_inject inject;
  enum policy_place place;
  char *place_name; /* of the header or the query parameter, or the user of Basic, which may be empty; else NULL */
  enum policy_scrub scrub;
  struct policy_origin origin;
};

struct policy_credentials {
  struct policy_credential *items;
  size_t count;
  size_t cap;
};

struct policy {
  struct policy_paths read;
  struct policy_paths write;
  struct policy_paths hide;
  struct policy_paths protect;
  struct policy_paths unprotect;
  enum policy_home home;

  enum policy_network network;
  struct policy_rules allow;
  struct policy_rules deny;
  struct policy_port_maps forward;
  struct policy_port_maps publish;
  struct policy_paths unix_sockets;
  enum policy_upstream upstream;
  char *upstream_url; /* POLICY_UPSTREAM_URL only; may hold a password */

  struct policy_credentials credentials; /* by name */

  struct policy_paths env_pass; /* names, or prefixes ending in '*' (text holds the pattern) */
  struct policy_env_sets env_set;

  uint64_t memory_bytes; /* 0: no limit; so the next three */
  uint64_t cpu_milli; /* thousandths of a CPU */
  uint64_t pids;
  uint64_t timeout_ms;

  bool nesting; /* user namespaces pass the filter */
  bool ptrace; /* ptrace among its own processes */
  bool foreign; /* i386 system calls pass the filter (syscalls.i386) */

  char *audit_file; /* NULL: the state directory's default */
};

/* Free what one item holds. For the constructor only. */
void policy_path_clear(struct policy_path *path);
void policy_port_map_clear(struct policy_port_map *map);
void policy_env_set_clear(struct policy_env_set *set);
void policy_origin_clear(struct policy_origin *origin);

void policy_free(struct policy *policy);
void policy_free_indirect(struct policy **policy);
#define policy_autofree MEM_CLEANUP(policy_free_indirect)

#endif
