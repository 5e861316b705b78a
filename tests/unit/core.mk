# Unit tests of base, sys, plan and cmd. A program links the archive that it tests and those below it, and nothing else.
unit_base_libs = libbase.a $(CMOCKA_LIBS)

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_base_err
TESTS += tests/unit/test_base_err
tests_unit_test_base_err_SOURCES = tests/unit/test_base_err.c
tests_unit_test_base_err_CPPFLAGS = $(unit_cppflags)
tests_unit_test_base_err_LDADD = $(unit_base_libs)

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

endif
