noinst_LIBRARIES += libsys.a
libsys_a_CPPFLAGS = $(AM_CPPFLAGS) $(SECCOMP_CFLAGS)
libsys_a_SOURCES = \
  src/sys/cgroup.c src/sys/cgroup.h \
  src/sys/control.h \
  src/sys/freeze.c src/sys/freeze.h \
  src/sys/landlock.c src/sys/landlock.h \
  src/sys/memfd.c src/sys/memfd.h \
  src/sys/netns.c src/sys/netns.h \
  src/sys/path.c src/sys/path.h \
  src/sys/probe.c src/sys/probe.h \
  src/sys/proc.c src/sys/proc.h \
  src/sys/replace.c src/sys/replace.h \
  src/sys/rtnl.c src/sys/rtnl.h \
  src/sys/scm.c src/sys/scm.h \
  src/sys/seccomp.c src/sys/seccomp.h \
  src/sys/secret.c src/sys/secret.h \
  src/sys/spawn.c src/sys/spawn.h \
  src/sys/trace.c src/sys/trace.h \
  src/sys/trace_calls.c
