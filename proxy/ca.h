/* ca: the certification authority of a run, and the certificates that it signs for the targets of terminated
 * connections (RFC 5280).
 *
 * Its key is made when the proxy starts, and is nowhere but in this process's memory (F77): a client trusts it inside
 * one sandbox, for one run. Everything is P-256, since a handshake with RSA costs a thousand times as much.
 */
#ifndef SBX_PROXY_CA_H
#define SBX_PROXY_CA_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/host.h"
#include "policy/policy.h"

struct ca;

/* What a terminated connection shows to its client. Of OpenSSL's types X509 and EVP_PKEY. */
struct ca_leaf {
  struct x509_st *certificate;
  struct evp_pkey_st *key;
};

/* Makes the key and a certificate that is valid from an hour ago on, for longer than any run, and may sign no further
 * CA. Where it has room for them its name constraints are what the policy's credentials are bound to and its rules on
 * methods and paths name: the CA is good for nothing else, even if it were stolen. Of a kind that such rules leave open
 * ("*", or a prefix, to which any name may lead) nothing is excluded. 0, -ENOMEM or -EIO with the step that failed. */
int ca_new(const struct policy *policy, struct err *err, struct ca **ret_ca);
void ca_free(struct ca *ca);

/* The certificate in PEM, at most CA_PEM_BYTES; borrowed. */
#define CA_PEM_BYTES 4096
struct span ca_pem(const struct ca *ca);

/* The certificate for a target: one subject alternative name, which is the target; valid for 24 hours at most. Made at
 * first use and kept, for LIMITS_LEAVES targets. Borrowed: valid until the next call. 0, -ENOMEM or -EIO. */
int ca_leaf(struct ca *ca, const struct host *host, struct err *err, const struct ca_leaf **ret_leaf);

#endif
