/* digest: SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), from OpenSSL. */
#ifndef SBX_PROXY_DIGEST_H
#define SBX_PROXY_DIGEST_H

#include "proxy/sigv4.h"

/* Never NULL. */
const struct sigv4_crypto *digest_crypto(void);

#endif
