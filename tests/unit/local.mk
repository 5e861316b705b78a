# One block per program. A program links the archive that it tests and those below it, and nothing else.
unit_headers = tests/unit/unit.h tests/unit/policy_make.h
unit_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
unit_policy_libs = libpolicy.a libbase.a $(JSONC_LIBS) $(CMOCKA_LIBS)
EXTRA_DIST += $(unit_headers) tests/unit/cmocka-missing

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_policy_addr
TESTS += tests/unit/test_policy_addr
tests_unit_test_policy_addr_SOURCES = tests/unit/test_policy_addr.c
tests_unit_test_policy_addr_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_addr_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_host
TESTS += tests/unit/test_policy_host
tests_unit_test_policy_host_SOURCES = tests/unit/test_policy_host.c
tests_unit_test_policy_host_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_host_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_upstream
TESTS += tests/unit/test_policy_upstream
tests_unit_test_policy_upstream_SOURCES = tests/unit/test_policy_upstream.c
tests_unit_test_policy_upstream_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_upstream_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_credential
TESTS += tests/unit/test_policy_credential
tests_unit_test_policy_credential_SOURCES = tests/unit/test_policy_credential.c
tests_unit_test_policy_credential_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_credential_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_stand_in
TESTS += tests/unit/test_policy_stand_in
tests_unit_test_policy_stand_in_SOURCES = tests/unit/test_policy_stand_in.c
tests_unit_test_policy_stand_in_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_stand_in_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_rule
TESTS += tests/unit/test_policy_rule
tests_unit_test_policy_rule_SOURCES = tests/unit/test_policy_rule.c
tests_unit_test_policy_rule_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_rule_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_request
TESTS += tests/unit/test_policy_request
tests_unit_test_policy_request_SOURCES = tests/unit/test_policy_request.c
tests_unit_test_policy_request_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_request_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_fspath
TESTS += tests/unit/test_policy_fspath
tests_unit_test_policy_fspath_SOURCES = tests/unit/test_policy_fspath.c
tests_unit_test_policy_fspath_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_fspath_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_doc
TESTS += tests/unit/test_policy_doc
tests_unit_test_policy_doc_SOURCES = tests/unit/test_policy_doc.c
tests_unit_test_policy_doc_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_doc_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_keys
TESTS += tests/unit/test_policy_keys
tests_unit_test_policy_keys_SOURCES = tests/unit/test_policy_keys.c
tests_unit_test_policy_keys_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_keys_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_load
TESTS += tests/unit/test_policy_load
tests_unit_test_policy_load_SOURCES = tests/unit/test_policy_load.c
tests_unit_test_policy_load_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_load_LDADD = $(unit_policy_libs)
tests_unit_test_policy_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstat

check_PROGRAMS += tests/unit/test_policy_merge
TESTS += tests/unit/test_policy_merge
tests_unit_test_policy_merge_SOURCES = tests/unit/test_policy_merge.c
tests_unit_test_policy_merge_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_merge_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_validate
TESTS += tests/unit/test_policy_validate
tests_unit_test_policy_validate_SOURCES = tests/unit/test_policy_validate.c
tests_unit_test_policy_validate_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_validate_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_print
TESTS += tests/unit/test_policy_print
tests_unit_test_policy_print_SOURCES = tests/unit/test_policy_print.c
tests_unit_test_policy_print_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_print_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_decide
TESTS += tests/unit/test_policy_decide
tests_unit_test_policy_decide_SOURCES = tests/unit/test_policy_decide.c
tests_unit_test_policy_decide_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_decide_LDADD = $(unit_policy_libs)

check_PROGRAMS += tests/unit/test_policy_profiles
TESTS += tests/unit/test_policy_profiles
tests_unit_test_policy_profiles_SOURCES = tests/unit/test_policy_profiles.c
tests_unit_test_policy_profiles_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_profiles_LDADD = $(unit_policy_libs)

# Every allocation fails once.
check_PROGRAMS += tests/unit/test_policy_alloc
TESTS += tests/unit/test_policy_alloc
tests_unit_test_policy_alloc_SOURCES = tests/unit/test_policy_alloc.c
tests_unit_test_policy_alloc_CPPFLAGS = $(unit_cppflags)
tests_unit_test_policy_alloc_LDADD = $(unit_policy_libs)
tests_unit_test_policy_alloc_LDFLAGS = $(AM_LDFLAGS) \
  -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=reallocarray
else
# No skip: a check without the unit tests is a failed check.
TESTS += tests/unit/cmocka-missing
endif

# The schema, the man page and the profiles against the table of keys.
check_PROGRAMS += tests/unit/policy_tool
tests_unit_policy_tool_SOURCES = tests/unit/policy_tool.c
tests_unit_policy_tool_LDADD = libpolicy.a libbase.a $(JSONC_LIBS)
TESTS += tests/unit/policy_documents.py
EXTRA_DIST += tests/unit/policy_documents.py

# Signatures of the proxy against those of botocore.
check_PROGRAMS += tests/unit/sigv4_tool
tests_unit_sigv4_tool_SOURCES = tests/unit/sigv4_tool.c
tests_unit_sigv4_tool_LDADD = libproxytls.a libproxy.a libpolicy.a libbase.a $(OPENSSL_LIBS)
TESTS += tests/unit/sigv4_botocore.py
EXTRA_DIST += tests/unit/sigv4_botocore.py
