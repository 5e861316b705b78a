/* The certificates of a run, as a client's library reads them: verified by OpenSSL in its strict mode. */
#include "policy/limits.h"
#include "policy/rule.h"
#include "proxy/ca.h"
#include "unit/policy_make.h"
#include "unit/unit.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

#define HOUR_S 3600

/* A policy whose one credential is bound to these rules. */
struct bound {
  struct policy policy;
  struct policy_credential credential;
};

static void bind_to(struct bound *bound, const char *const *rules, size_t count)
{
  *bound = (struct bound){ .credential.name = NULL };
  bound->credential.bind.items = mem_calloc(count, sizeof *bound->credential.bind.items);
  assert_non_null(bound->credential.bind.items);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(rule_parse(span_of(rules[i]), RULE_BIND, NULL, &bound->credential.bind.items[i]), 0);
  bound->credential.bind.count = count;
  bound->policy.credentials.items = &bound->credential;
  bound->policy.credentials.count = 1;
}

static struct ca *make(const char *const *rules, size_t count)
{
  struct bound bound;
  struct err err = ERR_INIT;
  struct ca *ca = NULL;

  bind_to(&bound, rules, count);
  if (ca_new(&bound.policy, &err, &ca) < 0)
    fail_msg("%s", err.message);
  for (size_t i = 0; i < count; i++)
    rule_free(&bound.credential.bind.items[i]);
  free(bound.credential.bind.items);
  return ca;
}

static struct host target(const char *name)
{
  struct host host;

  assert_int_equal(host_parse(span_of(name), NULL, &host), 0);
  return host;
}

static const struct ca_leaf *leaf_for(struct ca *ca, const char *name)
{
  const struct ca_leaf *leaf = NULL;
  struct host host = target(name);

  assert_int_equal(ca_leaf(ca, &host, NULL, &leaf), 0);
  assert_non_null(leaf);
  return leaf;
}

static X509 *root_of(const struct ca *ca)
{
  BIO *bio = BIO_new_mem_buf(ca_pem(ca).ptr, (int)ca_pem(ca).len);
  X509 *root = PEM_read_bio_X509(bio, NULL, NULL, NULL);

  assert_non_null(root);
  BIO_free(bio);
  return root;
}

/* X509_V_OK, or what is wrong with the leaf for a client that trusts the CA and asks for name. */
static int verify(const struct ca *ca, const struct ca_leaf *leaf, const char *name)
{
  X509_STORE *store = X509_STORE_new();
  X509_STORE_CTX *context = X509_STORE_CTX_new();
  X509 *root = root_of(ca);
  struct host host = target(name);
  X509_VERIFY_PARAM *param;
  int error;

  assert_int_equal(X509_STORE_add_cert(store, root), 1);
  assert_int_equal(X509_STORE_CTX_init(context, store, leaf->certificate, NULL), 1);
  assert_int_equal(X509_STORE_CTX_set_default(context, "ssl_server"), 1);
  param = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
  if (host.kind == HOST_ADDR)
    X509_VERIFY_PARAM_set1_ip_asc(param, host.name);
  else
    X509_VERIFY_PARAM_set1_host(param, host.name, 0);
  error = X509_verify_cert(context) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context);
  X509_free(root);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return error;
}

static void assert_verifies(struct ca *ca, const char *name)
{
  int error = verify(ca, leaf_for(ca, name), name);

  if (error != X509_V_OK)
    fail_msg("%s: %s", name, X509_verify_cert_error_string(error));
}

/* Seconds from now to a time of a certificate. */
static long seconds_to(const ASN1_TIME *when)
{
  int days = 0, seconds = 0;

  assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, when), 1);
  return (long)days * 86400 + seconds;
}

static const char *const some_rules[] = { "api.test", "*.sub.test:8443", "203.0.113.0/24:443", "2001:db8::7" };

