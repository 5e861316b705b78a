noinst_LIBRARIES += libsys.a
libsys_a_CPPFLAGS = $(AM_CPPFLAGS) $(SECCOMP_CFLAGS)
libsys_a_SOURCES = \
  src/sys/control.h \
  src/sys/memfd.c src/sys/memfd.h \
  src/sys/scm.c src/sys/scm.h \
  src/sys/seccomp.c src/sys/seccomp.h
