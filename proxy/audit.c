#include "proxy/audit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Every byte of a text may take six in JSON. */
#define PATH_BYTES_MAX 1024
#define LINE_BYTES_MAX (32 * 1024)

struct audit {
  int fd;
  const char *run_id;
  uint64_t max; /* bytes of this run */
  uint64_t written;
  uint64_t missing; /* lines that there was no room for */
  bool full;
  int error;
  bool told[REASON_COUNT]; /* limits that have a line */
};

int audit_new(int fd, const char *run_id, struct audit **ret_audit)
{
  struct audit *audit = mem_calloc(1, sizeof *audit);
  struct stat st;

  if (!audit)
    return -ENOMEM;
  audit->fd = fd;
  audit->run_id = run_id;
  /* A file holds other runs' lines, before or beside ours: none of them may fill it. */
  audit->max = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? LIMITS_AUDIT_RUN_BYTES : LIMITS_AUDIT_BYTES;
  *ret_audit = audit;
  return 0;
}

void audit_free(struct audit *audit)
{
  free(audit);
}

int audit_error(const struct audit *audit)
{
  return audit->error;
}

uint64_t audit_missing(const struct audit *audit)
{
  return audit->missing;
}

static void append_key(struct buf *out, const char *key)
{
  buf_printf(out, ",\"%s\":", key);
}

static void append_text(struct buf *out, const char *key, struct span text)
{
  if (!text.len)
    return;
  append_key(out, key);
  buf_append_json(out, text);
}

static void append_number(struct buf *out, const char *key, uint64_t number)
{
  append_key(out, key);
  buf_printf(out, "%" PRIu64, number);
}

static void append_start(const struct audit *audit, const char *event, struct buf *out)
{
  char time[CLOCK_TEXT_MAX];

  clock_format(clock_real_ms(), time);
  buf_printf(out, "{\"time\":\"%s\",\"run\":", time);
  buf_append_json(out, span_of(audit->run_id));
  append_text(out, "event", span_of(event));
}

static const char *verdict_word(enum audit_verdict verdict)
{
  if (verdict == AUDIT_ALLOW)
    return "allow";
  return verdict == AUDIT_DENY ? "deny" : "error";
}

static void append_target(const struct audit_record *record, struct buf *out)
{
  buf_autofree struct buf ip = BUF_INIT(64);
  buf_autofree struct buf parent = BUF_INIT(512);

  append_text(out, "host", record->host);
  if (record->port)
    append_number(out, "port", record->port);
  if (record->ip) {
    addr_print(record->ip, &ip);
    append_text(out, "ip", buf_span(&ip));
  }
  if (record->upstream) {
    upstream_print(record->upstream, &parent);
    append_text(out, "parent", buf_span(&parent));
  }
}

static void write_line(struct audit *audit, const struct buf *line)
{
  int r = buf_error(line);

  if (r == 0)
    r = fd_write_all(audit->fd, buf_span(line));
  if (r < 0 && !audit->error)
    audit->error = r;
  audit->written += line->len;
}

/* A limit that stands in the audit already, reached once more by what has gone nowhere: a flood would fill the file. */
static bool is_repeated(struct audit *audit, const struct audit_record *record)
{
  bool told;

  if (!reason_is_limit(record->reason) || record->ip || record->up || record->down)
    return false;
  told = audit->told[record->reason];
  audit->told[record->reason] = true;
  return told;
}

void audit_write(struct audit *audit, const struct audit_record *record)
{
  buf_autofree struct buf line = BUF_INIT(LINE_BYTES_MAX);

  if (is_repeated(audit, record))
    return;
  if (audit->full) {
    audit->missing++;
    return;
  }
  append_start(audit, record->event, &line);
  append_text(&line, "verdict", span_of(verdict_word(record->verdict)));
  append_text(&line, "via", span_of(record->via));
  append_target(record, &line);
  append_text(&line, "method", span_sub(record->method, 0, PATH_BYTES_MAX));
  append_text(&line, "path", span_sub(record->path, 0, PATH_BYTES_MAX));
  append_text(&line, "rule", span_of(record->rule ? record->rule->text : NULL));
  append_text(&line, "reason", span_of(reason_word(record->reason)));
  append_text(&line, "asked", span_of(decide_asked_word(record->asked)));
  append_text(&line, "credential", record->credential);
  if (record->scrubbed)
    append_number(&line, "scrubbed", record->scrubbed);
  append_number(&line, "up", record->up);
  append_number(&line, "down", record->down);
  append_number(&line, "ms", record->ms);
  buf_append_str(&line, "}\n");
  if (audit->written + line.len > audit->max) {
    audit->full = true;
    audit->missing = 1;
    buf_free(&line);
    append_start(audit, "audit-full", &line);
    buf_append_str(&line, "}\n");
  }
  write_line(audit, &line);
}
