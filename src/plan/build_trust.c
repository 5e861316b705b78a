/* What programs inside trust: the certificates that the host trusts, corporate ones among them, and beside them the CA
 * that the proxy makes for the run. The files stand in place of the host's, since some programs look nowhere else;
 * others have bundles of their own and look at variables, which build_env.c sets (F78). Java has stores of its own, and
 * no variable but one on which it prints a line. Chromium and its like look into a database of the home. */
#include "plan/build.h"
#include "plan/ops.h"
#include "sys/path.h"

#include <errno.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

static struct plan_op *add(struct plan *plan, enum plan_op_kind kind, const char *target, const char *text)
{
  struct plan_op *op = ops_add(plan, PLAN_STAGE_PRIVATE, kind, NULL, target, "trust");

  if (!op || !(op->data = mem_strndup(text, strlen(text))))
    return NULL;
  op->mode = 0444;
  op->late = PLAN_LATE_CERTIFICATE;
  return op;
}

int build_trust(const struct facts *facts, struct err *err, struct plan *plan)
{
  if (!plan->tls)
    return 0;
  for (size_t i = 0; i < facts->root_count; i++) {
    const char *real = facts->roots[i].real;
    const struct plan_op *cover = ops_covering(plan, real);

    if (!cover || !ops_is_bind(cover) || strcmp(cover->source, cover->target) != 0)
      continue; /* not there inside */
    if (!add(plan, PLAN_COVER, real, facts->roots[i].text))
      return OUT_OF_MEMORY(err);
    if (!plan->bundle && !(plan->bundle = mem_strndup(real, strlen(real))))
      return OUT_OF_MEMORY(err);
  }
  if (!plan->bundle &&
      strv_add(&plan->warnings, "TLS: no file with the CA certificates of the host was found (such as "
                                "/etc/ssl/certs/ca-certificates.crt), so most programs will not trust the connections "
                                "that are terminated; install the package ca-certificates") < 0)
    return OUT_OF_MEMORY(err);
  return add(plan, PLAN_FILE, PLAN_CA, facts->extra_roots ? facts->extra_roots : "") ? 0 : OUT_OF_MEMORY(err);
}

int build_trust_java(const struct facts *facts, struct err *err, struct plan *plan)
{
  for (size_t i = 0; i < facts->java_count && plan->tls; i++) {
    const char *real = facts->java[i].real;
    const struct plan_op *cover = ops_covering(plan, real);
    struct plan_op *op;

    if (!cover || !ops_is_bind(cover) || strcmp(cover->source, cover->target) != 0)
      continue; /* not there inside */
    ops_drop_visible(plan, real);
    op = ops_add(plan, PLAN_STAGE_VISIBLE, PLAN_COVER, real, real, "trust");
    if (!op || !(op->data = mem_strndup("", 0)))
      return OUT_OF_MEMORY(err);
    op->mode = 0444;
    op->late = PLAN_LATE_JAVA;
    ops_place(plan);
  }
  return 0;
}

static bool has_browser(const struct facts *facts, const struct plan *plan)
{
  bool outside = false;

  for (size_t i = 0; i < facts->browsers.count; i++) {
    if (build_find_inside(plan, facts, facts->browsers.items[i], &outside))
      return true;
  }
  return false;
}

/* Programs open the database to write, and in a private home there may be whatever an earlier command has left: so it
 * is in a directory in memory, over the other one. */
int build_trust_nss(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  static const char *const files[BUILD_NSS_FILES] = { "cert9.db", "key4.db", "pkcs11.txt" };
  static const char name[] = ".pki/nssdb";
  mem_autofree char *dir = path_join(facts->home, name);
  const struct plan_op *cover = dir ? ops_covering(plan, dir) : NULL;
  struct plan_op *op;

  if (!dir)
    return OUT_OF_MEMORY(err);
  if (!plan->tls || !facts->certutil || policy->home == POLICY_HOME_HOST || !cover || cover->stage != PLAN_STAGE_HOME ||
      !has_browser(facts, plan))
    return 0;
  op = ops_add(plan, PLAN_STAGE_HOME, PLAN_TMPFS, NULL, dir, "trust");
  if (!op)
    return OUT_OF_MEMORY(err);
  op->mode = 0700;
  ops_place(plan);
  for (size_t i = 0; i < MEM_COUNT(files); i++) {
    mem_autofree char *path = path_join(dir, files[i]);

    op = path ? ops_add(plan, PLAN_STAGE_HOME, PLAN_FILE, NULL, path, "trust") : NULL;
    if (!op || !(op->data = mem_strndup("", 0)))
      return OUT_OF_MEMORY(err);
    op->mode = 0600;
    op->late = PLAN_LATE_NSS;
    ops_place(plan);
  }
  plan->certutil = mem_strndup(facts->certutil, strlen(facts->certutil));
  if (!plan->certutil || (plan->private_home && strv_addf(&plan->private_mounts, "%s/", name) < 0))
    return OUT_OF_MEMORY(err);
  return 0;
}
