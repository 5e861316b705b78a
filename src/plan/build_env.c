/* The environment: an allow-list of the caller's variables, then the policy's, then what the sandbox itself sets. */
#include "plan/build.h"
#include "plan/ops.h"
#include "policy/credential_word.h"
#include "policy/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define VALUE_LEAST 8 /* as in files that are shown (policy/stand_in.h) */

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What ends in '*' is a prefix. */
static const char *const passed[] = {
  "PATH",
  "USER",
  "LOGNAME",
  "SHELL",
  "TERM",
  "COLORTERM",
  "TERM_PROGRAM",
  "TERM_PROGRAM_VERSION",
  "LANG",
  "LANGUAGE",
  "LC_*",
  "TZ",
  "EDITOR",
  "VISUAL",
  "PAGER",
  "CI",
  "NO_COLOR",
  "FORCE_COLOR",
  "CLICOLOR",
  "CLICOLOR_FORCE",
  "COLUMNS",
  "LINES",
  "LS_COLORS",
  "SOURCE_DATE_EPOCH",
  /* roots of toolchains */
  "ANDROID_HOME",
  "ASDF_DATA_DIR",
  "ASDF_DIR",
  "BUN_INSTALL",
  "CARGO_HOME",
  "CONDA_DEFAULT_ENV",
  "CONDA_PREFIX",
  "DENO_INSTALL",
  "DOTNET_ROOT",
  "GOPATH",
  "GOROOT",
  "GOFLAGS",
  "JAVA_HOME",
  "MISE_DATA_DIR",
  "NIX_PATH",
  "NIX_PROFILES",
  "NVM_BIN",
  "NVM_DIR",
  "PNPM_HOME",
  "PYENV_ROOT",
  "PYENV_VERSION",
  "RBENV_ROOT",
  "RUSTUP_HOME",
  "RUSTUP_TOOLCHAIN",
  "SDKMAN_DIR",
  "VIRTUAL_ENV",
  "VOLTA_HOME",
};

static bool matches(const char *pattern, struct span name)
{
  struct span text = span_of(pattern);

  if (text.len && text.ptr[text.len - 1] == '*')
    return span_starts_with(name, span_sub(text, 0, text.len - 1));
  return span_equal(text, name);
}

static bool is_passed(const struct policy *policy, struct span name)
{
  for (size_t i = 0; i < MEM_COUNT(passed); i++) {
    if (matches(passed[i], name))
      return true;
  }
  for (size_t i = 0; i < policy->env_pass.count; i++) {
    if (matches(policy->env_pass.items[i].text, name))
      return true;
  }
  return false;
}

static bool is_entry_of(const char *entry, struct span name)
{
  return span_starts_with(span_of(entry), name) && entry[name.len] == '=';
}

/* Sets NAME=VALUE, in place of an earlier value. */
static int set(struct plan *plan, const char *name, const char *value)
{
  for (size_t i = 0; i < plan->env.count; i++) {
    char *entry = plan->env.items[i];

    if (is_entry_of(entry, span_of(name))) {
      plan->env.items[i] = plan->env.items[--plan->env.count];
      plan->env.items[plan->env.count] = NULL;
      free(entry);
      break;
    }
  }
  return strv_addf(&plan->env, "%s=%s", name, value);
}

int build_set_variable(struct plan *plan, const char *name, const char *value)
{
  return set(plan, name, value);
}

static bool is_set(const struct plan *plan, struct span name)
{
  for (size_t i = 0; i < plan->env.count; i++) {
    if (is_entry_of(plan->env.items[i], name))
      return true;
  }
  return false;
}

/* The value of a credential stays outside, whatever asks for it. */
static bool is_source(const struct policy *policy, struct span name)
{
  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_source *source = &policy->credentials.items[i].source;

    for (size_t j = 0; source->kind == POLICY_SOURCE_ENV && j < source->words.count; j++)
      if (span_equal_str(name, source->words.items[j]))
        return true;
  }
  return false;
}

