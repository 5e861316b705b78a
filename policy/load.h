/* load: policy text → layers: syntax, known keys and types, with the place of every value.
 *
 * A policy_layers object collects the layers in the order of DESIGN 5. Nothing of it is a policy yet: merge.h orders
 * and narrows it, validate.h makes the policy.
 */
#ifndef SBX_POLICY_LOAD_H
#define SBX_POLICY_LOAD_H

#include "base/err.h"
#include "base/span.h"
#include "base/strv.h"

enum layer_kind {
  LAYER_BUILTIN, /* always there, added by layers_new */
  LAYER_PROFILE,
  LAYER_SYSTEM, /* the system's policy.json */
  LAYER_USER,
  LAYER_PROJECT, /* the user's too, for one workspace, and outside of it */
  LAYER_WORKSPACE, /* untrusted: only what narrows is taken */
  LAYER_WORKSPACE_TRUSTED, /* after `sbx trust`; some keys are refused all the same */
  LAYER_FILE, /* --policy */
  LAYER_OPTION,
};

struct layers;

/* An object that holds the built-in base; NULL when memory is short. */
struct layers *layers_new(void);
void layers_free(struct layers *layers);
void layers_free_indirect(struct layers **layers);
#define layers_autofree MEM_CLEANUP(layers_free_indirect)

/* Parses text (JSON with comments, RFC 8259 otherwise; duplicate keys refused) as a layer. name is what messages call
 * the place: an absolute path, or "profile git". Errors: -EINVAL "name:line: path: cause; fix". */
int layers_add_text(struct layers *layers, enum layer_kind kind, const char *name, struct span text, struct err *err);

/* Opens path without following a last symbolic link for LAYER_WORKSPACE*, refuses what is not a regular file, is
 * larger than LIMITS_POLICY_BYTES, or (except for LAYER_WORKSPACE*) is writable by others or owned by another user than
 * root or the caller, and adds it. 0; -ENOENT where there is no such file (nothing added, err untouched); -errno. */
int layers_add_file(struct layers *layers, enum layer_kind kind, const char *path, struct err *err);

/* Adds one value as an option does. key is a key's path ("network.allow"), text the option's argument, option what
 * messages call it ("--allow"). All options of a run make up one layer, the last. */
int layers_add_option(struct layers *layers, const char *key, const char *text, const char *option, struct err *err);

/* Adds the built-in profile name, and those that it extends, each once. -ENOENT with the list of names in err. */
int layers_add_profile(struct layers *layers, const char *name, struct err *err);

/* Names of the profiles that are built in, NULL-terminated. */
const char *const *profile_names(void);

#endif
