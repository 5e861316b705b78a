/* Theory of operation
 *
 * The file is read once, when the run starts. What it says afterwards is not seen inside: a value that was exchanged in
 * it would be, too, and nobody could tell.
 *
 * Every credential's value is looked for, whoever has named the file: one token beside another is common. A credential
 * that names the file and is not in it is an error. Either its source gives another value than the one that stands
 * there, and that one would be shown, or it stands there in a form that we do not know.
 */
#include "run/credential_file.h"

#include "base/fd.h"
#include "base/log.h"
#include "policy/credential_word.h"
#include "policy/credentials.h"
#include "policy/limits.h"
#include "policy/stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool credential_file_wanted(const struct plan *plan)
{
  for (size_t i = 0; i < plan->ops.count; i++)
    if (plan->ops.items[i].late == PLAN_LATE_CREDENTIAL)
      return true;
  return false;
}

/* The file's name in the policy where the credential names it, or NULL. */
static const char *name_of(const struct policy_credential *credential, const struct facts *facts, const char *real,
                           const struct fact_path **ret_fact)
{
  for (size_t i = 0; i < credential->files.count; i++) {
    mem_autofree char *path = facts_expand(facts, credential->files.items[i]);
    const struct fact_path *fact = path ? facts_path(facts, path) : NULL;

    if (!fact || fact->error || strcmp(fact->real, real) != 0)
      continue;
    *ret_fact = fact;
    return credential->files.items[i];
  }
  return NULL;
}