/* Of a variable that the caller has twice the first counts, as in getenv(3). */
static int pass_callers(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  for (size_t i = 0; i < facts->environment.count; i++) {
    struct span entry = span_of(facts->environment.items[i]);
    struct span name = span_sub(entry, 0, span_find(entry, '='));
    int r = 0;

    if (name.len == entry.len || name.len == 0)
      continue;
    if (is_passed(policy, name) && !is_set(plan, name) && !is_source(policy, name))
      r = strv_add_span(&plan->env, entry);
    if (r < 0)
      return r;
  }
  return 0;
}

static int name_left_out(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  for (size_t i = 0; i < facts->environment.count; i++) {
    struct span entry = span_of(facts->environment.items[i]);
    struct span name = span_sub(entry, 0, span_find(entry, '='));

    if (name.len < entry.len && name.len && !is_set(plan, name) && !is_source(policy, name) &&
        strv_add_span(&plan->env_left_out, name) < 0)
      return -ENOMEM;
  }
  return 0;
}

/* Every spelling that clients read. NO_PROXY names the sandbox's own loopback and nothing else (F51). ALL_PROXY leads
 * to the HTTP front like the others: httpx, and with it the SDKs that are built on it, raises an error on a SOCKS URL
 * there, whatever the other variables say. */
static int set_proxy(struct plan *plan)
{
  static const char *const names[] = {
    "http_proxy",      "HTTP_PROXY",       "https_proxy",      "HTTPS_PROXY",      "all_proxy",
    "ALL_PROXY",       "grpc_proxy",       "GRPC_PROXY",       "npm_config_proxy", "npm_config_https_proxy",
    "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY", "PIP_PROXY",
  };
  static const char local[] = "localhost,127.0.0.1,::1";
  char url[48];
  int r = 0;

  snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)plan->http_port);
  for (size_t i = 0; i < MEM_COUNT(names) && r == 0; i++)
    r = set(plan, names[i], url);
  if (r == 0)
    r = set(plan, "no_proxy", local);
  if (r == 0)
    r = set(plan, "NO_PROXY", local);
  if (r == 0)
    r = set(plan, "NODE_USE_ENV_PROXY", "1");
  return r;
}

static int set_placeholders(const struct policy *policy, const struct facts *facts, struct plan *plan)
{
  int r = 0;

  for (size_t i = 0; i < policy->credentials.count && r == 0; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];
    bool words = credential->place == POLICY_PLACE_SIGV4;

    if (i >= facts->placeholders.count)
      return -EINVAL;
    for (size_t j = 0; j < credential->env.count && r == 0; j++) {
      struct span whole = span_of(facts->placeholders.items[i]);
      struct span part = words ? credential_word(whole, j == 0 ? CREDENTIAL_KEY_ID : CREDENTIAL_SECRET_KEY) : whole;
      mem_autofree char *text = mem_strndup(part.ptr, part.len);

      r = text ? set(plan, credential->env.items[j], text) : -ENOMEM;
    }
  }
  return r;
}

/* Where programs look for certificates that they trust (build_trust.c). Most variables replace the system's, and lead
 * to the whole of them; two add to it. SSL_CERT_DIR stays as it is. */
static int set_trust(struct plan *plan)
{
  static const char *const replacing[] = {
    "SSL_CERT_FILE",           "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",      "PIP_CERT",
    "AWS_CA_BUNDLE",           "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",       "NIX_SSL_CERT_FILE",
    "CODEX_CA_CERTIFICATE",    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "HTTPLIB2_CA_CERTS",       "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "PERL_LWP_SSL_CA_FILE",    "HEX_CACERTS_PATH",
    "BUNDLE_SSL_CA_CERT",      "NPM_CONFIG_CAFILE",
    "YARN_HTTPS_CA_FILE_PATH",
  };
  static const char *const adding[] = { "NODE_EXTRA_CA_CERTS", "DENO_CERT" };
  int r = 0;

  for (size_t i = 0; i < MEM_COUNT(replacing) && r == 0 && plan->bundle; i++)
    r = set(plan, replacing[i], plan->bundle);
  for (size_t i = 0; i < MEM_COUNT(adding) && r == 0; i++)
    r = set(plan, adding[i], PLAN_CA);
  return r;
}

