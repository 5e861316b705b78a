noinst_LIBRARIES += libplan.a
libplan_a_SOURCES = \
  src/plan/build.c src/plan/build.h \
  src/plan/build_copies.c \
  src/plan/build_env.c \
  src/plan/build_git.c \
  src/plan/build_idle.c \
  src/plan/build_network.c \
  src/plan/build_publish.c \
  src/plan/build_trust.c \
  src/plan/build_upstream.c \
  src/plan/build_protect.c \
  src/plan/build_system.c \
  src/plan/build_visible.c \
  src/plan/check.c src/plan/check.h \
  src/plan/facts.c src/plan/facts.h \
  src/plan/facts_browser.c src/plan/facts_browser.h \
  src/plan/facts_hide.c src/plan/facts_hide.h \
  src/plan/facts_java.c \
  src/plan/facts_paths.c \
  src/plan/ops.c src/plan/ops.h \
  src/plan/plan.c src/plan/plan.h \
  src/plan/print.c src/plan/print.h \
  src/plan/syscalls.c src/plan/syscalls.h \
  src/plan/veil.c src/plan/veil.h \
  src/plan/view.c src/plan/view.h
