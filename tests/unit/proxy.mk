# The proxy's unit tests; the variables are those of tests/unit/local.mk.
unit_proxy_libs = libproxy.a libpolicy.a libsys.a libbase.a $(UV_LIBS) $(CARES_LIBS) $(SECCOMP_LIBS) $(JSONC_LIBS) \
  $(CMOCKA_LIBS)

unit_tls_libs = libproxytls.a $(unit_proxy_libs) $(OPENSSL_LIBS) $(NGHTTP2_LIBS)

EXTRA_DIST += tests/unit/inject_make.h tests/unit/tls_make.h tests/unit/tls_bench.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_proxy_http_head
TESTS += tests/unit/test_proxy_http_head
tests_unit_test_proxy_http_head_SOURCES = tests/unit/test_proxy_http_head.c
tests_unit_test_proxy_http_head_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_http_head_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_http_body
TESTS += tests/unit/test_proxy_http_body
tests_unit_test_proxy_http_body_SOURCES = tests/unit/test_proxy_http_body.c
tests_unit_test_proxy_http_body_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_http_body_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_http_rewrite
TESTS += tests/unit/test_proxy_http_rewrite
tests_unit_test_proxy_http_rewrite_SOURCES = tests/unit/test_proxy_http_rewrite.c
tests_unit_test_proxy_http_rewrite_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_http_rewrite_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_inject
TESTS += tests/unit/test_proxy_inject
tests_unit_test_proxy_inject_SOURCES = tests/unit/test_proxy_inject.c
tests_unit_test_proxy_inject_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_inject_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_finder
TESTS += tests/unit/test_proxy_finder
tests_unit_test_proxy_finder_SOURCES = tests/unit/test_proxy_finder.c
tests_unit_test_proxy_finder_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_finder_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_hosts
TESTS += tests/unit/test_proxy_hosts
tests_unit_test_proxy_hosts_SOURCES = tests/unit/test_proxy_hosts.c
tests_unit_test_proxy_hosts_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_hosts_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_gate
TESTS += tests/unit/test_proxy_gate
tests_unit_test_proxy_gate_SOURCES = tests/unit/test_proxy_gate.c
tests_unit_test_proxy_gate_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_gate_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_denial
TESTS += tests/unit/test_proxy_denial
tests_unit_test_proxy_denial_SOURCES = tests/unit/test_proxy_denial.c
tests_unit_test_proxy_denial_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_denial_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_audit
TESTS += tests/unit/test_proxy_audit
tests_unit_test_proxy_audit_SOURCES = tests/unit/test_proxy_audit.c
tests_unit_test_proxy_audit_CPPFLAGS = $(unit_cppflags) $(JSONC_CFLAGS)
tests_unit_test_proxy_audit_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_relay
TESTS += tests/unit/test_proxy_relay
tests_unit_test_proxy_relay_SOURCES = tests/unit/test_proxy_relay.c
tests_unit_test_proxy_relay_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_relay_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_stream
TESTS += tests/unit/test_proxy_stream
tests_unit_test_proxy_stream_SOURCES = tests/unit/test_proxy_stream.c
tests_unit_test_proxy_stream_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_stream_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_man
TESTS += tests/unit/test_proxy_man
tests_unit_test_proxy_man_SOURCES = tests/unit/test_proxy_man.c
tests_unit_test_proxy_man_CPPFLAGS = $(unit_cppflags) -DMAN_DIR='"$(abs_top_srcdir)/man"'
tests_unit_test_proxy_man_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_parent
TESTS += tests/unit/test_proxy_parent
tests_unit_test_proxy_parent_SOURCES = tests/unit/test_proxy_parent.c
tests_unit_test_proxy_parent_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_parent_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_socks5
TESTS += tests/unit/test_proxy_socks5
tests_unit_test_proxy_socks5_SOURCES = tests/unit/test_proxy_socks5.c
tests_unit_test_proxy_socks5_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_socks5_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_tls_hello
TESTS += tests/unit/test_proxy_tls_hello
tests_unit_test_proxy_tls_hello_SOURCES = tests/unit/test_proxy_tls_hello.c
tests_unit_test_proxy_tls_hello_CPPFLAGS = $(unit_cppflags) \
  -DCORPUS_DIR='"$(abs_top_srcdir)/tests/fuzz/corpus/tls_hello"'
