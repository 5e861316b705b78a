/* Theory of operation: a question on a terminal that the command uses too.
 *
 * The command may be full-screen, in raw mode, or wait for its own input, and it may be hostile: it could draw another
 * host's name over the question, or read the answer. So nothing inside runs while a question stands (freeze.h):
 *
 *   begin   stop everything inside; take the foreground, if a job inside has it; cooked mode; throw away what was typed
 *           before the question could be read; put the question
 *   wait    for a line. Ctrl-C, Ctrl-D and silence are a no; Ctrl-Z does nothing
 *   end     modes and foreground as they were; everything inside goes on and hears SIGCONT, on which full-screen
 *           programs draw anew
 *
 * A terminal whose foreground is neither ours nor the sandbox's is another job's, in whose input we have no part:
 * nobody is asked then.
 *
 * The question is ASCII: host and rule are canonical. In front of it stands what ends the colours, and the character
 * set, that the command may have left.
 */
#include "config.h"

#include "run/ask_terminal.h"

#include "base/fd.h"
#include "sys/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES 256
#define QUESTION_BYTES 2048

/* From the background, without being stopped for it. */
static void set_foreground(int fd, pid_t group)
{
  sigset_t output;
  sigset_t old;

  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);
  sigprocmask(SIG_BLOCK, &output, &old);
  (void)tcsetpgrp(fd, group);
  sigprocmask(SIG_SETMASK, &old, NULL);
}

static int take_terminal(struct ask_terminal *terminal, struct err *err)
{
  struct termios modes;

  if (tcgetattr(terminal->fd, &terminal->modes) < 0)
    return err_set_errno(err, errno, "terminal");
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, getpgrp());
  modes = terminal->modes;
  modes.c_iflag |= ICRNL;
  modes.c_iflag &= ~(tcflag_t)(IGNCR | INLCR);
  modes.c_oflag |= OPOST | ONLCR;
  modes.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ISIG;
  modes.c_lflag &= ~(tcflag_t)NOFLSH;
  modes.c_cc[VSUSP] = _POSIX_VDISABLE;
  modes.c_cc[VINTR] = 'C' - '@';
  modes.c_cc[VEOF] = 'D' - '@';
  if (tcsetattr(terminal->fd, TCSAFLUSH, &modes) == 0)
    return 0;
  err_set_errno(err, errno, "terminal");
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, terminal->foreground);
  return -err->code;
}

static void put_question(const struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                         uint64_t answer_ms)
{
  buf_autofree struct buf text = BUF_INIT(QUESTION_BYTES);
  const char *type = getenv("TERM");

  if (type && strcmp(type, "dumb") != 0)
    buf_append_str(&text, "\033(B\017\033[m");
  buf_append_str(&text, "\r\n" SBX_NAME ": the command wants to reach ");
  host_print_target(host, port, &text);
  buf_printf(&text,
             ", which no rule allows.\n" SBX_NAME
             ": allow %s? [o]nce, for this [r]un, for this [p]roject, or [d]eny (in %llu s)? ",
             rule, (unsigned long long)((answer_ms + 999) / 1000));
  (void)fd_write_all(terminal->fd, buf_span(&text));
}

int ask_terminal_begin(struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                       uint64_t answer_ms, struct err *err)
{
  int r;

  terminal->foreground = tcgetpgrp(terminal->fd);
  if (terminal->foreground < 0 ||
      (terminal->foreground != getpgrp() && !proc_in_other_pid_namespace(terminal->foreground)))
    return err_set(err, EAGAIN, "this run is in the background, where nobody can be asked");
  r = freeze_below(&terminal->freeze, terminal->init, err);
  if (r < 0)
    return r;
  r = take_terminal(terminal, err);
  if (r < 0) {
    freeze_thaw(&terminal->freeze);
    return r;
  }
  terminal->open = true;
  terminal->line = (struct buf)BUF_INIT(LINE_BYTES);
  put_question(terminal, host, port, rule, answer_ms);
  return 0;
}

static bool parse(struct span line, enum decide_asked *ret_asked)
{
  static const enum decide_asked answers[] = { DECIDE_ASKED_ONCE, DECIDE_ASKED_RUN, DECIDE_ASKED_PROJECT,
                                               DECIDE_ASKED_DENY };

  line = span_trim(span_sub(line, 0, span_find(line, '\n')));
  for (size_t i = 0; i < MEM_COUNT(answers); i++) {
    struct span word = span_of(decide_asked_word(answers[i]));

    if (span_equal_nocase(line, word) || span_equal_nocase(line, span_sub(word, 0, 1))) {
      *ret_asked = answers[i];
      return true;
    }
  }
  return false;
}

bool ask_terminal_read(struct ask_terminal *terminal, enum decide_asked *ret_asked)
{
  char bytes[LINE_BYTES];
  ssize_t n = read(terminal->fd, bytes, sizeof bytes);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  *ret_asked = DECIDE_ASKED_DENY;
  if (n <= 0)
    return true; /* Ctrl-D, or the terminal is gone */
  buf_append(&terminal->line, (struct span){ .ptr = bytes, .len = (size_t)n });
  /* In cooked mode a line ends in a newline, or in Ctrl-D after a part of it. */
  if (buf_error(&terminal->line) || (bytes[n - 1] != '\n' && n < (ssize_t)sizeof bytes))
    return true;
  if (bytes[n - 1] != '\n')
    return false;
  if (parse(buf_span(&terminal->line), ret_asked))
    return true;
  buf_free(&terminal->line);
  (void)fd_write_all(terminal->fd, SPAN(SBX_NAME ": o, r, p or d? "));
  return false;
}

bool ask_terminal_hold(struct ask_terminal *terminal)
{
  struct err err = ERR_INIT;

  return !terminal->open || freeze_below(&terminal->freeze, terminal->init, &err) == 0;
}

void ask_terminal_end(struct ask_terminal *terminal, const char *why)
{
  buf_autofree struct buf text = BUF_INIT(QUESTION_BYTES);

  if (!terminal->open)
    return;
  terminal->open = false;
  buf_free(&terminal->line);
  if (why) {
    buf_printf(&text, "\r\n" SBX_NAME ": %s, so it is denied\n", why);
    (void)fd_write_all(terminal->fd, buf_span(&text));
  }
  (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, terminal->foreground);
  freeze_thaw(&terminal->freeze);
}
