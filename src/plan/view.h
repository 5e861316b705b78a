/* view: which paths a sandbox shows by itself, before any policy: the lists of DESIGN 6 as tables. */
#ifndef SBX_PLAN_VIEW_H
#define SBX_PLAN_VIEW_H

#include <stdbool.h>
#include <stddef.h>

/* NULL-terminated lists. */

/* Read-only trees of the system; those that are symbolic links on the host (/bin -> usr/bin) become links. */
const char *const *view_system_trees(void);

/* The parts of /sys that programs read to learn about processors, memory and devices; the rest (firmware, debug,
 * security, the host's cgroups) is not there, nor is what is mounted on it. */
const char *const *view_sys_trees(void);

/* Toolchains and settings below the home, relative to it; shown read-only where they exist. */
const char *const *view_home_tools(void);

/* Names below the workspace that are protected where they exist. */
const char *const *view_protected(void);

/* Places of secrets below the home, relative to it; hidden wherever they come into view, unless the policy names them;
 * where it names something in one, all but that is. */
const char *const *view_home_secrets(void);

struct view_mask {
  const char *path;
  bool directory;
};

/* Parts of /proc and /sys that nobody inside may read, and those that only file modes keep from others than root.
 * The list ends with path NULL. */
const struct view_mask *view_kernel_masks(void);
const struct view_mask *view_kernel_masks_root(void);

/* Parts of /proc made read-only when the caller is root: sysctls look at the kernel's uid, not at capabilities (F1). */
const char *const *view_proc_readonly_root(void);

/* Parts of /etc that only root or a group may read. Hidden when the caller is root, whose sandbox should read no more
 * of the system than a user's (P8). */
const char *const *view_etc_root_only(void);

#endif
