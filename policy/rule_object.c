/* Theory of operation
 *
 * A rule that names methods or paths is a JSON object, in a file as well as in an option. Its parts are checked by
 * those who know them: the host by rule_parse(), the rest by request.h. The lists are sorted, so that equal rules have
 * equal texts.
 */
#include "config.h"

#include "policy/rule_object.h"

#include "policy/doc.h"
#include "policy/request.h"

#include <errno.h>

bool rule_object_is(struct span text)
{
  return text.len > 0 && text.ptr[0] == '{';
}

/* One list of strings: not empty, sorted, without duplicates. */
static int read_list(const struct doc *doc, size_t max, int (*check)(struct span, struct err *), struct err *err,
                     struct strv *list)
{
  strv_autofree struct strv all = STRV_INIT;

  if (doc->type != DOC_ARRAY || doc->count == 0)
    return err_set(err, EINVAL, "%s: not a list with something in it; leave it out where all are meant", doc->name);
  if (doc->count > max)
    return err_set(err, EINVAL, "%s: more than %zu; make it two rules", doc->name, max);
  for (size_t i = 0; i < doc->count; i++) {
    const struct doc *item = &doc->items[i];
    if (item->type != DOC_STRING)
      return err_set(err, EINVAL, "%s[%zu]: %s where a string is wanted", doc->name, i, doc_type_name(item->type));
    if (check(span_of(item->text), err) < 0)
      return err_wrap(err, "%s[%zu]", doc->name, i);
    if (strv_add(&all, item->text) < 0)
      return -ENOMEM;
  }
  strv_sort(&all);
  for (size_t i = 0; i < all.count; i++)
    if ((i == 0 || strcmp(all.items[i - 1], all.items[i]) != 0) && strv_add(list, all.items[i]) < 0)
      return -ENOMEM;
  return 0;
}

static int read_host(const struct doc *doc, enum rule_list list, struct err *err, struct policy_rule *rule)
{
  int r;

  if (!doc || doc->type != DOC_STRING || rule_object_is(span_of(doc->text)))
    return err_set(err, EINVAL, "an object without \"host\": \"HOST[:PORTS]\"; add it");
  r = rule_parse(span_of(doc->text), list, err, rule);
  return r == -EINVAL ? err_wrap(err, "host") : r;
}

static int read_members(const struct doc *doc, struct err *err, struct policy_rule *rule)
{
  int r = 0;

  for (size_t i = 0; r == 0 && i < doc->count; i++) {
    const struct doc *member = &doc->items[i];
    if (strcmp(member->name, "methods") == 0)
      r = read_list(member, LIMITS_RULE_METHODS, request_check_method, err, &rule->methods);
    else if (strcmp(member->name, "paths") == 0)
      r = read_list(member, LIMITS_RULE_PATHS, request_check_pattern, err, &rule->paths);
    else if (strcmp(member->name, "host") != 0)
      r = err_set(err, EINVAL, "%s: unknown member; a rule has host, methods and paths", member->name);
  }
  if (r == 0 && rule_is_whole(rule))
    r = err_set(err, EINVAL, "an object without methods and paths; write the string \"%s\"", rule->text);
  return r;
}

static void print_list(const char *name, const struct strv *list, struct buf *out)
{
  if (list->count == 0)
    return;
  buf_printf(out, ", \"%s\": [", name);
  for (size_t i = 0; i < list->count; i++) {
    buf_append_str(out, i > 0 ? ", " : "");
    buf_append_json(out, span_of(list->items[i]));
  }
  buf_append_byte(out, ']');
}

/* Replaces the text of the host part by that of the whole rule. */
static int print(struct policy_rule *rule)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_POLICY_BYTES);
  mem_autofree char *host = mem_steal(rule->text);

  buf_append_str(&out, "{\"host\": ");
  buf_append_json(&out, span_of(host));
  print_list("methods", &rule->methods, &out);
  print_list("paths", &rule->paths, &out);
  buf_append_byte(&out, '}');
  rule->text = buf_steal(&out);
  return rule->text ? 0 : -ENOMEM;
}

static int fill(struct span text, enum rule_list list, struct err *err, struct policy_rule *rule)
{
  doc_autofree struct doc *doc = NULL;
  int r = doc_parse("rule", text, err, &doc);

  if (r < 0)
    return r;
  if (doc->type != DOC_OBJECT)
    return err_set(err, EINVAL, "not a rule; write HOST[:PORTS]");
  r = read_host(doc_member(doc, "host"), list, err, rule);
  if (r == 0)
    r = read_members(doc, err, rule);
  return r < 0 ? r : print(rule);
}

int rule_object_parse(struct span text, enum rule_list list, struct err *err, struct policy_rule *ret_rule)
{
  struct policy_rule rule = { 0 };
  int r = fill(text, list, err, &rule);

  if (r < 0) {
    rule_free(&rule);
    return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
  }
  *ret_rule = rule;
  return 0;
}
