noinst_LIBRARIES += libpolicy.a
libpolicy_a_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libpolicy_a_SOURCES = \
  policy/addr.c policy/addr.h \
  policy/decide.c policy/decide.h \
  policy/host.c policy/host.h \
  policy/keys.c policy/keys.h \
  policy/limits.h \
  policy/load.h \
  policy/policy.c policy/policy.h \
  policy/print.h \
  policy/rule.c policy/rule.h \
  policy/validate.h
