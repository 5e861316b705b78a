#include "proxy/h2_head.h"

#include "proxy/http_rewrite.h"

#include <errno.h>
#include <stdio.h>

#define FIELD_OVERHEAD 32 /* RFC 9113, 6.5.2 */

static const struct span pseudo_names[H2_PSEUDO_COUNT] = {
  [H2_METHOD] = SPAN_INIT(":method"), [H2_SCHEME] = SPAN_INIT(":scheme"), [H2_AUTHORITY] = SPAN_INIT(":authority"),
  [H2_PATH] = SPAN_INIT(":path"),     [H2_STATUS] = SPAN_INIT(":status"),
};

uint64_t h2_head_name_bit(struct span name)
{
  uint32_t hash = 2166136261u;

  for (size_t i = 0; i < name.len; i++)
    hash = (hash ^ (unsigned char)span_lower(name.ptr[i])) * 16777619u;
  return (uint64_t)1 << (hash >> 26);
}

static struct span value_of(const struct h2_block *block, enum h2_pseudo which)
{
  return span_sub(buf_span(&block->pseudo), block->values[which].at, block->values[which].len);
}

static void add_pseudo(struct h2_block *block, struct span name, struct span value)
{
  for (size_t i = 0; i < H2_PSEUDO_COUNT; i++) {
    if (!span_equal(name, pseudo_names[i]))
      continue;
    block->values[i].at = block->pseudo.len;
    block->values[i].len = value.len;
    block->values[i].is_set = true;
    buf_append(&block->pseudo, value);
  }
}

static bool is_full(const struct h2_block *block)
{
  return block->size > LIMITS_HTTP_HEAD_BYTES || block->count > LIMITS_HTTP_FIELDS - 1 || buf_error(&block->pseudo) ||
         buf_error(&block->lines);
}

void h2_block_add(struct h2_block *block, struct span name, struct span value, bool never)
{
  block->size += name.len + value.len + FIELD_OVERHEAD;
  if (never)
    block->never |= h2_head_name_bit(name);
  if (name.len && name.ptr[0] == ':') {
    if (!is_full(block))
      add_pseudo(block, name, value);
    return;
  }
  block->count++;
  if (is_full(block))
    return;
  buf_append(&block->lines, name);
  buf_append(&block->lines, SPAN(": "));
  buf_append(&block->lines, value);
  buf_append(&block->lines, SPAN("\r\n"));
}

void h2_block_clear(struct h2_block *block)
{
  buf_free(&block->pseudo);
  buf_free(&block->lines);
  *block = (struct h2_block)H2_BLOCK_INIT;
}

bool h2_block_has_status(const struct h2_block *block)
{
  return block->values[H2_STATUS].is_set;
}

static int check_full(const struct h2_block *block, struct err *err)
{
  if (!is_full(block))
    return 0;
  if (buf_error(&block->pseudo) == -ENOMEM || buf_error(&block->lines) == -ENOMEM)
    return err_set(err, ENOMEM, "no memory for a head");
  return err_set(err, E2BIG, "a head of more than %d bytes or %d fields", LIMITS_HTTP_HEAD_BYTES,
                 LIMITS_HTTP_FIELDS - 1);
}

/* A Host beside :authority must be the same (RFC 9113, 8.3.1), and is left out. */
static int write_lines(struct span lines, struct span authority, struct err *err, struct buf *out)
{
  while (lines.len) {
    size_t end = span_find(lines, '\n') + 1;
    struct span line = span_sub(lines, 0, end);
    bool is_host = span_starts_with(line, SPAN("host: "));

    lines = span_sub(lines, end, lines.len);
    if (!is_host || !authority.len)
      buf_append(out, line);
    else if (!span_equal_nocase(span_trim(span_sub(line, 6, line.len - 8)), authority))
      return err_set(err, EACCES, "its Host and its :authority name two hosts");
  }
  return 0;
}

