#include "sys/secret.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Whole pages, since locking and its like are about pages. */
static size_t pages_of(size_t size)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);

  return (size + page - 1) / page * page;
}

int secret_new(size_t size, struct err *err, struct secret *ret_secret)
{
  size_t mapped = pages_of(size);
  void *bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (bytes == MAP_FAILED)
    return err_set(err, ENOMEM, "out of memory");
  (void)mlock(bytes, mapped);
  (void)madvise(bytes, mapped, MADV_DONTDUMP);
  (void)madvise(bytes, mapped, MADV_DONTFORK);
  *ret_secret = (struct secret){ .bytes = bytes, .size = size };
  return 0;
}

void secret_free(struct secret *secret)
{
  if (secret->bytes) {
    mem_wipe(secret->bytes, pages_of(secret->size));
    (void)munmap(secret->bytes, pages_of(secret->size));
  }
  *secret = (struct secret)SECRET_INIT;
}

void secret_guard_process(bool on)
{
  (void)prctl(PR_SET_DUMPABLE, on ? 0 : 1, 0, 0, 0);
}
