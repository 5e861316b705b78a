/* Theory of operation
 *
 * The audit may be a descriptor of the caller's: a pipe, whose reader may stand still. A write that blocks would stop
 * the proxy for everybody. The open file is shared with the caller, so O_NONBLOCK is not ours to set; instead, a write
 * happens only where epoll(7) says that there is room, and of PIPE_BUF bytes at most, which a pipe that is not full
 * takes (pipe(7)). What has no room is queued, up to LIMITS_AUDIT_QUEUE_BYTES, and written as the reader reads. A line
 * that finds no room there either, and what is left at the end of the run, counts as unread.
 *
 * The epoll instance holds nothing but the audit, and is what the loop watches: libuv makes what it watches
 * non-blocking. A file cannot be watched: it always takes a line, whole.
 */
#include "proxy/audit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every byte of a text may take six in JSON. */
#define PATH_BYTES_MAX 1024
#define LINE_BYTES_MAX (32 * 1024)

struct audit {
  int fd;
  const char *run_id;
  uint64_t max; /* bytes of this run */
  uint64_t written;
  uint64_t missing; /* lines that there was no room for */
  uint64_t unread; /* lines that a reader left no room for */
  int room; /* an epoll instance: readable while fd has room; -1: it always has */
  struct loop_io *io; /* of room */
  struct buf queue;
  size_t sent; /* bytes of it that are written */
  bool full;
  int error;
  bool told[REASON_COUNT]; /* limits that have a line */
};

static void on_room(void *data, unsigned events);

/* 0 also where fd cannot be watched. */
static int watch(struct audit *audit, struct loop *loop)
{
  struct epoll_event event = { .events = EPOLLOUT };

  audit->room = epoll_create1(EPOLL_CLOEXEC);
  if (audit->room < 0)
    return -errno;
  if (epoll_ctl(audit->room, EPOLL_CTL_ADD, audit->fd, &event) == 0)
    return loop_io_new(loop, audit->room, on_room, audit, &audit->io);
  fd_close(&audit->room);
  return 0;
}

int audit_new(struct loop *loop, int fd, const char *run_id, struct audit **ret_audit)
{
  struct audit *audit = mem_calloc(1, sizeof *audit);
  struct stat st;
  int r;

  if (!audit)
    return -ENOMEM;
  audit->fd = fd;
  audit->run_id = run_id;
  audit->queue = (struct buf)BUF_INIT(2 * LIMITS_AUDIT_QUEUE_BYTES); /* half of it may be written already */
  /* A file holds other runs' lines, before or beside ours: none of them may fill it. */
  audit->max = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? LIMITS_AUDIT_RUN_BYTES : LIMITS_AUDIT_BYTES;
  r = watch(audit, loop);
  if (r < 0) {
    audit_free(audit);
    return r;
  }
  *ret_audit = audit;
  return 0;
}

void audit_free(struct audit *audit)
{
  if (!audit)
    return;
  loop_io_free(&audit->io);
  fd_close(&audit->room);
  buf_free(&audit->queue);
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

uint64_t audit_unread(const struct audit *audit)
{
  return audit->unread;
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

/* Waits for so many milliseconds at most. */
static bool has_room(const struct audit *audit, int patience_ms)
{
  struct epoll_event event;

  return audit->room < 0 || epoll_wait(audit->room, &event, 1, patience_ms) == 1;
}

/* Writes what there is room for, a line or a part of one at a time. The count; all of it after an error, which is kept:
 * there is nobody to write to. */
static size_t write_some(struct audit *audit, struct span bytes)
{
  size_t done = 0;

  while (done < bytes.len && has_room(audit, 0)) {
    struct span rest = span_sub(bytes, done, bytes.len);
    struct span piece = span_sub(rest, 0, span_find(rest, '\n') + 1);
    ssize_t n = write(audit->fd, piece.ptr, audit->room >= 0 && piece.len > PIPE_BUF ? PIPE_BUF : piece.len);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN && audit->room >= 0)
      return done;
    if (n < 0) {
      if (!audit->error)
        audit->error = -errno;
      return bytes.len;
    }
    done += (size_t)n;
  }
  return done;
}

static size_t queued(const struct audit *audit)
{
  return audit->queue.len - audit->sent;
}

static void flush_queue(struct audit *audit)
{
  audit->sent += write_some(audit, span_sub(buf_span(&audit->queue), audit->sent, audit->queue.len));
  /* A little at a time would move all the rest each time. */
  if (queued(audit) == 0 || audit->sent > audit->queue.len / 2) {
    buf_consume(&audit->queue, audit->sent);
    audit->sent = 0;
  }
  if (audit->queue.len == 0)
    buf_free(&audit->queue);
}

static void watch_room(struct audit *audit)
{
  if (audit->io)
    loop_io_watch(audit->io, queued(audit) ? LOOP_READ : 0);
}

static void on_room(void *data, unsigned events)
{
  struct audit *audit = data;

  (void)events;
  flush_queue(audit);
  watch_room(audit);
}

static void write_line(struct audit *audit, const struct buf *line)
{
  size_t done;

  if (buf_error(line)) {
    if (!audit->error)
      audit->error = buf_error(line);
    return;
  }
  audit->written += line->len;
  flush_queue(audit);
  done = queued(audit) ? 0 : write_some(audit, buf_span(line));
  if (queued(audit) + line->len <= LIMITS_AUDIT_QUEUE_BYTES)
    buf_append(&audit->queue, span_sub(buf_span(line), done, line->len));
  else
    audit->unread++;
  if (buf_error(&audit->queue)) {
    audit->queue.error = 0;
    audit->unread++;
  }
  watch_room(audit);
}

void audit_end(struct audit *audit, unsigned patience_ms)
{
  uint64_t end_ms = clock_mono_ns() / 1000000 + patience_ms;
  struct span rest;

  for (uint64_t now_ms = 0; queued(audit) && now_ms < end_ms; now_ms = clock_mono_ns() / 1000000) {
    (void)has_room(audit, now_ms ? (int)(end_ms - now_ms) : 0);
    flush_queue(audit);
  }
  rest = span_sub(buf_span(&audit->queue), audit->sent, audit->queue.len);
  for (size_t i = 0; i < rest.len; i++)
    audit->unread += rest.ptr[i] == '\n';
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
  append_text(&line, "placeholder_in_body", record->in_body);
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
