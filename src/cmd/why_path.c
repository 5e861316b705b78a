/* why, for a path: what the plan makes of it, which rule does, and an option that changes it.
 *
 * No advice is given that does not work: a plan is made as it would be with the option, and asked the same question.
 */
#include "config.h"

#include "cmd/why.h"

#include "cmd/planning.h"
#include "plan/ops.h"
#include "policy/fspath.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHY_GROUPS_MAX 65536 /* the kernel's NGROUPS_MAX */

struct question {
  const char *path; /* absolute, without links */
  bool write;
  bool exists;
  int refused; /* the host's own answer to the user: 0 or -errno */
};

/* As root is inside: the owner of files without any capability. */
static int ask_modes(const struct stat *stat, bool write)
{
  mem_autofree gid_t *groups = NULL;
  int count = getgroups(0, NULL);
  bool member = stat->st_gid == getegid();
  mode_t bits = stat->st_mode;

  if (count > 0 && count <= WHY_GROUPS_MAX)
    groups = mem_calloc((size_t)count, sizeof *groups);
  if (groups)
    count = getgroups(count, groups);
  for (int i = 0; groups && i < count; i++)
    member |= groups[i] == stat->st_gid;
  bits = stat->st_uid == geteuid() ? bits >> 6 : member ? bits >> 3 : bits;
  return bits & (write ? 02 : 04) ? 0 : -EACCES;
}

/* Whether the host lets the user do it: no option can give more. A socket is not read but connected to. */
static void ask_host(struct question *question)
{
  struct stat stat;

  question->exists = fstatat(AT_FDCWD, question->path, &stat, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
  if (!question->exists || S_ISSOCK(stat.st_mode))
    return;
  if (geteuid() == 0)
    question->refused = ask_modes(&stat, question->write);
  else if (faccessat(AT_FDCWD, question->path, question->write ? W_OK : R_OK, AT_EACCESS) < 0)
    question->refused = -errno;
}

/* What the last operation that covers the path makes of it. */
static void judge(const struct question *question, const struct plan_op *op, struct why_answer *answer)
{
  bool readable = op && op->kind != PLAN_MASK_FILE && op->kind != PLAN_MASK_DIR;
  bool fresh = op && !ops_is_bind(op) && op->kind != PLAN_SYMLINK && op->late != PLAN_LATE_CREDENTIAL;
  bool writable = op && (op->kind == PLAN_BIND_RW || op->kind == PLAN_TMPFS);
  const char *why = op ? op->why : NULL;

  answer->yes = readable && !fresh && (!question->write || writable);
  if (!op) {
    answer->word = "not-shown";
    buf_append_str(&answer->text, "nothing of the host is shown there");
  } else if (!readable) {
    answer->word = "hidden";
    buf_printf(&answer->text, "it cannot be opened: %s", why);
  } else if (fresh) {
    answer->word = "private";
    buf_printf(&answer->text, "the sandbox has its own there: %s", why);
  } else if (strcmp(op->source, op->target) != 0 && strcmp(why, "private home") == 0) {
    answer->yes = false;
    answer->word = "private";
    buf_printf(&answer->text, "the sandbox has its own there, kept at %s", op->source);
  } else {
    answer->word = writable ? "writable" : "read-only";
    buf_printf(&answer->text, "%s at %s", why, op->target);
  }
  if (answer->yes && question->refused) {
    answer->yes = false;
    answer->word = "not-permitted";
  }
  if (question->refused)
    buf_printf(&answer->text, "; the host itself refuses it to you: %s", strerror(-question->refused));
  else if (!question->exists)
    buf_append_str(&answer->text, "; it does not exist on the host");
}

/* The entry of a list that an operation was made for, or NULL. */
static const struct policy_path *find_entry(const struct policy_paths *list, const struct facts *facts,
                                            const struct plan_op *op)
{
  for (size_t i = 0; i < list->count; i++) {
    mem_autofree char *named = facts_expand(facts, list->items[i].text);
    const struct fact_path *fact = named ? facts_path(facts, named) : NULL;

    if (fspath_match(list->items[i].text, facts->home, facts->workspace, op->target) ||
        (fact && !fact->error &&
         (strcmp(fact->real, op->target) == 0 ||
          (fact->inode && fact->inode == op->inode && fact->device == op->device))))
      return &list->items[i];
  }
  return NULL;
}

/* Names the entry of the policy that the operation comes from; what the plan does by itself has none. */
static const struct policy_path *say_entry(const struct context *context, const struct plan_op *op,
                                           struct why_answer *answer)
{
  const struct {
    const char *why;
    const struct policy_paths *list;
  } lists[] = { { "hide", &context->policy->hide },
                { "protect", &context->policy->protect },
                { "write", &context->policy->write },
                { "read", &context->policy->read } };
  const struct policy_path *entry = NULL;

  for (size_t i = 0; i < MEM_COUNT(lists) && op && !entry; i++) {
    if (strcmp(op->why, lists[i].why) == 0)
      entry = find_entry(lists[i].list, &context->facts, op);
  }
  if (entry)
    why_say_rule(entry->text, &entry->origin, answer);
  return entry;
}

/* One word for a shell. */
static void append_word(const char *text, struct buf *out)
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:@%,=";

  if (text[strspn(text, plain)] == '\0') {
    buf_append_str(out, text);
    return;
  }
  buf_append_byte(out, '\'');
  for (; *text; text++)
    *text == '\'' ? buf_append_str(out, "'\\''") : buf_append_byte(out, *text);
  buf_append_byte(out, '\'');
}

