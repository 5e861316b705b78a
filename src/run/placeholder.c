/* Theory of operation
 *
 * The file has a line for each credential that a run of the project has had: its name, a space, the placeholder. A line
 * that does not have the shape that the credential asks for now is passed by and replaced; lines of other names stay.
 * The directory is locked while it is read and written, so two first runs at once get the same.
 */
#include "config.h"

#include "run/placeholder.h"

#include "base/buf.h"
#include "base/fd.h"
#include "policy/credential.h"
#include "policy/limits.h"
#include "run/own_file.h"
#include "sys/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>

#define FILE_BYTES (256 * 1024)

/* Of a credential without a preset. */
#define PLAIN_PREFIX "sbx_"
#define PLAIN_LENGTH 44

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Key ids of AWS are in this alphabet, and some tools check that. */
static const char key_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
#define KEY_ID_LENGTH 20
#define SECRET_KEY_LENGTH 40

struct shape {
  struct span prefix;
  size_t length; /* prefix included */
  const char *alphabet; /* of what is behind the prefix */
  size_t secret_length; /* of another word behind it; 0: there is none */
};

static struct shape shape_of(const struct policy_credential *credential)
{
  static const struct shape keys = { SPAN_INIT("AKIA"), KEY_ID_LENGTH, key_alphabet, SECRET_KEY_LENGTH };
  const struct credential_preset *preset =
      credential->preset ? credential_preset_find(span_of(credential->preset)) : NULL;

  if (credential->place == POLICY_PLACE_SIGV4)
    return keys;
  if (!preset || !preset->length)
    return (struct shape){ SPAN(PLAIN_PREFIX), PLAIN_LENGTH, alphabet, 0 };
  return (struct shape){ span_of(preset->prefixes[0]), preset->length, alphabet, 0 };
}

static bool is_word_of(const char *letters, struct span text)
{
  for (size_t i = 0; i < text.len; i++)
    if (text.ptr[i] == '\0' || !strchr(letters, text.ptr[i]))
      return false;
  return true;
}

static bool fits(const struct shape *shape, struct span text)
{
  struct span secret = span_sub(text, shape->length, text.len);

  if (text.len < shape->length || !span_starts_with(text, shape->prefix) ||
      !is_word_of(shape->alphabet, span_sub(text, shape->prefix.len, shape->length - shape->prefix.len)))
    return false;
  if (shape->secret_length == 0)
    return secret.len == 0;
  return secret.len == 1 + shape->secret_length && secret.ptr[0] == ' ' &&
         is_word_of(alphabet, span_sub(secret, 1, secret.len));
}

/* The placeholder of a name in the file's text; empty where there is none. */
static struct span find(struct span text, const char *name)
{
  struct span line;
  struct span word;

  while (text.len > 0 && span_split(&text, '\n', &line))
    if (span_split(&line, ' ', &word) && span_equal_str(word, name) && line.ptr)
      return line;
  return SPAN("");
}

/* Appends letters until the text is so long. */
static int append_noise(const char *letters, size_t length, struct buf *text)
{
  size_t count = strlen(letters);

  while (text->len < length && !buf_error(text)) {
    unsigned char noise[64];

    if (getrandom(noise, sizeof noise, 0) != (ssize_t)sizeof noise)
      return -errno;
    /* As many values of a byte as the alphabet divides: each letter as likely as the next. */
    for (size_t i = 0; i < sizeof noise && text->len < length; i++)
      if (noise[i] < 256 / count * count)
        buf_append_byte(text, letters[noise[i] % count]);
  }
  return 0;
}

static int make(const struct shape *shape, struct strv *placeholders)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_PLACEHOLDER_BYTES);
  int r;

  buf_append(&text, shape->prefix);
  r = append_noise(shape->alphabet, shape->length, &text);
  if (r == 0 && shape->secret_length > 0) {
    buf_append_byte(&text, ' ');
    r = append_noise(alphabet, shape->length + 1 + shape->secret_length, &text);
  }
  return r < 0 ? r : strv_take(placeholders, buf_steal(&text));
}

/* The line of a name that the policy has not. */
static bool is_other(const struct policy *policy, struct span line)
{
  struct span name = span_sub(line, 0, span_find(line, ' '));

  for (size_t i = 0; i < policy->credentials.count; i++)
    if (span_equal_str(name, policy->credentials.items[i].name))
      return false;
  return name.len > 0 && name.len < line.len;
}

/* The whole file anew. */
static void print(const struct policy *policy, const struct strv *placeholders, struct span old, struct buf *out)
{
  struct span line;

  while (old.len > 0 && span_split(&old, '\n', &line)) {
    if (!is_other(policy, line))
      continue;
    buf_append(out, line);
    buf_append_byte(out, '\n');
  }
  for (size_t i = 0; i < placeholders->count; i++)
    buf_printf(out, "%s %s\n", policy->credentials.items[i].name, placeholders->items[i]);
}

static int check(const struct policy *policy, const struct strv *placeholders, const char *path, struct err *err)
{
  for (size_t i = 0; i < placeholders->count; i++) {
    for (size_t j = 0; j < placeholders->count; j++) {
      if (i != j && strstr(placeholders->items[i], placeholders->items[j]))
        return err_set(err, EEXIST,
                       "credentials: the placeholder of \"%s\" holds that of \"%s\"; remove %s, and new ones are made",
                       policy->credentials.items[i].name, policy->credentials.items[j].name, path);
    }
  }
  return 0;
}

static int load(const struct policy *policy, struct span old, bool *ret_made, struct strv *placeholders)
{
  int r = 0;

  *ret_made = false;
  for (size_t i = 0; i < policy->credentials.count && r == 0; i++) {
    struct shape shape = shape_of(&policy->credentials.items[i]);
    struct span known = find(old, policy->credentials.items[i].name);

    if (fits(&shape, known)) {
      r = strv_add_span(placeholders, known);
    } else {
      *ret_made = true;
      r = make(&shape, placeholders);
    }
  }
  return r;
}

int placeholder_load(const struct policy *policy, const char *path, bool keep, struct err *err,
                     struct strv *ret_placeholders)
{
  strv_autofree struct strv placeholders = STRV_INIT;
  buf_autofree struct buf old = BUF_INIT(FILE_BYTES);
  buf_autofree struct buf text = BUF_INIT(FILE_BYTES);
  fd_autoclose int dir = -1;
  const char *name;
  bool made = false;
  int r = keep ? own_file_lock(path, err, &dir, &name) : 0;

  if (r < 0)
    return err_wrap(err, "credentials");
  r = fd_read_file(keep ? dir : AT_FDCWD, keep ? name : path, &old);
  if (r == 0 || r == -ENOENT)
    r = load(policy, buf_span(&old), &made, &placeholders);
  if (r == 0 && made && keep) {
    print(policy, &placeholders, buf_span(&old), &text);
    r = buf_error(&text) ? buf_error(&text) : replace_file(dir, name, 0600, buf_span(&text));
  }
  if (r < 0)
    return err_set_errno(err, -r, "credentials: %s", path);
  r = check(policy, &placeholders, path, err);
  if (r < 0)
    return r;
  *ret_placeholders = placeholders;
  placeholders = (struct strv)STRV_INIT;
  return 0;
}