/* Reads the object that was judged. */
static int read_text(const struct fact_path *fact, struct err *err, struct secret *text)
{
  fd_autoclose int fd = open(fact->real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat stat;
  ssize_t n = 1;
  int r;

  if (fd < 0 || fstat(fd, &stat) < 0)
    return err_set_errno(err, errno, "cannot be read");
  if (!S_ISREG(stat.st_mode) || stat.st_ino != fact->inode || stat.st_dev != fact->device)
    return err_set(err, ESTALE, "was exchanged for something else while the sandbox was being made; try again");
  r = secret_new(LIMITS_CREDENTIAL_FILE_BYTES + 1, err, text);
  while (r == 0 && n > 0 && text->len < text->size) {
    n = read(fd, text->bytes + text->len, text->size - text->len);
    if (n < 0)
      return err_set_errno(err, errno, "cannot be read");
    text->len += (size_t)n;
  }
  if (r == 0 && text->len == text->size)
    return err_set(err, EFBIG, "is larger than %d bytes; name a smaller one", LIMITS_CREDENTIAL_FILE_BYTES);
  return r;
}

/* Whether a value can be looked for. One that is named has to. */
static int check_value(const struct policy_credential *credential, const char *name, struct span value,
                       const char *error, struct err *err)
{
  if (value.len >= LIMITS_CREDENTIAL_FILE_VALUE)
    return 0;
  if (value.len == 0)
    err_set(err, ENOENT, "file: %s: the value is needed at the start, and there is none: %s", name, error);
  else
    err_set(err, EINVAL, "file: %s: a value of less than %d bytes cannot be told from other text; use \"env\"", name,
            LIMITS_CREDENTIAL_FILE_VALUE);
  return credentials_refuse(credential, err);
}

#define WORDS_MAX 3 /* credential_word() */

/* A value with its placeholder, and whose it is. */
struct pairs {
  struct stand_in items[WORDS_MAX * LIMITS_CREDENTIALS];
  size_t whose[WORDS_MAX * LIMITS_CREDENTIALS];
  size_t count;
};

/* A value of several words may have one of them in the file. */
static void add(size_t whose, const struct policy_credential *credential, struct span value, struct span placeholder,
                struct pairs *pairs)
{
  bool words = credential->place == POLICY_PLACE_SIGV4;

  for (enum credential_word word = CREDENTIAL_KEY_ID; word <= (words ? CREDENTIAL_TOKEN : CREDENTIAL_KEY_ID); word++) {
    enum credential_word shown = word == CREDENTIAL_KEY_ID ? word : CREDENTIAL_SECRET_KEY;
    struct stand_in pair = { .value = words ? credential_word(value, word) : value,
                             .placeholder = words ? credential_word(placeholder, shown) : placeholder };

    if (pair.value.len < LIMITS_CREDENTIAL_FILE_VALUE)
      continue;
    pairs->whose[pairs->count] = whose;
    pairs->items[pairs->count++] = pair;
  }
}

/* Adds the values of the credentials that name the file, or of the others. */
static int collect(const struct run_request *request, const struct plan_op *op, const struct secrets *secrets,
                   bool named, struct err *err, struct pairs *pairs)
{
  const struct policy_credentials *credentials = &request->policy->credentials;

  for (size_t i = 0; i < credentials->count; i++) {
    const struct policy_credential *credential = &credentials->items[i];
    const struct fact_path *fact;
    const char *name = name_of(credential, request->facts, op->source, &fact);
    struct span value = secrets_value(secrets, i);
    int r = name ? check_value(credential, name, value, secrets_error(secrets, i), err) : 0;

    if (r < 0)
      return r;
    if ((name != NULL) != named)
      continue;
    if (value.len == 0)
      log_line(LOG_NOTICE, "credential %s: its value could not be had, so it was not looked for in %s: %s",
               credential->name, op->target, secrets_error(secrets, i));
    add(i, credential, value, span_of(request->facts->placeholders.items[i]), pairs);
  }
  return 0;
}

/* Those that name the file are in it, and nobody's value is any more. */
static int judge(const struct run_request *request, const struct plan_op *op, int result, const struct pairs *pairs,
                 size_t left, struct err *err)
{
  for (size_t i = 0; i < pairs->count; i++) {
    const struct policy_credential *credential = &request->policy->credentials.items[pairs->whose[i]];
    const struct fact_path *fact;
    const char *name = name_of(credential, request->facts, op->source, &fact);

    if (result == -EILSEQ && i == left) {
      err_set(err, EINVAL,
              "file: %s: the value stands there in a form that cannot be replaced, such as base64 in several lines; "
              "use \"env\"",
              name ? name : op->target);
      return credentials_refuse(credential, err);
    }
    if (result == 0 && name && pairs->items[i].found == 0) {
      err_set(err, EINVAL,
              "file: %s: the value of the source does not stand in it; name the file that has it, or the source that "
              "gives the value that is there",
              name);
      return credentials_refuse(credential, err);
    }
  }
  return result < 0 ? err_set_errno(err, -result, "credentials: %s", op->target) : 0;
}

int credential_file_make(const struct run_request *request, const struct plan_op *op, const struct secrets *secrets,
                         struct err *err, struct buf *out)
{
  const struct policy_credentials *credentials = &request->policy->credentials;
  secret_autofree struct secret text = SECRET_INIT;
  struct pairs pairs = { .count = 0 };
  const struct fact_path *fact = NULL;
  size_t left = 0;
  /* Of equal values the placeholder of one that names the file stands there. */
  int r = collect(request, op, secrets, true, err, &pairs);

  if (r == 0)
    r = collect(request, op, secrets, false, err, &pairs);

  for (size_t i = 0; i < credentials->count && r == 0 && !fact; i++) {
    const char *name = name_of(&credentials->items[i], request->facts, op->source, &fact);

    if (!name)
      continue;
    r = read_text(fact, err, &text);
    if (r < 0) {
      err_wrap(err, "file: %s", name);
      return credentials_refuse(&credentials->items[i], err);
    }
  }
  if (r < 0)
    return r;
  buf_reserve(out, 2 * text.len);
  r = stand_in_text(pairs.items, pairs.count, (struct span){ text.bytes, text.len }, out, &left);
  return judge(request, op, r, &pairs, left, err);
}
