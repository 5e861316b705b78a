#include "proxy/inject.h"

#include "base/base64.h"
#include "policy/inject_find.h"
#include "proxy/inject_place.h"
#include "proxy/inject_sign.h"

#include <errno.h>

/* What is being written. */
struct injection {
  const struct inject_secret *secrets;
  size_t count;
  struct http_head *head;
  struct buf *out;
};

int inject_check_value(const struct inject_secret *secret, struct err *err)
{
  const char *name = secret->credential->name;
  struct span value = secret->value;

  if (!value.len)
    return err_set(err, EINVAL, "credential %s: there is no value", name);
  for (size_t i = 0; i < value.len; i++)
    if (!http_head_is_value((unsigned char)value.ptr[i]))
      return err_set(err, EINVAL, "credential %s: the value holds a line end or another control byte; mend its source",
                     name);
  if (span_trim(value).len != value.len)
    return err_set(err, EINVAL, "credential %s: the value begins or ends with white space; mend its source", name);
  return 0;
}

static struct span since(const struct buf *out, size_t start)
{
  return span_sub(buf_span(out), start, out->len);
}

/* What a text that placeholders are swapped in may hold as it is (RFC 3986, 3.3); NULL: anything, it is no URL. */
#define IN_QUERY ""
#define IN_PATH "!$&'()*+,;=:@"

void inject_append_encoded(struct span value, const char *kept, struct buf *out)
{
  for (size_t i = 0; i < value.len; i++) {
    char byte = value.ptr[i];

    if (span_is_alpha(byte) || span_is_digit(byte) || (byte && (strchr("-._~", byte) || strchr(kept, byte))))
      buf_append_byte(out, byte);
    else
      buf_printf(out, "%%%02X", (unsigned char)byte);
  }
}

/* Appends text with the placeholders of a set swapped; appends nothing, and returns false, where it holds none. Where
 * two begin at one place the longer is meant. */
static bool swap(const struct injection *in, inject_set set, struct span text, const char *kept, struct buf *out)
{
  size_t from = 0;
  bool any = false;

  for (;;) {
    struct inject_match first = { .at = text.len, .len = 0 };
    const struct inject_secret *whose = NULL;

    for (size_t i = 0; i < in->count; i++) {
      struct span placeholder = in->secrets[i].placeholder;
      struct inject_match match = { .at = text.len, .len = placeholder.len };

      if (!inject_has(set, i) || (kept && !inject_find_escaped(text, from, placeholder, &match)))
        continue;
      if (!kept)
        match.at = inject_find_raw(text, from, placeholder);
      if (match.at < text.len && (match.at < first.at || (match.at == first.at && match.len > first.len))) {
        first = match;
        whose = &in->secrets[i];
      }
    }
    any = any || whose;
    if (any)
      buf_append(out, span_sub(text, from, first.at - from));
    if (!whose)
      return any;
    if (kept)
      inject_append_encoded(whose->value, kept, out);
    else
      buf_append(out, whose->value);
    from = first.at + first.len;
  }
}

/* Swaps inside Basic credentials; false where they are none, or hold no placeholder. */
static bool swap_basic(const struct injection *in, inject_set set, struct http_field *field)
{
  buf_autowipe struct buf plain = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  buf_autowipe struct buf swapped = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);
  size_t start = in->out->len;
  struct span scheme;
  struct span token;

  if (!inject_read_basic(field->value, &scheme, &token, &plain))
    return false;
  buf_reserve(&swapped, LIMITS_HTTP_HEAD_BYTES);
  if (!swap(in, set, buf_span(&plain), NULL, &swapped))
    return false;
  buf_append(in->out, scheme);
  base64_append(buf_span(&swapped), in->out);
  /* A client that writes no padding gets none. */
  while (token.len % 4 && in->out->len && in->out->data[in->out->len - 1] == '=')
    in->out->len--;
  if (buf_error(&swapped))
    in->out->error = buf_error(&swapped);
  field->value = since(in->out, start);
  return true;
}

static void swap_field(const struct injection *in, inject_set wanted, struct http_field *field)
{
  size_t start = in->out->len;
  inject_set set = 0;

  for (size_t i = 0; i < in->count; i++)
    if (inject_has(wanted, i) && inject_is_place(in->secrets[i].credential, field->name))
      set |= (inject_set)1 << i;
  if (!set || swap_basic(in, set, field))
    return;
  if (swap(in, set, field->value, NULL, in->out))
    field->value = since(in->out, start);
}

/* Writes the path with the placeholders in it swapped. No byte of a value ends a segment. */
static void write_path(const struct injection *in, inject_set wanted)
{
  struct span path = inject_path_of(in->head->target);
  inject_set here = 0;

  for (size_t i = 0; i < in->count; i++)
    if (inject_has(wanted, i) && in->secrets[i].credential->place == POLICY_PLACE_PATH)
      here |= (inject_set)1 << i;
  if (!here || !swap(in, here, path, IN_PATH, in->out))
    buf_append(in->out, path);
}

/* Writes the target with the placeholders in its parameters and its path swapped; and, where credential is not NULL,
 * with the parameter that is its place set to value, once. */
