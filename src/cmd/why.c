/* why: what the policy says of a host or a path, by the functions that decide during a run (P10). */
#include "config.h"

#include "cmd/cmd.h"
#include "cmd/planning.h"

#include "plan/ops.h"
#include "policy/decide.h"
#include "sys/path.h"

#include <errno.h>
#include <stdlib.h>

#define WHY_TEXT_BYTES (64 * 1024)
#define WHY_NO 1 /* exit status of a "no" */

/* An answer, for a person and as JSON. */
struct answer {
  bool yes;
  struct buf target;
  const char *word; /* "allowed", a reason, or what a path is */
  struct buf text; /* the sentence */
  struct buf rule;
  struct buf place; /* where the rule stands */
  struct buf fix;
};

static void answer_free(struct answer *answer)
{
  buf_free(&answer->target);
  buf_free(&answer->text);
  buf_free(&answer->rule);
  buf_free(&answer->place);
  buf_free(&answer->fix);
}

static void say_origin(const struct policy_origin *origin, struct buf *out)
{
  buf_append_str(out, origin->file ? origin->file : "built-in");
  if (origin->line)
    buf_printf(out, ":%u", origin->line);
}

static struct span text_of(const struct buf *buf)
{
  return buf_span(buf);
}

static int print(const struct opts *opts, const struct answer *answer)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  const struct {
    const char *name;
    struct span value;
  } members[] = {
    { "target", text_of(&answer->target) }, { "answer", span_of(answer->yes ? "yes" : "no") },
    { "reason", span_of(answer->word) },    { "text", text_of(&answer->text) },
    { "rule", text_of(&answer->rule) },     { "place", text_of(&answer->place) },
    { "fix", text_of(&answer->fix) },
  };

  if (opts->json) {
    for (size_t i = 0; i < MEM_COUNT(members); i++) {
      buf_printf(&out, "%s\"%s\": ", i ? ", " : "{", members[i].name);
      buf_append_json(&out, members[i].value);
    }
    buf_append_str(&out, "}\n");
  } else {
    buf_append_escaped(&out, text_of(&answer->target));
    buf_printf(&out, ": %s (%s: ", answer->yes ? "yes" : "no", answer->word);
    buf_append_escaped(&out, text_of(&answer->text));
    buf_append_str(&out, ")\n");
    if (answer->rule.len) {
      buf_append_str(&out, "rule: ");
      buf_append_escaped(&out, text_of(&answer->rule));
      buf_append_str(&out, ", in ");
      buf_append_escaped(&out, text_of(&answer->place));
      buf_append_byte(&out, '\n');
    }
    if (answer->fix.len) {
      buf_append_str(&out, "to allow it: ");
      buf_append_escaped(&out, text_of(&answer->fix));
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
  bool clear; /* cleartext HTTP, whose requests can be judged */
  bool tls;
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
    bool clear;
    bool tls;
  } schemes[] = { { SPAN_INIT("http://"), 80, true, false }, { SPAN_INIT("https://"), 443, false, true },
                  { SPAN_INIT("ws://"), 80, true, false },   { SPAN_INIT("wss://"), 443, false, true },
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
    ret_target->clear = schemes[i].clear;
    ret_target->tls = schemes[i].tls;
    text = split_url(span_sub(text, len, text.len), ret_target);
    break;
  }
  return host_parse_target(text, port, err, &ret_target->host, &ret_target->port);
}

/* As the proxy does: a cleartext request by itself, a connection as a whole, and of what a URL would carry what can be
 * seen of it. */
static struct verdict judge(const struct policy *policy, const struct target *target, const struct request *request)
{
  struct verdict verdict;

  if (target->clear)
    return decide_request(policy, &target->host, target->port, request);
  verdict = decide_target(policy, &target->host, target->port);
  return target->url ? decide_opaque(&verdict, target->tls) : verdict;
}

static void say_verdict(const struct policy *policy, const struct target *target, const struct request *request,
                        const struct verdict *verdict, struct answer *answer)
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
  if (verdict->rule) {
    buf_append_str(&answer->rule, verdict->rule->text);
    say_origin(&verdict->rule->origin, &answer->place);
  }
  if (!verdict->allow)
    decide_fix_request(verdict, &target->host, target->port, request, &answer->fix);
}

