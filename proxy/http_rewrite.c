#include "proxy/http_rewrite.h"

#include "base/mem.h"

#include <errno.h>

#define ANY_PORT 80
#define CONNECTION_ELEMENTS_MAX 32

/* Fields of one hop, dropped whether Connection names them or not. */
static const char *const hop_fields[] = {
  "connection", "http2-settings", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
};

/* Fields that Connection may not name: dropping them would change what the message is. */
static const char *const kept_fields[] = { "content-length", "host", "transfer-encoding" };

static bool is_one_of(struct span name, const char *const *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (span_equal_nocase(name, span_of(list[i])))
      return true;
  return false;
}

static int check_connection(const struct http_head *head, struct err *err)
{
  size_t elements = 0;

  for (size_t i = 0; i < head->field_count; i++) {
    struct span rest = head->fields[i].value;
    struct span part;

    if (!span_equal_nocase(head->fields[i].name, SPAN("connection")))
      continue;
    while (span_split(&rest, ',', &part)) {
      if (++elements > CONNECTION_ELEMENTS_MAX)
        return err_set(err, EBADMSG, "the Connection header has more than %d elements", CONNECTION_ELEMENTS_MAX);
      if (is_one_of(span_trim(part), kept_fields, MEM_COUNT(kept_fields)))
        return err_set(err, EBADMSG, "the Connection header names a field that must not be dropped");
    }
  }
  return 0;
}

int http_rewrite_check_request(const struct http_head *head, struct err *err)
{
  size_t count;
  const struct http_field *field = http_head_find(head, "host", &count);
  struct err ignored = ERR_INIT;
  struct host host;
  uint16_t port;

  if (count > 1)
    return err_set(err, EBADMSG, "Host is given twice");
  if (!field && head->minor > 0)
    return err_set(err, EBADMSG, "there is no Host header");
  /* It is not used, but a malformed one is a sign of something that another parser would read differently. */
  if (field && field->value.len && host_parse_target(field->value, ANY_PORT, &ignored, &host, &port) < 0)
    return err_set(err, EBADMSG, "the Host header is not well formed");
  return check_connection(head, err);
}

int http_rewrite_check_response(const struct http_head *head, struct err *err)
{
  return check_connection(head, err);
}

bool http_rewrite_is_websocket(const struct http_head *head)
{
  size_t count;
  const struct http_field *field = http_head_find(head, "upgrade", &count);

  return count == 1 && span_equal_nocase(field->value, SPAN("websocket"));
}

bool http_rewrite_wants_upgrade(const struct http_head *head)
{
  return head->minor > 0 && span_equal(head->method, SPAN("GET")) &&
         http_head_lists(head, "connection", SPAN("upgrade")) && http_rewrite_is_websocket(head);
}

bool http_rewrite_is_reflected(const struct http_head *head)
{
  return span_equal_nocase(head->method, SPAN("TRACE")) || span_equal_nocase(head->method, SPAN("TRACK")) ||
         http_head_find(head, "max-forwards", NULL);
}

/* Fields that override what the request line says; of WebDAV's COPY and MOVE, the path that is written. */
static const char *const override_fields[] = {
  "destination",    "http-method-override",   "method-override",   "x-envoy-original-path", "x-forwarded-uri",
  "x-http-method",  "x-http-method-override", "x-method-override", "x-original-method",     "x-original-uri",
  "x-original-url", "x-rewrite-path",         "x-rewrite-url",
};

/* Servers that hand fields on as variables (CGI) do not tell '-' from '_'. */
static bool is_field(struct span name, const char *field)
{
  size_t i = 0;

  while (i < name.len && field[i] && span_lower(name.ptr[i] == '_' ? '-' : name.ptr[i]) == field[i])
    i++;
  return i == name.len && !field[i];
}

const char *http_rewrite_hides(const struct http_head *head)
{
  for (size_t i = 0; i < head->field_count; i++)
    for (size_t j = 0; j < MEM_COUNT(override_fields); j++)
      if (is_field(head->fields[i].name, override_fields[j]))
        return "a field by which some servers take another method or path";
  if (http_head_find(head, "upgrade", NULL) && http_head_lists(head, "connection", SPAN("upgrade")) &&
      !http_head_lists(head, "upgrade", SPAN("h2c")) && !http_rewrite_is_websocket(head))
    return "an upgrade to something else than WebSocket";
  return NULL;
}

bool http_rewrite_is_hop(struct span name)
{
  return is_one_of(name, hop_fields, MEM_COUNT(hop_fields)) || span_equal_nocase(span_sub(name, 0, 6), SPAN("proxy-"));
}

