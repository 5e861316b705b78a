/* why: what the policy says of a host or a path, by the functions that decide during a run (P10). */
#include "config.h"

#include "cmd/why.h"

#include "cmd/cmd.h"
#include "policy/decide.h"

#include <errno.h>
#include <stdlib.h>

#define WHY_NO 1 /* exit status of a "no" */

void why_answer_free(struct why_answer *answer)
{
  buf_free(&answer->target);
  buf_free(&answer->text);
  buf_free(&answer->rule);
  buf_free(&answer->place);
  buf_free(&answer->fix);
}

void why_say_rule(const char *text, const struct policy_origin *origin, struct why_answer *answer)
{
  buf_append_str(&answer->rule, text);
  buf_append_str(&answer->place, origin->file ? origin->file : "built-in");
  if (origin->line)
    buf_printf(&answer->place, ":%u", origin->line);
  /* Such a rule is not to be found there as it reads: a credential implies it. */
  if (origin->json_path && strncmp(origin->json_path, "credentials.", strlen("credentials.")) == 0)
    buf_printf(&answer->place, " (%s)", origin->json_path);
}

bool why_may_trust(const struct context *context)
{
  return context->workspace_file && !context->trusted;
}

void why_say_trust(const struct context *context, struct why_answer *answer)
{
  buf_printf(&answer->fix, "%s/.sbx.json allows it and is not trusted: look at it, then: " SBX_NAME " trust",
             context->facts.workspace);
}

int why_suppose(const struct opts *opts, const struct opts_setting *more, bool trusted, struct err *err,
                struct context *context)
{
  struct opts supposed = *opts;
  mem_autofree struct opts_setting *settings = mem_calloc(opts->setting_count + 1, sizeof *settings);

  if (!settings)
    return err_set(err, ENOMEM, "out of memory");
  for (size_t i = 0; i < opts->setting_count; i++)
    settings[i] = opts->settings[i];
  supposed.settings = settings; /* what they point to is the caller's */
  if (more)
    settings[supposed.setting_count++] = *more;
  context->suppose_trust = trusted;
  return context_load(&supposed, err, context);
}

static int print(const struct opts *opts, const struct why_answer *answer)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  const struct {
    const char *name;
    struct span value;
  } members[] = {
    { "target", buf_span(&answer->target) }, { "answer", span_of(answer->yes ? "yes" : "no") },
    { "reason", span_of(answer->word) },     { "text", buf_span(&answer->text) },
    { "rule", buf_span(&answer->rule) },     { "place", buf_span(&answer->place) },
    { "fix", buf_span(&answer->fix) },
  };

  if (opts->json) {
    for (size_t i = 0; i < MEM_COUNT(members); i++) {
      buf_printf(&out, "%s\"%s\": ", i ? ", " : "{", members[i].name);
      buf_append_json(&out, members[i].value);
    }
    buf_append_str(&out, "}\n");
  } else {
    buf_append_printable(&out, buf_span(&answer->target));
    buf_printf(&out, ": %s (%s: ", answer->yes ? "yes" : "no", answer->word);
    buf_append_printable(&out, buf_span(&answer->text));
    buf_append_str(&out, ")\n");
    if (answer->rule.len) {
      buf_append_str(&out, "rule: ");
      buf_append_printable(&out, buf_span(&answer->rule));
      buf_append_str(&out, ", in ");
      buf_append_printable(&out, buf_span(&answer->place));
      buf_append_byte(&out, '\n');
    }
    if (answer->fix.len) {
      buf_append_str(&out, "to allow it: ");
      buf_append_printable(&out, buf_span(&answer->fix));
      buf_append_byte(&out, '\n');
    }
  }
  return cmd_print(&out) ? RUN_EXIT_FAILED : answer->yes ? 0 : WHY_NO;
}

/* What an argument asks for: HOST, HOST:PORT or a URL with or without a path. */
struct target {
  struct host host;
  uint16_t port;
  bool url;
  bool http; /* requests, which can be judged */
  bool tls; /* by TLS, as its scheme says */
  struct span path; /* of a URL, without its query */
};

/* The parts of what follows the scheme. Returns HOST[:PORT]. */
static struct span split_url(struct span text, struct target *target)
{
  struct span authority;
  size_t end = 0;

  while (end < text.len && !strchr("/?#", text.ptr[end]))
    end++;
  authority = span_sub(text, 0, end);
  target->path = span_sub(text, end, text.len);
  for (end = 0; end < target->path.len && !strchr("?#", target->path.ptr[end]); end++)
    ;
  target->path.len = end;
  end = span_find_last(authority, '@');
  return end < authority.len ? span_sub(authority, end + 1, authority.len) : authority;
}