/* An entry that is empty or relative means the directory that the program stands in: there the command, or what it
 * unpacked, could stand in for any program. */
static int clean_path(struct plan *plan)
{
  buf_autofree struct buf clean = BUF_INIT(1024 * 1024);
  struct span rest = SPAN_INIT("");
  struct span part;

  for (size_t i = 0; i < plan->env.count; i++) {
    if (strncmp(plan->env.items[i], "PATH=", 5) == 0)
      rest = span_of(plan->env.items[i] + 5);
  }
  while (span_split(&rest, ':', &part)) {
    if (!part.len || part.ptr[0] != '/')
      continue;
    if (clean.len)
      buf_append_byte(&clean, ':');
    buf_append(&clean, part);
  }
  return buf_error(&clean) ? buf_error(&clean) : set(plan, "PATH", clean.len ? clean.data : DEFAULT_PATH);
}

/* Values of sources that are variables are known now. One that another variable carries in is no secret any more; the
 * shortest are no values but words. */
static int check_values(const struct policy *policy, const struct facts *facts, struct err *err,
                        const struct plan *plan)
{
  for (size_t i = 0; i < policy->credentials.count; i++) {
    const struct policy_credential *credential = &policy->credentials.items[i];
    const struct strv *words = &credential->source.words;

    for (size_t j = 0; credential->source.kind == POLICY_SOURCE_ENV && j < words->count; j++) {
      const char *whole = facts_getenv(facts, words->items[j]);
      struct span value = span_trim(span_of(whole ? whole : ""));

      for (size_t k = 0; value.len >= VALUE_LEAST && k < plan->env.count; k++) {
        const char *entry = plan->env.items[k];
        size_t name = strcspn(entry, "=");

        if (!memmem(entry + name, strlen(entry + name), value.ptr, value.len))
          continue;
        err_set(err, EINVAL,
                "the variable %.*s that the command would get holds the value of %s; leave it out (env.pass, env.set), "
                "or unset it",
                (int)name, entry, words->items[j]);
        return credentials_refuse(credential, err);
      }
    }
  }
  return 0;
}

int build_env(const struct policy *policy, const struct facts *facts, struct err *err, struct plan *plan)
{
  char runtime[64];
  int r = pass_callers(policy, facts, plan);

  snprintf(runtime, sizeof runtime, "/run/user/%u", (unsigned)facts->uid);
  if (r == 0 && !facts_getenv(facts, "PATH"))
    r = set(plan, "PATH", DEFAULT_PATH);
  if (r == 0)
    r = set(plan, "HOME", facts->home);
  if (r == 0)
    r = set(plan, "TMPDIR", "/tmp");
  if (r == 0)
    r = set(plan, "XDG_RUNTIME_DIR", runtime);
  if (r == 0)
    r = set(plan, "SBX", "1");
  if (r == 0 && plan->network == PLAN_NETWORK_PROXY)
    r = set_proxy(plan);
  if (r == 0 && plan->tls)
    r = set_trust(plan);
  if (r == 0)
    r = set_placeholders(policy, facts, plan);
  if (r == 0 && plan->tls)
    r = build_git(policy, plan);
  for (size_t i = 0; i < policy->env_set.count && r == 0; i++)
    r = set(plan, policy->env_set.items[i].name, policy->env_set.items[i].value);
  if (r == 0)
    r = name_left_out(policy, facts, plan);
  if (r == 0)
    r = clean_path(plan);
  if (r == 0)
    strv_sort(&plan->env);
  if (r == -EINVAL)
    return err_set(err, EINVAL, "plan: the placeholders of the credentials were not made");
  return r < 0 ? OUT_OF_MEMORY(err) : check_values(policy, facts, err, plan);
}

const char *plan_path_variable(const struct policy *policy, const struct facts *facts)
{
  const char *path = facts_getenv(facts, "PATH");

  for (size_t i = 0; i < policy->env_set.count; i++) {
    if (strcmp(policy->env_set.items[i].name, "PATH") == 0)
      path = policy->env_set.items[i].value;
  }
  return path ? path : DEFAULT_PATH;
}
