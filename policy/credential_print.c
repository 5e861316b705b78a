#include "policy/credential.h"

#include "policy/credential_tool.h"

#include <inttypes.h>

static const char *const inject_words[] = { [POLICY_INJECT_REPLACE] = "replace",
                                            [POLICY_INJECT_ATTACH] = "attach",
                                            [POLICY_INJECT_ATTACH_IF_ABSENT] = "attach-if-absent" };

static void print_list(const char *const *items, size_t count, struct buf *out)
{
  buf_append_byte(out, '[');
  for (size_t i = 0; i < count; i++) {
    buf_append_str(out, i > 0 ? ", " : "");
    buf_append_json(out, span_of(items[i]));
  }
  buf_append_byte(out, ']');
}

/* Seconds, or text in milliseconds. */
static void print_time(const char *name, uint64_t ms, struct buf *out)
{
  buf_printf(out, ms % 1000 == 0 ? ", \"%s\": %" PRIu64 : ", \"%s\": \"%" PRIu64 "ms\"", name,
             ms % 1000 == 0 ? ms / 1000 : ms);
}

static void print_source(const struct policy_source *source, struct buf *out)
{
  const char *const *words = (const char *const *)source->words.items;

  if (source->kind == POLICY_SOURCE_EXEC) {
    buf_append_str(out, "{\"exec\": ");
    print_list(words, source->words.count, out);
    print_time("timeout", source->timeout_ms, out);
  } else if (credential_tool_is_run(source)) {
    buf_append_byte(out, '{');
    credential_tool_print(source, out);
    print_time("timeout", source->timeout_ms, out);
  } else {
    buf_append_str(out, source->kind == POLICY_SOURCE_ENV ? "{\"env\": " : "{\"file\": ");
    if (source->words.count > 1)
      print_list(words, source->words.count, out);
    else
      buf_append_json(out, span_of(words[0]));
  }
  if (source->ttl_ms > 0)
    print_time("ttl", source->ttl_ms, out);
  buf_append_byte(out, '}');
}

static void print_place(const struct policy_credential *credential, struct buf *out)
{
  static const char *const names[] = {
    [POLICY_PLACE_BEARER] = "bearer", [POLICY_PLACE_BASIC] = "basic", [POLICY_PLACE_HEADER] = "header",
    [POLICY_PLACE_QUERY] = "query",   [POLICY_PLACE_SIGV4] = "sigv4", [POLICY_PLACE_PATH] = "path",
    [POLICY_PLACE_BODY] = "body"
  };

  if (!credential->place_name) {
    buf_printf(out, "\"%s\"", names[credential->place]);
    return;
  }
  buf_printf(out, "{\"%s\": ", names[credential->place]);
  buf_append_json(out, span_of(credential->place_name));
  buf_append_byte(out, '}');
}

void credential_print(const struct policy_credential *credential, struct buf *out)
{
  buf_append_str(out, "{\"preset\": ");
  if (credential->preset)
    buf_append_json(out, span_of(credential->preset));
  else
    buf_append_str(out, "null");
  buf_append_str(out, ", \"source\": ");
  print_source(&credential->source, out);
  buf_append_str(out, ", \"bind\": [");
  for (size_t i = 0; i < credential->bind.count; i++) {
    buf_append_str(out, i > 0 ? ", " : "");
    buf_append_json(out, span_of(credential->bind.items[i].text));
  }
  buf_append_str(out, "], \"env\": ");
  print_list((const char *const *)credential->env.items, credential->env.count, out);
  if (credential->files.count > 0) {
    buf_append_str(out, ", \"file\": ");
    print_list((const char *const *)credential->files.items, credential->files.count, out);
  }
  buf_printf(out, ", \"inject\": \"%s\", \"place\": ", inject_words[credential->inject]);
  print_place(credential, out);
  if (credential->scrub == POLICY_SCRUB_BODY)
    buf_append_str(out, ", \"scrub\": \"body\"");
  buf_append_byte(out, '}');
}

void credential_print_source(const struct policy_source *source, struct buf *out)
{
  switch (source->kind) {
  case POLICY_SOURCE_ENV:
    buf_append_str(out, source->words.count > 1 ? "the variables " : "the variable ");
    for (size_t i = 0; i < source->words.count; i++)
      buf_printf(out, "%s%s", i > 0 ? ", " : "", source->words.items[i]);
    return;
  case POLICY_SOURCE_FILE:
    buf_append_str(out, "the file ");
    break;
  case POLICY_SOURCE_EXEC:
    buf_append_str(out, "the output of");
    for (size_t i = 0; i < source->words.count; i++) {
      buf_append_byte(out, ' ');
      buf_append_printable(out, span_of(source->words.items[i]));
    }
    return;
  case POLICY_SOURCE_SECRET_SERVICE:
  case POLICY_SOURCE_OP:
  case POLICY_SOURCE_PASS:
    credential_tool_explain(source, out);
    return;
  }
  buf_append_printable(out, span_of(source->words.items[0]));
}

void credential_print_place(const struct policy_credential *credential, struct buf *out)
{
  switch (credential->place) {
  case POLICY_PLACE_BEARER:
    buf_append_str(out, "Authorization: Bearer");
    return;
  case POLICY_PLACE_BASIC:
    buf_append_str(out, "Authorization: Basic, user ");
    buf_append_printable(out, span_of(credential->place_name));
    return;
  case POLICY_PLACE_HEADER:
    buf_printf(out, "%s:", credential->place_name);
    return;
  case POLICY_PLACE_QUERY:
    buf_printf(out, "?%s=", credential->place_name);
    return;
  case POLICY_PLACE_SIGV4:
    buf_append_str(out, "Authorization: AWS4-HMAC-SHA256");
    return;
  case POLICY_PLACE_PATH:
    buf_append_str(out, "the path");
    return;
  case POLICY_PLACE_BODY:
    buf_append_str(out, "the body");
    return;
  }
}
