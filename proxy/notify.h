/* notify: tells sbx about a denial, or a failure that the client has not been told in words, for the summary at the end
 * of the run (CONTROL_DENIED of sys/control.h). */
#ifndef SBX_PROXY_NOTIFY_H
#define SBX_PROXY_NOTIFY_H

#include "proxy/denial.h"

/* Never blocks; a notice that does not fit is dropped. */
void notify_denied(int control, const struct denial *denial);

#endif
