/* Theory of operation
 *
 * One question is about one rule, the one that would let the target pass; whoever needs the same rule waits with the
 * first. sbx asks the user and answers in bounded time, so a waiting connection needs no deadline of its own.
 *
 *   state      a target of its comes              the answer comes
 *   NEW        asked, if not too many are         -
 *   PENDING    waits                              once: those that wait pass, and NEW again
 *                                                 run, project: the rule joins the policy, and DONE
 *                                                 deny, deadline: REFUSED
 *                                                 limit, unasked: those that wait are refused, and NEW again
 *   REFUSED    refused                            -
 *   DONE       the policy allows it, so this is not asked
 *
 * So a flood of connections makes one question, and a refusal holds: the command cannot ask again until the user gives
 * in. What it can do is to name many hosts; sbx limits how many are asked about in a time, and LIMITS_ASK_QUESTIONS how
 * many in all.
 *
 * The judgement stays decide's: an answer is a rule, parsed as every rule is. Verdicts point to rules, so every policy
 * that was ever in force is kept to the end.
 */
#include "proxy/ask.h"

#include "base/log.h"
#include "policy/limits.h"
#include "policy/rule.h"
#include "policy/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define RULE_BYTES sizeof(((struct control_answer *)NULL)->rule)

enum question_state {
  QUESTION_NEW,
  QUESTION_PENDING,
  QUESTION_REFUSED,
  QUESTION_DONE,
};

struct question {
  struct question *next;
  enum question_state state;
  enum decide_asked refused; /* QUESTION_REFUSED: how */
  uint32_t id; /* QUESTION_PENDING */
  char text[RULE_BYTES]; /* the rule */
  struct policy_rule rule; /* the same, for those that are allowed once */
  bool parsed;
};

struct ask_waiter {
  struct ask_waiter *next;
  struct ask *ask;
  struct question *question;
  uint32_t id; /* of the answer that it waits for */
  struct host host;
  uint16_t port;
  struct verdict verdict; /* the denial */
  void (*done)(void *data, const struct verdict *verdict);
  void *data;
  struct ask_waiter **slot;
};

/* A policy that an answer has made. */
struct grown {
  struct grown *next;
  struct policy *policy;
};

struct ask {
  struct proxy *proxy;
  bool on;
  uint32_t last_id;
  size_t count;
  size_t pending;
  struct question *questions;
  struct ask_waiter *waiters;
  struct grown *grown;
};

struct ask *ask_new(struct proxy *proxy, bool on)
{
  struct ask *ask = mem_calloc(1, sizeof *ask);

  if (ask) {
    ask->proxy = proxy;
    ask->on = on;
  }
  return ask;
}

void ask_free(struct ask *ask)
{
  while (ask && ask->questions) {
    struct question *question = ask->questions;

    ask->questions = question->next;
    if (question->parsed)
      rule_free(&question->rule);
    free(question);
  }
  while (ask && ask->grown) {
    struct grown *grown = ask->grown;

    ask->grown = grown->next;
    policy_free(grown->policy);
    free(grown);
  }
  free(ask);
}

/* Asking. */

/* The rule's text; false where it does not fit, which no target that parses can bring about. */
static bool rule_text(const struct host *host, uint16_t port, char *ret_text)
{
  buf_autofree struct buf text = BUF_INIT(RULE_BYTES);

  decide_rule(host, port, &text);
  if (buf_error(&text) || text.len >= RULE_BYTES)
    return false;
  memcpy(ret_text, text.data, text.len);
  ret_text[text.len] = '\0';
  return true;
}

static struct question *find(const struct ask *ask, const char *text)
{
  for (struct question *at = ask->questions; at; at = at->next) {
    if (strcmp(at->text, text) == 0)
      return at;
  }
  return NULL;
}

static struct question *add(struct ask *ask, const char *text)
{
  struct question *question = ask->count < LIMITS_ASK_QUESTIONS ? mem_calloc(1, sizeof *question) : NULL;

  if (!question)
    return NULL;
  memcpy(question->text, text, strlen(text) + 1);
  question->next = ask->questions;
  ask->questions = question;
  ask->count++;
  return question;
}

