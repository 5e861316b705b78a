/* What is known of some services: where their values go, what their programs read, and what values look like. A program
 * may refuse a value of another shape before it asks anybody (F74), so placeholders are shaped like it. Hosts that
 * signed URLs lead to are not bound: they want no other login beside the signature (F75). */
#include "policy/credential.h"

static const char *const none[] = { NULL };

static const char *const github_hosts[] = { "api.github.com", "github.com", "uploads.github.com", NULL };
static const char *const github_env[] = { "GITHUB_TOKEN", "GH_TOKEN", NULL };
static const char *const github_source[] = { "GITHUB_TOKEN", NULL };
static const char *const github_prefixes[] = { "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", NULL };

static const char *const anthropic_hosts[] = { "api.anthropic.com", NULL };
static const char *const anthropic_env[] = { "ANTHROPIC_API_KEY", NULL };
static const char *const anthropic_source[] = { "ANTHROPIC_API_KEY", NULL };
static const char *const anthropic_prefixes[] = { "sk-ant-api03-", NULL };

static const char *const openai_hosts[] = { "api.openai.com", NULL };
static const char *const openai_env[] = { "OPENAI_API_KEY", "CODEX_API_KEY", NULL }; /* SDKs; codex exec */
static const char *const openai_source[] = { "OPENAI_API_KEY", NULL };
static const char *const openai_prefixes[] = { "sk-", "sk-proj-", NULL };

static const char *const npm_hosts[] = { "*.npmjs.org", NULL };
static const char *const npm_env[] = { "NPM_TOKEN", "NODE_AUTH_TOKEN", NULL };
static const char *const npm_source[] = { "NPM_TOKEN", NULL };
static const char *const npm_prefixes[] = { "npm_", NULL };

static const char *const pypi_hosts[] = { "*.pypi.org", NULL };
static const char *const pypi_env[] = { "TWINE_PASSWORD", "UV_PUBLISH_TOKEN", NULL };
static const char *const pypi_source[] = { "TWINE_PASSWORD", NULL };
static const char *const pypi_prefixes[] = { "pypi-", NULL };

static const char *const aws_hosts[] = { "*.amazonaws.com", NULL };
static const char *const aws_env[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", NULL };
static const char *const aws_source[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", NULL };

static const char *const gcp_hosts[] = { "*.googleapis.com", NULL };
static const char *const gcp_env[] = { "CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", NULL };
static const char *const gcp_source[] = { "CLOUDSDK_AUTH_ACCESS_TOKEN", NULL };
static const char *const gcp_prefixes[] = { "ya29.", NULL };

static const struct credential_preset presets[] = {
  { "github", github_hosts, github_env, github_source, github_prefixes, 40, POLICY_INJECT_REPLACE, POLICY_PLACE_BEARER,
    NULL },
  { "anthropic", anthropic_hosts, anthropic_env, anthropic_source, anthropic_prefixes, 108, POLICY_INJECT_REPLACE,
    POLICY_PLACE_HEADER, "x-api-key" },
  { "openai", openai_hosts, openai_env, openai_source, openai_prefixes, 51, POLICY_INJECT_REPLACE, POLICY_PLACE_BEARER,
    NULL },
  { "npm", npm_hosts, npm_env, npm_source, npm_prefixes, 40, POLICY_INJECT_REPLACE, POLICY_PLACE_BEARER, NULL },
  { "pypi", pypi_hosts, pypi_env, pypi_source, pypi_prefixes, 179, POLICY_INJECT_REPLACE, POLICY_PLACE_BASIC,
    "__token__" },
  { "aws", aws_hosts, aws_env, aws_source, none, 0, POLICY_INJECT_REPLACE, POLICY_PLACE_SIGV4, NULL },
  { "gcp", gcp_hosts, gcp_env, gcp_source, gcp_prefixes, 120, POLICY_INJECT_REPLACE, POLICY_PLACE_BEARER, NULL },
  { NULL, NULL, NULL, NULL, NULL, 0, POLICY_INJECT_REPLACE, POLICY_PLACE_BEARER, NULL },
};

const struct credential_preset *credential_presets(void)
{
  return presets;
}

const struct credential_preset *credential_preset_find(struct span name)
{
  for (const struct credential_preset *preset = presets; preset->name; preset++)
    if (span_equal_str(name, preset->name))
      return preset;
  return NULL;
}
