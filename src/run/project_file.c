#include "config.h"

#include "run/project_file.h"

#include "base/fd.h"
#include "policy/doc.h"
#include "policy/limits.h"
#include "run/own_file.h"
#include "sys/replace.h"

#include <errno.h>

#define INDENT 2

static const char fresh[] =
    "// Your own policy for one project; " SBX_NAME " run --ask adds to it. Edit it as you like.\n"
    "{\n"
    "  \"network\": {\n"
    "    \"allow\": [\n"
    "    ]\n"
    "  }\n"
    "}\n";

static bool is_blank(char byte)
{
  return byte == ' ' || byte == '\t';
}

/* The blanks in front of a line of which at is an offset. */
static struct span indent_at(struct span text, size_t at)
{
  size_t begin = at;
  size_t end;

  while (begin && text.ptr[begin - 1] != '\n')
    begin--;
  for (end = begin; end < text.len && is_blank(text.ptr[end]); end++)
    ;
  return span_sub(text, begin, end - begin);
}

/* The text with one more item at the end of a list or an object: on a line of its own if the closing bracket has one.
 * Comments stay where they are: the comma goes to the item before, whatever stands behind that. */
static void append_item(struct span text, const struct doc *list, struct span item, struct buf *out)
{
  const struct doc *last = list->count ? &list->items[list->count - 1] : NULL;
  size_t after = last ? last->to : list->from + 1;
  size_t close = list->to - 1;
  size_t at = close; /* where the item goes */

  while (at > after && is_blank(text.ptr[at - 1]))
    at--;
  buf_append(out, span_sub(text, 0, after));
  buf_append_str(out, last ? "," : "");
  buf_append(out, span_sub(text, after, at - after));
  if (at > after && text.ptr[at - 1] == '\n') {
    buf_append(out, indent_at(text, last ? last->from : close));
    buf_printf(out, "%*s", last ? 0 : INDENT, "");
    buf_append(out, item);
    buf_append_byte(out, '\n');
  } else {
    buf_append_str(out, at > list->from + 1 ? " " : "");
    buf_append(out, item);
  }
  buf_append(out, span_sub(text, at, text.len - at));
}

/* Whether the policy has the types that add_rule() relies on; *ret_has tells that the rule is there already. */
static bool is_sound(const struct doc *policy, const char *rule, bool *ret_has)
{
  const struct doc *network = policy->type == DOC_OBJECT ? doc_member(policy, "network") : NULL;
  const struct doc *allow = network && network->type == DOC_OBJECT ? doc_member(network, "allow") : NULL;

  *ret_has = false;
  for (size_t i = 0; allow && i < allow->count; i++) {
    if (allow->items[i].type == DOC_STRING && strcmp(allow->items[i].text, rule) == 0)
      *ret_has = true;
  }
  return policy->type == DOC_OBJECT && (!network || network->type == DOC_OBJECT) &&
         (!allow || allow->type == DOC_ARRAY);
}

static void add_rule(struct span text, const struct doc *policy, const char *rule, struct buf *out)
{
  buf_autofree struct buf item = BUF_INIT(LIMITS_POLICY_BYTES);
  const struct doc *network = doc_member(policy, "network");
  const struct doc *allow = network ? doc_member(network, "allow") : NULL;

  buf_append_str(&item, allow ? "" : network ? "\"allow\": [" : "\"network\": { \"allow\": [");
  buf_append_json(&item, span_of(rule));
  buf_append_str(&item, allow ? "" : network ? "]" : "] }");
  append_item(text, allow ? allow : network ? network : policy, buf_span(&item), out);
}

/* The text to be written; empty where nothing has to be. */
static int make_text(struct span old, const char *path, const char *rule, struct err *err, struct buf *out)
{
  doc_autofree struct doc *before = NULL;
  doc_autofree struct doc *after = NULL;
  bool has = false;
  int r = doc_parse(path, old, err, &before);

  if (r < 0)
    return r;
  if (!is_sound(before, rule, &has))
    return err_set(err, EINVAL, "%s: is no policy; run: " SBX_NAME " check %s", path, path);
  if (has)
    return 0;
  add_rule(old, before, rule, out);
  if (buf_error(out))
    return err_set_errno(err, -buf_error(out), "%s", path);
  r = doc_parse(path, buf_span(out), err, &after);
  if (r == 0 && (!is_sound(after, rule, &has) || !has))
    r = err_set(err, EINVAL, "%s: the rule cannot be added", path);
  return r;
}

static int write_rule(int dir, const char *name, const char *path, const char *rule, struct err *err)
{
  buf_autofree struct buf old = BUF_INIT(LIMITS_POLICY_BYTES);
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  int r = replace_check(dir, name, err);

  if (r < 0)
    return err_wrap(err, "%s", path);
  r = fd_read_file(dir, name, &old);
  if (r < 0 && r != -ENOENT)
    return err_set_errno(err, -r, "%s", path);
  r = make_text(r == 0 ? buf_span(&old) : span_of(fresh), path, rule, err, &text);
  if (r < 0 || !text.len)
    return r;
  r = replace_file(dir, name, 0600, buf_span(&text));
  return r < 0 ? err_set_errno(err, -r, "%s", path) : 0;
}

int project_file_allow(const char *path, const char *rule, struct err *err)
{
  fd_autoclose int dir = -1;
  const char *name;
  int r = own_file_lock(path, err, &dir, &name);

  return r < 0 ? r : write_rule(dir, name, path, rule, err);
}
