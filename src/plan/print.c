#include "plan/print.h"

#include "policy/upstream.h"

static const char *network_name(enum plan_network network)
{
  return network == PLAN_NETWORK_HOST ? "host" : network == PLAN_NETWORK_PROXY ? "proxy" : "none";
}

/* Without user and password. "" for none. */
static void append_upstream(const char *url, struct buf *out)
{
  struct upstream upstream;

  if (!url || upstream_parse(span_of(url), true, NULL, &upstream) < 0)
    return;
  upstream_print(&upstream, out);
  mem_wipe(&upstream, sizeof upstream);
}

static void print_upstreams(const struct plan_upstream *upstream, struct buf *out)
{
  if (upstream->other) {
    buf_append_str(out, "\nnetwork  through the proxy ");
    append_upstream(upstream->other, out);
  }
  if (upstream->http && (!upstream->other || strcmp(upstream->http, upstream->other) != 0)) {
    buf_append_str(out, "\nnetwork  through the proxy ");
    append_upstream(upstream->http, out);
    buf_append_str(out, " for http:// and port 80");
  }
}

/* Values may be secrets, and plans are shown to others. */
static struct span env_name(const char *entry)
{
  return span_sub(span_of(entry), 0, span_find(span_of(entry), '='));
}

static void print_op(const struct plan_op *op, struct buf *out)
{
  buf_printf(out, "%-8s %-16s ", plan_stage_name(op->stage), plan_op_name(op->kind));
  buf_append_escaped(out, span_of(op->target));
  if (op->source && strcmp(op->source, op->target) != 0) {
    buf_append_str(out, op->kind == PLAN_SYMLINK ? " -> " : " from ");
    buf_append_escaped(out, span_of(op->source));
  }
  if (op->why && strcmp(op->why, plan_stage_name(op->stage)) != 0)
    buf_printf(out, "  (%s)", op->why);
  buf_append_byte(out, '\n');
}

static void print_limits(const struct plan_limits *limits, struct buf *out)
{
  if (limits->memory_bytes)
    buf_printf(out, "limit    memory %llu bytes\n", (unsigned long long)limits->memory_bytes);
  if (limits->cpu_milli)
    buf_printf(out, "limit    cpus %llu.%03llu\n", (unsigned long long)limits->cpu_milli / 1000,
               (unsigned long long)limits->cpu_milli % 1000);
  if (limits->pids)
    buf_printf(out, "limit    pids %llu\n", (unsigned long long)limits->pids);
  if (limits->timeout_ms)
    buf_printf(out, "limit    timeout %llu ms\n", (unsigned long long)limits->timeout_ms);
}

void plan_print(const struct plan *plan, struct buf *out)
{
  for (size_t i = 0; i < plan->ops.count; i++)
    print_op(&plan->ops.items[i], out);
  buf_printf(out, "network  %s", network_name(plan->network));
  if (plan->network == PLAN_NETWORK_PROXY)
    buf_printf(out, "  (HTTP proxy inside on port %u)", (unsigned)plan->http_port);
  for (size_t i = 0; i < plan->publishes.count; i++)
    buf_printf(out, "\nnetwork  port %u of the host's loopback leads to port %u inside",
               (unsigned)plan->publishes.items[i].host_port, (unsigned)plan->publishes.items[i].port);
  print_upstreams(&plan->upstream, out);
  buf_printf(out, "\nsyscalls nesting %s, ptrace %s, i386 %s\n", plan->syscalls.nesting ? "on" : "off",
             plan->syscalls.ptrace ? "on" : "off", plan->syscalls.foreign ? "on" : "off");
  print_limits(&plan->limits, out);
  for (size_t i = 0; i < plan->env.count; i++) {
    buf_append_str(out, "env      ");
    buf_append_escaped(out, env_name(plan->env.items[i]));
    buf_append_byte(out, '\n');
  }
  buf_append_str(out, "cwd      ");
  buf_append_escaped(out, span_of(plan->cwd));
  buf_append_byte(out, '\n');
  if (plan->program) {
    buf_append_str(out, "program  ");
    buf_append_escaped(out, span_of(plan->program));
    buf_append_byte(out, '\n');
  }
  for (size_t i = 0; i < plan->argv.count; i++) {
    buf_append_str(out, i ? " " : "command  ");
    buf_append_escaped(out, span_of(plan->argv.items[i]));
  }
  if (plan->argv.count)
    buf_append_byte(out, '\n');
}

