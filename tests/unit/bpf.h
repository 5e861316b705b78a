/* bpf: runs a filter of seccomp(2) on a call, as the kernel would (bpf(4), classic; no simulator is packaged). */
#ifndef SBX_TESTS_UNIT_BPF_H
#define SBX_TESTS_UNIT_BPF_H

#include "base/fd.h"
#include "sys/seccomp.h"
#include "unit/unit.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define BPF_NATIVE AUDIT_ARCH_X86_64
#define BPF_FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define BPF_NATIVE AUDIT_ARCH_AARCH64
#define BPF_FOREIGN AUDIT_ARCH_ARM
#else
#error "say which AUDIT_ARCH_* this machine has"
#endif

/* Verdicts: an errno (0: allowed), or one of these. */
#define BPF_KILLED (-1)
#define BPF_OTHER (-2)
#define BPF_TRACED(datum) (-1000 - (int)(datum))

struct bpf {
  struct sock_filter code[BPF_MAXINSNS];
  size_t len;
};

/* Compiles a filter by seccomp_export(). */
static inline void bpf_compile(const struct seccomp_filter *filter, struct bpf *bpf)
{
  buf_autofree struct buf text = BUF_INIT(sizeof bpf->code);
  fd_autoclose int fd = memfd_create("filter", MFD_CLOEXEC);
  struct err err = ERR_INIT;

  assert_true(fd >= 0);
  if (seccomp_export(filter, fd, &err) < 0)
    fail_msg("%s", err.message);
  assert_int_equal(fd_read_all(fd, &text), 0);
  assert_int_equal(text.len % sizeof bpf->code[0], 0);
  memcpy(bpf->code, text.data, text.len);
  bpf->len = text.len / sizeof bpf->code[0];
}

static inline uint32_t bpf_load(const struct seccomp_data *data, uint32_t offset)
{
  uint32_t word;

  if (offset % 4 || offset > sizeof *data - 4)
    fail_msg("load from %u", offset);
  memcpy(&word, (const char *)data + offset, sizeof word);
  return word;
}

static inline bool bpf_jumps(const struct sock_filter *at, uint32_t accumulator)
{
  switch (BPF_OP(at->code)) {
  case BPF_JEQ:
    return accumulator == at->k;
  case BPF_JGT:
    return accumulator > at->k;
  case BPF_JGE:
    return accumulator >= at->k;
  case BPF_JSET:
    return accumulator & at->k;
  default:
    fail_msg("jump %#x", at->code);
    return false;
  }
}

static inline int bpf_verdict(uint32_t action)
{
  switch (action & SECCOMP_RET_ACTION_FULL) {
  case SECCOMP_RET_ALLOW:
    return 0;
  case SECCOMP_RET_ERRNO:
    return (int)(action & SECCOMP_RET_DATA);
  case SECCOMP_RET_TRACE:
    return BPF_TRACED(action & SECCOMP_RET_DATA);
  case SECCOMP_RET_KILL_PROCESS:
    return BPF_KILLED;
  default:
    return BPF_OTHER;
  }
}

static inline int bpf_run(const struct bpf *bpf, const struct seccomp_data *data)
{
  uint32_t accumulator = 0;

  for (size_t at = 0; at < bpf->len; at++) {
    const struct sock_filter *step = &bpf->code[at];

    if (step->code == (BPF_LD | BPF_W | BPF_ABS))
      accumulator = bpf_load(data, step->k);
    else if (step->code == (BPF_ALU | BPF_AND | BPF_K))
      accumulator &= step->k;
    else if (step->code == (BPF_RET | BPF_K))
      return bpf_verdict(step->k);
    else if (step->code == (BPF_JMP | BPF_JA))
      at += step->k;
    else if (BPF_CLASS(step->code) == BPF_JMP && BPF_SRC(step->code) == BPF_K)
      at += bpf_jumps(step, accumulator) ? step->jt : step->jf;
    else
      fail_msg("instruction %#x at %zu", step->code, at);
  }
  fail_msg("ran past the end");
  return BPF_OTHER;
}

#endif
