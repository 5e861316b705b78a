#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static void free_secret(char *text)
{
  if (text)
    mem_wipe(text, strlen(text));
  free(text);
}

void plan_upstream_free(struct plan_upstream *upstream)
{
  free_secret(upstream->http);
  free_secret(upstream->other);
  free(upstream->no_proxy);
  *upstream = (struct plan_upstream){ .http = NULL };
}

void plan_free(struct plan *plan)
{
  for (size_t i = 0; i < plan->ops.count; i++) {
    free(plan->ops.items[i].target);
    free(plan->ops.items[i].source);
    free(plan->ops.items[i].data);
  }
  free(plan->ops.items);
  strv_free(&plan->argv);
  strv_free(&plan->env);
  strv_free(&plan->links);
  strv_free(&plan->own_dirs);
  strv_free(&plan->env_left_out);
  strv_free(&plan->private_mounts);
  strv_free(&plan->passing_mounts);
  strv_free(&plan->notes);
  strv_free(&plan->warnings);
  plan_upstream_free(&plan->upstream);
  free(plan->program);
  free(plan->cwd);
  free(plan->bundle);
  free(plan->certutil);
  free(plan->workspace);
  free(plan->private_home);
  *plan = (struct plan)PLAN_INIT;
}

const char *plan_stage_name(enum plan_stage stage)
{
  switch (stage) {
  case PLAN_STAGE_SYSTEM:
    return "system";
  case PLAN_STAGE_KERNEL:
    return "kernel";
  case PLAN_STAGE_PRIVATE:
    return "private";
  case PLAN_STAGE_HOME:
    return "home";
  case PLAN_STAGE_VISIBLE:
    return "visible";
  case PLAN_STAGE_PROTECT:
    return "protect";
  case PLAN_STAGE_HIDE:
    return "hide";
  case PLAN_STAGE_SEAL:
    break;
  }
  return "seal";
}

const char *plan_op_name(enum plan_op_kind kind)
{
  switch (kind) {
  case PLAN_BIND_RO:
    return "read-only";
  case PLAN_BIND_RW:
    return "writable";
  case PLAN_TMPFS:
    return "tmpfs";
  case PLAN_DIR:
    return "directory";
  case PLAN_SYMLINK:
    return "link";
  case PLAN_COVER:
    return "cover";
  case PLAN_FILE:
    return "file";
  case PLAN_PROC:
    return "proc";
  case PLAN_DEV:
    return "dev";
  case PLAN_MASK_FILE:
    return "hidden-file";
  case PLAN_MASK_DIR:
    return "hidden-directory";
  case PLAN_SEAL:
    break;
  }
  return "seal";
}