/* A socket that is full of notices means that sbx is stopped: nobody would be asked. */
static bool send_question(struct ask *ask, struct question *question, const struct host *host, uint16_t port,
                          const struct verdict *verdict)
{
  struct control_ask message = { .type = CONTROL_ASK, .id = ask->last_id + 1, .reason = verdict->reason, .port = port };

  memcpy(message.host, host->name, strlen(host->name));
  if (ask->pending >= LIMITS_ASK_PENDING ||
      send(ask->proxy->control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return false;
  question->id = ++ask->last_id;
  question->state = QUESTION_PENDING;
  ask->pending++;
  return true;
}

bool ask_would(const struct ask *ask, const struct host *host, uint16_t port, const struct verdict *verdict)
{
  char text[RULE_BYTES];
  const struct question *question;

  if (!ask->on || !decide_may_ask(verdict, host) || !rule_text(host, port, text))
    return false;
  question = find(ask, text);
  return question ? question->state != QUESTION_REFUSED : ask->count < LIMITS_ASK_QUESTIONS;
}

bool ask_start(struct ask *ask, const struct host *host, uint16_t port, struct verdict *verdict,
               void (*done)(void *data, const struct verdict *verdict), void *data, struct ask_waiter **slot)
{
  char text[RULE_BYTES];
  struct ask_waiter *waiter;
  struct question *question;

  if (!ask->on || !decide_may_ask(verdict, host) || !rule_text(host, port, text))
    return false;
  question = find(ask, text);
  question = question ? question : add(ask, text);
  waiter = question && question->state != QUESTION_REFUSED ? mem_calloc(1, sizeof *waiter) : NULL;
  if (!waiter || (question->state != QUESTION_PENDING && !send_question(ask, question, host, port, verdict))) {
    verdict->asked = question && question->state == QUESTION_REFUSED ? question->refused : DECIDE_ASKED_LIMIT;
    free(waiter);
    return false;
  }
  *waiter = (struct ask_waiter){ .next = ask->waiters,
                                 .ask = ask,
                                 .question = question,
                                 .id = question->id,
                                 .host = *host,
                                 .port = port,
                                 .verdict = *verdict,
                                 .done = done,
                                 .data = data,
                                 .slot = slot };
  ask->waiters = waiter;
  *slot = waiter;
  return true;
}

void ask_cancel(struct ask_waiter **slot)
{
  struct ask_waiter *waiter = *slot;

  if (!waiter)
    return;
  for (struct ask_waiter **at = &waiter->ask->waiters; *at; at = &(*at)->next) {
    if (*at == waiter) {
      *at = waiter->next;
      break;
    }
  }
  *slot = NULL;
  free(waiter);
}

/* Answers. */

/* The rule joins the policy. */
static int grow(struct ask *ask, const char *rule, struct err *err)
{
  struct grown *grown = mem_calloc(1, sizeof *grown);
  int r = grown ? policy_extend(ask->proxy->policy, rule, "--ask", err, &grown->policy)
                : err_set(err, ENOMEM, "out of memory");

  if (r < 0) {
    free(grown);
    return r;
  }
  grown->next = ask->grown;
  ask->grown = grown;
  ask->proxy->policy = grown->policy;
  return 0;
}

static int take(struct ask *ask, struct question *question, const struct control_answer *answer, struct err *err)
{
  enum decide_asked asked = (enum decide_asked)answer->asked;
  int r = 0;

  question->state = QUESTION_NEW;
  if (asked == DECIDE_ASKED_RUN || asked == DECIDE_ASKED_PROJECT) {
    r = grow(ask, answer->rule, err);
    if (r == 0)
      question->state = QUESTION_DONE;
  } else if (asked == DECIDE_ASKED_ONCE && !question->parsed) {
    r = rule_parse(span_of(answer->rule), RULE_ALLOW, err, &question->rule);
    question->parsed = r == 0;
  } else if (asked == DECIDE_ASKED_DENY || asked == DECIDE_ASKED_DEADLINE) {
    question->state = QUESTION_REFUSED;
    question->refused = asked;
  }
  return r;
}

/* What the answer makes of one that waits. */
static struct verdict judge(const struct ask *ask, const struct ask_waiter *waiter, enum decide_asked asked)
{
  const struct question *question = waiter->question;
  struct verdict verdict = waiter->verdict;

  if (question->state == QUESTION_DONE)
    verdict = decide_target(ask->proxy->policy, &waiter->host, waiter->port);
  else if (asked == DECIDE_ASKED_ONCE && rule_covers_host(&question->rule, &waiter->host) &&
           rule_covers_port(&question->rule, waiter->port))
    verdict = decide_once(ask->proxy->policy, &question->rule, &waiter->host, waiter->port);
  verdict.asked = asked;
  return verdict;
}

/* Takes the first that waits for this answer off the list. They are told one by one, since whoever is told may end
 * others' waiting, or begin to wait for the next answer to the same question. */
static struct ask_waiter *next_of(struct ask *ask, uint32_t id)
{
  for (struct ask_waiter **at = &ask->waiters; *at; at = &(*at)->next) {
    struct ask_waiter *waiter = *at;

    if (waiter->id == id) {
      *at = waiter->next;
      *waiter->slot = NULL;
      return waiter;
    }
  }
  return NULL;
}

static void tell(struct ask *ask, uint32_t id, enum decide_asked asked)
{
  struct ask_waiter *waiter;

  while ((waiter = next_of(ask, id))) {
    struct verdict verdict = judge(ask, waiter, asked);

    waiter->done(waiter->data, &verdict);
    free(waiter);
  }
}

void ask_answer(struct ask *ask, const struct control_answer *answer)
{
  struct question *question = ask->questions;
  enum decide_asked asked = (enum decide_asked)answer->asked;
  struct err err = ERR_INIT;

  while (question && (question->state != QUESTION_PENDING || question->id != answer->id))
    question = question->next;
  if (!question || answer->asked >= DECIDE_ASKED_COUNT || !memchr(answer->rule, '\0', sizeof answer->rule))
    return; /* sbx answers only what was asked */
  ask->pending--;
  if (take(ask, question, answer, &err) < 0) {
    log_line(LOG_WARNING, "--ask: %s", err.message);
    asked = DECIDE_ASKED_LIMIT;
  }
  tell(ask, answer->id, asked);
}