static int parse_target(const char *argument, struct err *err, struct target *ret_target)
{
  static const struct {
    struct span scheme;
    uint16_t port;
    bool http;
    bool tls;
  } schemes[] = { { SPAN_INIT("http://"), 80, true, false }, { SPAN_INIT("https://"), 443, true, true },
                  { SPAN_INIT("ws://"), 80, true, false },   { SPAN_INIT("wss://"), 443, true, true },
                  { SPAN_INIT("ssh://"), 22, false, false }, { SPAN_INIT("git://"), 9418, false, false } };
  struct span text = span_of(argument);
  uint16_t port = 443;

  *ret_target = (struct target){ .path = SPAN("") };
  for (size_t i = 0; i < MEM_COUNT(schemes); i++) {
    size_t len = schemes[i].scheme.len;

    if (!span_equal_nocase(span_sub(text, 0, len), schemes[i].scheme))
      continue;
    port = schemes[i].port;
    ret_target->url = true;
    ret_target->http = schemes[i].http;
    ret_target->tls = schemes[i].tls;
    text = split_url(span_sub(text, len, text.len), ret_target);
    break;
  }
  return host_parse_target(text, port, err, &ret_target->host, &ret_target->port);
}

/* As the proxy does: a request by itself, also in TLS, which is terminated where a rule asks for it; a connection as a
 * whole. */
static struct verdict judge(const struct policy *policy, const struct target *target, const struct request *request)
{
  struct verdict verdict = decide_target(policy, &target->host, target->port);

  if (!target->url)
    return verdict;
  if (!target->tls)
    verdict = decide_cleartext(policy, &verdict, &target->host, target->port);
  if (!target->http)
    return decide_opaque(&verdict);
  return decide_request(policy, &verdict, &target->host, NULL, target->port, request);
}

static void say_verdict(const struct policy *policy, const struct target *target, const struct verdict *verdict,
                        struct why_answer *answer)
{
  answer->yes = verdict->allow;
  answer->word = reason_word(verdict->reason);
  buf_append_str(&answer->text, reason_text(verdict->reason));
  if (verdict->detail)
    buf_printf(&answer->text, ": %s", verdict->detail);
  if (verdict->allow && verdict->request_rule && !target->url)
    buf_append_str(&answer->text, "; each request is judged by its method and path: ask for a URL");
  if (verdict->allow && target->host.kind == HOST_NAME && policy->network == POLICY_NETWORK_PROXY)
    buf_append_str(&answer->text, "; each address that it resolves to is judged when a connection is made");
  if (verdict->rule)
    why_say_rule(verdict->rule->text, &verdict->rule->origin, answer);
}

/* A file that would allow it, and needs only to be trusted, comes before an option. */
static void say_fix(const struct opts *opts, const struct context *context, const struct target *target,
                    const struct request *request, const struct verdict *verdict, struct why_answer *answer)
{
  context_autofree struct context trusted = CONTEXT_INIT;
  struct err err = ERR_INIT;

  if (verdict->allow)
    return;
  if (why_may_trust(context) && why_suppose(opts, NULL, true, &err, &trusted) == 0 &&
      judge(trusted.policy, target, request).allow)
    why_say_trust(context, answer);
  else
    decide_fix_request(verdict, &target->host, target->port, request, &answer->fix);
}

static int ask_host(const struct opts *opts, const char *argument, const struct context *context, struct err *err,
                    struct why_answer *answer)
{
  struct target target;
  struct request request;
  struct verdict verdict;
  int r = parse_target(argument, err, &target);

  if (r == 0 && opts->method && !target.http)
    r = err_set(err, EINVAL, "--method goes with an http:// or https:// URL");
  if (r < 0)
    return err_wrap(err, "why: %s", argument);
  request = (struct request){ .method = span_of(opts->method ? opts->method : "GET"), .path = target.path };
  /* As the proxy sends it on (RFC 9112, 3.2.4). */
  if (target.path.len == 0 && span_equal(request.method, SPAN("OPTIONS")))
    request.path = SPAN("*");
  if (target.http) {
    buf_append(&answer->target, request.method);
    buf_append_byte(&answer->target, ' ');
  }
  host_print_target(&target.host, target.port, &answer->target);
  if (target.http)
    buf_append(&answer->target, request.path.len ? request.path : SPAN("/"));
  verdict = judge(context->policy, &target, &request);
  say_verdict(context->policy, &target, &verdict, answer);
  say_fix(opts, context, &target, &request, &verdict, answer);
  return 0;
}

int cmd_why(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  why_answer_autofree struct why_answer answer = WHY_ANSWER_INIT;
  struct err err = ERR_INIT;
  bool path;

  if (!args[0] || args[1])
    err_set(&err, EINVAL, "why: one HOST[:PORT], URL or PATH; for example: " SBX_NAME " why api.example.com");
  if (err.code)
    return cmd_fail(&err);
  path = args[0][0] == '/' || args[0][0] == '~' || args[0][0] == '.';
  if (opts->write && !path)
    err_set(&err, EINVAL, "why: --write goes with a path; one that does not begin with /, ~ or . is taken for a host");
  else if (opts->method && path)
    err_set(&err, EINVAL, "why: --method goes with an http:// or https:// URL");
  else
    (void)context_load(opts, &err, &context);
  if (err.code == 0 && path)
    (void)why_path(opts, args[0], &context, &err, &answer);
  else if (err.code == 0)
    (void)ask_host(opts, args[0], &context, &err, &answer);
  return err.code ? cmd_fail(&err) : print(opts, &answer);
}
