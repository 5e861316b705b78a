#include "run/late.h"

#include "policy/limits.h"
#include "run/credential_file.h"
#include "run/java_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void late_free(struct late *late)
{
  for (size_t i = 0; i < late->count; i++)
    buf_wipe(&late->bufs[i]);
  free(late->bufs);
  free(late->texts);
  *late = (struct late)LATE_INIT;
}

static int make_java(const struct facts *facts, const char *real, struct span certificate, struct buf *out)
{
  struct span bundle = facts->root_count > 0 ? span_of(facts->roots[0].text) : SPAN("");

  for (size_t i = 0; i < facts->java_count; i++) {
    const struct fact_java *java = &facts->java[i];

    if (strcmp(java->real, real) == 0)
      return java_store_make((struct span){ .ptr = java->bytes, .len = java->len }, bundle, certificate, out);
  }
  return -ENOENT;
}

static int make_text(const struct run_request *request, const struct plan_op *op, struct span certificate,
                     const struct nss_store *nss, const struct secrets *secrets, struct err *err, struct buf *out)
{
  int r = 0;

  switch (op->late) {
  case PLAN_LATE_NOT:
  case PLAN_LATE_CERTIFICATE:
    buf_append_str(out, op->data);
    if (out->len > 0 && out->data[out->len - 1] != '\n')
      buf_append_byte(out, '\n');
    buf_append(out, certificate);
    r = buf_error(out);
    break;
  case PLAN_LATE_JAVA:
    r = make_java(request->facts, op->source, certificate, out);
    break;
  case PLAN_LATE_NSS:
    buf_append(out, nss_store_file(nss, strrchr(op->target, '/') + 1));
    r = buf_error(out);
    break;
  case PLAN_LATE_CREDENTIAL:
    return credential_file_make(request, op, secrets, err, out);
  }
  return r < 0 ? err_set_errno(err, -r, "isolation: %s (%s)", op->target, op->why) : 0;
}

static void move(struct late *from, struct late *to)
{
  *to = *from;
  *from = (struct late)LATE_INIT;
}

int late_make(const struct run_request *request, struct span certificate, const struct nss_store *nss,
              const struct secrets *secrets, struct err *err, struct late *ret_late)
{
  late_autofree struct late late = LATE_INIT;
  const struct plan *plan = request->plan;
  int r = 0;

  late.bufs = mem_calloc(plan->late_max, sizeof *late.bufs);
  late.texts = mem_calloc(plan->late_max, sizeof *late.texts);
  if (!late.bufs || !late.texts)
    return err_set(err, ENOMEM, "out of memory");
  for (size_t i = 0; i < plan->ops.count && r == 0; i++) {
    const struct plan_op *op = &plan->ops.items[i];

    if (!op->late)
      continue;
    if (late.count == plan->late_max)
      return err_set(err, E2BIG, "isolation: %s: was not prepared for", op->target);
    late.bufs[late.count] = (struct buf)BUF_INIT(LIMITS_LATE_BYTES);
    r = make_text(request, op, certificate, nss, secrets, err, &late.bufs[late.count]);
    late.texts[late.count] = buf_span(&late.bufs[late.count]);
    late.count++;
  }
  if (r < 0)
    return r;
  move(&late, ret_late);
  return 0;
}
