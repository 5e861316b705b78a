#include "config.h"

#include "run/project_file.h"

#include "base/fd.h"
#include "policy/doc.h"
#include "policy/limits.h"
#include "run/own_file.h"

#include <errno.h>

#define INDENT 2

static void print_indent(unsigned depth, struct buf *out)
{
  buf_printf(out, "\n%*s", (int)(depth * INDENT), "");
}

static void print_name(const char *name, struct buf *out)
{
  buf_append_json(out, span_of(name));
  buf_append_str(out, ": ");
}

static void print_doc(const struct doc *doc, unsigned depth, struct buf *out)
{
  bool object = doc->type == DOC_OBJECT;

  if (doc->type != DOC_ARRAY && !object) {
    if (doc->type == DOC_STRING)
      buf_append_json(out, span_of(doc->text));
    else
      buf_append_str(out, doc->text ? doc->text : "null");
    return;
  }
  buf_append_byte(out, object ? '{' : '[');
  for (size_t i = 0; i < doc->count; i++) {
    buf_append_str(out, i ? "," : "");
    print_indent(depth + 1, out);
    if (object)
      print_name(doc->items[i].name, out);
    print_doc(&doc->items[i], depth + 1, out);
  }
  if (doc->count)
    print_indent(depth, out);
  buf_append_byte(out, object ? '}' : ']');
}

/* The list, NULL where there is none, with the rule at its end. */
static void print_allow(const struct doc *allow, const char *rule, struct buf *out)
{
  print_name("allow", out);
  buf_append_byte(out, '[');
  for (size_t i = 0; allow && i < allow->count; i++) {
    print_indent(3, out);
    print_doc(&allow->items[i], 3, out);
    buf_append_byte(out, ',');
  }
  print_indent(3, out);
  buf_append_json(out, span_of(rule));
  print_indent(2, out);
  buf_append_byte(out, ']');
}

static void print_network(const struct doc *network, const char *rule, struct buf *out)
{
  print_name("network", out);
  buf_append_byte(out, '{');
  for (size_t i = 0; network && i < network->count; i++) {
    if (strcmp(network->items[i].name, "allow") == 0)
      continue;
    print_indent(2, out);
    print_name(network->items[i].name, out);
    print_doc(&network->items[i], 2, out);
    buf_append_byte(out, ',');
  }
  print_indent(2, out);
  print_allow(network ? doc_member(network, "allow") : NULL, rule, out);
  print_indent(1, out);
  buf_append_byte(out, '}');
}

/* The whole file. policy is NULL for a new one. */
static void print_file(const struct doc *policy, const char *rule, struct buf *out)
{
  buf_append_str(out, "// Your own policy for one project; " SBX_NAME " run --ask adds to it. Edit it as you like.\n{");
  for (size_t i = 0; policy && i < policy->count; i++) {
    if (strcmp(policy->items[i].name, "network") == 0)
      continue;
    print_indent(1, out);
    print_name(policy->items[i].name, out);
    print_doc(&policy->items[i], 1, out);
    buf_append_byte(out, ',');
  }
  print_indent(1, out);
  print_network(policy ? doc_member(policy, "network") : NULL, rule, out);
  buf_append_str(out, "\n}\n");
}

/* Whether the policy has the types that print_file() relies on; *ret_has tells that the rule is there already. */
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

/* The text to be written; empty where nothing has to be. */
static int make_text(int dir, const char *name, const char *path, const char *rule, struct err *err, struct buf *out)
{
  buf_autofree struct buf old = BUF_INIT(LIMITS_POLICY_BYTES);
  doc_autofree struct doc *doc = NULL;
  bool has = false;
  int r = fd_read_file(dir, name, &old);

  if (r < 0 && r != -ENOENT)
    return err_set_errno(err, -r, "%s", path);
  if (r == 0) {
    r = doc_parse(path, buf_span(&old), err, &doc);
    if (r < 0)
      return r;
    if (!is_sound(doc, rule, &has))
      return err_set(err, EINVAL, "%s: is no policy; run: " SBX_NAME " check %s", path, path);
  }
  if (!has)
    print_file(doc, rule, out);
  return buf_error(out) ? err_set_errno(err, -buf_error(out), "%s", path) : 0;
}

int project_file_allow(const char *path, const char *rule, struct err *err)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  fd_autoclose int dir = -1;
  const char *name;
  int r = own_file_lock(path, err, &dir, &name);

  if (r == 0)
    r = make_text(dir, name, path, rule, err, &text);
  if (r < 0 || !text.len)
    return r;
  r = own_file_replace(dir, name, buf_span(&text));
  return r < 0 ? err_set_errno(err, -r, "%s", path) : 0;
}
