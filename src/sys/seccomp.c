#include "sys/seccomp.h"

#include "base/mem.h"

#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <unistd.h>

static void release(scmp_filter_ctx *context)
{
  if (*context)
    seccomp_release(*context);
}

static uint32_t action(enum seccomp_answer answer, int error)
{
  switch (answer) {
  case SECCOMP_ALLOW:
    return SCMP_ACT_ALLOW;
  case SECCOMP_ERRNO:
    return SCMP_ACT_ERRNO((uint16_t)error);
  case SECCOMP_TRACE:
    return SCMP_ACT_TRACE((uint16_t)error);
  case SECCOMP_KILL:
    break;
  }
  return SCMP_ACT_KILL_PROCESS;
}

/* Appends one test as a comparison; none for SECCOMP_ALWAYS. */
static void add_compare(struct scmp_arg_cmp *list, unsigned *count, enum seccomp_test test, unsigned arg, uint64_t mask,
                        uint64_t value)
{
  struct scmp_arg_cmp *compare = &list[*count];

  if (test == SECCOMP_ALWAYS)
    return;
  *count += 1;
  compare->arg = arg;
  if (test == SECCOMP_ARG_EQ) {
    compare->op = SCMP_CMP_MASKED_EQ;
    compare->datum_a = mask;
    compare->datum_b = value;
  } else {
    compare->op = SCMP_CMP_NE;
    compare->datum_a = value;
    compare->datum_b = 0;
  }
}

/* The number of a call that is newer than the library in use, or -1. From 424 on a call has one number on every
 * architecture. */
static int newer_number(const char *name)
{
  static const struct {
    const char *name;
    int number;
  } newer[] = { { "open_tree_attr", 467 } };

  for (size_t i = 0; i < MEM_COUNT(newer); i++) {
    if (strcmp(name, newer[i].name) == 0)
      return newer[i].number;
  }
  return -1;
}

static int add_row(scmp_filter_ctx context, const struct seccomp_row *row, int number)
{
  struct scmp_arg_cmp compare[2];
  unsigned count = 0;

  add_compare(compare, &count, row->test, row->arg, row->mask, row->value);
  add_compare(compare, &count, row->also, row->also_arg, row->also_mask, row->also_value);
  return seccomp_rule_add_array(context, action(row->answer, row->error), number, count, compare);
}

/* Adds the rows whose calls the library knows, or the others: those it can take by number only while the context has no
 * second architecture, and so they are not refused to that one. */
static int add_rows(scmp_filter_ctx context, const struct seccomp_filter *filter, bool known, struct err *err)
{
  for (size_t i = 0; i < filter->count; i++) {
    const struct seccomp_row *row = &filter->rows[i];
    int number = seccomp_syscall_resolve_name(row->name);
    int r;

    if ((number != __NR_SCMP_ERROR) != known)
      continue;
    number = known ? number : newer_number(row->name);
    r = known || number >= 0 ? add_row(context, row, number) : 0;
    if (r < 0)
      return err_set_errno(err, -r, "system call filter: row %zu (%s)", i, row->name);
  }
  return 0;
}

/* The 32-bit architecture whose programs this machine's kernel may run; 0 where there is none that libseccomp knows. */
static uint32_t foreign_arch(void)
{
  switch (seccomp_arch_native()) {
  case SCMP_ARCH_X86_64:
    return SCMP_ARCH_X86;
  case SCMP_ARCH_AARCH64:
    return SCMP_ARCH_ARM;
  default:
    return 0;
  }
}

/* Theory: libseccomp gives one program that first compares the architecture. Calls of an architecture that was not
 * added get SCMP_FLTATR_ACT_BADARCH. x32 shares x86-64's architecture value and is told by bit 30 of the number;
 * libseccomp tests that bit before any rule and gives the same answer as for a bad architecture. */
static int build(const struct seccomp_filter *filter, struct err *err, scmp_filter_ctx *ret_context)
{
  MEM_CLEANUP(release) scmp_filter_ctx context = seccomp_init(action(filter->otherwise, filter->otherwise_error));
  int r;

  if (!context)
    return err_set(err, ENOMEM, "system call filter: out of memory");
  r = add_rows(context, filter, false, err);
  if (r < 0)
    return r;
  r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (r == 0 && filter->foreign && foreign_arch())
    r = seccomp_arch_add(context, foreign_arch());
  if (r == 0) /* a balanced tree instead of a list: every call of the command walks it */
    r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (r < 0)
    return err_set_errno(err, -r, "system call filter");
  r = add_rows(context, filter, true, err);
  if (r < 0)
    return r;
  *ret_context = context;
  context = NULL;
  return 0;
}

int seccomp_export(const struct seccomp_filter *filter, int fd, struct err *err)
{
  MEM_CLEANUP(release) scmp_filter_ctx context = NULL;
  int r = build(filter, err, &context);

  if (r < 0)
    return r;
  r = seccomp_export_bpf(context, fd);
  if (r < 0)
    return err_set_errno(err, -r, "system call filter: export");
  return lseek(fd, 0, SEEK_SET) < 0 ? err_set_errno(err, errno, "system call filter: lseek") : 0;
}

int seccomp_apply(const struct seccomp_filter *filter, struct err *err)
{
  MEM_CLEANUP(release) scmp_filter_ctx context = NULL;
  int r = build(filter, err, &context);

  if (r < 0)
    return r;
  r = seccomp_attr_set(context, SCMP_FLTATR_CTL_TSYNC, 1);
  if (r == 0)
    r = seccomp_load(context);
  return r < 0 ? err_set_errno(err, -r, "system call filter: load") : 0;
}