static int ask_host(const struct opts *opts, const char *argument, const struct policy *policy)
{
  MEM_CLEANUP(answer_free)
  struct answer answer = { .target = BUF_INIT(WHY_TEXT_BYTES),
                           .text = BUF_INIT(WHY_TEXT_BYTES),
                           .rule = BUF_INIT(LIMITS_POLICY_BYTES),
                           .place = BUF_INIT(WHY_TEXT_BYTES),
                           .fix = BUF_INIT(WHY_TEXT_BYTES) };
  struct err err = ERR_INIT;
  struct target target;
  struct request request;
  struct verdict verdict;
  int r = parse_target(argument, &err, &target);

  if (r == 0 && opts->method && !target.clear)
    r = err_set(&err, EINVAL, "--method goes with an http:// URL: what TLS carries is not seen");
  if (r < 0) {
    err_wrap(&err, "why: %s", argument);
    return cmd_fail(&err);
  }
  request = (struct request){ .method = span_of(opts->method ? opts->method : "GET"), .path = target.path };
  if (target.clear) {
    buf_append(&answer.target, request.method);
    buf_append_byte(&answer.target, ' ');
  }
  host_print_target(&target.host, target.port, &answer.target);
  if (target.clear)
    buf_append(&answer.target, request.path.len ? request.path : SPAN("/"));
  verdict = judge(policy, &target, &request);
  say_verdict(policy, &target, &request, &verdict, &answer);
  return print(opts, &answer);
}

/* What the last operation that covers path makes of it. */
static void judge_path(const struct plan *plan, const char *path, bool write, struct answer *answer)
{
  const struct plan_op *op = ops_covering(plan, path);
  bool readable = op && op->kind != PLAN_MASK_FILE && op->kind != PLAN_MASK_DIR;
  bool fresh = op && (op->kind == PLAN_TMPFS || op->kind == PLAN_DEV || op->kind == PLAN_PROC);
  bool writable = op && (op->kind == PLAN_BIND_RW || op->kind == PLAN_TMPFS);
  const char *why = op ? op->why : NULL;

  answer->yes = readable && !fresh && (!write || writable);
  if (!op) {
    answer->word = "not-shown";
    buf_append_str(&answer->text, "nothing of the host is shown there");
  } else if (!readable) {
    answer->word = "hidden";
    buf_printf(&answer->text, "it cannot be opened: %s", why);
  } else if (fresh) {
    answer->word = "private";
    buf_printf(&answer->text, "the sandbox has its own there: %s", why);
  } else if (strcmp(op->source, op->target) != 0 && strcmp(why, "private home") == 0) {
    answer->yes = false;
    answer->word = "private";
    buf_printf(&answer->text, "the sandbox has its own there, kept at %s", op->source);
  } else {
    answer->word = writable ? "writable" : "read-only";
    buf_printf(&answer->text, "%s at %s", why, op->target);
  }
}

static void say_path_fix(const char *path, bool write, struct answer *answer)
{
  if (answer->yes)
    return;
  if (strcmp(answer->word, "hidden") == 0)
    buf_append_str(&answer->fix, "take it out of filesystem.hide, where it stands there");
  else if (strncmp(buf_span(&answer->text).ptr, "protect", 7) == 0)
    buf_printf(&answer->fix, SBX_NAME " run --unprotect %s ...", path);
  else
    buf_printf(&answer->fix, SBX_NAME " run --%s %s ...", write ? "write" : "read", path);
}

static int ask_path(const struct opts *opts, const char *argument, struct context *context)
{
  MEM_CLEANUP(answer_free)
  struct answer answer = { .target = BUF_INIT(WHY_TEXT_BYTES),
                           .text = BUF_INIT(WHY_TEXT_BYTES),
                           .rule = BUF_INIT(WHY_TEXT_BYTES),
                           .place = BUF_INIT(WHY_TEXT_BYTES),
                           .fix = BUF_INIT(WHY_TEXT_BYTES) };
  plan_autofree struct plan plan = PLAN_INIT;
  path_object_autofree struct path_object object = { .real = NULL };
  mem_autofree char *path = NULL;
  struct err err = ERR_INIT;

  if (planning_make(context, &err, &plan) < 0)
    return cmd_fail(&err);
  path = argument[0] == '~' ? facts_expand(&context->facts, argument)
                            : path_normalise(argument[0] == '/' ? "/" : context->facts.cwd, argument);
  if (!path) {
    err_set(&err, ENOMEM, "out of memory");
    return cmd_fail(&err);
  }
  /* What a link leads to decides, as it would inside. */
  if (path_resolve(path, &object) == 0) {
    free(path);
    path = mem_steal(object.real);
  }
  buf_append_str(&answer.target, path);
  judge_path(&plan, path, opts->write, &answer);
  say_path_fix(path, opts->write, &answer);
  return print(opts, &answer);
}

int cmd_why(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
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
    err_set(&err, EINVAL, "why: --method goes with an http:// URL");
  else
    (void)context_load(opts, &err, &context);
  if (err.code)
    return cmd_fail(&err);
  return path ? ask_path(opts, args[0], &context) : ask_host(opts, args[0], context.policy);
}
