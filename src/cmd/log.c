/* log: the audit, for a person. */
#include "config.h"

#include "cmd/cmd.h"
#include "cmd/context.h"

#include "base/fd.h"
#include "base/num.h"
#include "policy/doc.h"
#include "policy/limits.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOG_READ_BYTES (64 * 1024)
#define LOG_LINE_BYTES (1024 * 1024) /* more than any line of the audit has */
#define LOG_FOLLOW_MS 200
#define LOG_TAIL 10 /* lines that -f begins with */

struct reader {
  const struct opts *opts;
  int (*each)(struct reader *reader, struct span text); /* what is done with a line. 0 or -errno */
  const char *run; /* NULL: all */
  size_t lines; /* that each has taken */
  struct buf held; /* the beginning of a line */
  off_t at; /* where the line begins that is held */
  off_t read; /* how far the file has been read */
  off_t begins[LOG_TAIL]; /* survey(): where the last lines begin, the next one's at lines % LOG_TAIL */
  char *last; /* survey(): the run of the last line */
};

static struct span member(const struct doc *line, const char *name)
{
  const struct doc *value = doc_member(line, name);

  return value && value->text ? span_of(value->text) : SPAN("");
}

/* One line: time, run, verdict, what, where, why. Everything in it may come from inside. */
static void format(const struct doc *line, struct buf *out)
{
  static const char *const columns[] = { "time", "run", "verdict", "event", "method" };
  struct span path = member(line, "path");

  for (size_t i = 0; i < MEM_COUNT(columns); i++) {
    struct span value = member(line, columns[i]);

    if (!value.len)
      continue;
    buf_append_escaped(out, value);
    buf_append_byte(out, ' ');
  }
  if (span_equal_str(member(line, "event"), "audit-full")) {
    buf_append_str(out, "(nothing more of this run is recorded: it has used up its room)\n");
    return;
  }
  /* A port of the sandbox's own loopback, not of the host's. */
  if (span_equal_str(member(line, "via"), "publish"))
    buf_append_str(out, "published ");
  buf_append_escaped(out, member(line, "host"));
  if (member(line, "port").len) {
    buf_append_byte(out, ':');
    buf_append_escaped(out, member(line, "port"));
  }
  if (path.len) {
    buf_append_byte(out, ' ');
    buf_append_escaped(out, path);
  }
  buf_append_str(out, " (");
  buf_append_escaped(out, member(line, "reason"));
  if (member(line, "rule").len) {
    buf_append_str(out, " by ");
    buf_append_escaped(out, member(line, "rule"));
  }
  buf_append_str(out, ")\n");
}

/* Prints one line of the audit where it belongs to the run. -errno of standard output. */
static int show(struct reader *reader, struct span text)
{
  buf_autofree struct buf out = BUF_INIT(8 * LOG_LINE_BYTES);
  doc_autofree struct doc *line = NULL;
  struct err err = ERR_INIT;

  if (!text.len)
    return 0;
  if (doc_parse("audit", text, &err, &line) < 0 || line->type != DOC_OBJECT)
    return 0; /* cut off by a full disk, or not ours */
  if (reader->run && !span_equal_str(member(line, "run"), reader->run))
    return 0;
  if (reader->opts->json) {
    buf_append(&out, text);
    buf_append_byte(&out, '\n');
  } else {
    format(line, &out);
  }
  reader->lines++;
  return buf_error(&out) ? buf_error(&out) : fd_write_all(STDOUT_FILENO, buf_span(&out));
}

/* Notes where the line is, and whose. */
static int survey(struct reader *reader, struct span text)
{
  doc_autofree struct doc *line = NULL;
  struct err err = ERR_INIT;
  struct span run;

  if (doc_parse("audit", text, &err, &line) < 0 || line->type != DOC_OBJECT)
    return 0;
  reader->begins[reader->lines++ % LOG_TAIL] = reader->at;
  run = member(line, "run");
  if (!run.len || (reader->last && span_equal_str(run, reader->last)))
    return 0;
  free(reader->last);
  reader->last = mem_strndup(run.ptr, run.len);
  return reader->last ? 0 : -ENOMEM;
}

