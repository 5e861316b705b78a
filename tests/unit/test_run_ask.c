/* How many questions are put, and what those hear that are not. The clock is the test's own. */
#include "base/clock.h"
#include "base/mem.h"
#include "run/ask.h"
#include "unit/unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static uint64_t now_ns;

uint64_t clock_mono_ns(void)
{
  return now_ns;
}

struct answers {
  size_t count[DECIDE_ASKED_COUNT];
  char rule[sizeof(((struct control_answer *)NULL)->rule)]; /* of the last */
};

static void take_answer(void *data, const struct control_answer *answer)
{
  struct answers *answers = data;

  assert_true(answer->asked < DECIDE_ASKED_COUNT);
  answers->count[answer->asked]++;
  memcpy(answers->rule, answer->rule, sizeof answers->rule);
}

/* One question; whether it was put, which its answer, a no, tells. */
static bool put(struct ask *ask, int ide, struct answers *answers)
{
  static uint32_t id;
  struct control_ask message = { .type = CONTROL_ASK, .id = ++id, .reason = REASON_NOT_ALLOWED, .port = 443 };
  size_t before = ask->count;
  char line[4096];
  int len;

  snprintf(message.host, sizeof message.host, "n%u.test", id);
  ask_take(ask, &message);
  if (ask->count == before)
    return false;
  assert_true(read(ide, line, sizeof line) > 0);
  len = snprintf(line, sizeof line, "{\"id\":%u,\"answer\":\"deny\"}\n", ask->last_number);
  assert_int_equal(write(ide, line, (size_t)len), len);
  ask_read(ask);
  assert_int_equal(ask->count, before);
  assert_true(answers->count[DECIDE_ASKED_DENY] > 0);
  return true;
}

static void start(struct ask *ask, struct ask_setup *setup, struct answers *answers, int ends[2])
{
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  *setup = (struct ask_setup){ .channel = ASK_FD, .fd = ends[0], .answer_ms = 1000 };
  *answers = (struct answers){ .rule = "" };
  ask_open(ask, setup, -1, take_answer, answers);
}

static void stop(struct ask *ask, int ends[2])
{
  ask_close(ask);
  close(ends[0]);
  close(ends[1]);
}

/* Calls that come faster than the budget's unit of time lose none of it. */
static void test_no_time_is_lost(void **state)
{
  static const uint64_t steps_us[] = { 400, 999, 1000, 1001, 70000, 5000000, 5000001 };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(steps_us); i++) {
    const uint64_t step_ns = steps_us[i] * 1000;
    const uint64_t length_ns = 3 * LIMITS_ASK_EVERY_MS * MS;
    struct ask ask;
    struct ask_setup setup;
    struct answers answers;
    size_t asked = 0;
    size_t calls = 0;
    int ends[2];

    start(&ask, &setup, &answers, ends);
    for (uint64_t at = 0; at < length_ns + step_ns; at += step_ns, calls++) {
      asked += put(&ask, ends[1], &answers);
      now_ns += step_ns;
    }
    /* At once, and one in each time; fewer where there are no more calls. */
    if (asked != (calls < 3 + LIMITS_ASK_BURST ? calls : 3 + LIMITS_ASK_BURST))
      fail_msg("%llu us: %zu questions", (unsigned long long)steps_us[i], asked);
    stop(&ask, ends);
  }
}

static void test_the_budget_has_a_ceiling(void **state)
{
  struct ask ask;
  struct ask_setup setup;
  struct answers answers;
  int ends[2];

  (void)state;
  start(&ask, &setup, &answers, ends);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < LIMITS_ASK_BURST; i++)
      assert_true(put(&ask, ends[1], &answers));
    assert_false(put(&ask, ends[1], &answers));
    assert_int_equal(answers.count[DECIDE_ASKED_LIMIT], round + 1);
    now_ns += UINT64_MAX / 4; /* a machine that slept */
  }
  stop(&ask, ends);
}

static void test_who_is_not_asked_is_told_why(void **state)
{
  struct control_ask message = { .type = CONTROL_ASK, .reason = REASON_NOT_ALLOWED, .port = 443, .host = "a.test" };
  struct ask ask;
  struct ask_setup setup;
  struct answers answers;
  int ends[2];

  (void)state;
  now_ns = 0;
  start(&ask, &setup, &answers, ends);
  for (uint32_t i = 0; i < LIMITS_ASK_PENDING + 5; i++) {
    message.id = i;
    ask_take(&ask, &message);
    now_ns += LIMITS_ASK_EVERY_MS * MS / 10 * 11;
  }
  assert_int_equal(ask.count, LIMITS_ASK_PENDING);
  assert_int_equal(answers.count[DECIDE_ASKED_LIMIT], 5);
  assert_string_equal(answers.rule, "a.test");
  close(ends[1]);
  ask_read(&ask); /* nobody is there any more: what stood is not the user's no */
  assert_int_equal(ask.count, 0);
  assert_int_equal(answers.count[DECIDE_ASKED_UNABLE], LIMITS_ASK_PENDING);
  ask_take(&ask, &message);
  assert_int_equal(answers.count[DECIDE_ASKED_UNABLE], LIMITS_ASK_PENDING + 1);
  message.reason = REASON_DENY_RULE; /* is not for the user to decide */
  ask_take(&ask, &message);
  assert_int_equal(answers.count[DECIDE_ASKED_DENY], 1);
  ends[1] = -1;
  stop(&ask, ends);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_time_is_lost),
                                      cmocka_unit_test(test_the_budget_has_a_ceiling),
                                      cmocka_unit_test(test_who_is_not_asked_is_told_why) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
