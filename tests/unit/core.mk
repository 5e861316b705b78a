# Unit tests of base, sys, plan, run and cmd. A program links the archive that it tests and those below it, and nothing else.
unit_base_libs = libbase.a $(CMOCKA_LIBS)
unit_sys_libs = libsys.a libbase.a $(SECCOMP_LIBS) $(CMOCKA_LIBS)
unit_plan_libs = libplan.a libpolicy.a libsys.a libbase.a $(SECCOMP_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)
unit_run_libs = librun.a libengine.a $(unit_plan_libs)
EXTRA_DIST += tests/unit/bpf.h tests/unit/facts_make.h tests/unit/temp.h
EXTRA_DIST += \
  tests/unit/golden/browser-hidden.txt \
  tests/unit/golden/browser-pki-read.txt \
  tests/unit/golden/browser-private.txt \
  tests/unit/golden/browser.txt \
  tests/unit/golden/copies-home-host.txt \
  tests/unit/golden/copies.txt \
  tests/unit/golden/credentials.txt \
  tests/unit/golden/default-root.txt \
  tests/unit/golden/default-user.txt \
  tests/unit/golden/hidden-in-protected.txt \
  tests/unit/golden/home-host.txt \
  tests/unit/golden/home-tmpfs.txt \
  tests/unit/golden/links.txt \
  tests/unit/golden/lists.txt \
  tests/unit/golden/nested-read.txt \
  tests/unit/golden/network-host.txt \
  tests/unit/golden/network-none.txt \
  tests/unit/golden/publish.txt \
  tests/unit/golden/secret-part.txt \
  tests/unit/golden/sockets.txt \
  tests/unit/golden/state-writable.txt \
  tests/unit/golden/upstream.txt \
  tests/unit/golden/workspace-tmp.txt

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_base_err
TESTS += tests/unit/test_base_err
tests_unit_test_base_err_SOURCES = tests/unit/test_base_err.c
tests_unit_test_base_err_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_err_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_base64
TESTS += tests/unit/test_base_base64
tests_unit_test_base_base64_SOURCES = tests/unit/test_base_base64.c
tests_unit_test_base_base64_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_base64_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_mem
TESTS += tests/unit/test_base_mem
tests_unit_test_base_mem_SOURCES = tests/unit/test_base_mem.c
tests_unit_test_base_mem_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_mem_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_num
TESTS += tests/unit/test_base_num
tests_unit_test_base_num_SOURCES = tests/unit/test_base_num.c
tests_unit_test_base_num_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_num_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_span
TESTS += tests/unit/test_base_span
tests_unit_test_base_span_SOURCES = tests/unit/test_base_span.c
tests_unit_test_base_span_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_span_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_buf
TESTS += tests/unit/test_base_buf
tests_unit_test_base_buf_SOURCES = tests/unit/test_base_buf.c
tests_unit_test_base_buf_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_buf_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_strv
TESTS += tests/unit/test_base_strv
tests_unit_test_base_strv_SOURCES = tests/unit/test_base_strv.c
tests_unit_test_base_strv_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_strv_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_fd
TESTS += tests/unit/test_base_fd
tests_unit_test_base_fd_SOURCES = tests/unit/test_base_fd.c
tests_unit_test_base_fd_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_fd_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_log
TESTS += tests/unit/test_base_log
tests_unit_test_base_log_SOURCES = tests/unit/test_base_log.c
tests_unit_test_base_log_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_log_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_base_clock
TESTS += tests/unit/test_base_clock
tests_unit_test_base_clock_SOURCES = tests/unit/test_base_clock.c
tests_unit_test_base_clock_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_clock_LDADD = $(unit_base_libs)

