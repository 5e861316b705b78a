# Fuzz targets. With --enable-fuzzing (clang) each is a libFuzzer program; otherwise it is linked with replay.c and is a
# check that plays tests/fuzz/corpus/NAME. A new target needs its block below, its corpus directory in fuzz_corpora, and
# nothing else.
fuzz_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -DFUZZ_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus"'
fuzz_corpora = tests/fuzz/corpus/canonical tests/fuzz/corpus/fspath tests/fuzz/corpus/host tests/fuzz/corpus/policy \
  tests/fuzz/corpus/rule
EXTRA_DIST += $(fuzz_corpora) tests/fuzz/fuzz.h tests/fuzz/replay.c

if FUZZING
fuzz_driver =
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
AM_CFLAGS += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
AM_LDFLAGS += -fsanitize=address,undefined
else
fuzz_driver = tests/fuzz/replay.c
fuzz_ldflags = $(AM_LDFLAGS)
TESTS += $(fuzz_programs)
endif

fuzz_programs = tests/fuzz/fuzz_canonical tests/fuzz/fuzz_fspath tests/fuzz/fuzz_host tests/fuzz/fuzz_policy \
  tests/fuzz/fuzz_rule
check_PROGRAMS += $(fuzz_programs)
fuzz_policy_libs = libpolicy.a libbase.a $(JSONC_LIBS)

tests_fuzz_fuzz_canonical_SOURCES = tests/fuzz/fuzz_canonical.c $(fuzz_driver)
tests_fuzz_fuzz_canonical_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_canonical_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_canonical_LDADD = $(fuzz_policy_libs)

tests_fuzz_fuzz_fspath_SOURCES = tests/fuzz/fuzz_fspath.c $(fuzz_driver)
tests_fuzz_fuzz_fspath_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_fspath_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_fspath_LDADD = $(fuzz_policy_libs)

tests_fuzz_fuzz_host_SOURCES = tests/fuzz/fuzz_host.c $(fuzz_driver)
tests_fuzz_fuzz_host_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_host_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_host_LDADD = $(fuzz_policy_libs)

tests_fuzz_fuzz_policy_SOURCES = tests/fuzz/fuzz_policy.c $(fuzz_driver)
tests_fuzz_fuzz_policy_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_policy_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_policy_LDADD = $(fuzz_policy_libs)

tests_fuzz_fuzz_rule_SOURCES = tests/fuzz/fuzz_rule.c $(fuzz_driver)
tests_fuzz_fuzz_rule_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_rule_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rule_LDADD = $(fuzz_policy_libs)