int h2_block_write_request(const struct h2_block *block, struct err *err, struct buf *out)
{
  struct span authority = value_of(block, H2_AUTHORITY);
  struct span method = value_of(block, H2_METHOD);
  bool connect = span_equal(method, SPAN("CONNECT"));
  int r = check_full(block, err);

  if (r < 0)
    return r;
  if (!connect && !span_equal_nocase(value_of(block, H2_SCHEME), SPAN("https")))
    return err_set(err, EBADMSG, "its :scheme is not https");
  buf_append(out, method);
  buf_append_byte(out, ' ');
  buf_append(out, connect ? authority : value_of(block, H2_PATH));
  buf_append_str(out, " HTTP/1.1\r\n");
  if (authority.len) {
    buf_append_str(out, "host: ");
    buf_append(out, authority);
    buf_append_str(out, "\r\n");
  }
  r = write_lines(buf_span(&block->lines), authority, err, out);
  buf_append_str(out, "\r\n");
  return r < 0 ? r : buf_error(out);
}

int h2_block_write_response(const struct h2_block *block, struct err *err, struct buf *out)
{
  struct span status = value_of(block, H2_STATUS);
  int r = check_full(block, err);

  if (r < 0)
    return r;
  buf_append_str(out, "HTTP/1.1 ");
  buf_append(out, status.len ? status : SPAN("200"));
  buf_append_str(out, " \r\n");
  buf_append(out, buf_span(&block->lines));
  buf_append_str(out, "\r\n");
  return buf_error(out);
}

/* Lists. nghttp2 takes the bytes as not const, and copies them all the same. */

static uint8_t *bytes_of(struct span text)
{
  return (uint8_t *)(uintptr_t)text.ptr;
}

static void add(struct h2_list *list, struct span name, struct span value, bool never)
{
  if (list->count < MEM_COUNT(list->fields))
    list->fields[list->count++] = (nghttp2_nv){ .name = bytes_of(name),
                                                .namelen = name.len,
                                                .value = bytes_of(value),
                                                .valuelen = value.len,
                                                .flags = never ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
}

static bool is_upper(char byte)
{
  return span_lower(byte) != byte;
}

/* The name in lower case, as HTTP/2 has it. */
static struct span lower(struct h2_list *list, struct span name)
{
  size_t start = list->names.len;
  size_t i = 0;

  while (i < name.len && !is_upper(name.ptr[i]))
    i++;
  if (i == name.len)
    return name;
  buf_reserve(&list->names, list->names.max - start); /* at the first: what follows moves nothing */
  for (i = 0; i < name.len; i++)
    buf_append_byte(&list->names, span_lower(name.ptr[i]));
  return span_sub(buf_span(&list->names), start, name.len);
}

static bool lies_in(struct span part, struct span whole)
{
  return whole.len && part.len && part.ptr >= whole.ptr && part.ptr < whole.ptr + whole.len;
}

static void add_fields(const struct http_head *head, struct span secret, uint64_t never, struct h2_list *list)
{
  for (size_t i = 0; i < head->field_count; i++) {
    struct span name = head->fields[i].name;
    struct span value = head->fields[i].value;
    bool kept = span_equal_nocase(name, SPAN("te")) || span_equal_nocase(name, SPAN("trailer"));

    if ((!kept && http_rewrite_is_hop(name)) || span_equal_nocase(name, SPAN("host")))
      continue;
    add(list, lower(list, name), value, lies_in(value, secret) || (never & h2_head_name_bit(name)));
  }
}

static void start(struct h2_list *list)
{
  list->count = 0;
  list->names = (struct buf)BUF_INIT(LIMITS_CREDENTIALS * (LIMITS_CREDENTIAL_NAME_BYTES + 1));
}

void h2_list_request(const struct http_head *head, struct span authority, struct span secret, uint64_t never,
                     struct h2_list *list)
{
  start(list);
  add(list, pseudo_names[H2_METHOD], head->method, false);
  add(list, pseudo_names[H2_SCHEME], SPAN("https"), false);
  add(list, pseudo_names[H2_AUTHORITY], authority, false);
  add(list, pseudo_names[H2_PATH], head->target,
      lies_in(head->target, secret) || (never & h2_head_name_bit(pseudo_names[H2_PATH])));
  add_fields(head, secret, never, list);
}

void h2_list_response(const struct http_head *head, uint64_t never, struct h2_list *list)
{
  start(list);
  snprintf(list->status, sizeof list->status, "%03u", head->status % 1000);
  add(list, pseudo_names[H2_STATUS], (struct span){ list->status, 3 }, false);
  add_fields(head, SPAN(""), never, list);
}

void h2_list_trailer(const struct http_head *head, uint64_t never, struct h2_list *list)
{
  start(list);
  add_fields(head, SPAN(""), never, list);
}

void h2_list_clear(struct h2_list *list)
{
  buf_free(&list->names);
}
