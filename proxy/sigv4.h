/* sigv4: signatures of requests in the Authorization header, AWS Signature Version 4. Pure: the hash functions come
 * from the caller (digest.h), so that only the program that terminates TLS has to have them.
 *
 *   Authorization: AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX
 */
#ifndef SBX_PROXY_SIGV4_H
#define SBX_PROXY_SIGV4_H

#include "base/buf.h"
#include "base/err.h"
#include "proxy/http_head.h"

#include <stdint.h>

#define SIGV4_HASH_BYTES 32
#define SIGV4_HEX_BYTES (2 * SIGV4_HASH_BYTES)
#define SIGV4_PARAMETERS_MAX 1024 /* of one query */

struct sigv4_digest;

/* SHA-256 and HMAC with it (RFC 2104). Each returns false where there is no memory. */
struct sigv4_crypto {
  bool (*hash)(struct span text, unsigned char ret_hash[SIGV4_HASH_BYTES]);
  bool (*mac)(struct span key, struct span text, unsigned char ret_mac[SIGV4_HASH_BYTES]);

  /* The hash of a text that comes in pieces; NULL where there is no memory. end() frees as well; both take NULL. */
  struct sigv4_digest *(*begin)(void);
  bool (*add)(struct sigv4_digest *digest, struct span bytes);
  bool (*end)(struct sigv4_digest **digest, unsigned char ret_hash[SIGV4_HASH_BYTES]);
};

/* What an Authorization header says. */
struct sigv4_auth {
  struct span id; /* of the access key */
  struct span scope; /* DATE/REGION/SERVICE/aws4_request */
  struct span date;
  struct span region;
  struct span service;
  struct span signed_names; /* lower case, ascending, with ';' between them */
  struct span signature; /* SIGV4_HEX_BYTES */
};

/* Reads the value of an Authorization header, strictly. False where it is another scheme or not well formed. */
bool sigv4_read(struct span value, struct sigv4_auth *ret_auth);

/* Whether the name, in lower case, is among the signed ones. */
bool sigv4_signs(const struct sigv4_auth *auth, struct span name);

/* Whether the request has all that can be signed: exactly one X-Amz-Date of the scope's day, Host among the signed
 * names (a signature is of no use at any other host then), and each signed name in the head. */
bool sigv4_is_whole(const struct sigv4_auth *auth, const struct http_head *head);

/* When it was signed, in milliseconds since the epoch: X-Amz-Date of a head that sigv4_is_whole() has passed. False
 * where there is no such time. */
bool sigv4_time(const struct http_head *head, uint64_t *ret_real_ms);

/* The order of signed names. */
int sigv4_compare(struct span a, struct span b);

/* How the body is signed. */
enum sigv4_body {
  SIGV4_BODY_GIVEN, /* by its hash, or as unsigned, in X-Amz-Content-Sha256 */
  SIGV4_BODY_ABSENT, /* by its hash, which is nowhere in the head */
  SIGV4_BODY_CHUNKS, /* by signatures between its chunks, each made from the one before */
  SIGV4_BODY_BAD, /* it cannot be told */
};
enum sigv4_body sigv4_body_of(const struct http_head *head);

void sigv4_print_hex(const unsigned char hash[SIGV4_HASH_BYTES], char ret_hex[SIGV4_HEX_BYTES]);

/* Makes the signature of a request as it is sent: method, target in origin-form, fields, which sigv4_is_whole() has
 * passed. auth: scope and signed names. body: its hash in hex, where SIGV4_BODY_ABSENT. 0;
 * -E2BIG past SIGV4_PARAMETERS_MAX; -ENOMEM. What is made on the way is wiped. */
int sigv4_sign(const struct sigv4_crypto *crypto, const struct http_head *head, const struct sigv4_auth *auth,
               struct span body, struct span secret, char ret_signature[SIGV4_HEX_BYTES]);

#endif
