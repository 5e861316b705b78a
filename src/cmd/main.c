#include "config.h"

#include "cmd/cmd.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const struct cmd commands[] = {
  { "run", OPTS_FOR_RUN, "[options] [--] COMMAND [ARG]...", "run a command in a sandbox", cmd_run },
  { "shell", OPTS_FOR_SHELL, "[options]", "start your shell in a sandbox", cmd_shell },
  { "check", OPTS_FOR_CHECK, "[options] [FILE]", "say whether the policy, or one file, is sound", cmd_check },
  { "show", OPTS_FOR_SHOW, "[options]", "print the policy that applies here, or the plan made from it", cmd_show },
  { "init", OPTS_FOR_INIT, "[options]", "write a first .sbx.json for this project", cmd_init },
  { "why", OPTS_FOR_WHY, "[options] HOST[:PORT]|URL|PATH", "say whether the command may reach a host or a path",
    cmd_why },
  { "log", OPTS_FOR_LOG, "[options] [RUN|last]", "print what runs asked of the network", cmd_log },
  { "learn", OPTS_FOR_LEARN, "[options] [--] COMMAND [ARG]...", "run a command and print the policy that it needs",
    cmd_learn },
  { "credential", OPTS_FOR_CREDENTIAL, "[options] list | test NAME", "say which logins a run has, or try one",
    cmd_credential },
  { "doctor", OPTS_FOR_DOCTOR, "[--json] | attempt WAY [TARGET]", "check this machine, and whether sandboxes hold",
    cmd_doctor },
  { "trust", OPTS_FOR_TRUST, "[options]", "take .sbx.json, as it is now, as your own word", cmd_trust },
};

int cmd_fail(const struct err *err)
{
  log_line(LOG_ERROR, "%s", err->message);
  return RUN_EXIT_FAILED;
}

int cmd_print(const struct buf *text)
{
  int r = buf_error(text) ? buf_error(text) : fd_write_all(STDOUT_FILENO, buf_span(text));
  struct err err = ERR_INIT;

  if (r == 0)
    return 0;
  err_set_errno(&err, -r, "standard output");
  return cmd_fail(&err);
}

static int print_usage(void)
{
  buf_autofree struct buf text = BUF_INIT(64 * 1024);

  buf_append_str(&text, SBX_NAME " runs a command with the files, network and system calls that a policy allows.\n\n");
  for (size_t i = 0; i < MEM_COUNT(commands); i++)
    buf_printf(&text, "  " SBX_NAME " %-11s%-34s %s\n", commands[i].name, commands[i].usage, commands[i].help);
  buf_append_str(&text, "  " SBX_NAME " --version                                     print the version\n"
                        "\n" SBX_NAME " COMMAND --help lists the options of a command. Manual: " SBX_NAME
                        "(1), " SBX_POLICY_PAGE "(5).\n");
  return cmd_print(&text);
}

static int print_command_help(const struct cmd *command)
{
  buf_autofree struct buf text = BUF_INIT(64 * 1024);

  buf_printf(&text, "usage: " SBX_NAME " %s %s\n\n%s\n\noptions:\n", command->name, command->usage, command->help);
  opts_help(command->bit, &text);
  return cmd_print(&text);
}

static int print_version(void)
{
  buf_autofree struct buf text = BUF_INIT(256);

  buf_append_str(&text, PACKAGE_STRING "\n");
  return cmd_print(&text);
}

static int run_command_line(const struct cmd *command, char **args)
{
  opts_autofree struct opts opts = OPTS_INIT;
  struct err err = ERR_INIT;
  int r = opts_parse(command->bit, args, &err, &opts);

  log_open(SBX_NAME, opts.level);
  if (r < 0) {
    err_wrap(&err, "%s", command->name);
    return cmd_fail(&err);
  }
  return opts.help ? print_command_help(command) : command->run(&opts, args + opts.consumed);
}

/* A program that is started with a standard descriptor closed would find its next file there. */
static void open_standard_fds(void)
{
  int fd;

  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0)
    close(fd);
}

int main(int argc, char **argv)
{
  struct err err = ERR_INIT;

  open_standard_fds();
  log_open(SBX_NAME, LOG_NOTICE);
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
    return print_usage() ? RUN_EXIT_FAILED : argc < 2 ? RUN_EXIT_FAILED : EXIT_SUCCESS;
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0)
    return print_version();
  for (size_t i = 0; i < MEM_COUNT(commands); i++) {
    if (strcmp(argv[1], commands[i].name) == 0)
      return run_command_line(&commands[i], argv + 2);
  }
  err_set(&err, EINVAL, "%s: no such command; see " SBX_NAME " --help", argv[1]);
  return cmd_fail(&err);
}
