/* fspath: paths of the policy language: their four forms (policy.h) and the match of patterns. Text only; nothing here
 * looks at a file system. */
#ifndef SBX_POLICY_FSPATH_H
#define SBX_POLICY_FSPATH_H

#include "base/err.h"
#include "base/span.h"

/* Canonical form of a path: no "." parts, no double or trailing slashes; "." for the workspace itself. Refused: the
 * empty path, ".." parts, control bytes, "~user", more than LIMITS_PATH_BYTES, and where pattern is false '*' and
 * '?'. 0, -EINVAL with "cause; fix", or -ENOMEM. Caller frees *ret_text. */
int fspath_parse(struct span text, bool pattern, struct err *err, char **ret_text);

/* Whether a canonical path has '*' or '?' in it. */
bool fspath_is_pattern(const char *text);

/* The absolute path that a canonical path without wildcards stands for; of a pattern, the part in front of its first
 * part with a wildcard. *ret_rest then borrows the pattern that is left ("*.pem"), and is empty for a plain path.
 * home and workspace are absolute. 0 or -ENOMEM. Caller frees *ret_base. */
int fspath_split(const char *text, const char *home, const char *workspace, char **ret_base, struct span *ret_rest);

/* Matches a whole relative path with a pattern: '?' is one byte and '*' any run of bytes within a part, a part "**" any
 * number of parts (none included); a '.' in front is nothing special, and all other bytes stand for themselves.
 * Takes at most O(pattern * path) steps and no memory. */
bool fspath_glob(struct span pattern, struct span path);

/* Whether the canonical path or pattern text, below home or workspace, names exactly the absolute path. */
bool fspath_match(const char *text, const char *home, const char *workspace, const char *path);

#endif
