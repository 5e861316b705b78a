/* sbx-proxy(8) lists exactly the reason words that exist, and every field of the audit. */
#include "base/fd.h"
#include "policy/decide.h"
#include "unit/unit.h"

#include <fcntl.h>

static void read_page(struct buf *page)
{
  assert_int_equal(fd_read_file(AT_FDCWD, MAN_DIR "/sbx-proxy.8", page), 0);
}

/* The lines from ".Sh NAME" to the next section. */
static struct span section(const struct buf *page, const char *name)
{
  const char *start = strstr(page->data, name);
  const char *end;

  assert_non_null(start);
  end = strstr(start + 1, "\n.Sh ");
  return (struct span){ start, end ? (size_t)(end - start) : strlen(start) };
}

/* How often the section has an item for word; with word NULL, how many items it has. */
static size_t count_items(struct span text, const char *word)
{
  struct span line;
  size_t count = 0;

  while (span_split(&text, '\n', &line)) {
    if (!span_starts_with(line, SPAN(".It Cm ")))
      continue;
    if (!word || span_equal_str(span_sub(line, 7, line.len), word))
      count++;
  }
  return count;
}

static void test_reasons(void **state)
{
  buf_autofree struct buf page = BUF_INIT(1024 * 1024);
  struct span reasons;

  (void)state;
  read_page(&page);
  reasons = section(&page, ".Sh REASONS");
  for (int reason = 0; reason < REASON_COUNT; reason++)
    if (count_items(reasons, reason_word((enum reason)reason)) != 1)
      fail_msg("sbx-proxy(8) has no item, or two, for %s", reason_word((enum reason)reason));
  assert_int_equal(count_items(reasons, NULL), REASON_COUNT);
}

static void test_audit_fields(void **state)
{
  static const char *const fields[] = { "time",     "run",  "event",  "verdict", "via",
                                        "host",     "port", "ip",     "parent",  "method",
                                        "path",     "rule", "reason", "asked",   "credential",
                                        "scrubbed", "up",   "down",   "ms",      "placeholder_in_body" };
  buf_autofree struct buf page = BUF_INIT(1024 * 1024);
  struct span audit;

  (void)state;
  read_page(&page);
  audit = section(&page, ".Sh AUDIT");
  for (size_t i = 0; i < MEM_COUNT(fields); i++)
    assert_int_equal(count_items(audit, fields[i]), 1);
  assert_int_equal(count_items(audit, NULL), MEM_COUNT(fields));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_reasons), cmocka_unit_test(test_audit_fields) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
