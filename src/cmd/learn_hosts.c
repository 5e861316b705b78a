#include "cmd/learn_hosts.h"

#include "base/num.h"
#include "policy/decide.h"
#include "policy/doc.h"
#include "policy/limits.h"

#include <errno.h>
#include <stdlib.h>

#define TARGETS_MAX 16384
/* From so many names below one domain on, a wildcard is worth a word. */
#define MANY_NAMES 5

struct target {
  struct host host;
  uint16_t port;
  bool reached;
  char reason[32]; /* of the first failure */
};

struct targets {
  struct target *items;
  size_t count;
  size_t cap;
  bool incomplete;
};

static void targets_free(struct targets *targets)
{
  free(targets->items);
}

static struct span member(const struct doc *line, const char *name)
{
  const struct doc *value = doc_member(line, name);

  return span_of(value ? value->text : NULL);
}

static struct target *find(const struct targets *targets, const struct host *host, uint16_t port)
{
  for (size_t i = 0; i < targets->count; i++) {
    if (targets->items[i].port == port && strcmp(targets->items[i].host.name, host->name) == 0)
      return &targets->items[i];
  }
  return NULL;
}

/* What was refused all the same is the summary's to tell. */
static int take(struct targets *targets, const struct doc *line)
{
  struct span verdict = member(line, "verdict");
  struct span reason = member(line, "reason");
  struct target *target;
  struct host host;
  uint64_t port;

  if (span_equal(member(line, "event"), SPAN("audit-full")))
    targets->incomplete = true;
  if (span_equal(verdict, SPAN("deny")) || host_parse(member(line, "host"), NULL, &host) < 0 ||
      num_parse_u64(member(line, "port"), 1, UINT16_MAX, &port) < 0)
    return 0;
  target = find(targets, &host, (uint16_t)port);
  if (!target) {
    if (targets->count == TARGETS_MAX)
      targets->incomplete = true;
    if (targets->count == TARGETS_MAX)
      return 0;
    if (mem_grow(&targets->items, targets->count, &targets->cap, sizeof *target, TARGETS_MAX) < 0)
      return -ENOMEM;
    target = &targets->items[targets->count++];
    *target = (struct target){ .host = host, .port = (uint16_t)port };
    memcpy(target->reason, reason.ptr, reason.len < sizeof target->reason ? reason.len : sizeof target->reason - 1);
  }
  target->reached |= span_equal(verdict, SPAN("allow"));
  return 0;
}

static int read_lines(struct targets *targets, struct span audit, struct err *err)
{
  struct span text;

  while (span_split(&audit, '\n', &text)) {
    doc_autofree struct doc *line = NULL;
    struct err ignored = ERR_INIT;

    if (!text.len)
      continue;
    if (doc_parse("audit", text, &ignored, &line) < 0 || line->type != DOC_OBJECT)
      targets->incomplete = true;
    else if (take(targets, line) < 0)
      return err_set(err, ENOMEM, "out of memory");
  }
  return 0;
}

static bool is_reached(const struct targets *targets, const struct host *host, uint16_t port)
{
  const struct target *target = find(targets, host, port);

  return target && target->reached;
}

/* A rule without ports says 80 and 443 in one; with one of them alone it would say too much. */
static int add_rule(const struct targets *targets, const struct target *target, struct strv *rules)
{
  buf_autofree struct buf text = BUF_INIT(512);
  bool both = is_reached(targets, &target->host, 80) && is_reached(targets, &target->host, 443);

  if (both && target->port == 443)
    return 0;
  if (both && target->port == 80)
    buf_append_str(&text, target->host.name);
  else
    host_print_target(&target->host, target->port, &text);
  return buf_error(&text) ? buf_error(&text) : strv_add(rules, text.data);
}

static const char *parent_of(const struct host *host)
{
  const char *dot = host->kind == HOST_NAME ? strchr(host->name, '.') : NULL;

  return dot && strchr(dot + 1, '.') ? dot + 1 : NULL;
}

/* Whether an earlier target has the same host. */
static bool is_again(const struct targets *targets, size_t index)
{
  for (size_t i = 0; i < index; i++) {
    if (strcmp(targets->items[i].host.name, targets->items[index].host.name) == 0)
      return true;
  }
  return false;
}

/* Many names of one domain are named one by one all the same: what else is below it nobody has asked for. */
static int note_many(const struct targets *targets, size_t index, struct strv *notes)
{
  const char *parent = parent_of(&targets->items[index].host);
  size_t count = 0;

  for (size_t i = 0; parent && i < targets->count; i++) {
    const char *other = parent_of(&targets->items[i].host);

    if (!other || strcmp(other, parent) != 0 || is_again(targets, i))
      continue;
    if (count++ == 0 && i != index)
      return 0; /* told there */
  }
  return count > MANY_NAMES
             ? strv_addf(notes, "%zu names below %s; *.%s would allow them and all others there", count, parent, parent)
             : 0;
}

int learn_hosts(const struct policy *policy, struct span audit, struct err *err, struct strv *ret_rules,
                struct strv *ret_notes)
{
  MEM_CLEANUP(targets_free) struct targets targets = { .items = NULL };
  int r = read_lines(&targets, audit, err);

  for (size_t i = 0; i < targets.count && r == 0; i++) {
    const struct target *target = &targets.items[i];

    if (!target->reached)
      r = strv_addf(ret_notes, "%s:%u was tried and not reached (%s), so it is not proposed", target->host.name,
                    target->port, target->reason);
    else if (!decide_target(policy, &target->host, target->port).allow)
      r = add_rule(&targets, target, ret_rules);
    if (r == 0)
      r = note_many(&targets, i, ret_notes);
  }
  if (r == 0 && targets.incomplete)
    r = strv_add(ret_notes, "the audit of this run is not whole: hosts may be missing");
  if (r < 0)
    return err->code ? r : err_set(err, ENOMEM, "out of memory");
  strv_sort(ret_rules);
  return 0;
}
