/* Theory of operation: questions over a descriptor, one JSON object per line (on a terminal: ask_terminal.c).
 *
 *   sbx  {"id":1,"host":"api.example.com","port":443,"rule":"api.example.com","reason":"not-allowed",
 *         "answers":["once","run","project","deny"],"timeoutMs":60000}
 *   IDE  {"id":1,"answer":"run"}
 *   sbx  {"id":1,"closed":"deadline"}          or "gone": the question needs no answer any more
 *
 * Answers come in any order. What cannot be read is no answer; the end of file refuses everything from there on. Host
 * and rule are canonical, so ASCII: a name that is not has come here as its A-labels or not at all.
 *
 * A hostile command may ask for any number of hosts. LIMITS_ASK_BURST questions are put at once, then one in
 * LIMITS_ASK_EVERY_MS; what comes faster is refused unasked, and may be asked about later.
 */
#include "run/ask.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "policy/doc.h"
#include "run/project_file.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000) /* in nanoseconds */

void ask_open(struct ask *ask, const struct ask_setup *setup, pid_t guard,
              void (*answered)(void *data, const struct control_answer *answer), void *data)
{
  *ask = (struct ask){ .setup = setup,
                       .answered = answered,
                       .data = data,
                       .line = BUF_INIT(LIMITS_ASK_LINE_BYTES),
                       .terminal = { .fd = setup->fd, .guard = guard, .freeze = FREEZE_INIT } };
}

/* Answering. */

static void answer(struct ask *ask, const struct ask_question *question, enum decide_asked asked)
{
  struct control_answer message = { .type = CONTROL_ANSWER, .id = question->id, .asked = asked };

  memcpy(message.rule, question->rule, sizeof message.rule);
  ask->answered(ask->data, &message);
}

static void drop(struct ask *ask, size_t index)
{
  ask->count--;
  memmove(ask->questions + index, ask->questions + index + 1, (ask->count - index) * sizeof *ask->questions);
}

/* Keeps the rule for the project. Where that fails, it holds for this run at least. */
static enum decide_asked keep(struct ask *ask, const struct ask_question *question)
{
  struct err err = ERR_INIT;

  if (project_file_allow(ask->setup->project_file, question->rule, &err) == 0) {
    log_line(LOG_DETAIL, "%s is allowed in this project from now on (%s)", question->rule, ask->setup->project_file);
    return DECIDE_ASKED_PROJECT;
  }
  log_line(LOG_WARNING, "%s is allowed for this run only: %s; to keep it, add \"%s\" to network.allow of %s",
           question->rule, err.message, question->rule, ask->setup->project_file);
  return DECIDE_ASKED_RUN;
}

static void settle(struct ask *ask, size_t index, enum decide_asked asked)
{
  struct ask_question question = ask->questions[index];

  drop(ask, index);
  if (asked == DECIDE_ASKED_PROJECT)
    asked = keep(ask, &question);
  answer(ask, &question, asked);
}

static void refuse_all(struct ask *ask)
{
  while (ask->count)
    settle(ask, 0, DECIDE_ASKED_UNABLE);
}

void ask_close(struct ask *ask)
{
  ask->gone = true; /* the proxy's last words may be questions */
  ask_terminal_end(&ask->terminal, "the run has ended");
  refuse_all(ask);
  buf_free(&ask->line);
}

/* The descriptor. */

static int send_line(int fd, struct span line)
{
  ssize_t n = send(fd, line.ptr, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n < 0 && errno == ENOTSOCK) {
    struct pollfd poller = { .fd = fd, .events = POLLOUT };

    n = poll(&poller, 1, 0) > 0 ? write(fd, line.ptr, line.len) : 0;
  }
  return n == (ssize_t)line.len ? 0 : -EPIPE;
}

/* Nobody is there: what is asked from here on is refused at once. */
static void lose(struct ask *ask)
{
  if (!ask->gone)
    log_line(LOG_WARNING, "--ask: nobody answers on descriptor %d any more; from here on nothing is asked",
             ask->setup->fd);
  ask->gone = true;
}

static void show_line(struct ask *ask, struct ask_question *question)
{
  buf_autofree struct buf line = BUF_INIT(LIMITS_ASK_LINE_BYTES);

  buf_printf(&line, "{\"id\":%u,\"host\":", question->number);
  buf_append_json(&line, span_of(question->host.name));
  buf_printf(&line, ",\"port\":%u,\"rule\":", question->port);
  buf_append_json(&line, span_of(question->rule));
  buf_append_str(&line, ",\"reason\":");
  buf_append_json(&line, span_of(reason_word(question->reason)));
  buf_printf(&line, ",\"answers\":[\"once\",\"run\",\"project\",\"deny\"],\"timeoutMs\":%llu}\n",
             (unsigned long long)ask->setup->answer_ms);
  if (buf_error(&line) || send_line(ask->setup->fd, buf_span(&line)) < 0)
    lose(ask);
  question->shown = true;
  question->deadline_ns = clock_mono_ns() + ask->setup->answer_ms * MS;
}