static void json_member(struct buf *out, const char *name, const char *value)
{
  buf_printf(out, "\"%s\": ", name);
  if (value)
    buf_append_json(out, span_of(value));
  else
    buf_append_str(out, "null");
}

static void json_list(struct buf *out, const char *name, const struct strv *list)
{
  buf_printf(out, "  \"%s\": [", name);
  for (size_t i = 0; i < list->count; i++) {
    buf_append_str(out, i ? ", " : "");
    buf_append_json(out, span_of(list->items[i]));
  }
  buf_append_str(out, "],\n");
}

void plan_print_json(const struct plan *plan, struct buf *out)
{
  buf_append_str(out, "{\n  \"operations\": [\n");
  for (size_t i = 0; i < plan->ops.count; i++) {
    const struct plan_op *op = &plan->ops.items[i];

    buf_append_str(out, "    {");
    json_member(out, "stage", plan_stage_name(op->stage));
    buf_append_str(out, ", ");
    json_member(out, "kind", plan_op_name(op->kind));
    buf_append_str(out, ", ");
    json_member(out, "target", op->target);
    buf_append_str(out, ", ");
    json_member(out, "source", op->source);
    buf_append_str(out, ", ");
    json_member(out, "why", op->why);
    buf_append_str(out, i + 1 < plan->ops.count ? "},\n" : "}\n");
  }
  buf_append_str(out, "  ],\n");
  buf_append_str(out, "  \"env\": [");
  for (size_t i = 0; i < plan->env.count; i++) {
    buf_append_str(out, i ? ", " : "");
    buf_append_json(out, env_name(plan->env.items[i]));
  }
  buf_append_str(out, "],\n");
  json_list(out, "argv", &plan->argv);
  buf_append_str(out, "  ");
  json_member(out, "program", plan->program);
  buf_append_str(out, ",\n  ");
  json_member(out, "cwd", plan->cwd);
  buf_append_str(out, ",\n  ");
  json_member(out, "network", network_name(plan->network));
  buf_printf(out, ",\n  \"httpPort\": %u,\n  \"publish\": [", (unsigned)plan->http_port);
  for (size_t i = 0; i < plan->publishes.count; i++)
    buf_printf(out, "%s{\"hostPort\": %u, \"port\": %u}", i ? ", " : "", (unsigned)plan->publishes.items[i].host_port,
               (unsigned)plan->publishes.items[i].port);
  buf_append_str(out, "],\n  \"upstreamProxy\": {\"http\": \"");
  append_upstream(plan->upstream.http, out);
  buf_append_str(out, "\", \"other\": \"");
  append_upstream(plan->upstream.other, out);
  buf_append_str(out, "\"},\n");
  buf_printf(out, "  \"syscalls\": {\"nesting\": %s, \"ptrace\": %s, \"i386\": %s},\n",
             plan->syscalls.nesting ? "true" : "false", plan->syscalls.ptrace ? "true" : "false",
             plan->syscalls.foreign ? "true" : "false");
  buf_printf(out, "  \"limits\": {\"memory\": %llu, \"cpuMilli\": %llu, \"pids\": %llu, \"timeoutMs\": %llu}\n}\n",
             (unsigned long long)plan->limits.memory_bytes, (unsigned long long)plan->limits.cpu_milli,
             (unsigned long long)plan->limits.pids, (unsigned long long)plan->limits.timeout_ms);
}
