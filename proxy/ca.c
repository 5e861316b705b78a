#include "config.h"

#include "proxy/ca.h"

#include "base/clock.h"
#include "base/mem.h"
#include "policy/limits.h"
#include "policy/rule.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#define HOUR_S 3600L
#define CA_BEFORE_S HOUR_S /* clocks inside are the host's; some clients want a certificate that is not brand-new */
#define CA_AFTER_S (5 * 365 * 24 * HOUR_S) /* longer than any run: its key dies with the process */
#define LEAF_BEFORE_S HOUR_S
#define LEAF_AFTER_S (23 * HOUR_S)
#define LEAF_RENEW_MS (12 * HOUR_S * 1000)
#define SERIAL_BYTES 16

struct leaf {
  struct host host;
  struct ca_leaf leaf; /* certificate NULL: the place is free */
  uint64_t made_ms;
};

struct ca {
  EVP_PKEY *key;
  X509 *certificate;
  char pem[CA_PEM_BYTES];
  size_t pem_len;
  EVP_PKEY *leaf_key; /* one for all: whoever has it has the process */
  struct leaf leaves[LIMITS_LEAVES];
  size_t next; /* the place that is used next once all are taken */
};

static int fail(struct err *err, const char *step)
{
  return err_set(err, EIO, "ca: %s failed", step);
}

/* Extensions by their text in OpenSSL's own notation; nothing from outside goes in here. */
static bool add_text(X509 *certificate, X509 *issuer, int nid, const char *text)
{
  X509V3_CTX context;
  X509_EXTENSION *extension;
  bool added;

  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  extension = X509V3_EXT_conf_nid(NULL, &context, nid, text);
  added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/* Name constraints (RFC 5280, 4.2.1.10). */

static ASN1_STRING *set_bytes(ASN1_STRING *string, const void *bytes, size_t len)
{
  if (string && ASN1_STRING_set(string, bytes, (int)len) != 1) {
    ASN1_STRING_free(string);
    return NULL;
  }
  return string;
}

/* Takes value over. NULL when memory is short, or value is NULL. */
static GENERAL_NAME *general_name(int type, ASN1_STRING *value)
{
  GENERAL_NAME *name = value ? GENERAL_NAME_new() : NULL;

  if (name)
    GENERAL_NAME_set0_value(name, type, value);
  else
    ASN1_STRING_free(value);
  return name;
}

static GENERAL_NAME *dns_name(const char *text)
{
  return general_name(GEN_DNS, set_bytes(ASN1_IA5STRING_new(), text, strlen(text)));
}

/* An address; with a mask after it where length is not negative. */
static GENERAL_NAME *ip_name(const struct addr *addr, int length)
{
  size_t size = addr->family == ADDR_V4 ? 4 : 16;
  unsigned char bytes[32];

  memcpy(bytes, addr->bytes, size);
  for (size_t i = 0; i < size; i++) {
    int bits = length - (int)(8 * i);

    bytes[size + i] = (unsigned char)(bits >= 8 ? 0xff : bits <= 0 ? 0 : 0xff << (8 - bits));
  }
  return general_name(GEN_IPADD, set_bytes(ASN1_OCTET_STRING_new(), bytes, length < 0 ? size : 2 * size));
}

static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *trees, GENERAL_NAME *name)
{
  GENERAL_SUBTREE *tree = name ? GENERAL_SUBTREE_new() : NULL;

  if (!*trees)
    *trees = sk_GENERAL_SUBTREE_new_null();
  if (!tree || !*trees || sk_GENERAL_SUBTREE_push(*trees, tree) <= 0) {
    GENERAL_SUBTREE_free(tree);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_free(tree->base);
  tree->base = name;
  return true;
}

/* What the CA may sign for. */
struct scope {
  NAME_CONSTRAINTS *constraints;
  bool has_names, has_addresses; /* some of the kind are permitted */
  bool all_names, all_addresses; /* not known beforehand */
};

/* A name stands for its subdomains too: there is no other form that every client reads. False: out of memory. */
static bool permit(struct scope *scope, const struct policy_rule *rule)
{
  STACK_OF(GENERAL_SUBTREE) **permitted = &scope->constraints->permittedSubtrees;

  if (rule->kind == POLICY_HOST_PREFIX) {
    scope->has_addresses = true;
    return add_subtree(permitted, ip_name(&rule->prefix.addr, (int)rule->prefix.length));
  }
  scope->has_names = true;
  return rule->name && add_subtree(permitted, dns_name(rule->name));
}

static bool permit_bound(struct scope *scope, const struct policy *policy)
{
  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_rules *bind = &policy->credentials.items[i].bind;

    for (size_t j = 0; j < bind->count; j++)
      if (!permit(scope, &bind->items[j]))
        return false;
  }
  return true;
}