static void tell_closed(struct ask *ask, const struct ask_question *question, const char *why)
{
  buf_autofree struct buf line = BUF_INIT(LIMITS_ASK_LINE_BYTES);

  buf_printf(&line, "{\"id\":%u,\"closed\":\"%s\"}\n", question->number, why);
  if (!ask->gone && (buf_error(&line) || send_line(ask->setup->fd, buf_span(&line)) < 0))
    lose(ask);
}

/* The question that stands on the terminal: the only one that is shown. */
static size_t shown_index(const struct ask *ask)
{
  size_t i = 0;

  while (i < ask->count && !ask->questions[i].shown)
    i++;
  return i;
}

/* Puts the next question on the terminal, if none stands there. What cannot be asked now may be asked another time. */
static void show_next(struct ask *ask)
{
  while (ask->count && shown_index(ask) == ask->count) {
    struct ask_question *question = &ask->questions[0];
    struct err err = ERR_INIT;

    if (ask_terminal_begin(&ask->terminal, &question->host, question->port, question->rule, ask->setup->answer_ms,
                           &err) == 0) {
      question->shown = true;
      question->deadline_ns = clock_mono_ns() + ask->setup->answer_ms * MS;
      return;
    }
    log_line(LOG_NOTICE, "--ask: %s; %s is refused for now", err.message, question->rule);
    settle(ask, 0, DECIDE_ASKED_UNABLE);
  }
}

static void show(struct ask *ask, struct ask_question *question)
{
  if (ask->setup->channel == ASK_TERMINAL)
    show_next(ask);
  else
    show_line(ask, question);
}

/* Ends the question on the terminal, and puts the next. */
static void settle_terminal(struct ask *ask, enum decide_asked asked, const char *why)
{
  size_t index = shown_index(ask);

  ask_terminal_end(&ask->terminal, why);
  if (index < ask->count)
    settle(ask, index, asked);
  show_next(ask);
}

void ask_interrupt(struct ask *ask)
{
  if (!ask->terminal.open)
    return;
  ask_terminal_end(&ask->terminal, "no answer");
  settle(ask, shown_index(ask), DECIDE_ASKED_DENY);
  refuse_all(ask);
}

void ask_end(struct ask *ask)
{
  if (ask->setup->channel == ASK_TERMINAL)
    ask->gone = true;
  ask_interrupt(ask);
}

void ask_continued(struct ask *ask)
{
  ask_terminal_again(&ask->terminal);
}

void ask_reaped(struct ask *ask, pid_t pid)
{
  if (freeze_reaped(&ask->terminal.freeze, pid))
    settle_terminal(ask, DECIDE_ASKED_UNABLE, "the command did not stand still");
}

static bool parse_answer(const char *word, enum decide_asked *ret_asked)
{
  static const enum decide_asked answers[] = { DECIDE_ASKED_ONCE, DECIDE_ASKED_RUN, DECIDE_ASKED_PROJECT,
                                               DECIDE_ASKED_DENY };

  for (size_t i = 0; i < MEM_COUNT(answers); i++) {
    if (strcmp(word, decide_asked_word(answers[i])) == 0) {
      *ret_asked = answers[i];
      return true;
    }
  }
  return false;
}

static void take_line(struct ask *ask, struct span line)
{
  doc_autofree struct doc *doc = NULL;
  struct err err = ERR_INIT;
  const struct doc *id = NULL;
  const struct doc *word = NULL;
  enum decide_asked asked;
  uint64_t number;

  if (doc_parse("--ask", line, &err, &doc) == 0 && doc->type == DOC_OBJECT) {
    id = doc_member(doc, "id");
    word = doc_member(doc, "answer");
  }
  if (!id || id->type != DOC_NUMBER || num_parse_u64(span_of(id->text), 0, UINT32_MAX, &number) < 0 || !word ||
      word->type != DOC_STRING || !parse_answer(word->text, &asked)) {
    log_line(LOG_WARNING, "--ask: a line on descriptor %d is no answer; write {\"id\":N,\"answer\":\"deny\"}",
             ask->setup->fd);
    return;
  }
  for (size_t i = 0; i < ask->count; i++) {
    if (ask->questions[i].number == number) {
      settle(ask, i, asked);
      return;
    }
  }
  log_line(LOG_DETAIL, "--ask: an answer to question %llu, which is not open", (unsigned long long)number);
}

static void read_terminal(struct ask *ask)
{
  enum decide_asked asked;
  const char *why;

  if (ask_terminal_read(&ask->terminal, &asked, &why))
    settle_terminal(ask, asked, why);
}

