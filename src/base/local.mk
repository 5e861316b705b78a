noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
  src/base/base64.c src/base/base64.h \
  src/base/buf.c src/base/buf.h \
  src/base/clock.c src/base/clock.h \
  src/base/err.c src/base/err.h \
  src/base/fd.c src/base/fd.h \
  src/base/log.c src/base/log.h \
  src/base/mem.c src/base/mem.h \
  src/base/num.c src/base/num.h \
  src/base/sha1.c src/base/sha1.h \
  src/base/span.c src/base/span.h \
  src/base/strv.c src/base/strv.h
