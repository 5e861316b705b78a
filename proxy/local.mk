noinst_LIBRARIES += libproxy.a libproxytls.a
libproxy_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) $(CARES_CFLAGS)
libproxy_a_SOURCES = \
  proxy/ask.c proxy/ask.h \
  proxy/audit.c proxy/audit.h \
  proxy/bytes.c proxy/bytes.h \
  proxy/confine.c proxy/confine.h \
  proxy/conn.c proxy/conn.h \
  proxy/denial.c proxy/denial.h \
  proxy/dial.c proxy/dial.h \
  proxy/direct.c proxy/direct.h \
  proxy/dns.c proxy/dns.h \
  proxy/finder.c proxy/finder.h \
  proxy/first_line.c proxy/first_line.h \
  proxy/gate.c proxy/gate.h \
  proxy/hosts.c proxy/hosts.h \
  proxy/http.c proxy/http.h proxy/http_state.h \
  proxy/http_body.c proxy/http_body.h \
  proxy/http_exchange.c \
  proxy/http_request.c \
  proxy/http_reach.c \
  proxy/http_keep.c \
  proxy/http_secret_body.c proxy/http_secret_body.h \
  proxy/http_secret.c \
  proxy/http_fixed.c proxy/http_fixed.h \
  proxy/http_judge.c \
  proxy/http_head.c proxy/http_head.h \
  proxy/http_rewrite.c proxy/http_rewrite.h \
  proxy/http_shared.h \
  proxy/http_target.c proxy/http_target.h \
  proxy/identity.c proxy/identity.h \
  proxy/inject.c proxy/inject.h \
  proxy/inject_body.c proxy/inject_body.h \
  proxy/inject_look.c \
  proxy/inject_place.c proxy/inject_place.h \
  proxy/inject_scrub.c \
  proxy/inject_sign.c proxy/inject_sign.h \
  proxy/inside.c proxy/inside.h \
  proxy/listener.c proxy/listener.h \
  proxy/loop.c proxy/loop.h \
  proxy/names.c proxy/names.h \
  proxy/notify.c proxy/notify.h \
  proxy/refused.c proxy/refused.h \
  proxy/parent.c proxy/parent.h \
  proxy/parent_reply.c proxy/parent_reply.h \
  proxy/proxy.h \
  proxy/publish.c proxy/publish.h \
  proxy/reach.c proxy/reach.h \
  proxy/relay.c proxy/relay.h \
  proxy/route.h \
  proxy/resolve.c proxy/resolve.h \
  proxy/sniff.c proxy/sniff.h \
  proxy/sock.c proxy/sock.h \
  proxy/sigv4.c proxy/sigv4.h \
  proxy/socks.c proxy/socks.h \
  proxy/socks5.c proxy/socks5.h \
  proxy/splice.c proxy/splice.h \
  proxy/stub.c proxy/stub.h \
  proxy/stub_tcp.c \
  proxy/tell.c proxy/tell.h \
  proxy/terminator.h \
  proxy/tls_hello.c proxy/tls_hello.h \
  proxy/tunnel.c proxy/tunnel.h \
  proxy/values.c proxy/values.h

# What only sbx-proxy-tls has: a run without credentials does not load OpenSSL, nor nghttp2.
libproxytls_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) $(NGHTTP2_CFLAGS)
libproxytls_a_SOURCES = \
  proxy/ca.c proxy/ca.h \
  proxy/digest.c proxy/digest.h \
  proxy/h2.c proxy/h2.h proxy/h2_state.h \
  proxy/h2_body.c \
  proxy/h2_head.c proxy/h2_head.h \
  proxy/h2_leg.c \
  proxy/h2_mem.c proxy/h2_mem.h \
  proxy/h2_response.c \
  proxy/h2_stream.c \
  proxy/terminate.c \
  proxy/tls.c proxy/tls.h

proxy_libs = libproxy.a libpolicy.a libsys.a libbase.a $(UV_LIBS) $(CARES_LIBS) $(SECCOMP_LIBS) $(JSONC_LIBS)

pkglibexec_PROGRAMS += sbx-proxy sbx-proxy-tls
sbx_proxy_SOURCES = proxy/main.c proxy/no_terminator.c
sbx_proxy_LDADD = $(proxy_libs)
sbx_proxy_tls_SOURCES = proxy/main.c
sbx_proxy_tls_LDADD = libproxytls.a $(proxy_libs) $(OPENSSL_LIBS) $(NGHTTP2_LIBS)
