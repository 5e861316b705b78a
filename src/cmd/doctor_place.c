#include "cmd/doctor_place.h"

#include "base/fd.h"
#include "base/num.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_PREFIX "doctor-"

static int remove_one(const char *path, const struct stat *stat_buf, int type, struct FTW *ftw)
{
  (void)stat_buf;
  (void)type;
  (void)ftw;
  (void)remove(path);
  return 0;
}

static void remove_tree(const char *path)
{
  (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Directories of doctors that are gone. */
static void sweep(const char *parent)
{
  DIR *dir = opendir(parent);
  struct dirent *entry;

  while (dir && (entry = readdir(dir))) {
    struct span name = span_of(entry->d_name);
    mem_autofree char *path = path_join(parent, entry->d_name);
    uint64_t pid;

    if (path && span_starts_with(name, SPAN(PLACE_PREFIX)) &&
        num_parse_u64(span_sub(name, strlen(PLACE_PREFIX), name.len), 1, INT32_MAX, &pid) == 0 &&
        kill((pid_t)pid, 0) < 0 && errno == ESRCH)
      remove_tree(path);
  }
  if (dir)
    closedir(dir);
}

/* The topmost directory of path that does not exist yet; NULL where all do. */
static char *find_missing(const char *path)
{
  mem_autofree char *missing = NULL;
  mem_autofree char *at = mem_strndup(path, strlen(path));

  while (at && at[1] && access(at, F_OK) < 0) {
    free(missing);
    missing = mem_strndup(at, strlen(at));
    *strrchr(at, '/') = '\0';
    if (!at[0])
      break;
  }
  return mem_steal(missing);
}

/* Removes the directories from the state directory up to the topmost that was not there before, if they are empty. */
static void remove_made(const struct doctor_place *place)
{
  mem_autofree char *at = mem_strndup(place->base, strlen(place->base));

  while (at && place->first_made && strlen(at) > strlen(place->first_made)) {
    *strrchr(at, '/') = '\0';
    if (rmdir(at) < 0)
      break;
  }
}

static int write_file(const char *path, const char *text)
{
  fd_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

  return fd < 0 ? -errno : fd_write_all(fd, span_of(text));
}

static int make_directories(const char *state, struct err *err, struct doctor_place *place)
{
  static const char *const directories[] = { "work/.git/hooks", "work/.git/objects",
                                             "work/.git/refs",  "outside",
                                             "state",           "config" };
  int r = 0;

  if (asprintf(&place->base, "%s/" PLACE_PREFIX "%d", state, (int)getpid()) < 0) {
    place->base = NULL;
    return err_set(err, ENOMEM, "out of memory");
  }
  place->first_made = find_missing(state);
  place->work = path_join(place->base, "work");
  place->outside = path_join(place->base, "outside");
  place->file = path_join(place->base, "outside/file");
  place->hooks = path_join(place->base, "work/.git/hooks");
  place->hook = path_join(place->base, "work/.git/hooks/pre-commit");
  place->hidden = path_join(place->base, "work/.env");
  if (!place->work || !place->outside || !place->file || !place->hooks || !place->hook || !place->hidden)
    return err_set(err, ENOMEM, "out of memory");
  for (size_t i = 0; i < MEM_COUNT(directories) && r == 0; i++) {
    mem_autofree char *path = path_join(place->base, directories[i]);

    r = path ? path_make_all(path, err) : err_set(err, ENOMEM, "out of memory");
  }
  return r;
}

static int make_files(struct err *err, struct doctor_place *place)
{
  mem_autofree char *head = path_join(place->work, ".git/HEAD");
  mem_autofree char *config = path_join(place->work, ".git/config");
  uint64_t noise[2] = { 0, 0 };
  int r = head && config ? 0 : -ENOMEM;

  if (r == 0 && getrandom(noise, sizeof noise, 0) < 0)
    r = -errno;
  snprintf(place->token, sizeof place->token, "%016llx%016llx", (unsigned long long)noise[0],
           (unsigned long long)noise[1]);
  if (r == 0)
    r = write_file(place->file, place->token);
  if (r == 0)
    r = write_file(place->hidden, place->token);
  if (r == 0)
    r = write_file(place->hook, "#!/bin/sh\n");
  if (r == 0)
    r = write_file(head, "ref: refs/heads/main\n");
  if (r == 0)
    r = write_file(config, "[core]\n\tbare = false\n");
  return r < 0 ? err_set_errno(err, -r, "%s", place->base) : 0;
}

int doctor_place_make(const char *state_dir, struct err *err, struct doctor_place *place)
{
  int r;

  sweep(state_dir);
  r = make_directories(state_dir, err, place);
  return r < 0 ? r : make_files(err, place);
}

void doctor_place_remove(struct doctor_place *place)
{
  if (place->base) {
    remove_tree(place->base);
    remove_made(place);
  }
  free(place->base);
  free(place->first_made);
  free(place->work);
  free(place->outside);
  free(place->file);
  free(place->hooks);
  free(place->hook);
  free(place->hidden);
  *place = (struct doctor_place){ .base = NULL };
}