/* Whether the answer is yes in a run with this setting, or with .sbx.json trusted. */
static bool would_help(const struct opts *opts, const struct opts_setting *more, bool trusted,
                       const struct question *question, struct err *err)
{
  context_autofree struct context context = CONTEXT_INIT;
  plan_autofree struct plan plan = PLAN_INIT;
  why_answer_autofree struct why_answer answer = WHY_ANSWER_INIT;

  if (why_suppose(opts, more, trusted, err, &context) < 0 || planning_make(&context, err, &plan) < 0)
    return false;
  judge(question, ops_covering(&plan, question->path), &answer);
  return answer.yes;
}

static void say_option(const struct opts *opts, const struct plan_op *op, const struct question *question,
                       struct why_answer *answer)
{
  bool protected = op && op->stage == PLAN_STAGE_PROTECT;
  bool socket = op && strcmp(op->why, "host socket") == 0;
  mem_autofree char *value =
      protected ? mem_strndup(op->target, strlen(op->target)) : mem_strndup(question->path, strlen(question->path));
  struct opts_setting more = { .key = protected         ? "filesystem.unprotect"
                                      : socket          ? "network.unixSockets"
                                      : question->write ? "filesystem.write"
                                                        : "filesystem.read",
                               .value = value };
  char unprotect[] = "--unprotect";
  char connect[] = "--unix-socket";
  char write[] = "--write";
  char read[] = "--read";
  struct err err = ERR_INIT;

  more.option = protected ? unprotect : socket ? connect : question->write ? write : read;
  if (!value || question->refused || (!question->exists && !protected && !question->write))
    return;
  if (!question->exists && !protected) {
    buf_append_str(&answer->fix, "create it first, then: ");
  } else if (!would_help(opts, &more, false, question, &err)) {
    if (err.code)
      buf_printf(&answer->text, "; no option changes that: %s", err.message);
    return;
  }
  buf_printf(&answer->fix, SBX_NAME " run %s ", more.option);
  append_word(value, &answer->fix);
  buf_append_str(&answer->fix, " ...");
}

static void say_fix(const struct opts *opts, const struct context *context, const struct plan_op *op,
                    const struct question *question, struct why_answer *answer)
{
  const struct policy_path *entry = say_entry(context, op, answer);
  struct err err = ERR_INIT;

  if (answer->yes)
    return;
  if (op && strcmp(op->why, "hide") == 0 && entry) {
    buf_append_str(&answer->fix, entry->origin.line ? "take it out of filesystem.hide there" : "leave that option out");
    return;
  }
  if (why_may_trust(context) && would_help(opts, NULL, true, question, &err))
    why_say_trust(context, answer);
  else
    say_option(opts, op, question, answer);
}

int why_path(const struct opts *opts, const char *argument, struct context *context, struct err *err,
             struct why_answer *answer)
{
  plan_autofree struct plan plan = PLAN_INIT;
  path_object_autofree struct path_object object = { .real = NULL };
  mem_autofree char *path = NULL;
  struct question question = { .write = opts->write };
  const struct plan_op *op;
  int r = planning_make(context, err, &plan);

  if (r < 0)
    return r;
  path = argument[0] == '~' ? facts_expand(&context->facts, argument)
                            : path_normalise(argument[0] == '/' ? "/" : context->facts.cwd, argument);
  if (!path)
    return err_set(err, ENOMEM, "out of memory");
  /* What a link leads to decides, as it would inside. */
  if (path_resolve(path, &object) == 0) {
    free(path);
    path = mem_steal(object.real);
  }
  question.path = path;
  ask_host(&question);
  buf_append_str(&answer->target, path);
  op = ops_covering(&plan, path);
  judge(&question, op, answer);
  say_fix(opts, context, op, &question, answer);
  return 0;
}
