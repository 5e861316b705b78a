#include "plan/facts_browser.h"

#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char *const programs[] = {
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "google-chrome-beta",
  "microsoft-edge",
  "microsoft-edge-stable",
  "brave-browser",
  "brave",
  "vivaldi",
  "vivaldi-stable",
};

/* Of Playwright and Puppeteer; below the home. */
static const char *const kept[] = { "/.cache/ms-playwright", "/.cache/puppeteer" };

static bool exists(const char *path)
{
  return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int take(const char *path, struct facts *facts, struct strv *wanted)
{
  bool below_home = path_is_within(path, facts->home);
  mem_autofree char *private = below_home ? path_join(facts->private_home, path + strlen(facts->home)) : NULL;
  bool found = exists(path);
  int r = below_home && !private ? -ENOMEM : 0;

  if (r == 0 && found)
    r = strv_add(wanted, path);
  if (r == 0 && private && exists(private)) {
    found = true;
    r = strv_add(wanted, private);
  }
  return r == 0 && found ? strv_add(&facts->browsers, path) : r;
}

int facts_find_browsers(const char *path_variable, struct facts *facts, struct strv *wanted)
{
  struct span rest = span_of(path_variable);
  struct span part;
  int r = 0;

  while (r == 0 && span_split(&rest, ':', &part)) {
    mem_autofree char *dir = mem_strndup(part.ptr, part.len);

    if (!dir)
      return -ENOMEM;
    if (dir[0] != '/')
      continue;
    for (size_t i = 0; i < MEM_COUNT(programs) && r == 0; i++) {
      mem_autofree char *path = path_join(dir, programs[i]);

      r = path ? take(path, facts, wanted) : -ENOMEM;
    }
  }
  for (size_t i = 0; i < MEM_COUNT(kept) && r == 0; i++) {
    mem_autofree char *path = path_join(facts->home, kept[i]);

    r = path ? take(path, facts, wanted) : -ENOMEM;
  }
  return r;
}