/* Of rules on requests. One on addresses is also about whatever name comes along with them or leads to them. */
static bool permit_judged(struct scope *scope, const struct policy_rules *rules, bool deny)
{
  for (size_t i = 0; i < rules->count; i++) {
    const struct policy_rule *rule = &rules->items[i];

    if (rule_is_whole(rule))
      continue;
    if (rule->kind == POLICY_HOST_PREFIX && !deny)
      scope->all_names = true;
    else if (rule->kind != POLICY_HOST_NAME && rule->kind != POLICY_HOST_SUBDOMAINS)
      scope->all_names = scope->all_addresses = true;
    if ((rule->kind == POLICY_HOST_PREFIX || rule->name) && !permit(scope, rule))
      return false;
  }
  return true;
}

static void drop_kind(STACK_OF(GENERAL_SUBTREE) * trees, int type)
{
  for (int i = sk_GENERAL_SUBTREE_num(trees) - 1; i >= 0; i--)
    if (sk_GENERAL_SUBTREE_value(trees, i)->base->type == type)
      GENERAL_SUBTREE_free(sk_GENERAL_SUBTREE_delete(trees, i));
}

/* A kind of name of which nothing is permitted has to be excluded, or all of it would be; and the other way round. */
static bool shut(struct scope *scope)
{
  static const struct addr v4 = { .family = ADDR_V4 };
  static const struct addr v6 = { .family = ADDR_V6 };
  NAME_CONSTRAINTS *constraints = scope->constraints;

  if (scope->all_names)
    drop_kind(constraints->permittedSubtrees, GEN_DNS);
  else if (!scope->has_names && !add_subtree(&constraints->permittedSubtrees, dns_name("invalid")))
    return false;
  if (scope->all_addresses)
    drop_kind(constraints->permittedSubtrees, GEN_IPADD);
  return scope->all_addresses || scope->has_addresses ||
         (add_subtree(&constraints->excludedSubtrees, ip_name(&v4, 0)) &&
          add_subtree(&constraints->excludedSubtrees, ip_name(&v6, 0)));
}

static bool add_constraints(X509 *certificate, const struct policy *policy)
{
  struct scope scope = { .constraints = NAME_CONSTRAINTS_new() };
  bool added = scope.constraints && permit_bound(&scope, policy) && permit_judged(&scope, &policy->allow, false) &&
               permit_judged(&scope, &policy->deny, true) && shut(&scope);

  /* An extension without a subtree is not well formed. */
  if (added && !(scope.all_names && scope.all_addresses))
    added = X509_add1_ext_i2d(certificate, NID_name_constraints, scope.constraints, 1, X509V3_ADD_DEFAULT) == 1;
  NAME_CONSTRAINTS_free(scope.constraints);
  return added;
}

/* Certificates. */

static bool set_serial(X509 *certificate)
{
  unsigned char bytes[SERIAL_BYTES];
  BIGNUM *number;
  bool set;

  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return false;
  bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of one length */
  number = BN_bin2bn(bytes, sizeof bytes, NULL);
  set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  return set;
}

static bool set_times(X509 *certificate, long before_s, long after_s)
{
  return X509_gmtime_adj(X509_getm_notBefore(certificate), -before_s) &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), after_s);
}

static bool set_name(X509 *certificate, const char *text)
{
  X509_NAME *name = X509_get_subject_name(certificate);

  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0) == 1;
}

static X509 *certificate_new(EVP_PKEY *key, const char *name, long before_s, long after_s)
{
  X509 *certificate = X509_new();

  if (certificate && X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
      set_times(certificate, before_s, after_s) && set_name(certificate, name) &&
      X509_set_pubkey(certificate, key) == 1)
    return certificate;
  X509_free(certificate);
  return NULL;
}

