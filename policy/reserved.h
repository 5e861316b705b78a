/* reserved: variables that no credential may put its placeholder into. Pure. */
#ifndef SBX_POLICY_RESERVED_H
#define SBX_POLICY_RESERVED_H

#include "base/span.h"

#include <stdbool.h>

/* Whether the variable is one that sbx sets itself, such as HTTPS_PROXY or SSL_CERT_FILE, so that one of the two would
 * be lost; or one by which programs find, load or read other code, such as PATH and LD_PRELOAD. */
bool reserved_is_variable(struct span name);

#endif
