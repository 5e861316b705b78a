# The proxy's fuzz targets; the variables are those of tests/fuzz/local.mk.
fuzz_proxy_programs = tests/fuzz/fuzz_http_body tests/fuzz/fuzz_http_head
check_PROGRAMS += $(fuzz_proxy_programs)
EXTRA_DIST += tests/fuzz/corpus/http_body tests/fuzz/corpus/http_head
if !FUZZING
TESTS += $(fuzz_proxy_programs)
endif

tests_fuzz_fuzz_http_body_SOURCES = tests/fuzz/fuzz_http_body.c $(fuzz_driver)
tests_fuzz_fuzz_http_body_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_http_body_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http_body_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_http_head_SOURCES = tests/fuzz/fuzz_http_head.c $(fuzz_driver)
tests_fuzz_fuzz_http_head_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_http_head_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http_head_LDADD = libproxy.a libpolicy.a libbase.a
