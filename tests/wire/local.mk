# The wire tests start the real sbx-proxy in namespaces of their own; see tests/wire/run. They come first, since some of
# them wait for a minute.
check_PROGRAMS += tests/wire/canon
tests_wire_canon_SOURCES = tests/wire/canon.c
tests_wire_canon_LDADD = libpolicy.a libbase.a $(JSONC_LIBS)

TESTS += tests/wire/run
EXTRA_DIST += tests/wire/run tests/wire/bodies.py tests/wire/credentials.py tests/wire/http2.py tests/wire/live.py tests/wire/script.py tests/wire/signing.py tests/wire/stage.py tests/wire/terminated.py \
  tests/wire/cases