tests_unit_test_proxy_tls_hello_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_dns
TESTS += tests/unit/test_proxy_dns
tests_unit_test_proxy_dns_SOURCES = tests/unit/test_proxy_dns.c
tests_unit_test_proxy_dns_CPPFLAGS = $(unit_cppflags) $(CARES_CFLAGS)
tests_unit_test_proxy_dns_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_tls_scan
TESTS += tests/unit/test_proxy_tls_scan
tests_unit_test_proxy_tls_scan_SOURCES = tests/unit/test_proxy_tls_scan.c
tests_unit_test_proxy_tls_scan_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_tls_scan_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_names
TESTS += tests/unit/test_proxy_names
tests_unit_test_proxy_names_SOURCES = tests/unit/test_proxy_names.c
tests_unit_test_proxy_names_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_names_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_refused
TESTS += tests/unit/test_proxy_refused
tests_unit_test_proxy_refused_SOURCES = tests/unit/test_proxy_refused.c
tests_unit_test_proxy_refused_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_refused_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_identity
TESTS += tests/unit/test_proxy_identity
tests_unit_test_proxy_identity_SOURCES = tests/unit/test_proxy_identity.c
tests_unit_test_proxy_identity_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_identity_LDADD = $(unit_proxy_libs)

check_PROGRAMS += tests/unit/test_proxy_ca
TESTS += tests/unit/test_proxy_ca
tests_unit_test_proxy_ca_SOURCES = tests/unit/test_proxy_ca.c
tests_unit_test_proxy_ca_CPPFLAGS = $(unit_cppflags) $(OPENSSL_CFLAGS)
tests_unit_test_proxy_ca_LDADD = $(unit_tls_libs)

check_PROGRAMS += tests/unit/test_proxy_h2
TESTS += tests/unit/test_proxy_h2
tests_unit_test_proxy_h2_SOURCES = tests/unit/test_proxy_h2.c
tests_unit_test_proxy_h2_CPPFLAGS = $(unit_cppflags) $(NGHTTP2_CFLAGS)
tests_unit_test_proxy_h2_LDADD = $(unit_tls_libs)

check_PROGRAMS += tests/unit/test_proxy_tls
TESTS += tests/unit/test_proxy_tls
tests_unit_test_proxy_tls_SOURCES = tests/unit/test_proxy_tls.c
tests_unit_test_proxy_tls_CPPFLAGS = $(unit_cppflags) $(OPENSSL_CFLAGS)
tests_unit_test_proxy_tls_LDADD = $(unit_tls_libs)

check_PROGRAMS += tests/unit/test_proxy_sigv4
TESTS += tests/unit/test_proxy_sigv4
tests_unit_test_proxy_sigv4_SOURCES = tests/unit/test_proxy_sigv4.c
tests_unit_test_proxy_sigv4_CPPFLAGS = $(unit_cppflags) $(OPENSSL_CFLAGS)
tests_unit_test_proxy_sigv4_LDADD = $(unit_tls_libs)

check_PROGRAMS += tests/unit/test_proxy_tls_peer
TESTS += tests/unit/test_proxy_tls_peer
tests_unit_test_proxy_tls_peer_SOURCES = tests/unit/test_proxy_tls_peer.c
tests_unit_test_proxy_tls_peer_CPPFLAGS = $(unit_cppflags) $(OPENSSL_CFLAGS)
tests_unit_test_proxy_tls_peer_LDADD = $(unit_tls_libs)

check_PROGRAMS += tests/unit/test_sys_landlock
TESTS += tests/unit/test_sys_landlock
tests_unit_test_sys_landlock_SOURCES = tests/unit/test_sys_landlock.c
tests_unit_test_sys_landlock_CPPFLAGS = $(unit_cppflags)
tests_unit_test_sys_landlock_LDADD = libsys.a libbase.a $(CMOCKA_LIBS)

# A build without confinement has nothing to test here.
if SELF_CONFINE
check_PROGRAMS += tests/unit/test_proxy_confine
TESTS += tests/unit/test_proxy_confine
tests_unit_test_proxy_confine_SOURCES = tests/unit/test_proxy_confine.c
tests_unit_test_proxy_confine_CPPFLAGS = $(unit_cppflags)
tests_unit_test_proxy_confine_LDADD = $(unit_proxy_libs)
endif
endif
