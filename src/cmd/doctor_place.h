/* doctor_place: where the self-test happens, and that nothing of it stays.
 *
 *   BASE/work           the workspace: .git/hooks/pre-commit (protected), .env (hidden)
 *   BASE/outside/file   out of reach
 *   BASE/state, config  so that neither the user's own policy nor his audit has a part in it
 *
 * BASE lies in the state directory, which a sandbox does not show. Its name ends in our pid: what a doctor that was
 * killed has left, the next one removes.
 */
#ifndef SBX_CMD_DOCTOR_PLACE_H
#define SBX_CMD_DOCTOR_PLACE_H

#include "base/err.h"
#include "base/mem.h"

struct doctor_place {
  char *base;
  char *first_made; /* the topmost directory that had to be made above base; NULL */
  char *work;
  char *outside;
  char *file;
  char *hooks;
  char *hook;
  char *hidden;
  char token[40]; /* stands in file and hidden, and nowhere else */
};

/* Makes it below the state directory. 0 or -errno; call doctor_place_remove in either case. */
int doctor_place_make(const char *state_dir, struct err *err, struct doctor_place *place);

/* Removes it and the directories that were made for it, and frees the names. */
void doctor_place_remove(struct doctor_place *place);

#endif
