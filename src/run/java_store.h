/* java_store: the certificates that Java trusts, in the form of its key store JKS. Pure. */
#ifndef SBX_RUN_JAVA_STORE_H
#define SBX_RUN_JAVA_STORE_H

#include "base/buf.h"

/* Appends a store that has what the host's store has, and the certificate ca, in PEM. A host's store of another form
 * than JKS is not read: then the certificates of bundle, in PEM, stand in its place. 0; -EINVAL where ca is no
 * certificate; or as buf_error(). */
int java_store_make(struct span host, struct span bundle, struct span ca, struct buf *out);

/* Whether java_store_make() takes over what this store has. */
bool java_store_is_read(struct span host);

#endif
