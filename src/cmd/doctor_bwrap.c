/* bubblewrap: is it there, has it the options that the engine uses, and does it work as the engine starts it. */
#include "config.h"

#include "cmd/doctor.h"

#include "sys/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#define BWRAP_TEXT_BYTES (64 * 1024)

static char *const no_environment[] = { NULL };

/* Runs bubblewrap to its end; what it wrote stands in text. Whether it exited with 0. */
static bool run_bwrap(struct doctor *doctor, const char *program, const char *const *options, bool guard,
                      struct buf *text)
{
  strv_autofree struct strv argv = STRV_INIT;
  struct err err = ERR_INIT;
  int status = 0;
  int r = strv_add(&argv, "bwrap");

  for (size_t i = 0; options[i] && r == 0; i++)
    r = strv_add(&argv, options[i]);
  if (r < 0) {
    doctor->error = r;
    return false;
  }
  r = doctor_exec(
      doctor,
      &(struct doctor_exec){
          .program = program, .argv = argv.items, .envp = no_environment, .guard = guard, .cgroup_procs = -1 },
      &err, text, text, &status);
  if (r < 0)
    buf_printf(text, "%s\n", err.message);
  return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool has_options(struct doctor *doctor, const char *program)
{
  static const char *const help[] = { "--help", NULL };
  static const char *const needed[] = { "--args",  "--json-status-fd", "--block-fd",  "--seccomp",
                                        "--perms", "--clearenv",       "--remount-ro" };
  buf_autofree struct buf text = BUF_INIT(BWRAP_TEXT_BYTES);
  buf_autofree struct buf mend = BUF_INIT(4096);

  if (!run_bwrap(doctor, program, help, false, &text)) {
    struct span line = doctor_last_line(&text);

    if (!doctor->signal)
      doctor_say(doctor, DOCTOR_FAIL, "bubblewrap", NULL, "%s cannot be run: %.*s", program, (int)line.len, line.ptr);
    return false;
  }
  for (size_t i = 0; i < MEM_COUNT(needed); i++) {
    if (text.data && strstr(text.data, needed[i]))
      continue;
    doctor_mend_install("bubblewrap", &mend);
    doctor_say(doctor, DOCTOR_FAIL, "bubblewrap", mend.data,
               "%s has no option %s; " SBX_NAME " needs bubblewrap 0.8 or newer", program, needed[i]);
    return false;
  }
  return true;
}

/* Which part does not work: the same once more without it. */
static void explain_bwrap(struct doctor *doctor, const char *program, const struct buf *text)
{
  const char *no_net[] = {
    "--unshare-user", "--unshare-pid", "--cap-drop", "ALL", "--ro-bind",  "/",         "/", "--dev",
    "/dev",           "--proc",        "/proc",      "--",  doctor->self, "--version", NULL
  };
  buf_autofree struct buf ignored = BUF_INIT(BWRAP_TEXT_BYTES);
  struct span line = doctor_last_line(text);

  if (run_bwrap(doctor, program, no_net, true, &ignored))
    doctor_say(doctor, DOCTOR_FAIL, "bubblewrap", NULL,
               "cannot set up a network namespace (a security module, or a kernel without CONFIG_NET_NS): %.*s",
               (int)line.len, line.ptr);
  else if (!doctor->signal && doctor_container())
    doctor_say(doctor, DOCTOR_FAIL, "bubblewrap",
               "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
               "--security-opt systempaths=unconfined (podman: unmask=ALL)",
               "does not work in this container: %.*s", (int)line.len, line.ptr);
  else if (!doctor->signal)
    doctor_say(doctor, DOCTOR_FAIL, "bubblewrap", NULL, "does not work: %.*s", (int)line.len, line.ptr);
}

void doctor_check_bwrap(struct doctor *doctor)
{
  const char *all[] = { "--unshare-all", "--cap-drop", "ALL",   "--ro-bind", "/",          "/",         "--dev",
                        "/dev",          "--proc",     "/proc", "--",        doctor->self, "--version", NULL };
  mem_autofree char *program = NULL;
  buf_autofree struct buf text = BUF_INIT(BWRAP_TEXT_BYTES);
  buf_autofree struct buf mend = BUF_INIT(4096);

  if (probe_program(SBX_BWRAP, &program) < 0) {
    doctor_mend_install("bubblewrap", &mend);
    doctor_say(doctor, DOCTOR_FAIL, "bubblewrap", mend.data,
               "%s is not installed (it is looked for in the system's directories, not on PATH)", SBX_BWRAP);
    return;
  }
  if (!has_options(doctor, program))
    return;
  if (doctor_has_failed(doctor))
    doctor_say(doctor, DOCTOR_WARN, "bubblewrap", NULL, "%s is there; not tried, for the faults above", program);
  else if (run_bwrap(doctor, program, all, true, &text))
    doctor_say(doctor, DOCTOR_OK, "bubblewrap", NULL, "%s makes a sandbox", program);
  else if (!doctor->signal)
    explain_bwrap(doctor, program, &text);
}
