#include "sys/seccomp.h"
#include "unit/bpf.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct seccomp_row rows[] = {
  { .name = "getppid", .answer = SECCOMP_ERRNO, .error = EXDEV },
  { .name = "getpgid",
    .test = SECCOMP_ARG_EQ,
    .arg = 0,
    .mask = 0xffffffff,
    .value = 5,
    .answer = SECCOMP_ERRNO,
    .error = EDOM },
  { .name = "getpriority", .test = SECCOMP_ARG_NE, .arg = 1, .value = 7, .answer = SECCOMP_KILL },
  { .name = "setpgid",
    .test = SECCOMP_ARG_EQ,
    .arg = 0,
    .mask = 0xf0,
    .value = 0x30,
    .answer = SECCOMP_ERRNO,
    .error = EIO,
    .also = SECCOMP_ARG_NE,
    .also_arg = 1,
    .also_value = 9 },
  { .name = "there is no such call", .answer = SECCOMP_KILL },
};

static int judge(const struct bpf *bpf, long number, uint64_t first, uint64_t second)
{
  const struct seccomp_data data = { .nr = (int)number, .arch = BPF_NATIVE, .args = { first, second } };

  return bpf_run(bpf, &data);
}

static void test_rows(void **state)
{
  static const uint64_t high = UINT64_C(1) << 32;
  const struct seccomp_filter filter = { .rows = rows, .count = MEM_COUNT(rows), .otherwise = SECCOMP_ALLOW };
  struct bpf bpf;

  (void)state;
  bpf_compile(&filter, &bpf);
  assert_int_equal(judge(&bpf, SYS_getppid, 1, 2), EXDEV);
  assert_int_equal(judge(&bpf, SYS_getpgid, 5, 0), EDOM);
  assert_int_equal(judge(&bpf, SYS_getpgid, 5 | high, 0), EDOM);
  assert_int_equal(judge(&bpf, SYS_getpgid, 4, 0), 0);
  assert_int_equal(judge(&bpf, SYS_getpriority, 7, 6), BPF_KILLED);
  assert_int_equal(judge(&bpf, SYS_getpriority, 7, 7), 0);
  assert_int_equal(judge(&bpf, SYS_getpriority, 7, 7 | high), BPF_KILLED); /* NE compares all bits */
  assert_int_equal(judge(&bpf, SYS_setpgid, 0xff3f, 8), EIO);
  assert_int_equal(judge(&bpf, SYS_setpgid, 0xff3f, 9), 0);
  assert_int_equal(judge(&bpf, SYS_setpgid, 0xff4f, 8), 0);
  assert_int_equal(judge(&bpf, SYS_getpid, 0, 0), 0);
}

static void test_otherwise(void **state)
{
  static const struct seccomp_row one[] = { { .name = "getpid", .answer = SECCOMP_ALLOW } };
  struct seccomp_filter filter = { .rows = one, .count = 1, .otherwise = SECCOMP_ERRNO, .otherwise_error = ENOSYS };
  struct bpf bpf;

  (void)state;
  bpf_compile(&filter, &bpf);
  assert_int_equal(judge(&bpf, SYS_getpid, 0, 0), 0);
  assert_int_equal(judge(&bpf, SYS_getppid, 0, 0), ENOSYS);
  filter.otherwise = SECCOMP_KILL;
  bpf_compile(&filter, &bpf);
  assert_int_equal(judge(&bpf, SYS_getppid, 0, 0), BPF_KILLED);
}

static void test_architectures(void **state)
{
  static const uint32_t strange[] = { 0, AUDIT_ARCH_MIPS, AUDIT_ARCH_PPC64LE, AUDIT_ARCH_S390X, 0xffffffff };
  struct seccomp_filter filter = { .rows = rows, .count = MEM_COUNT(rows), .otherwise = SECCOMP_ALLOW };
  struct seccomp_data data = { .nr = 20 }; /* getpid of i386, writev of x86-64 */
  struct bpf bpf;

  (void)state;
  for (int foreign = 0; foreign < 2; foreign++) {
    filter.foreign = foreign;
    bpf_compile(&filter, &bpf);
    for (size_t i = 0; i < MEM_COUNT(strange); i++) {
      data.arch = strange[i];
      assert_int_equal(bpf_run(&bpf, &data), BPF_KILLED);
    }
    data.arch = BPF_FOREIGN;
    assert_int_equal(bpf_run(&bpf, &data), foreign ? 0 : BPF_KILLED);
#ifdef __x86_64__
    for (unsigned number = 0; number < 600; number++) { /* x32 */
      data = (struct seccomp_data){ .nr = (int)(0x40000000 | number), .arch = BPF_NATIVE };
      assert_int_equal(bpf_run(&bpf, &data), BPF_KILLED);
    }
    data = (struct seccomp_data){ .nr = 64, .arch = BPF_FOREIGN }; /* getppid of i386 */
    assert_int_equal(bpf_run(&bpf, &data), foreign ? EXDEV : BPF_KILLED);
    data.nr = 20;
#endif
  }
}

static void test_errors(void **state)
{
  const struct seccomp_filter filter = { .rows = rows, .count = MEM_COUNT(rows), .otherwise = SECCOMP_ALLOW };
  struct err err = ERR_INIT;

  (void)state;
  assert_true(seccomp_export(&filter, -1, &err) < 0);
  assert_true(err.code > 0 && err.message[0]);
}

/* In a child: the filter stands in the kernel, and no_new_privs with it. */
static void test_apply(void **state)
{
  const struct seccomp_filter filter = { .rows = rows, .count = MEM_COUNT(rows), .otherwise = SECCOMP_ALLOW };
  pid_t child = fork();
  int status;

  (void)state;
  if (child == 0) {
    struct err err = ERR_INIT;
    int fault = 0;

    if (seccomp_apply(&filter, &err) < 0)
      _exit(1);
    if (syscall(SYS_getppid) != -1 || errno != EXDEV)
      fault |= 2;
    if (syscall(SYS_getpgid, 5) != -1 || errno != EDOM)
      fault |= 4;
    _exit(fault);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows),   cmocka_unit_test(test_otherwise), cmocka_unit_test(test_architectures),
    cmocka_unit_test(test_errors), cmocka_unit_test(test_apply),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
