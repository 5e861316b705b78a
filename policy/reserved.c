#include "config.h"

#include "policy/reserved.h"

#include "base/mem.h"

/* What build_env.c and build_git.c set is in one of these; test_plan_env.c sees to it. */

static const char *const names[] = {
  /* of the sandbox */
  "PATH",
  "HOME",
  "TMPDIR",
  "XDG_RUNTIME_DIR",
  "SBX",
  /* the proxy */
  "http_proxy",
  "HTTP_PROXY",
  "https_proxy",
  "HTTPS_PROXY",
  "all_proxy",
  "ALL_PROXY",
  "grpc_proxy",
  "GRPC_PROXY",
  "npm_config_proxy",
  "npm_config_https_proxy",
  "YARN_HTTP_PROXY",
  "YARN_HTTPS_PROXY",
  "CARGO_HTTP_PROXY",
  "PIP_PROXY",
  "no_proxy",
  "NO_PROXY",
  "NODE_USE_ENV_PROXY",
  /* certificates */
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "AWS_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "CARGO_HTTP_CAINFO",
  "NIX_SSL_CERT_FILE",
  "CODEX_CA_CERTIFICATE",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
  "HTTPLIB2_CA_CERTS",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "PERL_LWP_SSL_CA_FILE",
  "HEX_CACERTS_PATH",
  "BUNDLE_SSL_CA_CERT",
  "NPM_CONFIG_CAFILE",
  "YARN_HTTPS_CA_FILE_PATH",
  "NODE_EXTRA_CA_CERTS",
  "DENO_CERT",
  /* code */
  "GLIBC_TUNABLES",
  "GCONV_PATH",
  "IFS",
  "ENV",
  "BASH_ENV",
  "NODE_OPTIONS",
  "NODE_PATH",
  "PYTHONPATH",
  "PYTHONHOME",
  "PYTHONSTARTUP",
  "PERL5LIB",
  "PERL5OPT",
  "RUBYLIB",
  "RUBYOPT",
  "JAVA_TOOL_OPTIONS",
  "_JAVA_OPTIONS",
};

static const struct span prefixes[] = { SPAN_INIT("LD_"), SPAN_INIT("GIT_CONFIG") };

bool reserved_is_variable(struct span name)
{
  for (size_t i = 0; i < MEM_COUNT(names); i++)
    if (span_equal_str(name, names[i]))
      return true;
  for (size_t i = 0; i < MEM_COUNT(prefixes); i++)
    if (span_starts_with(name, prefixes[i]))
      return true;
  return false;
}
