#include "sys/proc.h"

#include "base/fd.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PROC_FILE_BYTES (64 * 1024)
#define PROC_PATH_BYTES 64

static int read_file(pid_t pid, const char *name, struct buf *buf)
{
  char path[PROC_PATH_BYTES];

  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return fd_read_file(AT_FDCWD, path, buf);
}

/* The fields of /proc/PID/stat from the state on: the command's name before them may hold anything, so look from the
 * last parenthesis. */
static int read_stat(pid_t pid, struct buf *buf, struct span *ret_fields)
{
  int r = read_file(pid, "stat", buf);
  size_t end;

  if (r < 0)
    return r;
  end = span_find_last(buf_span(buf), ')');
  if (end + 2 >= buf->len)
    return -EPROTO;
  *ret_fields = span_sub(buf_span(buf), end + 2, buf->len);
  return 0;
}

int proc_state(pid_t pid)
{
  buf_autofree struct buf buf = BUF_INIT(PROC_FILE_BYTES);
  struct span fields;
  int r = read_stat(pid, &buf, &fields);

  return r < 0 ? r : fields.ptr[0];
}

static pid_t parent_of(pid_t pid)
{
  buf_autofree struct buf buf = BUF_INIT(PROC_FILE_BYTES);
  struct span fields;
  struct span state;
  struct span parent;
  uint64_t number;
  int r = read_stat(pid, &buf, &fields);

  if (r < 0)
    return r;
  if (!span_split(&fields, ' ', &state) || !span_split(&fields, ' ', &parent))
    return -EPROTO;
  r = num_parse_u64(parent, 0, INT32_MAX, &number);
  return r < 0 ? r : (pid_t)number;
}

/* For kernels without CONFIG_PROC_CHILDREN. */
static pid_t scan_for_child(pid_t pid)
{
  DIR *proc = opendir("/proc");
  pid_t found = -ENOENT;
  struct dirent *entry;

  if (!proc)
    return -errno;
  while (found < 0 && (entry = readdir(proc))) {
    uint64_t number;

    if (num_parse_u64(span_of(entry->d_name), 1, INT32_MAX, &number) == 0 && parent_of((pid_t)number) == pid)
      found = (pid_t)number;
  }
  closedir(proc);
  return found;
}

pid_t proc_first_child(pid_t pid)
{
  buf_autofree struct buf buf = BUF_INIT(PROC_FILE_BYTES);
  char path[PROC_PATH_BYTES];
  struct span rest;
  struct span first;
  uint64_t number;
  int r;

  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  r = fd_read_file(AT_FDCWD, path, &buf);
  if (r == -ENOENT)
    return scan_for_child(pid);
  if (r < 0)
    return r;
  rest = span_trim(buf_span(&buf));
  if (!span_split(&rest, ' ', &first) || num_parse_u64(first, 1, INT32_MAX, &number) < 0)
    return -ENOENT;
  return (pid_t)number;
}

bool proc_in_other_pid_namespace(pid_t pid)
{
  char path[PROC_PATH_BYTES];
  struct stat theirs;
  struct stat ours;

  snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
  return stat(path, &theirs) == 0 && stat("/proc/self/ns/pid", &ours) == 0 &&
         (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}
