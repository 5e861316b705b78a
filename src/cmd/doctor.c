#include "config.h"

#include "cmd/doctor.h"

#include "base/fd.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/nested.h"
#include "sys/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DOCTOR_CHECKS_MAX 256
#define DOCTOR_TEXT_BYTES (256 * 1024)

/* In this order; the last comes only where no other failed. */
static void (*const checks[])(struct doctor *) = {
  doctor_check_kernel, doctor_check_namespaces,  doctor_check_bwrap,  doctor_check_limits,      doctor_check_name,
  doctor_check_proxy,  doctor_check_directories, doctor_check_policy, doctor_check_enforcement,
};

static void doctor_free(struct doctor *doctor)
{
  for (size_t i = 0; i < doctor->count; i++) {
    free(doctor->checks[i].text);
    free(doctor->checks[i].mend);
  }
  free(doctor->checks);
  free(doctor->self);
  facts_free(&doctor->facts);
  fd_close(&doctor->signals);
}

void doctor_say(struct doctor *doctor, enum doctor_status status, const char *name, const char *mend,
                const char *format, ...)
{
  struct doctor_check check = { .status = status, .name = name };
  va_list args;

  if (mem_grow(&doctor->checks, doctor->count, &doctor->cap, sizeof check, DOCTOR_CHECKS_MAX) < 0) {
    doctor->error = -ENOMEM;
    return;
  }
  va_start(args, format);
  if (vasprintf(&check.text, format, args) < 0)
    check.text = NULL;
  va_end(args);
  check.mend = mend ? mem_strndup(mend, strlen(mend)) : NULL;
  if (!check.text || (mend && !check.mend)) {
    free(check.text);
    free(check.mend);
    doctor->error = -ENOMEM;
    return;
  }
  doctor->checks[doctor->count++] = check;
}

bool doctor_has_failed(const struct doctor *doctor)
{
  for (size_t i = 0; i < doctor->count; i++) {
    if (doctor->checks[i].status == DOCTOR_FAIL)
      return true;
  }
  return false;
}

static bool wants_colour(void)
{
  const char *no_colour = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");

  return isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

/* A command is for copying, so it is not escaped; what could drive the terminal matches as ? in a shell. */
static void print_mend(const char *mend, struct buf *out)
{
  for (const char *at = mend; *at; at++)
    buf_append_byte(out, (unsigned char)*at < ' ' || *at == '\177' ? '?' : *at);
}

static void print_text(const struct doctor *doctor, struct buf *out)
{
  static const struct {
    const char *word;
    const char *colour;
  } words[] = {
    [DOCTOR_OK] = { "ok  ", "\033[32m" }, [DOCTOR_WARN] = { "warn", "\033[33m" }, [DOCTOR_FAIL] = { "FAIL", "\033[31m" }
  };
  bool colour = wants_colour();

  for (size_t i = 0; i < doctor->count; i++) {
    const struct doctor_check *check = &doctor->checks[i];

    buf_append_str(out, colour ? words[check->status].colour : "");
    buf_append_str(out, words[check->status].word);
    buf_printf(out, "%s  %s: ", colour ? "\033[0m" : "", check->name);
    buf_append_escaped(out, span_of(check->text));
    if (check->mend) {
      buf_append_str(out, "; to mend it: ");
      print_mend(check->mend, out);
    }
    buf_append_byte(out, '\n');
  }
}

static void print_json(const struct doctor *doctor, struct buf *out)
{
  static const char *const words[] = { [DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "fail" };

  buf_printf(out, "{\"ok\": %s, \"checks\": [", doctor_has_failed(doctor) ? "false" : "true");
  for (size_t i = 0; i < doctor->count; i++) {
    const struct doctor_check *check = &doctor->checks[i];

    buf_printf(out, "%s\n  {\"status\": \"%s\", \"name\": ", i ? "," : "", words[check->status]);
    buf_append_json(out, span_of(check->name));
    buf_append_str(out, ", \"text\": ");
    buf_append_json(out, span_of(check->text));
    buf_append_str(out, ", \"mend\": ");
    if (check->mend)
      buf_append_json(out, span_of(check->mend));
    else
      buf_append_str(out, "null");
    buf_append_byte(out, '}');
  }
  buf_append_str(out, "\n]}\n");
}

/* A check may have made files and processes: the signals that would end us come by a descriptor, so that the way out is
 * the ordinary one. */
static int catch_signals(struct doctor *doctor, sigset_t *ret_old)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  sigprocmask(SIG_BLOCK, &set, ret_old);
  sigaction(SIGPIPE, &ignore, NULL);
  doctor->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return doctor->signals < 0 ? -errno : 0;
}

static int find_self(struct doctor *doctor)
{
  char link[4096];
  ssize_t len = readlink("/proc/self/exe", link, sizeof link);

  if (len < 0)
    return -errno;
  doctor->self = mem_strndup(link, (size_t)len);
  return doctor->self ? 0 : -ENOMEM;
}

static int start(struct doctor *doctor, sigset_t *ret_old, struct err *err)
{
  int r = catch_signals(doctor, ret_old);

  if (r == 0)
    r = spawn_close_inherited(NULL, 0);
  if (r == -ENOSYS) /* the check of the kernel says so */
    r = 0;
  if (r == 0)
    r = find_self(doctor);
  return r < 0 ? err_set_errno(err, -r, "doctor") : 0;
}

static void examine(struct doctor *doctor)
{
  struct err err = ERR_INIT;

  if (nested_is_inside()) {
    doctor_say(doctor, DOCTOR_OK, "sandbox", NULL,
               "this is inside a sandbox of " SBX_NAME
               " already; commands run in it as it is, and the machine is to be checked "
               "from outside");
    return;
  }
  if (facts_read_caller("/", &err, &doctor->facts) < 0) {
    doctor_say(doctor, DOCTOR_FAIL, "caller", NULL, "%s", err.message);
    return;
  }
  for (size_t i = 0; i < MEM_COUNT(checks) && !doctor->signal; i++)
    checks[i](doctor);
}

/* Ends as the signal that came would have ended us, now that everything is put away. */
static void end_by_signal(const struct doctor *doctor, const sigset_t *old)
{
  (void)raise(doctor->signal);
  sigprocmask(SIG_SETMASK, old, NULL);
}

int cmd_doctor(const struct opts *opts, char *const *args)
{
  MEM_CLEANUP(doctor_free) struct doctor doctor = { .facts = FACTS_INIT, .signals = -1 };
  buf_autofree struct buf text = BUF_INIT(DOCTOR_TEXT_BYTES);
  struct err err = ERR_INIT;
  sigset_t old;
  int r;

  if (args[0] && strcmp(args[0], "attempt") == 0)
    return doctor_attempt(args + 1);
  if (args[0]) {
    err_set(&err, EINVAL, "doctor: %s: no such argument; see " SBX_DOCTOR_PAGE "(1)", args[0]);
    return cmd_fail(&err);
  }
  r = start(&doctor, &old, &err);
  if (r == 0)
    examine(&doctor);
  if (doctor.signal)
    end_by_signal(&doctor, &old);
  if (r == 0 && doctor.error)
    r = err_set_errno(&err, -doctor.error, "doctor");
  if (r < 0)
    return cmd_fail(&err);
  if (opts->json)
    print_json(&doctor, &text);
  else
    print_text(&doctor, &text);
  r = cmd_print(&text);
  return r ? r : doctor_has_failed(&doctor) ? EXIT_FAILURE : EXIT_SUCCESS;
}
