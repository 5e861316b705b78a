/* Plays a corpus to a fuzz target where the target is not built with libFuzzer, so that `make check` runs every input
 * that was ever worth keeping. The corpus of fuzz_NAME is tests/fuzz/corpus/NAME, or the directory in argv[1]; each
 * file is also played cut short at every length, which reaches most ends of input that a parser has. A corpus without
 * files is a failure: it would be a check that checks nothing. */
#include "fuzz/fuzz.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define REPLAY_FILE_MAX (1024 * 1024)

/* Longest input that is also played at every shorter length. */
#define REPLAY_PREFIX_MAX 4096

/* A copy of its own, so that a sanitizer sees a read past the end. */
static void replay_bytes(const char *bytes, size_t len)
{
  uint8_t *copy = malloc(len ? len : 1);

  FUZZ_ASSERT(copy);
  memcpy(copy, bytes, len);
  LLVMFuzzerTestOneInput(copy, len);
  free(copy);
}

static bool replay_file(int dir, const char *name)
{
  buf_autofree struct buf text = BUF_INIT(REPLAY_FILE_MAX);
  struct stat st;

  if (fstatat(dir, name, &st, 0) < 0 || !S_ISREG(st.st_mode))
    return false;
  FUZZ_ASSERT(fd_read_file(dir, name, &text) == 0);
  for (size_t len = 0; len < text.len && text.len <= REPLAY_PREFIX_MAX; len++)
    replay_bytes(text.data, len);
  replay_bytes(text.data ? text.data : "", text.len);
  return true;
}

int main(int argc, char **argv)
{
  const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
  char path[4096];
  size_t count = 0;
  DIR *dir;

  if (strncmp(name, "fuzz_", 5) == 0)
    name += 5;
  snprintf(path, sizeof path, "%s/%s", FUZZ_CORPUS, name);
  dir = opendir(argc > 1 ? argv[1] : path);
  if (!dir) {
    perror(argc > 1 ? argv[1] : path);
    return 1;
  }
  for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
    count += replay_file(dirfd(dir), entry->d_name);
  closedir(dir);
  printf("%s: %zu files played\n", name, count);
  return count > 0 ? 0 : 1;
}
