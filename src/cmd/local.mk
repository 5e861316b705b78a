bin_PROGRAMS += sbx
sbx_CPPFLAGS = $(AM_CPPFLAGS) \
  -DSBX_PROXY_PATH='"$(pkglibexecdir)/$(SBX_PROXY_NAME)"' \
  -DSBX_PROXY_TLS_PATH='"$(pkglibexecdir)/$(SBX_PROXY_TLS_NAME)"' \
  -DSBX_APPARMOR_PATH='"$(pkgdatadir)/apparmor/sbx"'
sbx_SOURCES = \
  src/cmd/cmd.h \
  src/cmd/credential.c \
  src/cmd/context.c src/cmd/context.h \
  src/cmd/doctor.c src/cmd/doctor.h \
  src/cmd/doctor_attempt.c \
  src/cmd/doctor_bwrap.c \
  src/cmd/doctor_exec.c \
  src/cmd/doctor_host.c \
  src/cmd/doctor_kernel.c \
  src/cmd/doctor_mend.c \
  src/cmd/doctor_place.c src/cmd/doctor_place.h \
  src/cmd/doctor_selftest.c \
  src/cmd/learn.c \
  src/cmd/learn_hosts.c src/cmd/learn_hosts.h \
  src/cmd/learn_paths.c src/cmd/learn_paths.h \
  src/cmd/log.c \
  src/cmd/main.c \
  src/cmd/nested.c src/cmd/nested.h \
  src/cmd/opts.c src/cmd/opts.h \
  src/cmd/planning.c src/cmd/planning.h \
  src/cmd/policy.c \
  src/cmd/run.c \
  src/cmd/why.c src/cmd/why.h \
  src/cmd/why_path.c
sbx_LDFLAGS = $(AM_LDFLAGS) $(SBX_STATIC)
sbx_LDADD = librun.a libengine.a libplan.a libpolicy.a libsys.a libbase.a $(SECCOMP_LIBS) $(JSONC_LIBS)