static void test_root(void **state)
{
  struct ca *ca = make(some_rules, MEM_COUNT(some_rules));
  X509 *root = root_of(ca);
  char key[32] = "";

  (void)state;
  assert_int_equal(X509_get_version(root), X509_VERSION_3);
  assert_int_equal(X509_check_ca(root), 1);
  assert_int_equal(X509_get_pathlen(root), 0);
  assert_int_equal(X509_get_key_usage(root), KU_KEY_CERT_SIGN);
  assert_non_null(X509_get0_subject_key_id(root));
  assert_non_null(X509_get0_authority_key_id(root));
  assert_int_equal(X509_self_signed(root, 1), 1);
  assert_int_equal(EVP_PKEY_get_group_name(X509_get0_pubkey(root), key, sizeof key, NULL), 1);
  assert_string_equal(key, "prime256v1");
  assert_in_range(-seconds_to(X509_get0_notBefore(root)), HOUR_S - 60, HOUR_S + 60);
  /* Longer than a run. */
  assert_in_range(seconds_to(X509_get0_notAfter(root)), 1000 * 24 * HOUR_S, 3650 * 24 * HOUR_S);
  X509_free(root);
  ca_free(ca);
}

static void test_leaf(void **state)
{
  struct ca *ca = make(some_rules, MEM_COUNT(some_rules));
  const struct ca_leaf *leaf = leaf_for(ca, "api.test");
  GENERAL_NAMES *names;

  (void)state;
  assert_verifies(ca, "api.test");
  assert_verifies(ca, "a.b.sub.test");
  assert_verifies(ca, "203.0.113.9");
  assert_verifies(ca, "2001:db8::7");
  leaf = leaf_for(ca, "api.test");
  assert_int_equal(verify(ca, leaf, "x.api.test"), X509_V_ERR_HOSTNAME_MISMATCH);
  names = X509_get_ext_d2i(leaf->certificate, NID_subject_alt_name, NULL, NULL);
  assert_int_equal(sk_GENERAL_NAME_num(names), 1);
  GENERAL_NAMES_free(names);
  assert_int_equal(X509_check_ca(leaf->certificate), 0);
  assert_int_equal(X509_get_extended_key_usage(leaf->certificate), XKU_SSL_SERVER);
  assert_non_null(X509_get0_subject_key_id(leaf->certificate));
  assert_non_null(X509_get0_authority_key_id(leaf->certificate));
  assert_int_equal(X509_check_private_key(leaf->certificate, leaf->key), 1);
  assert_true(seconds_to(X509_get0_notAfter(leaf->certificate)) - seconds_to(X509_get0_notBefore(leaf->certificate)) <=
              24 * HOUR_S);
  ca_free(ca);
}

/* What the policy binds to nothing, the CA cannot vouch for. */
static void test_constraints(void **state)
{
  static const char *const names[] = { "api.test" };
  static const char *const addresses[] = { "203.0.113.7" };
  struct ca *ca = make(some_rules, MEM_COUNT(some_rules));

  (void)state;
  assert_int_equal(verify(ca, leaf_for(ca, "evil.test"), "evil.test"), X509_V_ERR_PERMITTED_VIOLATION);
  assert_int_equal(verify(ca, leaf_for(ca, "203.0.114.1"), "203.0.114.1"), X509_V_ERR_PERMITTED_VIOLATION);
  ca_free(ca);
  ca = make(names, 1);
  assert_int_equal(verify(ca, leaf_for(ca, "203.0.113.7"), "203.0.113.7"), X509_V_ERR_EXCLUDED_VIOLATION);
  assert_int_equal(verify(ca, leaf_for(ca, "2001:db8::7"), "2001:db8::7"), X509_V_ERR_EXCLUDED_VIOLATION);
  ca_free(ca);
  ca = make(addresses, 1);
  assert_verifies(ca, "203.0.113.7");
  assert_int_equal(verify(ca, leaf_for(ca, "api.test"), "api.test"), X509_V_ERR_PERMITTED_VIOLATION);
  ca_free(ca);
}

static struct ca *make_from(const char *text)
{
  struct policy *policy = make_policy(text);
  struct err err = ERR_INIT;
  struct ca *ca = NULL;

  if (ca_new(policy, &err, &ca) < 0)
    fail_msg("%s", err.message);
  policy_free(policy);
  return ca;
}

