/* What to do or to type so that what was refused passes. */
#include "config.h"

#include "policy/decide.h"
#include "policy/rule.h"

#include <string.h>

void decide_rule(const struct host *host, uint16_t port, struct buf *out)
{
  if (port == 80 || port == 443)
    buf_append_str(out, host->name);
  else
    host_print_target(host, port, out);
}

/* Longest part of a rule or path that a line quotes. */
#define DECIDE_QUOTE_BYTES 200

/* A rule and where it stands. */
static void decide_print_place(const struct policy_rule *rule, struct buf *out)
{
  const struct policy_origin *origin = &rule->origin;
  struct span text = span_of(rule->text);

  if (rule_is_whole(rule))
    buf_append_json(out, text);
  else
    buf_append_escaped(out, span_sub(text, 0, DECIDE_QUOTE_BYTES));
  if (text.len > DECIDE_QUOTE_BYTES && !rule_is_whole(rule))
    buf_append_str(out, "...");
  if (!origin->file)
    return;
  buf_append_str(out, origin->line > 0 ? " in " : " of ");
  buf_append_escaped(out, span_of(origin->file));
  if (origin->line > 0)
    buf_printf(out, ":%u", origin->line);
  if (origin->json_path && origin->json_path[0] != '\0')
    buf_printf(out, " (%s)", origin->json_path);
}

/* Where the rule has to go from. */
static void decide_fix_deny(const struct policy_rule *rule, struct buf *out)
{
  buf_append_str(out, rule->origin.line > 0 ? "remove the deny rule " : "leave out the deny rule ");
  decide_print_place(rule, out);
}

/* What a rule on methods or paths lacks. What to type would be a whole rule with a path that comes from inside: not for
 * a shell. */
static void decide_fix_lack(const struct verdict *verdict, const struct request *request, struct buf *out)
{
  bool method = verdict->reason == REASON_METHOD_NOT_ALLOWED;
  struct span lack = !request ? SPAN("") : method ? request->method : request->path;
  struct request_path path;
  const char *cause;

  if (!method && request && request_read_path(request->path, &path, &cause) == 0)
    lack = (struct span){ path.bytes, path.len };
  buf_append_str(out, "add ");
  if (lack.len > 0 && lack.len <= DECIDE_QUOTE_BYTES)
    buf_append_json(out, lack);
  else
    buf_append_str(out, "it");
  buf_printf(out, " to the %s of the rule ", method ? "methods" : "paths");
  decide_print_place(verdict->rule, out);
}

/* What keeps a run below a limit: none of them is the policy's. */
static const char *decide_limit_advice(enum reason reason)
{
  switch ((unsigned)reason) {
  case REASON_LIMIT_CONNECTIONS:
    return "let the command open fewer connections at once, or raise the limit on open files (ulimit -Hn)";
  case REASON_LIMIT_DIALS:
    return "let the command make fewer connections at once";
  case REASON_LIMIT_HEAD:
    return "send a head of at most 64 KiB and 256 fields";
  case REASON_LIMIT_BODY:
    return "send at most 16 MiB at once, or where it is signed X-Amz-Content-Sha256 with the hash of the body";
  case REASON_LIMIT_TIME:
    return "send a request's head within 30 seconds";
  case REASON_LIMIT_LOOKUPS:
    return "let the command make fewer lookups at once";
  case REASON_LIMIT_NAMES:
    return "do the work in several runs, or allow names instead of a wildcard";
  case REASON_LIMIT_PORTS:
    return "allow fewer ports from 1024 on of a wildcard, or use the proxy variables";
  default:
    return "let the command do less at once, or raise the limit on open files (ulimit -Hn)";
  }
}

void decide_fix_request(const struct verdict *verdict, const struct host *host, uint16_t port,
                        const struct request *request, struct buf *out)
{
  if (reason_is_limit(verdict->reason)) {
    buf_append_str(out, decide_limit_advice(verdict->reason));
    return;
  }
  switch ((unsigned)verdict->reason) {
  case REASON_METHOD_NOT_ALLOWED:
  case REASON_PATH_NOT_ALLOWED:
    decide_fix_lack(verdict, request, out);
    return;
  case REASON_NOT_TERMINATED:
    if (request)
      buf_append_str(out, "use https://");
    return;
  case REASON_NOT_HTTP:
    buf_append_str(
        out, "use HTTP there: in TLS, or HTTP/1 in the clear where no credential is bound; or write a rule without "
             "methods and paths in place of ");
    decide_print_place(verdict->rule, out);
    return;
  default:
    decide_fix(verdict, host, port, out);
  }
}

void decide_fix(const struct verdict *verdict, const struct host *host, uint16_t port, struct buf *out)
{
  struct host literal = *host;

  if (verdict->allow)
    return;
  if (verdict->rule && verdict->reason >= REASON_METHOD_NOT_ALLOWED && verdict->reason <= REASON_NOT_HTTP &&
      verdict->reason != REASON_AMBIGUOUS_REQUEST) {
    decide_fix_request(verdict, host, port, NULL, out);
    return;
  }
  if (verdict->reason == REASON_DENY_RULE && verdict->rule) {
    decide_fix_deny(verdict->rule, out);
    return;
  }
  if (verdict->has_addr)
    host_of_addr(&verdict->addr, &literal);
  else if (verdict->reason != REASON_NOT_ALLOWED && verdict->reason != REASON_PORT_NOT_ALLOWED &&
           verdict->reason != REASON_NETWORK_NONE)
    return;
  if (port == 0)
    return;
  buf_append_str(out, verdict->reason == REASON_NETWORK_NONE ? SBX_NAME " run --network proxy --allow "
                                                             : SBX_NAME " run --allow ");
  /* The address alone would not do: its name has to be allowed as well, which an option may have done. */
  if (verdict->has_addr && host->kind == HOST_NAME) {
    decide_rule(host, port, out);
    buf_append_str(out, " --allow ");
  }
  decide_rule(&literal, port, out);
  buf_append_str(out, " ...");
}