static void read_lines(struct ask *ask)
{
  char bytes[LIMITS_ASK_LINE_BYTES];
  ssize_t n = read(ask->setup->fd, bytes, sizeof bytes);
  struct span rest = { .ptr = bytes, .len = n > 0 ? (size_t)n : 0 };

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  while (rest.len) {
    size_t end = span_find(rest, '\n');

    buf_append(&ask->line, span_sub(rest, 0, end));
    if (end == rest.len)
      break;
    if (!buf_error(&ask->line))
      take_line(ask, buf_span(&ask->line));
    buf_free(&ask->line);
    ask->line = (struct buf)BUF_INIT(LIMITS_ASK_LINE_BYTES);
    rest = span_sub(rest, end + 1, rest.len);
  }
  if (n <= 0 || buf_error(&ask->line)) {
    lose(ask);
    refuse_all(ask);
  }
}

void ask_read(struct ask *ask)
{
  if (ask->setup->channel == ASK_TERMINAL)
    read_terminal(ask);
  else
    read_lines(ask);
}

/* Questions. */

/* Whether there is room for one more question in this time. */
static bool spend(struct ask *ask)
{
  const uint64_t every = LIMITS_ASK_EVERY_MS * MS;
  const uint64_t now = clock_mono_ns();
  const uint64_t from = ask->paid_ns > now ? ask->paid_ns : now;

  if (from - now > (LIMITS_ASK_BURST - 1) * every)
    return false;
  ask->paid_ns = from + every;
  return true;
}

/* Fills the question from a message, and judges anew whether it may be asked: the proxy has read what comes from
 * inside. */
static bool check(const struct control_ask *message, struct ask_question *question)
{
  struct verdict verdict = { .reason = (enum reason)message->reason };
  buf_autofree struct buf rule = BUF_INIT(sizeof question->rule);
  struct span host = { .ptr = message->host, .len = strnlen(message->host, sizeof message->host) };

  *question = (struct ask_question){ .id = message->id, .port = (uint16_t)message->port, .reason = verdict.reason };
  if (message->port == 0 || message->port > UINT16_MAX || host_parse(host, NULL, &question->host) < 0 ||
      !decide_may_ask(&verdict, &question->host))
    return false;
  decide_rule(&question->host, question->port, &rule);
  if (buf_error(&rule) || rule.len >= sizeof question->rule)
    return false;
  memcpy(question->rule, rule.data, rule.len + 1);
  return true;
}

void ask_take(struct ask *ask, const struct control_ask *message)
{
  struct ask_question question;

  if (!check(message, &question)) {
    answer(ask, &(struct ask_question){ .id = message->id }, DECIDE_ASKED_DENY);
    return;
  }
  if (ask->setup->channel == ASK_NOBODY || ask->gone) {
    answer(ask, &question, DECIDE_ASKED_UNABLE);
    return;
  }
  if (ask->count == LIMITS_ASK_PENDING || !spend(ask)) {
    answer(ask, &question, DECIDE_ASKED_LIMIT);
    return;
  }
  question.number = ++ask->last_number;
  ask->questions[ask->count++] = question;
  show(ask, &ask->questions[ask->count - 1]);
  if (ask->gone)
    refuse_all(ask);
}

void ask_forget(struct ask *ask)
{
  ask_terminal_end(&ask->terminal, "the connection is gone");
  for (size_t i = 0; i < ask->count && ask->setup->channel == ASK_FD; i++)
    tell_closed(ask, &ask->questions[i], "gone");
  ask->count = 0;
}

int ask_poll_fd(const struct ask *ask)
{
  bool waits = ask->setup->channel == ASK_FD ? !ask->gone : ask->terminal.open;

  return waits ? ask->setup->fd : -1;
}

int ask_wait_ms(const struct ask *ask)
{
  uint64_t now = clock_mono_ns();
  uint64_t first = UINT64_MAX;

  for (size_t i = 0; i < ask->count; i++) {
    if (ask->questions[i].shown && ask->questions[i].deadline_ns < first)
      first = ask->questions[i].deadline_ns;
  }
  if (first == UINT64_MAX)
    return -1;
  first = first > now ? (first - now) / MS + 1 : 0;
  return first > 60000 ? 60000 : (int)first;
}

void ask_expire(struct ask *ask)
{
  uint64_t now = clock_mono_ns();

  for (size_t i = 0; i < ask->count;) {
    struct ask_question *question = &ask->questions[i];

    if (!question->shown || question->deadline_ns > now) {
      i++;
      continue;
    }
    if (ask->setup->channel == ASK_TERMINAL) {
      settle_terminal(ask, DECIDE_ASKED_DEADLINE, "no answer in time");
      return;
    }
    tell_closed(ask, question, "deadline");
    settle(ask, i, DECIDE_ASKED_DEADLINE);
  }
}