check_PROGRAMS += tests/unit/test_sys_seccomp
TESTS += tests/unit/test_sys_seccomp
tests_unit_test_sys_seccomp_SOURCES = tests/unit/test_sys_seccomp.c
tests_unit_test_sys_seccomp_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_seccomp_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_path
TESTS += tests/unit/test_sys_path
tests_unit_test_sys_path_SOURCES = tests/unit/test_sys_path.c
tests_unit_test_sys_path_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_path_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_scm
TESTS += tests/unit/test_sys_scm
tests_unit_test_sys_scm_SOURCES = tests/unit/test_sys_scm.c
tests_unit_test_sys_scm_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_scm_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_memfd
TESTS += tests/unit/test_sys_memfd
tests_unit_test_sys_memfd_SOURCES = tests/unit/test_sys_memfd.c
tests_unit_test_sys_memfd_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_memfd_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_secret
TESTS += tests/unit/test_sys_secret
tests_unit_test_sys_secret_SOURCES = tests/unit/test_sys_secret.c
tests_unit_test_sys_secret_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_secret_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_spawn
TESTS += tests/unit/test_sys_spawn
tests_unit_test_sys_spawn_SOURCES = tests/unit/test_sys_spawn.c
tests_unit_test_sys_spawn_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_spawn_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_freeze
TESTS += tests/unit/test_sys_freeze
tests_unit_test_sys_freeze_SOURCES = tests/unit/test_sys_freeze.c
tests_unit_test_sys_freeze_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_freeze_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_proc
TESTS += tests/unit/test_sys_proc
tests_unit_test_sys_proc_SOURCES = tests/unit/test_sys_proc.c
tests_unit_test_sys_proc_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_proc_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_cgroup
TESTS += tests/unit/test_sys_cgroup
tests_unit_test_sys_cgroup_SOURCES = tests/unit/test_sys_cgroup.c
tests_unit_test_sys_cgroup_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_cgroup_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_probe
TESTS += tests/unit/test_sys_probe
tests_unit_test_sys_probe_SOURCES = tests/unit/test_sys_probe.c
tests_unit_test_sys_probe_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_probe_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_sys_netns
TESTS += tests/unit/test_sys_netns
tests_unit_test_sys_netns_SOURCES = tests/unit/test_sys_netns.c
tests_unit_test_sys_netns_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_netns_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_plan_syscalls
TESTS += tests/unit/test_plan_syscalls
tests_unit_test_plan_syscalls_SOURCES = tests/unit/test_plan_syscalls.c
tests_unit_test_plan_syscalls_CPPFLAGS = $(unit_cppflags) $(SECCOMP_CFLAGS)
tests_unit_test_plan_syscalls_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_build
TESTS += tests/unit/test_plan_build
tests_unit_test_plan_build_SOURCES = tests/unit/test_plan_build.c
tests_unit_test_plan_build_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_build_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_golden
TESTS += tests/unit/test_plan_golden
tests_unit_test_plan_golden_SOURCES = tests/unit/test_plan_golden.c
tests_unit_test_plan_golden_CPPFLAGS = $(unit_cppflags) -DUNIT_GOLDEN='"$(abs_top_srcdir)/tests/unit/golden"'
tests_unit_test_plan_golden_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_random
TESTS += tests/unit/test_plan_random
tests_unit_test_plan_random_SOURCES = tests/unit/test_plan_random.c
tests_unit_test_plan_random_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_random_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_check
TESTS += tests/unit/test_plan_check
tests_unit_test_plan_check_SOURCES = tests/unit/test_plan_check.c
tests_unit_test_plan_check_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_check_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_hide
TESTS += tests/unit/test_plan_hide
tests_unit_test_plan_hide_SOURCES = tests/unit/test_plan_hide.c
tests_unit_test_plan_hide_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_hide_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_program
TESTS += tests/unit/test_plan_program
tests_unit_test_plan_program_SOURCES = tests/unit/test_plan_program.c
tests_unit_test_plan_program_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_program_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_plan_env
TESTS += tests/unit/test_plan_env
tests_unit_test_plan_env_SOURCES = tests/unit/test_plan_env.c
tests_unit_test_plan_env_CPPFLAGS = $(unit_cppflags)
tests_unit_test_plan_env_LDADD = $(unit_plan_libs)

check_PROGRAMS += tests/unit/test_run_placeholder
TESTS += tests/unit/test_run_placeholder
tests_unit_test_run_placeholder_SOURCES = tests/unit/test_run_placeholder.c
tests_unit_test_run_placeholder_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_placeholder_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_run_java_store
TESTS += tests/unit/test_run_java_store
tests_unit_test_run_java_store_SOURCES = tests/unit/test_run_java_store.c
tests_unit_test_run_java_store_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_java_store_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_run_keys
TESTS += tests/unit/test_run_keys
tests_unit_test_run_keys_SOURCES = tests/unit/test_run_keys.c
tests_unit_test_run_keys_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_keys_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_run_outbox
TESTS += tests/unit/test_run_outbox
tests_unit_test_run_outbox_SOURCES = tests/unit/test_run_outbox.c
tests_unit_test_run_outbox_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_outbox_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_run_secrets
TESTS += tests/unit/test_run_secrets
tests_unit_test_run_secrets_SOURCES = tests/unit/test_run_secrets.c
tests_unit_test_run_secrets_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_secrets_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_cmd_opts
TESTS += tests/unit/test_cmd_opts
tests_unit_test_cmd_opts_SOURCES = tests/unit/test_cmd_opts.c src/cmd/opts.c
tests_unit_test_cmd_opts_CPPFLAGS = $(unit_cppflags)
tests_unit_test_cmd_opts_LDADD = $(unit_plan_libs)
endif

check_PROGRAMS += tests/unit/test_sys_replace
TESTS += tests/unit/test_sys_replace
tests_unit_test_sys_replace_SOURCES = tests/unit/test_sys_replace.c
tests_unit_test_sys_replace_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_replace_LDADD = $(unit_sys_libs)

check_PROGRAMS += tests/unit/test_run_ask
TESTS += tests/unit/test_run_ask
tests_unit_test_run_ask_SOURCES = tests/unit/test_run_ask.c
tests_unit_test_run_ask_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_ask_LDADD = $(unit_run_libs)

check_PROGRAMS += tests/unit/test_run_project_file
TESTS += tests/unit/test_run_project_file
tests_unit_test_run_project_file_SOURCES = tests/unit/test_run_project_file.c
tests_unit_test_run_project_file_CPPFLAGS = $(unit_cppflags)
tests_unit_test_run_project_file_LDADD = $(unit_run_libs)
