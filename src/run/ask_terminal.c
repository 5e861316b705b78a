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
 * nobody is asked then. An answer counts only if everything has stood still until it came, and under the modes that it
 * was asked under. When we have been stopped and go on, the terminal may have been another job's meanwhile: the
 * question is put again.
 *
 * The question is ASCII: host and rule are canonical.
 */
#include "config.h"

#include "run/ask_terminal.h"

#include "base/fd.h"

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

/* What the command may have left of the terminal, so that the question would not be seen as it is. */
static const char undo[] =
    "\030\033\\" /* a sequence or a string without its end, which would swallow the question */
    "\0337\033[?69l\033[r\0338" /* margins, which would scroll it away; the cursor stays where it is */
    "\033[4l\033[?7h" /* what pushes text aside; lines cut off at the edge, which would hide the end of a name */
    "\033(B\017\033[m\033[?25h" /* another character set; colours; a hidden cursor */
    "\033]104\007\033]110\007\033]111\007\033]112\007" /* redefined colours */
    "\r\n\033[J"; /* text in front of the question, behind it, and below */

/* Nothing of the command's: with 'n' as the key that erases, "no" would be "o". Nor does output stay stopped. */
static int set_modes(struct ask_terminal *terminal)
{
  struct termios modes = terminal->modes;

  modes.c_iflag = BRKINT | ICRNL | IXON | (modes.c_iflag & IUTF8);
  modes.c_oflag = OPOST | ONLCR;
  modes.c_lflag = ISIG | ICANON | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
  for (size_t i = 0; i < MEM_COUNT(modes.c_cc); i++)
    modes.c_cc[i] = _POSIX_VDISABLE;
  modes.c_cc[VINTR] = 'C' - '@';
  modes.c_cc[VEOF] = 'D' - '@';
  modes.c_cc[VKILL] = 'U' - '@';
  modes.c_cc[VERASE] = 0177;
  (void)tcflow(terminal->fd, TCOON);
  if (tcsetattr(terminal->fd, TCSAFLUSH, &modes) < 0 || tcgetattr(terminal->fd, &terminal->ours) < 0)
    return -errno;
  return 0;
}

static bool has_our_modes(const struct ask_terminal *terminal)
{
  const struct termios *ours = &terminal->ours;
  struct termios now;

  return tcgetattr(terminal->fd, &now) == 0 && now.c_iflag == ours->c_iflag && now.c_oflag == ours->c_oflag &&
         now.c_lflag == ours->c_lflag && memcmp(now.c_cc, ours->c_cc, sizeof now.c_cc) == 0;
}

static int take_terminal(struct ask_terminal *terminal, struct err *err)
{
  int r;

  if (tcgetattr(terminal->fd, &terminal->modes) < 0)
    return err_set_errno(err, errno, "terminal");
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, getpgrp());
  r = set_modes(terminal);
  if (r == 0)
    return 0;
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, terminal->foreground);
  return err_set_errno(err, -r, "terminal");
}

static void put(const struct ask_terminal *terminal)
{
  (void)fd_write_all(terminal->fd, buf_span(&terminal->question));
}

static void word_question(struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                          uint64_t answer_ms)
{
  struct buf *text = &terminal->question;
  const char *type = getenv("TERM");

  *text = (struct buf)BUF_INIT(QUESTION_BYTES);
  buf_append_str(text, type && strcmp(type, "dumb") != 0 ? undo : "\r\n");
  buf_append_str(text, SBX_NAME ": the command wants to reach ");
  host_print_target(host, port, text);
  buf_printf(text,
             ", which no rule allows.\n" SBX_NAME
             ": allow %s? [o]nce, for this [r]un, for this [p]roject, or [d]eny (in %llu s)? ",
             rule, (unsigned long long)((answer_ms + 999) / 1000));
}

/* Stops everything inside, in front of a terminal that is ours or the sandbox's, and stays so. */
static int stop_inside(struct ask_terminal *terminal, struct err *err)
{
  bool inside = false;
  int r;

  terminal->foreground = tcgetpgrp(terminal->fd);
  r = freeze_below(&terminal->freeze, terminal->guard, terminal->foreground, err, &inside);
  if (r < 0)
    return r;
  if ((terminal->foreground == getpgrp() || inside) && tcgetpgrp(terminal->fd) == terminal->foreground)
    return 0;
  freeze_thaw(&terminal->freeze, false);
  return err_set(err, EAGAIN, "this run is in the background, where nobody can be asked");
}

int ask_terminal_begin(struct ask_terminal *terminal, const struct host *host, uint16_t port, const char *rule,
                       uint64_t answer_ms, struct err *err)
{
  int r = stop_inside(terminal, err);

  if (r < 0)
    return r;
  r = take_terminal(terminal, err);
  if (r < 0) {
    freeze_thaw(&terminal->freeze, false);
    return r;
  }
  terminal->open = true;
  terminal->line = (struct buf)BUF_INIT(LINE_BYTES);
  word_question(terminal, host, port, rule, answer_ms);
  put(terminal);
  return 0;
}

void ask_terminal_again(struct ask_terminal *terminal)
{
  if (!terminal->open)
    return;
  buf_free(&terminal->line);
  (void)set_modes(terminal);
  put(terminal);
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

bool ask_terminal_read(struct ask_terminal *terminal, enum decide_asked *ret_asked, const char **ret_why)
{
  char bytes[LINE_BYTES];
  bool ours = has_our_modes(terminal);
  ssize_t n = read(terminal->fd, bytes, sizeof bytes);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  *ret_asked = DECIDE_ASKED_DENY;
  *ret_why = NULL;
  if (n <= 0)
    return true; /* Ctrl-D, or the terminal is gone */
  if (!ours || !freeze_holds(&terminal->freeze)) {
    *ret_asked = DECIDE_ASKED_UNABLE;
    *ret_why = ours ? "the command did not stand still" : "the terminal's modes were changed meanwhile";
    return true;
  }
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

void ask_terminal_end(struct ask_terminal *terminal, const char *why)
{
  buf_autofree struct buf text = BUF_INIT(QUESTION_BYTES);

  if (!terminal->open)
    return;
  terminal->open = false;
  buf_free(&terminal->line);
  buf_free(&terminal->question);
  if (why) {
    buf_printf(&text, "\r\n" SBX_NAME ": %s, so it is denied\n", why);
    (void)fd_write_all(terminal->fd, buf_span(&text));
  }
  (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
  if (terminal->foreground != getpgrp())
    set_foreground(terminal->fd, terminal->foreground);
  freeze_thaw(&terminal->freeze, true);
}
