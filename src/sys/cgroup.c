#include "sys/cgroup.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_FILE_BYTES (64 * 1024)
#define CGROUP_PREFIX "sbx-"
#define CGROUP_CPU_PERIOD_US 100000

/* Our own cgroup in the one hierarchy of version 2: the line "0::/path" of /proc/self/cgroup. */
static int own_cgroup(struct err *err, char **ret_path)
{
  static const struct span label = SPAN_INIT("0::");
  buf_autofree struct buf text = BUF_INIT(CGROUP_FILE_BYTES);
  struct span rest;
  struct span line;
  int r = fd_read_file(AT_FDCWD, "/proc/self/cgroup", &text);

  if (r < 0)
    return err_set_errno(err, -r, "/proc/self/cgroup");
  if (access(CGROUP_ROOT "/cgroup.controllers", F_OK) < 0)
    return err_set(err, ENOTSUP, "this host has no cgroup v2 at " CGROUP_ROOT);
  rest = buf_span(&text);
  while (span_split(&rest, '\n', &line)) {
    mem_autofree char *relative = NULL;

    if (!span_starts_with(line, label))
      continue;
    relative = mem_strndup(line.ptr + label.len, line.len - label.len);
    *ret_path = relative ? path_join(CGROUP_ROOT, relative) : NULL;
    return *ret_path ? 0 : err_set(err, ENOMEM, "out of memory");
  }
  return err_set(err, ENOTSUP, "this process is in no cgroup of version 2");
}

static bool has_word(struct span text, const char *word)
{
  struct span part;

  while (span_split(&text, ' ', &part)) {
    while (part.len && part.ptr[part.len - 1] == '\n')
      part.len--;
    if (span_equal_str(part, word))
      return true;
  }
  return false;
}

/* Whether children of dir get the controllers, and we may make some and move processes there. */
static bool is_fit(const char *dir, const struct cgroup_limits *limits)
{
  buf_autofree struct buf text = BUF_INIT(CGROUP_FILE_BYTES);
  mem_autofree char *control = path_join(dir, "cgroup.subtree_control");
  mem_autofree char *procs = path_join(dir, "cgroup.procs");

  if (!control || !procs || access(dir, W_OK) < 0 || access(procs, W_OK) < 0 ||
      fd_read_file(AT_FDCWD, control, &text) < 0)
    return false;
  return (!limits->memory_bytes || has_word(buf_span(&text), "memory")) &&
         (!limits->cpu_milli || has_word(buf_span(&text), "cpu")) &&
         (!limits->pids || has_word(buf_span(&text), "pids"));
}

int cgroup_find(const struct cgroup_limits *limits, struct err *err, char **ret_parent)
{
  mem_autofree char *dir = NULL;
  int r = own_cgroup(err, &dir);

  if (r < 0)
    return r;
  while (strlen(dir) >= strlen(CGROUP_ROOT)) {
    if (is_fit(dir, limits)) {
      *ret_parent = mem_steal(dir);
      return 0;
    }
    *strrchr(dir, '/') = '\0';
  }
  return err_set(err, ENOTSUP, "no cgroup with the needed controllers is delegated to this user");
}

/* Directories of runs whose sbx is gone: their names end in its pid. rmdir(2) refuses one that is in use. */
static void sweep(const char *parent)
{
  DIR *dir = opendir(parent);
  struct dirent *entry;

  while (dir && (entry = readdir(dir))) {
    struct span name = span_of(entry->d_name);
    uint64_t pid;

    if (!span_starts_with(name, SPAN(CGROUP_PREFIX)) ||
        num_parse_u64(span_sub(name, strlen(CGROUP_PREFIX), name.len), 1, INT32_MAX, &pid) < 0)
      continue;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
      (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
  }
  if (dir)
    closedir(dir);
}

static int put(const char *dir, const char *name, const char *value, struct err *err)
{
  mem_autofree char *path = path_join(dir, name);
  fd_autoclose int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
  int r = fd < 0 ? -errno : fd_write_all(fd, span_of(value));

  return r < 0 ? err_set_errno(err, -r, "%s/%s", dir, name) : 0;
}

static int set_limits(const char *dir, const struct cgroup_limits *limits, struct err *err)
{
  char text[64];
  int r = 0;

  if (limits->memory_bytes) {
    snprintf(text, sizeof text, "%llu", (unsigned long long)limits->memory_bytes);
    r = put(dir, "memory.max", text, err);
    if (r == 0)
      (void)put(dir, "memory.swap.max", "0", NULL); /* absent where the kernel has no swap accounting */
  }
  if (r == 0 && limits->pids) {
    snprintf(text, sizeof text, "%llu", (unsigned long long)limits->pids);
    r = put(dir, "pids.max", text, err);
  }
  if (r == 0 && limits->cpu_milli) {
    snprintf(text, sizeof text, "%llu %d", (unsigned long long)limits->cpu_milli * CGROUP_CPU_PERIOD_US / 1000,
             CGROUP_CPU_PERIOD_US);
    r = put(dir, "cpu.max", text, err);
  }
  return r;
}

/* One that is there already is a leftover, or that of a process with our number in another pid namespace: sharing it
 * would join two runs' limits, and the end of either would kill both. rmdir(2) tells the two apart. */
static int make_fresh(const char *dir)
{
  if (mkdir(dir, 0755) == 0)
    return 0;
  if (errno != EEXIST)
    return -1;
  (void)rmdir(dir);
  return mkdir(dir, 0755);
}

int cgroup_limit(const char *dir, const struct cgroup_limits *limits, struct err *err, int *ret_procs)
{
  mem_autofree char *procs = path_join(dir, "cgroup.procs");
  int r = procs ? set_limits(dir, limits, err) : err_set(err, ENOMEM, "out of memory");
  int fd;

  if (r < 0)
    return r;
  fd = open(procs, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return err_set_errno(err, errno, "%s", procs);
  *ret_procs = fd;
  return 0;
}

int cgroup_make(const struct cgroup_limits *limits, struct err *err, char **ret_path, int *ret_procs)
{
  mem_autofree char *parent = NULL;
  mem_autofree char *name = NULL;
  mem_autofree char *dir = NULL;
  int r = cgroup_find(limits, err, &parent);

  if (r < 0)
    return r;
  sweep(parent);
  if (asprintf(&name, CGROUP_PREFIX "%d", (int)getpid()) < 0)
    name = NULL;
  dir = name ? path_join(parent, name) : NULL;
  if (!dir)
    return err_set(err, ENOMEM, "out of memory");
  if (make_fresh(dir) < 0)
    return errno == EEXIST ? err_set(err, EEXIST, "%s: a cgroup of another run; try again", dir)
                           : err_set_errno(err, errno, "%s", dir);
  r = cgroup_limit(dir, limits, err, ret_procs);
  if (r < 0)
    (void)rmdir(dir);
  else
    *ret_path = mem_steal(dir);
  return r;
}

void cgroup_remove(const char *path, int *procs)
{
  (void)put(path, "cgroup.kill", "1", NULL);
  fd_close(procs);
  (void)rmdir(path);
}
