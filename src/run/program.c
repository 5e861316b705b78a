#include "run/program.h"

#include "base/fd.h"
#include "plan/ops.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_HEAD_BYTES 4096 /* the first line of a script, or the program headers and what stands behind them */

/* The path on the host of what stands at path inside. NULL: nothing of the host's. Caller frees. */
static char *host_path(const struct plan *plan, const char *path)
{
  const struct plan_op *cover = ops_covering(plan, path);

  if (cover && cover->kind == PLAN_SYMLINK) /* /lib64 and its kin are the host's own */
    return mem_strndup(path, strlen(path));
  return cover && ops_is_bind(cover) ? ops_source_of(cover, path) : NULL;
}

static struct span read_head(const char *path, char *bytes)
{
  fd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  ssize_t n = fd < 0 ? -1 : pread(fd, bytes, PROGRAM_HEAD_BYTES, 0);

  return (struct span){ .ptr = bytes, .len = n > 0 ? (size_t)n : 0 };
}

static struct span script_interpreter(struct span head)
{
  struct span line = span_trim(span_sub(span_sub(head, 0, span_find(head, '\n')), 2, head.len));

  line = span_sub(line, 0, span_find(line, ' '));
  return span_sub(line, 0, span_find(line, '\t'));
}

/* The name in PT_INTERP (elf(5)); empty where the head has none. */
static struct span elf_interpreter(struct span head)
{
  ElfW(Ehdr) elf;

  memcpy(&elf, head.ptr, sizeof elf);
  for (size_t i = 0; i < elf.e_phnum; i++) {
    struct span from = span_sub(head, elf.e_phoff + i * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)));
    ElfW(Phdr) part;

    if (from.len != sizeof part)
      break;
    memcpy(&part, from.ptr, sizeof part);
    from = span_sub(head, part.p_offset, part.p_filesz);
    if (part.p_type == PT_INTERP)
      return span_sub(from, 0, span_find(from, '\0'));
  }
  return SPAN("");
}

bool program_is_broken(const struct plan *plan, struct buf *ret_why)
{
  char bytes[PROGRAM_HEAD_BYTES];
  mem_autofree char *source = host_path(plan, plan->program);
  struct span head = source ? read_head(source, bytes) : SPAN("");
  mem_autofree char *interpreter = NULL;
  mem_autofree char *there = NULL;
  struct span name = SPAN("");

  if (span_starts_with(head, SPAN("#!")))
    name = script_interpreter(head);
  else if (span_starts_with(head, SPAN(ELFMAG)) && head.len >= sizeof(ElfW(Ehdr)))
    name = elf_interpreter(head);
  if (!name.len)
    return false;
  interpreter = mem_strndup(name.ptr, name.len);
  there = interpreter ? host_path(plan, interpreter) : NULL;
  if (!interpreter || (there && access(there, X_OK) == 0))
    return false;
  buf_append_str(ret_why, "its interpreter ");
  buf_append_escaped(ret_why, name);
  buf_append_str(ret_why, " is not there inside, or not executable");
  return true;
}