/* The CA's own. Its name differs from run to run, so that a client that keeps certificates by name mixes up none. */
static X509 *root_new(struct ca *ca, const struct policy *policy, bool constrain)
{
  unsigned char random[4];
  char name[64];
  X509 *root;

  if (RAND_bytes(random, sizeof random) != 1)
    return NULL;
  snprintf(name, sizeof name, "%s run %02x%02x%02x%02x", SBX_NAME, random[0], random[1], random[2], random[3]);
  root = certificate_new(ca->key, name, CA_BEFORE_S, CA_AFTER_S);
  if (root && X509_set_issuer_name(root, X509_get_subject_name(root)) == 1 &&
      add_text(root, root, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_text(root, root, NID_key_usage, "critical,keyCertSign") &&
      add_text(root, root, NID_subject_key_identifier, "hash") &&
      add_text(root, root, NID_authority_key_identifier, "keyid:always") &&
      (!constrain || add_constraints(root, policy)) && X509_sign(root, ca->key, EVP_sha256()) > 0)
    return root;
  X509_free(root);
  return NULL;
}

/* 0; -E2BIG past CA_PEM_BYTES; -EIO. */
static int print(struct ca *ca)
{
  BIO *bio = BIO_new(BIO_s_mem());
  const char *text = NULL;
  long len = 0;
  int r = -EIO;

  if (bio && PEM_write_bio_X509(bio, ca->certificate) == 1)
    len = BIO_get_mem_data(bio, &text);
  if (len > 0)
    r = len <= CA_PEM_BYTES ? 0 : -E2BIG;
  if (r == 0) {
    ca->pem_len = (size_t)len;
    memcpy(ca->pem, text, ca->pem_len);
  }
  BIO_free(bio);
  return r;
}

static int make_root(struct ca *ca, const struct policy *policy, struct err *err)
{
  int r = -E2BIG;

  for (int constrain = 1; r == -E2BIG && constrain >= 0; constrain--) {
    X509_free(ca->certificate);
    ca->certificate = root_new(ca, policy, constrain);
    if (!ca->certificate)
      return fail(err, "making its certificate");
    r = print(ca);
  }
  return r < 0 ? fail(err, "printing its certificate") : 0;
}

int ca_new(const struct policy *policy, struct err *err, struct ca **ret_ca)
{
  struct ca *ca = mem_calloc(1, sizeof *ca);
  int r;

  if (!ca)
    return err_set(err, ENOMEM, "ca: out of memory");
  ca->key = EVP_EC_gen("P-256");
  ca->leaf_key = EVP_EC_gen("P-256");
  r = ca->key && ca->leaf_key ? make_root(ca, policy, err) : fail(err, "making its keys");
  if (r < 0)
    ca_free(ca);
  else
    *ret_ca = ca;
  return r;
}

void ca_free(struct ca *ca)
{
  if (!ca)
    return;
  for (size_t i = 0; i < MEM_COUNT(ca->leaves); i++)
    X509_free(ca->leaves[i].leaf.certificate);
  X509_free(ca->certificate);
  EVP_PKEY_free(ca->leaf_key);
  EVP_PKEY_free(ca->key);
  free(ca);
}

struct span ca_pem(const struct ca *ca)
{
  return (struct span){ .ptr = ca->pem, .len = ca->pem_len };
}

/* Leaves. */

static bool add_target(X509 *certificate, const struct host *host)
{
  GENERAL_NAMES *names = GENERAL_NAMES_new();
  GENERAL_NAME *name = host->kind == HOST_ADDR ? ip_name(&host->addr, -1) : dns_name(host->name);
  bool added = names && name && sk_GENERAL_NAME_push(names, name) > 0;

  if (!added)
    GENERAL_NAME_free(name);
  added = added && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
  GENERAL_NAMES_free(names);
  return added;
}

/* The common name is no host name: OpenSSL would hold that of an address against the name constraints. */
static X509 *leaf_new(const struct ca *ca, const struct host *host)
{
  X509 *leaf = certificate_new(ca->leaf_key, SBX_NAME, LEAF_BEFORE_S, LEAF_AFTER_S);

  if (leaf && X509_set_issuer_name(leaf, X509_get_subject_name(ca->certificate)) == 1 &&
      add_text(leaf, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
      add_text(leaf, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
      add_text(leaf, ca->certificate, NID_ext_key_usage, "serverAuth") &&
      add_text(leaf, ca->certificate, NID_subject_key_identifier, "hash") &&
      add_text(leaf, ca->certificate, NID_authority_key_identifier, "keyid:always") && add_target(leaf, host) &&
      X509_sign(leaf, ca->key, EVP_sha256()) > 0)
    return leaf;
  X509_free(leaf);
  return NULL;
}

/* The place of the host's leaf, or the one to put it in. */
static struct leaf *find(struct ca *ca, const struct host *host)
{
  struct leaf *place;

  for (size_t i = 0; i < MEM_COUNT(ca->leaves); i++) {
    place = &ca->leaves[i];
    if (!place->leaf.certificate || (place->host.kind == host->kind && strcmp(place->host.name, host->name) == 0))
      return place;
  }
  place = &ca->leaves[ca->next];
  ca->next = (ca->next + 1) % MEM_COUNT(ca->leaves);
  X509_free(place->leaf.certificate);
  place->leaf.certificate = NULL;
  return place;
}

int ca_leaf(struct ca *ca, const struct host *host, struct err *err, const struct ca_leaf **ret_leaf)
{
  struct leaf *place = find(ca, host);
  uint64_t now_ms = clock_real_ms();
  bool fresh = place->leaf.certificate && now_ms >= place->made_ms && now_ms - place->made_ms < LEAF_RENEW_MS;
  X509 *made = fresh ? NULL : leaf_new(ca, host);

  if (!fresh && !made)
    return fail(err, "signing a certificate");
  if (made) {
    X509_free(place->leaf.certificate);
    *place = (struct leaf){ .host = *host, .leaf = { .certificate = made, .key = ca->leaf_key }, .made_ms = now_ms };
  }
  *ret_leaf = &place->leaf;
  return 0;
}
