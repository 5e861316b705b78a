#include "config.h"

#include "policy/credential_tool.h"

#include "base/mem.h"
#include "policy/limits.h"

#include <errno.h>

#define OUT_OF_MEMORY(err) err_set((err), ENOMEM, "out of memory")

struct tool {
  enum policy_source_kind kind;
  const char *member;
  const char *option;
  const char *command[3];
};

static const struct tool tools[] = {
  { POLICY_SOURCE_SECRET_SERVICE, "secretService", "secret-service", { "secret-tool", "lookup" } },
  { POLICY_SOURCE_OP, "op", "op", { "op", "read", "--no-newline" } },
  { POLICY_SOURCE_PASS, "pass", "pass", { "pass", "show" } },
};

static const struct tool *tool_of(enum policy_source_kind kind)
{
  for (size_t i = 0; i < MEM_COUNT(tools); i++)
    if (tools[i].kind == kind)
      return &tools[i];
  return NULL;
}

bool credential_tool_is_run(const struct policy_source *source)
{
  return source->kind == POLICY_SOURCE_EXEC || tool_of(source->kind);
}

int credential_tool_command(const struct policy_source *source, struct strv *ret_argv)
{
  const struct tool *tool = tool_of(source->kind);

  for (size_t i = 0; tool && i < MEM_COUNT(tool->command) && tool->command[i]; i++)
    if (strv_add(ret_argv, tool->command[i]) < 0)
      return -ENOMEM;
  for (size_t i = 0; i < source->words.count; i++)
    if (strv_add(ret_argv, source->words.items[i]) < 0)
      return -ENOMEM;
  return 0;
}

/* A word that the program takes for what it is, and not for an option. */
static int add_word(struct span word, struct err *err, struct policy_source *source)
{
  if (word.len == 0 || word.ptr[0] == '-')
    return err_set(err, EINVAL, "a word that is empty or begins with '-', which would be an option; write another");
  for (size_t i = 0; i < word.len; i++)
    if ((unsigned char)word.ptr[i] < ' ' || word.ptr[i] == 0x7f)
      return err_set(err, EINVAL, "a control character; leave it out");
  if (source->words.count >= 2 * LIMITS_CREDENTIAL_ATTRIBUTES)
    return err_set(err, EINVAL, "more than %d attributes; name fewer", LIMITS_CREDENTIAL_ATTRIBUTES);
  return strv_add_span(&source->words, word) < 0 ? OUT_OF_MEMORY(err) : 0;
}

static int add_reference(enum policy_source_kind kind, struct span word, struct err *err, struct policy_source *source)
{
  if (kind == POLICY_SOURCE_OP && (!span_starts_with(word, SPAN("op://")) || word.len == strlen("op://")))
    return err_set(err, EINVAL, "not a secret reference; write \"op://VAULT/ITEM/FIELD\"");
  return add_word(word, err, source);
}

static int add_attributes(const struct doc *doc, struct err *err, struct policy_source *source)
{
  int r = 0;

  if (doc->type != DOC_OBJECT || doc->count == 0)
    return err_set(err, EINVAL, "not attributes; write {\"ATTRIBUTE\": \"VALUE\"}");
  for (size_t i = 0; i < doc->count && r == 0; i++) {
    if (doc->items[i].type != DOC_STRING)
      return err_set(err, EINVAL, "%s: %s where a string is wanted", doc->items[i].name,
                     doc_type_name(doc->items[i].type));
    r = add_word(span_of(doc->items[i].name), err, source);
    if (r == 0)
      r = add_word(span_of(doc->items[i].text), err, source);
  }
  return r;
}

int credential_tool_read(const struct doc *doc, struct err *err, struct policy_source *source)
{
  const struct tool *tool = NULL;

  for (size_t i = 0; i < MEM_COUNT(tools); i++)
    if (strcmp(doc->name, tools[i].member) == 0)
      tool = &tools[i];
  if (!tool)
    return -ENOENT;
  source->kind = tool->kind;
  if (tool->kind == POLICY_SOURCE_SECRET_SERVICE)
    return add_attributes(doc, err, source);
  if (doc->type != DOC_STRING)
    return err_set(err, EINVAL, "%s where a string is wanted", doc_type_name(doc->type));
  return add_reference(tool->kind, span_of(doc->text), err, source);
}

int credential_tool_read_option(struct span kind, struct span rest, struct err *err, struct policy_source *source)
{
  const struct tool *tool = NULL;
  struct span pair;
  int r = 0;

  for (size_t i = 0; i < MEM_COUNT(tools); i++)
    if (span_equal_str(kind, tools[i].option))
      tool = &tools[i];
  if (!tool || rest.len == 0)
    return -ENOENT;
  source->kind = tool->kind;
  if (tool->kind != POLICY_SOURCE_SECRET_SERVICE)
    return add_reference(tool->kind, rest, err, source);
  while (r == 0 && span_split(&rest, ',', &pair)) {
    size_t equals = span_find(pair, '=');

    if (equals == pair.len)
      return err_set(err, EINVAL, "not attributes; write secret-service:ATTRIBUTE=VALUE,...");
    r = add_word(span_sub(pair, 0, equals), err, source);
    if (r == 0)
      r = add_word(span_sub(pair, equals + 1, pair.len), err, source);
  }
  return r;
}

void credential_tool_print(const struct policy_source *source, struct buf *out)
{
  const struct tool *tool = tool_of(source->kind);
  char *const *words = source->words.items;

  if (!tool)
    return;
  buf_printf(out, "\"%s\": ", tool->member);
  if (source->kind != POLICY_SOURCE_SECRET_SERVICE) {
    buf_append_json(out, span_of(words[0]));
    return;
  }
  for (size_t i = 0; i + 1 < source->words.count; i += 2) {
    buf_append_str(out, i > 0 ? ", " : "{");
    buf_append_json(out, span_of(words[i]));
    buf_append_str(out, ": ");
    buf_append_json(out, span_of(words[i + 1]));
  }
  buf_append_byte(out, '}');
}

void credential_tool_explain(const struct policy_source *source, struct buf *out)
{
  const struct tool *tool = tool_of(source->kind);

  if (!tool)
    return;
  buf_append_str(out, source->kind == POLICY_SOURCE_SECRET_SERVICE ? "the Secret Service's item" : "the entry");
  for (size_t i = 0; i < source->words.count; i++) {
    buf_append_str(out, source->kind == POLICY_SOURCE_SECRET_SERVICE && i % 2 ? "=" : " ");
    buf_append_printable(out, span_of(source->words.items[i]));
  }
  if (source->kind != POLICY_SOURCE_SECRET_SERVICE)
    buf_printf(out, " of %s", tool->command[0]);
}
