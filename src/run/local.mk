noinst_LIBRARIES += librun.a
librun_a_SOURCES = \
  src/run/ask.c src/run/ask.h \
  src/run/ask_terminal.c src/run/ask_terminal.h \
  src/run/audit_file.c src/run/audit_file.h \
  src/run/credential_file.c src/run/credential_file.h \
  src/run/fetch.c src/run/fetch.h \
  src/run/fetch_keys.c src/run/fetch_keys.h \
  src/run/java_store.c src/run/java_store.h \
  src/run/late.c src/run/late.h \
  src/run/launch.c \
  src/run/limits.c src/run/limits.h \
  src/run/nss_store.c src/run/nss_store.h \
  src/run/outbox.c src/run/outbox.h \
  src/run/outside.c src/run/outside.h \
  src/run/own_file.c src/run/own_file.h \
  src/run/passing.c src/run/passing.h \
  src/run/placeholder.c src/run/placeholder.h \
  src/run/program.c src/run/program.h \
  src/run/project_file.c src/run/project_file.h \
  src/run/proxy.c src/run/proxy.h \
  src/run/publish.c src/run/publish.h \
  src/run/run.h \
  src/run/secrets.c src/run/secrets.h \
  src/run/summary.c src/run/summary.h \
  src/run/supervise.c src/run/supervise.h
