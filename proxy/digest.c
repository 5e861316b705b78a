#include "proxy/digest.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

struct sigv4_digest {
  EVP_MD_CTX *context;
};

static bool hash(struct span text, unsigned char ret_hash[SIGV4_HASH_BYTES])
{
  return EVP_Digest(text.ptr, text.len, ret_hash, NULL, EVP_sha256(), NULL) == 1;
}

static bool mac(struct span key, struct span text, unsigned char ret_mac[SIGV4_HASH_BYTES])
{
  return key.len <= INT_MAX &&
         HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)text.ptr, text.len, ret_mac, NULL) != NULL;
}

static struct sigv4_digest *begin(void)
{
  struct sigv4_digest *digest = OPENSSL_zalloc(sizeof *digest);

  if (digest)
    digest->context = EVP_MD_CTX_new();
  if (digest && digest->context && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1)
    return digest;
  if (digest)
    EVP_MD_CTX_free(digest->context);
  OPENSSL_free(digest);
  return NULL;
}

static bool add(struct sigv4_digest *digest, struct span bytes)
{
  return digest && EVP_DigestUpdate(digest->context, bytes.ptr, bytes.len) == 1;
}

static bool end(struct sigv4_digest **digest, unsigned char ret_hash[SIGV4_HASH_BYTES])
{
  bool good;

  if (!*digest)
    return false;
  good = EVP_DigestFinal_ex((*digest)->context, ret_hash, NULL) == 1;
  EVP_MD_CTX_free((*digest)->context);
  OPENSSL_free(*digest);
  *digest = NULL;
  return good;
}

const struct sigv4_crypto *digest_crypto(void)
{
  static const struct sigv4_crypto crypto = { .hash = hash, .mac = mac, .begin = begin, .add = add, .end = end };

  return &crypto;
}