static void write_target(const struct injection *in, inject_set wanted, const struct inject_secret *attached)
{
  const char *name = attached ? attached->credential->place_name : "";
  struct span rest = inject_query_of(in->head->target);
  size_t start = in->out->len;
  struct inject_parameter parameter;
  char separator = '?';
  bool set = !attached;

  write_path(in, attached ? 0 : wanted);
  while (inject_next_parameter(&rest, &parameter)) {
    bool ours = attached && inject_is_named(parameter.name, name);
    inject_set here = 0;

    if (ours && set)
      continue;
    for (size_t i = 0; i < in->count; i++)
      if (inject_has(wanted, i) && inject_is_place_parameter(in->secrets[i].credential, parameter.name))
        here |= (inject_set)1 << i;
    buf_append_byte(in->out, separator);
    buf_append(in->out, span_sub(parameter.all, 0, parameter.all.len - parameter.value.len));
    if (ours && parameter.all.len == parameter.name.len)
      buf_append_byte(in->out, '=');
    if (ours)
      inject_append_encoded(attached->value, IN_QUERY, in->out);
    else if (!swap(in, here, parameter.value, IN_QUERY, in->out))
      buf_append(in->out, parameter.value);
    set = set || ours;
    separator = '&';
  }
  if (!set) {
    buf_append_byte(in->out, separator);
    inject_append_encoded(span_of(name), IN_QUERY, in->out);
    buf_append_byte(in->out, '=');
    inject_append_encoded(attached->value, IN_QUERY, in->out);
  }
  in->head->target = since(in->out, start);
}

static void append_basic(const struct inject_secret *secret, struct buf *out)
{
  buf_autowipe struct buf plain = BUF_INIT(LIMITS_HTTP_HEAD_BYTES);

  buf_reserve(&plain, strlen(secret->credential->place_name) + 1 + secret->value.len);
  buf_append_str(&plain, secret->credential->place_name);
  buf_append_byte(&plain, ':');
  buf_append(&plain, secret->value);
  if (buf_error(&plain))
    out->error = buf_error(&plain);
  buf_append_str(out, "Basic ");
  base64_append(buf_span(&plain), out);
}

static int attach(const struct injection *in, const struct inject_secret *secret, struct err *err)
{
  const struct policy_credential *credential = secret->credential;
  struct span name = SPAN("Authorization");
  size_t start = in->out->len;

  switch (credential->place) {
  case POLICY_PLACE_BEARER:
    buf_append_str(in->out, "Bearer ");
    buf_append(in->out, secret->value);
    break;
  case POLICY_PLACE_BASIC:
    append_basic(secret, in->out);
    break;
  case POLICY_PLACE_HEADER:
    name = span_of(credential->place_name);
    if (!inject_is_place(credential, name))
      return err_set(err, EINVAL, "credential %s: the header %s cannot be set", credential->name,
                     credential->place_name);
    buf_append(in->out, secret->value);
    break;
  case POLICY_PLACE_QUERY:
    write_target(in, 0, secret);
    return 0;
  case POLICY_PLACE_SIGV4:
  case POLICY_PLACE_PATH:
  case POLICY_PLACE_BODY:
    return 0; /* nothing is set where nothing stood, and nothing was signed */
  }
  if (inject_set_field(in->head, name, since(in->out, start)) < 0)
    return err_set(err, ENOBUFS, "credential %s: the request has no room for one more header field", credential->name);
  return 0;
}

/* Bytes of the head as it is written: start line, fields, empty line. */
static size_t head_len(const struct http_head *head)
{
  size_t len = head->method.len + head->target.len + sizeof "  HTTP/1.1\r\n\r\n" - 1;

  for (size_t i = 0; i < head->field_count; i++)
    len += head->fields[i].name.len + head->fields[i].value.len + sizeof ": \r\n" - 1;
  return len;
}

/* Last of all, since what else is written into the request may be signed. */
static int sign(const struct injection *in, inject_set wanted, const struct inject_signer *signer,
                const struct http_head *sent, struct err *err)
{
  int r = 0;

  for (size_t i = 0; i < in->count && r == 0; i++)
    if (inject_has(wanted, i) && in->secrets[i].credential->place == POLICY_PLACE_SIGV4)
      r = inject_sign(&in->secrets[i], signer, sent, in->head, err, in->out);
  return r;
}

static bool is_in_target(const struct policy_credential *credential)
{
  return credential->place == POLICY_PLACE_QUERY || credential->place == POLICY_PLACE_PATH;
}

int inject_fields(const struct inject_secret *secrets, size_t count, inject_set wanted,
                  const struct inject_signer *signer, struct http_head *head, struct err *err, struct buf *out)
{
  struct http_head copy = *head;
  struct injection in = { .secrets = secrets, .count = count, .head = &copy, .out = out };
  bool in_target = false;
  inject_set attached = 0;
  int failed;

  for (size_t i = 0; i < count; i++) {
    int r = inject_has(wanted, i) ? inject_check_value(&secrets[i], err) : 0;

    if (r < 0)
      return r;
    in_target = in_target || (inject_has(wanted, i) && is_in_target(secrets[i].credential));
    if (inject_has(wanted, i) && inject_attaches(secrets[i].credential, head))
      attached |= (inject_set)1 << i;
  }
  buf_reserve(out, LIMITS_HTTP_HEAD_BYTES);
  if (in_target)
    write_target(&in, wanted, NULL);
  for (size_t i = 0; i < copy.field_count; i++)
    swap_field(&in, wanted, &copy.fields[i]);
  for (size_t i = 0; i < count; i++) {
    int r = inject_has(attached, i) ? attach(&in, &secrets[i], err) : 0;

    if (r < 0)
      return r;
  }
  failed = sign(&in, wanted, signer, head, err);
  if (failed)
    return failed;
  if (buf_error(out) == -ENOMEM)
    return err_set(err, ENOMEM, "no memory for a request with a credential");
  if (buf_error(out) || head_len(&copy) > LIMITS_HTTP_HEAD_BYTES)
    return err_set(err, ENOBUFS, "a request with its credentials would have a head of more than %d bytes",
                   LIMITS_HTTP_HEAD_BYTES);
  *head = copy;
  return 0;
}