static int take(struct reader *reader, struct span bytes)
{
  struct span part;

  while (bytes.len) {
    size_t end = span_find(bytes, '\n');
    int r;

    part = span_sub(bytes, 0, end);
    buf_append(&reader->held, part);
    if (buf_error(&reader->held)) {
      buf_free(&reader->held); /* no line of ours is that long */
      reader->held.error = 0;
    }
    if (end == bytes.len) {
      reader->read += (off_t)end;
      return 0;
    }
    r = reader->each(reader, buf_span(&reader->held));
    reader->at = reader->read + (off_t)(end + 1);
    buf_free(&reader->held);
    if (r < 0)
      return r;
    reader->read = reader->at;
    bytes = span_sub(bytes, end + 1, bytes.len);
  }
  return 0;
}

/* Everything from here to the end; with -f, what is added after that. */
static int read_on(struct reader *reader, int fd, bool follow)
{
  static const struct timespec pause = { .tv_nsec = LOG_FOLLOW_MS * 1000000L };
  mem_autofree char *block = malloc(LOG_READ_BYTES);

  if (!block)
    return -ENOMEM;
  for (;;) {
    ssize_t n = read(fd, block, LOG_READ_BYTES);
    int r;

    if (n < 0 && errno != EINTR)
      return -errno;
    if (n == 0 && !follow)
      return 0;
    if (n == 0)
      nanosleep(&pause, NULL);
    r = n > 0 ? take(reader, (struct span){ .ptr = block, .len = (size_t)n }) : 0;
    if (r < 0)
      return r;
  }
}

/* Finds out what is asked for by its place: the last run, or the last lines. */
static int find_place(struct reader *reader, int fd, struct err *err)
{
  bool last = reader->run && strcmp(reader->run, "last") == 0;
  int r;

  if (!last && (reader->run || !reader->opts->follow))
    return 0;
  reader->each = survey;
  r = read_on(reader, fd, false);
  buf_free(&reader->held);
  if (r < 0)
    return err_set_errno(err, -r, "log");
  reader->at = !last && reader->lines > LOG_TAIL ? reader->begins[reader->lines % LOG_TAIL] : 0;
  reader->read = reader->at;
  reader->lines = 0;
  if (last)
    reader->run = reader->last ? reader->last : "";
  return lseek(fd, reader->at, SEEK_SET) < 0 ? err_set_errno(err, errno, "log") : 0;
}

/* What was in the file before it was rotated. */
static int print_rotated(struct reader *reader, const char *path)
{
  mem_autofree char *old = NULL;
  fd_autoclose int fd = -1;
  int r;

  if (asprintf(&old, "%s.1", path) < 0) {
    old = NULL;
    return -ENOMEM;
  }
  fd = open(old, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  r = fd < 0 ? 0 : read_on(reader, fd, false);
  buf_free(&reader->held);
  return r;
}

static int print_log(struct reader *reader, int fd, const char *path, struct err *err)
{
  int r = find_place(reader, fd, err);

  if (r < 0)
    return r;
  reader->each = show;
  r = reader->opts->follow ? 0 : print_rotated(reader, path);
  if (r == 0)
    r = read_on(reader, fd, reader->opts->follow);
  if (r < 0)
    return err_set_errno(err, -r, "log: %s", path);
  if (reader->run && !reader->lines)
    return err_set(err, ENOENT,
                   "log: %s has nothing of a run %s; " SBX_NAME " log prints all, with the run in the "
                   "second column",
                   path, reader->run);
  return 0;
}

int cmd_log(const struct opts *opts, char *const *args)
{
  context_autofree struct context context = CONTEXT_INIT;
  struct reader reader = { .opts = opts, .run = args[0], .held = BUF_INIT(LOG_LINE_BYTES) };
  mem_autofree char *path = NULL;
  fd_autoclose int fd = -1;
  struct err err = ERR_INIT;
  int r = args[0] && args[1] ? err_set(&err, EINVAL, "log: one RUN at a time") : context_load(opts, &err, &context);

  if (r < 0)
    return cmd_fail(&err);
  path = context.policy->audit_file ? facts_expand(&context.facts, context.policy->audit_file)
                                    : path_join(context.facts.state_dir, "audit.jsonl");
  fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (fd < 0 && path && errno == ENOENT && !reader.run) {
    log_line(LOG_NOTICE, "no run has used the network yet (%s)", path);
    return 0;
  }
  r = fd < 0 ? err_set_errno(&err, errno, "log: %s", path ? path : "audit") : print_log(&reader, fd, path, &err);
  buf_free(&reader.held);
  free(reader.last);
  return r < 0 ? cmd_fail(&err) : 0;
}
