# The proxy's fuzz targets; the variables are those of tests/fuzz/local.mk.
fuzz_proxy_programs = tests/fuzz/fuzz_conn tests/fuzz/fuzz_dns tests/fuzz/fuzz_finder tests/fuzz/fuzz_first_line tests/fuzz/fuzz_h2 \
  tests/fuzz/fuzz_http_body tests/fuzz/fuzz_http_head tests/fuzz/fuzz_inject tests/fuzz/fuzz_parent tests/fuzz/fuzz_sigv4 tests/fuzz/fuzz_socks5 tests/fuzz/fuzz_tls_hello
check_PROGRAMS += $(fuzz_proxy_programs)
EXTRA_DIST += tests/fuzz/corpus/conn tests/fuzz/corpus/dns tests/fuzz/corpus/finder tests/fuzz/corpus/first_line tests/fuzz/corpus/h2 \
  tests/fuzz/corpus/http_body tests/fuzz/corpus/http_head tests/fuzz/corpus/inject tests/fuzz/corpus/parent tests/fuzz/corpus/sigv4 tests/fuzz/corpus/socks5 tests/fuzz/corpus/tls_hello
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

tests_fuzz_fuzz_inject_SOURCES = tests/fuzz/fuzz_inject.c $(fuzz_driver)
tests_fuzz_fuzz_inject_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_inject_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_inject_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_finder_SOURCES = tests/fuzz/fuzz_finder.c $(fuzz_driver)
tests_fuzz_fuzz_finder_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_finder_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_finder_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_first_line_SOURCES = tests/fuzz/fuzz_first_line.c $(fuzz_driver)
tests_fuzz_fuzz_first_line_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_first_line_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_first_line_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_dns_SOURCES = tests/fuzz/fuzz_dns.c $(fuzz_driver)
tests_fuzz_fuzz_dns_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_dns_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_dns_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_parent_SOURCES = tests/fuzz/fuzz_parent.c $(fuzz_driver)
tests_fuzz_fuzz_parent_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_parent_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_parent_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_sigv4_SOURCES = tests/fuzz/fuzz_sigv4.c $(fuzz_driver)
tests_fuzz_fuzz_sigv4_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_sigv4_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_sigv4_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_socks5_SOURCES = tests/fuzz/fuzz_socks5.c $(fuzz_driver)
tests_fuzz_fuzz_socks5_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_socks5_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_socks5_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_tls_hello_SOURCES = tests/fuzz/fuzz_tls_hello.c $(fuzz_driver)
tests_fuzz_fuzz_tls_hello_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_tls_hello_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tls_hello_LDADD = libproxy.a libpolicy.a libbase.a

tests_fuzz_fuzz_conn_SOURCES = tests/fuzz/fuzz_conn.c $(fuzz_driver)
tests_fuzz_fuzz_conn_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_conn_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=recv,--wrap=send,--wrap=splice
tests_fuzz_fuzz_conn_LDADD = libproxy.a libpolicy.a libsys.a libbase.a $(UV_LIBS) $(CARES_LIBS) $(SECCOMP_LIBS) \
  $(JSONC_LIBS)

tests_fuzz_fuzz_h2_SOURCES = tests/fuzz/fuzz_h2.c $(fuzz_driver)
tests_fuzz_fuzz_h2_CPPFLAGS = $(fuzz_cppflags) $(NGHTTP2_CFLAGS)
tests_fuzz_fuzz_h2_LDFLAGS = $(fuzz_ldflags) -Wl,--wrap=recv,--wrap=send
tests_fuzz_fuzz_h2_LDADD = libproxytls.a libproxy.a libpolicy.a libsys.a libbase.a $(UV_LIBS) $(CARES_LIBS) \
  $(SECCOMP_LIBS) $(JSONC_LIBS) $(OPENSSL_LIBS) $(NGHTTP2_LIBS)
