/* late: what those files of a plan hold that are made when the rest of the sandbox stands (plan_late). */
#ifndef SBX_RUN_LATE_H
#define SBX_RUN_LATE_H

#include "run/nss_store.h"
#include "run/run.h"
#include "run/secrets.h"

struct late {
  struct buf *bufs;
  struct span *texts; /* one for each late operation of the plan, in their order */
  size_t count;
};

#define LATE_INIT { .bufs = NULL, .texts = NULL, .count = 0 }

/* Makes the texts. certificate is that of the run's CA, in PEM; nss has been finished where plan->certutil is set;
 * secrets have been gathered where a file of a credential is among them. 0; or -errno with "part: cause; mend" in
 * err. */
int late_make(const struct run_request *request, struct span certificate, const struct nss_store *nss,
              const struct secrets *secrets, struct err *err, struct late *ret_late);

/* Wipes the texts, and frees them. */
void late_free(struct late *late);
#define late_autofree MEM_CLEANUP(late_free)

#endif