/* Rules on requests, and those alone; what they leave open is open. */
static void test_judged(void **state)
{
  static const struct {
    const char *network;
    const char *name;
    int verdict;
  } rows[] = {
    { "\"allow\": [\"w.test\", {\"host\": \"a.test\", \"paths\": [\"/\"]}]", "a.test", X509_V_OK },
    { "\"allow\": [\"w.test\", {\"host\": \"a.test\", \"paths\": [\"/\"]}]", "w.test", X509_V_ERR_PERMITTED_VIOLATION },
    { "\"allow\": [{\"host\": \"a.test\", \"paths\": [\"/\"]}]", "192.0.2.1", X509_V_ERR_EXCLUDED_VIOLATION },
    { "\"allow\": [{\"host\": \"*.a.test\", \"paths\": [\"/\"]}]", "x.a.test", X509_V_OK },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"a.test\", \"paths\": [\"/\"]}]", "a.test", X509_V_OK },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"a.test\", \"paths\": [\"/\"]}]", "b.test",
      X509_V_ERR_PERMITTED_VIOLATION },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"*\", \"paths\": [\"/\"]}]", "b.test", X509_V_OK },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"*\", \"paths\": [\"/\"]}]", "192.0.2.1", X509_V_OK },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"192.0.2.0/24\", \"paths\": [\"/\"]}]", "b.test", X509_V_OK },
    { "\"allow\": [\"*\"], \"deny\": [{\"host\": \"192.0.2.0/24\", \"paths\": [\"/\"]}]", "2001:db8::1", X509_V_OK },
    { "\"allow\": [{\"host\": \"192.0.2.0/24\", \"paths\": [\"/\"]}]", "192.0.2.9", X509_V_OK },
    { "\"allow\": [{\"host\": \"192.0.2.0/24\", \"paths\": [\"/\"]}]", "b.test", X509_V_OK },
    { "\"allow\": [{\"host\": \"192.0.2.0/24\", \"paths\": [\"/\"]}]", "192.0.3.1", X509_V_ERR_PERMITTED_VIOLATION },
    { "\"allow\": [{\"host\": \"localhost:8443\", \"paths\": [\"/\"]}]", "127.0.0.1", X509_V_OK },
    { "\"allow\": [{\"host\": \"localhost:8443\", \"paths\": [\"/\"]}]", "localhost", X509_V_OK },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char text[512];
    struct ca *ca;
    int error;

    snprintf(text, sizeof text, "{\"network\": {%s}}", rows[i].network);
    ca = make_from(text);
    error = verify(ca, leaf_for(ca, rows[i].name), rows[i].name);
    if (error != rows[i].verdict)
      fail_msg("%s for %s: %s", rows[i].network, rows[i].name, X509_verify_cert_error_string(error));
    ca_free(ca);
  }
}

/* More than the message to sbx has room for: the CA is made without constraints. */
static void test_many_rules(void **state)
{
  static char text[100][128];
  const char *rules[MEM_COUNT(text)];
  struct ca *ca;

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(text); i++) {
    snprintf(text[i], sizeof text[i], "a-rather-long-label-to-fill-the-certificate.another-rather-long-label.n%zu.test",
             i);
    rules[i] = text[i];
  }
  ca = make(rules, MEM_COUNT(rules));
  assert_in_range(ca_pem(ca).len, 1, CA_PEM_BYTES);
  assert_verifies(ca, "evil.test");
  ca_free(ca);
}

/* One leaf per target, however often it is asked for, and no end to the targets. */
static void test_kept(void **state)
{
  struct ca *ca = make(some_rules, MEM_COUNT(some_rules));
  X509 *first = leaf_for(ca, "api.test")->certificate;
  char name[32];

  (void)state;
  assert_ptr_equal(leaf_for(ca, "api.test")->certificate, first);
  for (unsigned i = 0; i < LIMITS_LEAVES + 3; i++) {
    snprintf(name, sizeof name, "n%u.sub.test", i);
    leaf_for(ca, name);
  }
  assert_verifies(ca, "api.test");
  assert_verifies(ca, "n7.sub.test");
  ca_free(ca);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_root),   cmocka_unit_test(test_leaf),       cmocka_unit_test(test_constraints),
    cmocka_unit_test(test_judged), cmocka_unit_test(test_many_rules), cmocka_unit_test(test_kept),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