static bool is_dropped(const struct http_head *head, struct span name)
{
  return http_rewrite_is_hop(name) || http_head_lists(head, "connection", name);
}

static void append_field(struct buf *out, struct span name, struct span value)
{
  buf_append(out, name);
  buf_append(out, SPAN(": "));
  buf_append(out, value);
  buf_append(out, SPAN("\r\n"));
}

static void append_fields(const struct http_head *head, bool drop_host, bool drop_framing, struct buf *out)
{
  for (size_t i = 0; i < head->field_count; i++) {
    struct span name = head->fields[i].name;

    if (is_dropped(head, name) || (drop_host && span_equal_nocase(name, SPAN("host"))))
      continue;
    if (drop_framing &&
        (span_equal_nocase(name, SPAN("content-length")) || span_equal_nocase(name, SPAN("transfer-encoding"))))
      continue;
    append_field(out, name, head->fields[i].value);
  }
}

static void append_upgrade(struct buf *out)
{
  append_field(out, SPAN("Connection"), SPAN("Upgrade"));
  append_field(out, SPAN("Upgrade"), SPAN("websocket"));
}

/* The path and query in origin-form (RFC 9112, 3.2.1), or "*" for an OPTIONS request of the whole server (3.2.4). */
static void append_path(const struct http_head *head, const struct http_target *target, struct buf *out)
{
  if (target->path.len == 0)
    buf_append(out, span_equal(head->method, SPAN("OPTIONS")) ? SPAN("*") : SPAN("/"));
  else if (target->path.ptr[0] == '?')
    buf_append_byte(out, '/');
  buf_append(out, target->path);
}

static void append_authority(const struct http_target *target, struct buf *out)
{
  bool v6 = target->host.kind == HOST_ADDR && target->host.addr.family == ADDR_V6;

  if (target->port != http_target_default_port(target->tls))
    host_print_target(&target->host, target->port, out);
  else
    buf_printf(out, "%s%s%s", v6 ? "[" : "", target->host.name, v6 ? "]" : "");
}

/* The Host of a signed request, which has to stay; or NULL. */
static const struct http_field *signed_host(const struct http_head *head, const struct http_target *target)
{
  const struct http_field *field = target->tls ? http_head_find(head, "authorization", NULL) : NULL;

  return field && span_starts_with(field->value, SPAN("AWS4-")) ? http_head_find(head, "host", NULL) : NULL;
}

void http_rewrite_authority(const struct http_head *head, const struct http_target *target, struct buf *out)
{
  const struct http_field *host = signed_host(head, target);

  if (host)
    buf_append(out, host->value);
  else
    append_authority(target, out);
}

void http_rewrite_request(const struct http_head *head, const struct http_target *target, const struct upstream *parent,
                          struct buf *out)
{
  buf_append(out, head->method);
  buf_append_byte(out, ' ');
  if (parent) {
    buf_append_str(out, "http://");
    append_authority(target, out);
  }
  /* The server as a whole is a URL without a path (RFC 9112, 3.2.4). */
  if (!parent || target->path.len || !span_equal(head->method, SPAN("OPTIONS")))
    append_path(head, target, out);
  /* A client of HTTP/1.0 could not read a chunked answer: its version is passed on. */
  buf_printf(out, " HTTP/1.%u\r\nHost: ", head->minor);
  http_rewrite_authority(head, target, out);
  buf_append_str(out, "\r\n");
  if (parent)
    parent_append_authorization(parent, out);
  append_fields(head, true, false, out);
  if (http_rewrite_wants_upgrade(head))
    append_upgrade(out);
  else if (http_head_lists(head, "te", SPAN("trailers")))
    buf_append_str(out, "Connection: TE\r\nTE: trailers\r\n");
  buf_append_str(out, "\r\n");
}

void http_rewrite_response(const struct http_head *head, bool close, bool upgrade, struct buf *out)
{
  /* These have no body and no framing fields (RFC 9110, 8.6; RFC 9112, 6.1); a client that reads them goes astray. */
  bool bare = head->status < 200 || head->status == 204;

  buf_printf(out, "HTTP/1.1 %u ", head->status);
  buf_append(out, head->phrase);
  buf_append_str(out, "\r\n");
  append_fields(head, false, bare, out);
  if (upgrade)
    append_upgrade(out);
  else if (close && head->status >= 200)
    buf_append_str(out, "Connection: close\r\n");
  buf_append_str(out, "\r\n");
}
